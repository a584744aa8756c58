/**
 * PUCT search guided by a network: `distill/mcts/puct.py` as players use it, with the constant exploration rule and
 * proofs (MCTS-Solver), without randomness. For equal network outputs it makes the same visits, so what Python stores
 * in float32 is rounded to it here.
 */

import { CELLS, COLUMNS, FROM_CENTRE, boardOf, legalColumns } from "./rules.js";
import { Stones } from "./stones.js";

const EXPLORATION = 1.5;
const FPU_REDUCTION = 0.25;
const UNIT = 2 ** 14; // values are whole multiples of 1 / UNIT: their sum does not depend on its order
const WON = 1e9; // scores of proven moves, before the plies to the end are counted
const LOST = -1e9;

/**
 * @param {object} position of `replay`, not over
 * @param {number} simulations
 * @param {(board: Int8Array) => Promise<{logits: ArrayLike<number>, value: number}>} evaluate evaluates a board with the network
 * @param {{aborted: boolean}} [signal] ends the search with an Error
 * @returns {Promise<{move: number, visits: number[], value: number}>} the column to play, the root visits, and the mean return
 */
export async function search(position, simulations, evaluate, signal) {
  const start = new Stones(position);
  const board = new Stones(position);
  const root = expand(start, await evaluate(boardOf(start)));
  for (const column of wins(start)) {
    root.proven[column] = 1; // below the root such a position gets no node
    root.plies[column] = 1;
  }
  for (let done = 0; done < simulations; done += 1) {
    if (signal?.aborted) throw new Error("The search was called off.");
    board.copyFrom(start);
    const path = select(root, board, done + 1);
    let value = valueByRules(path, board);
    if (value === null) {
      const child = expand(board, await evaluate(boardOf(board)));
      const { node, column } = path.at(-1);
      node.children[column] = child;
      value = roundToEven(child.value * UNIT);
    }
    backup(path, value);
  }
  return conclude(root, simulations);
}

/** Columns in which the side to move has four at once. */
const wins = (board) => legalColumns(board).filter((column) => board.wins(column, board.side));

/** Columns after which the opponent has four at once. */
const losing = (board) => legalColumns(board).filter((column) => {
  board.play(column);
  const isLost = wins(board).length > 0;
  board.undo(column);
  return isLost;
});

/**
 * A node of the tree. Totals and proofs (1 won, −1 lost) of its columns are for the side to move; `plies` tells in how
 * many a proven column ends the game.
 */
function expand(board, { logits, value }) {
  const open = legalColumns(board);
  const highest = Math.max(...open.map((column) => logits[column]));
  const weights = new Array(COLUMNS).fill(0);
  for (const column of open) weights[column] = Math.exp(logits[column] - highest);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const proven = new Array(COLUMNS).fill(0);
  const plies = new Array(COLUMNS).fill(0);
  for (const column of losing(board)) [proven[column], plies[column]] = [-1, 2];
  return {
    open, proven, plies,
    priors: weights.map((weight) => Math.fround(Math.fround(weight) / sum)),
    value: Math.min(Math.max(value, -1), 1),
    visits: new Array(COLUMNS).fill(0),
    totals: new Array(COLUMNS).fill(0),
    children: new Array(COLUMNS).fill(null),
  };
}

/** Play the best columns on the board until one has no node. Returns the nodes and columns of this path. */
function select(root, board, visited) {
  const path = [];
  for (let node = root; node; ) {
    const column = bestColumn(node, visited);
    path.push({ node, column, isFour: board.wins(column, board.side) });
    visited = node.visits[column];
    board.play(column);
    node = node.children[column];
  }
  return path;
}

/** The column with the highest score in a node visited so often, ties to the centre. */
function bestColumn({ open, priors, value, visits, totals, proven, plies }, visited) {
  const bonus = EXPLORATION * Math.sqrt(visited);
  const seenPrior = open.reduce((sum, column) => (visits[column] ? sum + priors[column] : sum), 0);
  const first = value - FPU_REDUCTION * Math.sqrt(seenPrior);
  let best = -1;
  let highest = -Infinity;
  for (const column of FROM_CENTRE) {
    if (!open.includes(column)) continue;
    const n = visits[column];
    let score = (n ? totals[column] / (UNIT * n) : first) + (bonus * priors[column]) / (1 + n);
    if (proven[column] === 1) score = WON - plies[column];
    if (proven[column] === -1) score = LOST + plies[column];
    if (score > highest) [best, highest] = [column, score];
  }
  return best;
}

/** The leaf's value in UNITs for its side to move where rules or proofs decide it, or null. */
function valueByRules(path, board) {
  const { node, column, isFour } = path.at(-1);
  if (isFour) {
    prove(path, 1, 1);
    return -UNIT;
  }
  if (board.ply === CELLS) return 0;
  if (node.proven[column]) return -UNIT * node.proven[column];
  if (wins(board).length) {
    prove(path, -1, 2);
    return UNIT;
  }
  if (losing(board).length === legalColumns(board).length) {
    prove(path, 1, 3);
    return -UNIT;
  }
  return null;
}

/** Propagate a proof, that the path's last move wins (1) or loses (−1) in so many plies, towards the root. */
function prove(path, result, plies) {
  for (const { node, column } of path.toReversed()) {
    node.proven[column] = result;
    node.plies[column] = plies;
    node.children[column] = null;
    if (result === -1) {
      if (node.open.some((other) => node.proven[other] !== -1)) return;
      plies = Math.max(...node.open.map((other) => node.plies[other]));
    }
    result = -result;
    plies += 1;
  }
}

/** Add the value to every edge of the path, with the sign of its side to move. */
function backup(path, value) {
  for (const { node, column } of path.toReversed()) {
    value = -value;
    node.visits[column] += 1;
    node.totals[column] += value;
  }
}

/** As NumPy rounds: halves to the even neighbour. */
function roundToEven(number) {
  const rounded = Math.round(number); // halves up
  return rounded - number === 0.5 && rounded % 2 ? rounded - 1 : rounded;
}

/** The column proven to win soonest, else the most visited not proven to lose, else the one that loses last. */
function conclude({ open, visits, totals, proven, plies }, simulations) {
  const mean = (column) => proven[column] || (visits[column] ? totals[column] / (UNIT * visits[column]) : 0);
  const won = open.filter((column) => proven[column] === 1);
  const unlost = open.filter((column) => proven[column] !== -1);
  const isCandidate = [won, unlost, open].find((columns) => columns.length);
  const isProven = won.length > 0 || unlost.length === 0;
  const soonest = isProven ? (won.length ? 1 : -1) : 0;
  const ranked = FROM_CENTRE.filter((column) => isCandidate.includes(column));
  ranked.sort((one, other) => (
    soonest * (plies[one] - plies[other]) || visits[other] - visits[one] || mean(other) - mean(one)));
  const move = ranked[0];
  if (isProven) return { move, visits: visits.map((_, column) => (column === move ? simulations : 0)), value: soonest };
  const returns = FROM_CENTRE.reduce((sum, each) => sum + visits[each] * mean(each), 0);
  return { move, visits, value: returns / visits.reduce((sum, n) => sum + n, 0) };
}
