/**
 * One game: the moves, the position shown, who plays which side. Knows nothing of the screen or of engines.
 *
 * Fires "change" after anything changed, with `detail.why`: "move", "step", "take-back", "load", "resign", "players" or
 * "look".
 */

import { replay } from "./rules.js";

export const PERSON = "person";
export const REMOTE = "Your friend"; // a person elsewhere (`friend.js`); the name is also the title

export class Game extends EventTarget {
  moves = "";
  cursor = 0; // moves shown, of moves.length
  players = [PERSON, PERSON]; // of the side that moves first, and of the other
  isFlipped = false; // first side yellow
  isStarted = false; // an engine that moves first waits for the start
  isPaused = false;
  resigned = null; // the side that resigned
  counted = null; // in the score against the opponent: "won", "drawn", "lost", "resigned", or why it is not, as `load` says

  /** The position shown. */
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

  /** The person's side against an engine; undefined for two people or two engines. */
  get side() {
    const people = [0, 1].filter((side) => this.players[side] === PERSON);
    return people.length === 1 ? people[0] : undefined;
  }

  /** How the game ended: {winner: side, or null for a draw}; undefined while it goes on or an earlier position is shown. */
  get result() {
    const { isOver, winner } = this.position;
    if (isOver) return { winner };
    return this.resigned !== null && this.isAtEnd ? { winner: 1 - this.resigned } : undefined;
  }

  /** "red" or "yellow": the colour of a side. */
  colour(side) {
    return (side === 0) !== this.isFlipped ? "red" : "yellow";
  }

  start() {
    this.isStarted = true;
    this.isPaused = false;
    this.#changed("players");
  }

  /** Play from the position shown; later moves are dropped. Throws an Error for an illegal move. */
  play(column) {
    const moves = `${this.shown}${column + 1}`;
    replay(moves);
    if (this.players[this.cursor % 2] === PERSON && !this.isWatched) this.isPaused = false; // the opponent replies
    Object.assign(this, { moves, cursor: moves.length, isStarted: true, resigned: null });
    this.#changed("move");
  }

  /**
   * Undo a resignation, or return to the person's turn, by one move at least. Without a person's turn to return to, the
   * engines pause, or they would play the same again at once.
   */
  takeBack() {
    if (this.resigned !== null && this.isAtEnd) {
      if (this.counted === "resigned") this.counted = null; // what was loaded, or counted before, stays so
      this.resigned = null;
      return this.#changed("take-back");
    }
    if (!this.cursor) return;
    let length = this.cursor - 1;
    while (length > 0 && this.players[length % 2] !== PERSON) length -= 1;
    if (this.isWatched) length = this.cursor - 1;
    this.isPaused = this.players[length % 2] !== PERSON;
    Object.assign(this, { moves: this.moves.slice(0, length), cursor: length, resigned: null });
    this.#changed("take-back");
  }

  resign(side) {
    this.resigned = side;
    this.#changed("resign");
  }

  /** Show the position after so many moves. */
  goTo(cursor) {
    const inside = Math.max(0, Math.min(this.moves.length, cursor));
    if (inside === this.cursor) return;
    this.cursor = inside;
    this.#changed("step");
  }

  /**
   * Load a move string; throws an Error, and changes nothing, if it is illegal. It does not count: "loaded", or "shown" for
   * a finished game, which the person at the screen may not have played.
   */
  load(moves) {
    const { isOver } = replay(moves);
    const isStarted = moves !== "";
    const isPaused = isStarted && this.isWatched;
    Object.assign(this, { moves, cursor: moves.length, isStarted, isPaused, resigned: null, counted: moves ? (isOver ? "shown" : "loaded") : null });
    this.#changed("load");
  }

  /** All but players and colours, as `restore` takes it. */
  snapshot() {
    const { moves, cursor, isStarted, isPaused, resigned, counted } = this;
    return { moves, cursor, isStarted, isPaused, resigned, counted };
  }

  /** Throws an Error, and changes nothing, for an illegal game. */
  restore(snapshot) {
    replay(snapshot.moves);
    Object.assign(this, snapshot);
    this.#changed("load");
  }

  seat(side, player) {
    this.players[side] = player;
    this.isPaused = this.isStarted && this.isWatched; // watching begins with a click
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
