/** What a person has done in the puzzles: streak, rating and choices, kept on the device. */

import { stored, tryEffect } from "./effects.js";
import { START, rated } from "./rating.js";

const STORAGE_KEY = "distill-puzzles"; // in localStorage
const PUZZLE_DEVIATION = 60; // of the ratings in puzzles.json

export class Progress {
  streak = 0;
  best = 0;
  rating = { ...START };
  done = []; // ids of puzzles that have been rated
  failed = ""; // id of the puzzle at which a wrong column was tried last
  current = ""; // id of the puzzle on the board
  tactic = "";
  difficulty = "";

  constructor() {
    const { tactic, difficulty, current, failed } = stored(STORAGE_KEY);
    Object.assign(this, strings({ tactic, difficulty, current, failed }));
    this.#refresh();
  }

  /**
   * The puzzle has ended. Each counts once.
   * @param {number} score 1 if the first try solved it, ½ if a later one did, 0 if the person asked for the solution
   * @returns {number|null} the change of the rating; null for a puzzle that has been counted before
   */
  count(puzzle, score) {
    this.#refresh();
    if (this.done.includes(puzzle.id)) return null;
    const streak = score === 1 ? this.streak + 1 : 0;
    const before = this.rating.rating;
    this.keep({
      streak,
      best: Math.max(this.best, streak),
      rating: rated(this.rating, { rating: puzzle.rating, deviation: PUZZLE_DEVIATION }, score),
      done: [...this.done, puzzle.id],
    });
    return Math.round(this.rating.rating) - Math.round(before);
  }

  /** A wrong column ends the streak, and so does leaving a puzzle; neither is rated. */
  endStreak(change = {}) {
    this.#refresh();
    this.keep({ streak: 0, ...change });
  }

  keep(change) {
    Object.assign(this, change);
    tryEffect(() => localStorage.setItem(STORAGE_KEY, JSON.stringify(this)));
  }

  /** Another tab may have counted since; what is no number is ignored. */
  #refresh() {
    const { streak, best, rating, done } = stored(STORAGE_KEY);
    if (Number.isInteger(streak) && Number.isInteger(best)) Object.assign(this, { streak, best });
    if (Number.isFinite(rating?.rating) && rating.deviation > 0) this.rating = rating;
    if (Array.isArray(done)) this.done = done;
  }
}

const strings = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => typeof value === "string"));
