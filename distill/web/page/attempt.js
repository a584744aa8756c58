/**
 * A puzzle that is being solved: where in its tree the person is (`experiments/page/lines.py` describes the tree).
 * Columns are 0–6.
 */

import { FROM_CENTRE } from "./rules.js";

export class Attempt {
  #nodes;
  #node = 0;

  constructor({ moves, nodes }) {
    this.side = moves.length % 2; // the person's
    this.moves = moves; // to the position in which the person is to move, or to the end
    this.#nodes = nodes;
  }

  /** The exact score of each column; null for full ones. */
  get scores() {
    return this.#nodes[this.#node][0];
  }

  get score() {
    return Math.max(...this.scores.filter((score) => score !== null));
  }

  /** The best column, of equal ones the nearest to the centre. */
  get best() {
    return FROM_CENTRE.find((column) => this.scores[column] === this.score);
  }

  /** "full", "wrong" (loses the win or the draw), "slower" (wins, but later) or "right". */
  classify(column) {
    const score = this.scores[column];
    if (score === null) return "full";
    if (Math.sign(score) < Math.sign(this.score)) return "wrong";
    return score < this.score ? "slower" : "right";
  }

  /** The opponent's answer, as a digit from 1 to 7; empty where the game or the puzzle ends. */
  replyTo(column) {
    return this.#nodes[this.#node][1][column].replace("-", "");
  }

  /** Whether a right column ends the puzzle. */
  isLast(column) {
    return !(this.#nodes[this.#node][2]?.[column] ?? 0);
  }

  /** Go on with a right column. Returns whether that was the last one. */
  play(column) {
    this.moves += `${column + 1}${this.replyTo(column)}`;
    if (this.isLast(column)) return true;
    this.#node = this.#nodes[this.#node][2][column];
    return false;
  }

  /** Best play of both sides from here to the end, as a move string. */
  line() {
    const rest = new Attempt({ moves: "", nodes: this.#nodes });
    rest.#node = this.#node;
    while (!rest.play(rest.best)); // until the last one
    return rest.moves;
  }
}
