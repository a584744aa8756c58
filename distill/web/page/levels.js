/**
 * Named levels: the rule of `distill/players/levels.py`, which describes it, in JavaScript. Out of a policy and a
 * position it makes the probability of each column, by which a move is drawn.
 */

import { COLUMNS, FROM_CENTRE, ROWS, cellOf, replay } from "./rules.js";

/** `mode`: empty for the network's policy, else a search. */
export const LEVELS = {
  starter: { mode: "", temperature: 1, blindness: 1, trapBlindness: 1, blockStraight: 0.1, blockDiagonal: 0 },
  beginner: { mode: "", temperature: 1, blindness: 0.8, trapBlindness: 1, blockStraight: 0.7, blockDiagonal: 0.4 },
  casual: { mode: "", temperature: 1, blindness: 0.35, trapBlindness: 1, blockStraight: 1, blockDiagonal: 0.85 },
  regular: { mode: "", temperature: 1, blindness: 0.2, trapBlindness: 0.3, blockStraight: 1, blockDiagonal: 1 },
  club: { mode: "", temperature: 1.7, blindness: 0, trapBlindness: 0, blockStraight: 1, blockDiagonal: 1 },
  expert: { mode: "", temperature: 0, blindness: 0, trapBlindness: 0, blockStraight: 1, blockDiagonal: 1 },
  perfect: { mode: "@puct:800", temperature: 0, blindness: 0, trapBlindness: 0, blockStraight: 1, blockDiagonal: 1 },
};
const NOTES = {
  starter: "Plays anywhere and hardly ever blocks: for children",
  beginner: "Wins when it can, but often forgets to block",
  casual: "Usually blocks, but falls into traps",
  regular: "Always blocks and sees most traps",
  club: "Sees traps but makes occasional mistakes",
  expert: "Plays the network’s best move, without search",
  perfect: "The network with a search of 800 simulations",
};
export const cards = Object.entries(NOTES).map(([name, note]) => ({
  name, kind: "level", title: name[0].toUpperCase() + name.slice(1), note,
}));

const PRIOR = [1, 2, 3, 4, 3, 2, 1];
const STRAIGHT = [[0, 1], [1, 0]];
const DIAGONAL = [[1, 1], [1, -1]];

/**
 * A level's opinion after a move string.
 * @param {string} name one of LEVELS
 * @param {string} moves
 * @param {(mode: string) => Promise<{policy: number[]}>} ask queries the network, in the level's mode
 */
export async function levelOpinion(name, moves, ask) {
  const { policy } = await ask(LEVELS[name].mode);
  const chances = probabilities(LEVELS[name], policy, replay(moves));
  return { move: draw(chances), policy: chances, value: null, scores: null };
}

/**
 * The probability of each column, 0 on full ones.
 * @param {object} level one of LEVELS
 * @param {number[]} policy
 * @param {{cells: Int8Array, heights: number[], side: number}} position of `replay`, not over
 */
export function probabilities(level, policy, position) {
  const { side } = position;
  const open = position.heights.map((height) => height < ROWS);
  const won = open.map((_, column) => wins(position, column, side));
  if (won.includes(true)) return among(won.map(Number), won);

  const prior = among(PRIOR, open);
  const seen = atTemperature(policy, level.temperature);
  const weight = hasTrap(position) ? level.trapBlindness : level.blindness;
  const mixed = seen.map((share, column) => (1 - weight) * share + weight * prior[column]);

  const threats = open.map((_, column) => wins(position, column, 1 - side));
  const others = open.map((isOpen, column) => isOpen && !threats[column]);
  const isStraight = open.some((_, column) => wins(position, column, 1 - side, STRAIGHT));
  let block = 0;
  if (threats.includes(true)) block = isStraight ? level.blockStraight : level.blockDiagonal;
  if (!others.includes(true)) block = 1;
  const blocking = among(mixed, threats, prior);
  const passing = among(mixed, others, prior);
  return mixed.map((_, column) => block * blocking[column] + (1 - block) * passing[column]);
}

/** Whether a trap is on the board, for the side to move or against it. */
function hasTrap(board) {
  const { side } = board;
  return board.heights.some((height, column) => height < ROWS &&
    (isTrap(board, column, side) || isTrap(board, column, 1 - side) || wins(put(board, column, side), column, 1 - side)));
}

/** Whether a stone of a side threatens to win whatever the single answer, and does not win itself. */
function isTrap(board, column, side) {
  if (wins(board, column, side)) return false;
  const after = put(board, column, side);
  const threats = FROM_CENTRE.filter((other) => wins(after, other, side));
  if (threats.length !== 1) return threats.length > 1;
  const blocked = put(after, threats[0], 1 - side);
  return FROM_CENTRE.some((other) => wins(blocked, other, side));
}

/** Whether a stone of a side in this column makes four in one of these directions; never in a full one. */
function wins(board, column, side, directions = [...STRAIGHT, ...DIAGONAL]) {
  if (board.heights[column] === ROWS) return false;
  const row = ROWS - 1 - board.heights[column];
  const reach = (down, right) => {
    let steps = 0;
    while (ownerOf(board, row + (steps + 1) * down, column + (steps + 1) * right) === side) steps += 1;
    return steps;
  };
  return directions.some(([down, right]) => reach(down, right) + reach(-down, -right) >= 3);
}

/** The side whose stone lies there, −1 where none does, null outside. */
function ownerOf(board, row, column) {
  return row >= 0 && row < ROWS && column >= 0 && column < COLUMNS ? board.cells[cellOf(row, column)] : null;
}

/** The board with one more stone. */
function put(board, column, side) {
  const cells = Int8Array.from(board.cells);
  const heights = [...board.heights];
  cells[cellOf(ROWS - 1 - heights[column], column)] = side;
  heights[column] += 1;
  return { cells, heights };
}

/** The policy with each share to the power 1 / temperature; at 0 all on the largest, of equal ones the centremost. */
function atTemperature(policy, temperature) {
  if (temperature === 0) {
    const best = FROM_CENTRE.reduce((most, column) => (policy[column] > policy[most] ? column : most));
    return policy.map((_, column) => Number(column === best));
  }
  const raised = policy.map((share) => share ** (1 / temperature));
  const total = sum(raised);
  return raised.map((share) => share / total);
}

/** The shares of these columns alone, divided by their sum; `instead` where that is 0; 0 where there is no column. */
function among(shares, columns, instead = shares) {
  let kept = shares.map((share, column) => (columns[column] ? share : 0));
  if (!sum(kept)) kept = instead.map((share, column) => (columns[column] ? share : 0));
  const total = sum(kept) || 1;
  return kept.map((share) => share / total);
}

/** A column by its probability. */
function draw(chances) {
  const mark = Math.random() * sum(chances);
  let reached = 0;
  return chances.findIndex((chance) => (reached += chance) > mark);
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
