/**
 * A game's mistakes again, one after another: the position before each of them is on the board, and the person looks for
 * a better column. Nothing of the screen.
 */

import { outlook } from "./opinions.js";
import { SERIOUS, SIGNS, bestColumn, isError, marks } from "./review.js";

export class Retry {
  state = "open"; // "wrong", "right", "shown" (the person asked) or "over"
  column = null; // the one that was tried or shown last
  #result;
  #plies;
  #place = 0;
  #isFirst = true; // no column was tried at this mistake yet
  #solved = 0; // at the first try

  /**
   * @param {{moves: string, opinions: object[], marks: string[]}} result of an analysis
   * @param {number|undefined} side whose mistakes; undefined for both
   */
  constructor(result, side) {
    this.#result = result;
    this.#plies = pliesOf(result, side);
  }

  /** Moves before the mistake. */
  get ply() {
    return this.#plies[this.#place];
  }

  get isAnswered() {
    return ["right", "shown"].includes(this.state);
  }

  get isLast() {
    return this.#place === this.#plies.length - 1;
  }

  /** An answer: right if a review would not mark it as a mistake. */
  try(column) {
    const { scores, policy } = this.#result.opinions[this.ply];
    const isRight = scores
      ? !isError(marks([scores], String(column + 1))[0])
      : column === this.#best || policy[column] >= SERIOUS;
    this.column = column;
    if (isRight && this.#isFirst) this.#solved += 1;
    this.#isFirst = false;
    this.state = isRight ? "right" : "wrong";
  }

  again() {
    this.state = "open";
  }

  show() {
    this.column = this.#best;
    this.#isFirst = false;
    this.state = "shown";
  }

  next() {
    this.state = this.isLast ? "over" : "open";
    if (!this.isLast) this.#place += 1;
    this.#isFirst = true;
  }

  get title() {
    return `Mistake ${this.#place + 1} of ${this.#plies.length}`;
  }

  /** What is to be done, or how the answer was. @param {(side: number) => string} colour such as "Red" */
  inWords(colour) {
    const column = this.column + 1;
    if (this.state === "over") return `${this.#solved} of ${this.#plies.length} at the first try.`;
    if (this.state === "wrong") return `Column ${column}${this.#outlook(colour)}. Try again.`;
    if (this.state === "right") return `Right! Column ${column} is better${this.#outlook(colour)}.`;
    if (this.state === "shown") return `Column ${column} was better${this.#outlook(colour)}.`;
    const played = this.#result.moves[this.ply];
    return `${colour(this.ply % 2)} played column ${played}${SIGNS[this.#result.marks[this.ply]]} Find a better one.`;
  }

  get #best() {
    return bestColumn(this.#result.opinions[this.ply]);
  }

  #outlook(colour) {
    const { scores } = this.#result.opinions[this.ply];
    return scores ? `: ${outlook([scores[this.column]], colour(this.ply % 2).toLowerCase(), this.ply)}` : this.state === "wrong" ? " is not it" : "";
  }
}

/** Moves before each mistake of a side, or of both. */
export function pliesOf({ marks: given }, side) {
  return given.flatMap((mark, ply) => (isError(mark) && (side === undefined || ply % 2 === side) ? [ply] : []));
}
