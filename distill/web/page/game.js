/**
 * One game: the moves, where in them we look, who plays which side. Knows nothing of the screen or of engines.
 *
 * Fires "change" after anything changed, with `detail.why`: "move", "step", "take-back", "load", "players" or "look".
 */

import { replay } from "./rules.js";

export const PERSON = "person";

export class Game extends EventTarget {
  moves = "";
  cursor = 0; // moves shown, of moves.length
  players = [PERSON, PERSON]; // of the side that moves first, and of the other
  isFlipped = false; // first side yellow
  isPaused = false;

  /** The position looked at. */
  get position() {
    return replay(this.shown);
  }

  get shown() {
    return this.moves.slice(0, this.cursor);
  }

  get isAtEnd() {
    return this.cursor === this.moves.length;
  }

  get isWatched() {
    return !this.players.includes(PERSON);
  }

  /** "red" or "yellow": the colour of a side. */
  colour(side) {
    return (side === 0) !== this.isFlipped ? "red" : "yellow";
  }

  /** Play from the position looked at; moves after it are dropped. Throws an Error for a move against the rules. */
  play(column) {
    const moves = `${this.shown}${column + 1}`;
    replay(moves);
    Object.assign(this, { moves, cursor: moves.length });
    this.#changed("move");
  }

  /**
   * Back to a person's turn, one move at least. Where no person has one, the players stop, or they would play the
   * same again at once.
   */
  takeBack() {
    if (!this.cursor) return;
    let length = this.cursor - 1;
    while (length > 0 && this.players[length % 2] !== PERSON) length -= 1;
    if (this.isWatched) length = this.cursor - 1;
    this.isPaused = this.players[length % 2] !== PERSON;
    this.moves = this.moves.slice(0, length);
    this.cursor = length;
    this.#changed("take-back");
  }

  /** Look at the position after so many moves. */
  goTo(cursor) {
    const inside = Math.max(0, Math.min(this.moves.length, cursor));
    if (inside === this.cursor) return;
    this.cursor = inside;
    this.#changed("step");
  }

  /** Take over a move string; throws an Error, and changes nothing, where it is no game. */
  load(moves) {
    replay(moves);
    Object.assign(this, { moves, cursor: moves.length, isPaused: this.isWatched });
    this.#changed("load");
  }

  seat(side, player) {
    this.players[side] = player;
    this.isPaused = this.isWatched; // watching begins with a click
    this.#changed("players");
  }

  switchSides() {
    this.players.reverse();
    this.#changed("players");
  }

  flipColours() {
    this.isFlipped = !this.isFlipped;
    this.#changed("look");
  }

  pause(isPaused) {
    if (isPaused === this.isPaused) return;
    this.isPaused = isPaused;
    this.#changed("players");
  }

  #changed(why) {
    this.dispatchEvent(new CustomEvent("change", { detail: { why } }));
  }
}
