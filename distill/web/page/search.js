/**
 * UCT with rollouts in a worker: the search of `distill/mcts/`, in plain JavaScript and without its speed.
 *
 * Score of a child: mean return + sqrt(ln N / n); unvisited children first. A rollout wins if it can, blocks if it
 * must, takes the centre one time in five, and is random otherwise. Choice: most visits, then higher mean, then
 * nearest the centre.
 */

import { CELLS, COLUMNS, FROM_CENTRE, ROWS, legalColumns, replay } from "./rules.js";
import { Stones } from "./stones.js";

const CENTRE = 3;

const node = () => ({ visits: 0, total: 0, children: null, isWon: false });

/** The root after so many simulations from a position that is not over. */
function grow(position, simulations) {
  const start = new Stones(position);
  const board = new Stones(position);
  const root = node();
  for (let done = 0; done < simulations; done += 1) {
    board.copyFrom(start);
    const path = [root];
    let leaf = root;
    let result = null; // for the side that moved into the leaf
    while (result === null) {
      leaf.children ??= expand(board);
      const next = select(leaf);
      const isNew = next.node.visits === 0;
      if (isNew) next.node.isWon = board.wins(next.column, board.side);
      board.play(next.column);
      leaf = next.node;
      path.push(leaf);
      if (leaf.isWon) result = 1;
      else if (board.ply === CELLS) result = 0;
      else if (isNew) result = -rollout(board);
    }
    for (let at = path.length - 1; at >= 0; at -= 1) {
      path[at].visits += 1;
      path[at].total += result;
      result = -result;
    }
  }
  return root;
}

/** One child per legal column, in random order. */
function expand(board) {
  const children = [];
  for (const column of FROM_CENTRE) if (board.heights[column] < ROWS) children.push({ column, node: node() });
  for (let last = children.length - 1; last > 0; last -= 1) {
    const other = Math.floor(Math.random() * (last + 1));
    [children[last], children[other]] = [children[other], children[last]];
  }
  return children;
}

function select(parent) {
  const bonus = Math.sqrt(Math.log(parent.visits || 1));
  let best = null;
  let highest = -Infinity;
  for (const child of parent.children) {
    const { visits, total } = child.node;
    if (!visits) return child;
    const score = total / visits + bonus / Math.sqrt(visits);
    if (score > highest) [best, highest] = [child, score];
  }
  return best;
}

/** Play to the end by simple rules. Returns the result for the side to move at the start. */
function rollout(board) {
  const starter = board.side;
  while (board.ply < CELLS) {
    let chosen = -1;
    let block = -1;
    const open = [];
    for (let column = 0; column < COLUMNS; column += 1) {
      if (board.heights[column] === ROWS) continue;
      open.push(column);
      if (board.wins(column, board.side)) return board.side === starter ? 1 : -1;
      if (block < 0 && board.wins(column, 1 - board.side)) block = column;
    }
    if (block >= 0) chosen = block;
    else if (Math.random() < 0.2 && board.heights[CENTRE] < ROWS) chosen = CENTRE;
    else chosen = open[Math.floor(Math.random() * open.length)];
    board.play(chosen);
  }
  return 0;
}

onmessage = ({ data: { simulations, moves }, ports: [port] }) => {
  const position = replay(moves);
  const root = grow(position, simulations);
  const visits = new Array(COLUMNS).fill(0);
  const means = new Array(COLUMNS).fill(-2);
  for (const { column, node: child } of root.children) {
    visits[column] = child.visits;
    if (child.visits) means[column] = child.total / child.visits;
  }
  const total = visits.reduce((sum, number) => sum + number, 0);
  const order = FROM_CENTRE.filter((column) => legalColumns(position).includes(column));
  order.sort((one, other) => visits[other] - visits[one] || means[other] - means[one]);
  const policy = visits.map((number) => number / total);
  port.postMessage({ answer: { move: order[0], policy, value: -root.total / root.visits, scores: null } });
};
