/** The puzzle of the day: one of the file's by the date, the tries at it, and the result as a row of squares. */

import { stored, tryEffect } from "./effects.js";
import { count } from "./opinions.js";

const KEY = "distill-daily"; // in localStorage
const DAY = 24 * 3600 * 1000; // ms
const STRIDE = 257; // puzzles from one day to the next: far in the file, and a prime that does not divide its length
const SQUARES = { right: "🟩", slower: "🟨", wrong: "🟥", shown: "⬛" };

/** The date where the person is, as 2026-11-28. */
function today() {
  const now = new Date();
  return [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
}

export class Daily {
  date = today();
  tries = []; // of this day's puzzle: keys of SQUARES, one for each stone of the person
  isDone = false;

  constructor() {
    const { date, tries, isDone } = stored(KEY);
    if (date !== this.date || !Array.isArray(tries) || !tries.every((kind) => kind in SQUARES)) return;
    Object.assign(this, { tries, isDone: isDone === true });
  }

  /** @param {object[]} puzzles of the file */
  puzzle(puzzles) {
    return puzzles[(Math.floor(Date.parse(this.date) / DAY) * STRIDE) % puzzles.length];
  }

  /** The person has played a stone, or asked for the solution. The first result stays. */
  add(kind, isDone) {
    if (this.isDone) return;
    Object.assign(this, { tries: [...this.tries, kind], isDone });
    tryEffect(() => localStorage.setItem(KEY, JSON.stringify(this)));
  }

  get squares() {
    return this.tries.map((kind) => SQUARES[kind]).join("");
  }

  /** "28 November". */
  get day() {
    return new Date(`${this.date}T12:00`).toLocaleDateString("en-GB", { day: "numeric", month: "long" });
  }

  get inWords() {
    if (!this.isDone) return "";
    if (this.tries.at(-1) === "shown") return "Not solved";
    return `Solved in ${count(1 + this.tries.filter((kind) => kind !== "right").length, "try", "tries")}`;
  }

  /** What is copied for others, without giving the solution away. */
  result(link) {
    return `Connect 4, puzzle of ${this.day}: ${this.inWords.toLowerCase()}\n${this.squares}\n${link}`;
  }
}
