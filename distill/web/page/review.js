/**
 * How a game's moves are marked. Nothing of the screen.
 *
 * Marks by exact scores; the outcome is win, draw or loss:
 *
 *   forced      the only legal column
 *   only move   every other column has a worse outcome
 *   best        no column has a higher score
 *   good        the outcome is kept, and fewer than SLOW of the side's moves are lost
 *   inaccuracy  the outcome is kept, but a win takes at least SLOW more moves, or a loss comes at least SLOW sooner
 *   mistake     the outcome drops by one: a win becomes a draw, or a draw a loss
 *   blunder     a win becomes a loss
 *
 * Marks by a search are estimates. The outcome of a value v is win from v ≥ DECIDED and loss from v ≤ −DECIDED. The
 * column with most visits is best, and one with a share of at least SERIOUS is good at worst. Another column is good if
 * its value is less than SLIP below the value of the position; otherwise the outcome decides as above. No move is called
 * the only one, because a search does not prove that others fail.
 *
 * Columns are 0–6, move strings have 1–7. Scores and values are for the side to move.
 */

import { COLUMNS, FROM_CENTRE, legalColumns, replay } from "./rules.js";

export const SLOW = 3; // moves of one side
export const DECIDED = 0.2; // a value from which a game counts as won, below 0 as lost
export const SLIP = 0.3; // of the value
export const SERIOUS = 0.25; // share of the visits
export const POINTS = { "only move": 100, best: 100, good: 90, inaccuracy: 70, mistake: 30, blunder: 0 };
export const SIGNS = { inaccuracy: "?!", mistake: "?", blunder: "??", "only move": "!" };
export const LINE = 10; // plies of the line that proves what was better

export const isError = (mark) => ["inaccuracy", "mistake", "blunder"].includes(mark);

/**
 * The mark of each move by exact scores.
 * @param {(number|null)[][]} scoresPerPly seven before each move, null for full columns
 * @param {string} moves
 * @returns {string[]} keys of POINTS, or "forced"
 */
export const marks = (scoresPerPly, moves) => [...moves].map((text, ply) => markOf(scoresPerPly[ply], Number(text) - 1));

function markOf(scores, column) {
  const legal = scores.filter((score) => score !== null);
  const best = Math.max(...legal);
  const played = scores[column];
  if (legal.length === 1) return "forced";
  if (played === best) {
    const kept = legal.filter((score) => Math.sign(score) === Math.sign(best));
    return kept.length === 1 ? "only move" : "best";
  }
  return error(Math.sign(best) - Math.sign(played)) ?? (best - played >= SLOW ? "inaccuracy" : "good");
}

/**
 * The mark of each move by a search: an estimate.
 * @param {{policy: number[], value: number}[]} opinions of each position that is not over, shares of visits and value
 * @param {string} moves
 */
export function estimatedMarks(opinions, moves) {
  return [...moves].map((text, ply) => {
    if (legalColumns(replay(moves.slice(0, ply))).length === 1) return "forced";
    const { policy, value } = opinions[ply];
    const share = policy[Number(text) - 1];
    const worth = worthOf(opinions, moves, ply);
    if (share === Math.max(...policy)) return "best";
    if (share >= SERIOUS || value - worth < SLIP) return "good";
    return error(classOf(value) - classOf(worth)) ?? "inaccuracy";
  });
}

/** A move's worth for its side: the value of the next position with the other sign, or the result. */
export function worthOf(opinions, moves, ply) {
  const after = replay(moves.slice(0, ply + 1));
  if (after.isOver) return after.winner === null ? 0 : 1;
  return -opinions[ply + 1].value;
}

const classOf = (value) => (value >= DECIDED) - (value <= -DECIDED);

/** The mark of a move that loses so many classes; undefined where it keeps the class. */
const error = (drop) => ({ 1: "mistake", 2: "blunder" })[drop];

/** Whole percent of the side that began and of the other, rounded down; null for a side that never had a choice. */
export function accuracy(allMarks) {
  return [0, 1].map((side) => {
    const points = allMarks.filter((mark, ply) => ply % 2 === side && mark !== "forced").map((mark) => POINTS[mark]);
    return points.length ? Math.floor(points.reduce((sum, each) => sum + each, 0) / points.length) : null;
  });
}

/** The best column of an opinion, of equals the nearest to the centre. */
export function bestColumn({ scores, policy }) {
  const worth = (scores ?? policy).map((each) => each ?? -Infinity);
  const best = Math.max(...worth);
  return FROM_CENTRE.find((column) => worth[column] === best);
}

/**
 * How a position stands, from −1 to 1 for the side to move: a search's value; of scores the class, and within it a
 * sooner end lies farther out.
 */
export function standing({ scores, value }) {
  if (!scores) return value;
  const best = Math.max(...scores.filter((score) => score !== null));
  return Math.sign(best) * (0.4 + (0.6 * Math.abs(best)) / 18);
}

/**
 * Best moves of both sides from a position, until the end or LINE plies, as a move string.
 * @param {(moves: string) => Promise<object>} ask an opinion
 */
export async function lineFrom(moves, ask) {
  let line = "";
  while (line.length < LINE && !replay(moves + line).isOver) line += bestColumn(await ask(moves + line)) + 1;
  return line;
}
