/**
 * What an address says after its "#":
 *
 *   4453          a game, in the analysis
 *   4453/2/17     the same, with a variation that leaves it after 2 moves
 *   openings/44   a position in the opening explorer
 *   idea          the tour of three positions
 *   puzzle/4bfhy  a puzzle; `daily` is the puzzle of the day
 *   friend/4453   a game with a friend, in which whoever opens the link is to move
 *   room/NAME     a game with a friend in a room of the server
 */

import { replay } from "./rules.js";

/**
 * @param {string} address without the "#"
 * @returns {{tab: string, moves?: string, variation?: {from: number, moves: string}, puzzle?: string,
 *   friend?: {room: string} | {moves: string}}}
 * @throws {Error} naming the first move that is not legal
 */
export function readAddress(address) {
  const [first, second = "", third = ""] = address.split("/");
  if (first === "idea") return { tab: first };
  if (first === "daily") return { tab: "puzzles", puzzle: first };
  if (first === "puzzle") return { tab: "puzzles", puzzle: second };
  if (first === "room") return { tab: "play", friend: { room: second } };
  if (first === "friend") return { tab: "play", friend: { moves: legal(second) } };
  if (first === "openings") return { tab: first, moves: legal(second) };
  const moves = legal(first);
  if (!third) return { tab: moves ? "analysis" : "play", moves };
  const from = Math.min(Number(second) || 0, moves.length);
  legal(moves.slice(0, from) + third);
  return { tab: "analysis", moves, variation: { from, moves: third } };
}

/** The address of a game, and of a variation that is on the board. */
export const addressOfGame = (moves, variation) =>
  (variation ? `${moves}/${variation.from}/${variation.moves}` : moves);

function legal(moves) {
  replay(moves);
  return moves;
}
