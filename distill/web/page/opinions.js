/**
 * Evaluations of a position by players: requested once each, shown in strips below the board, and put into words.
 */

import { COLUMNS, replay } from "./rules.js";

const LARGEST_CACHE = 2000; // cached answers, for stepping back and forth

/** Asks an engine for opinions, each question once. */
export class Opinions {
  #engine;
  #answers = new Map();

  constructor(engine) {
    this.#engine = engine;
  }

  /** The answer if it is known already. */
  known(player, moves) {
    const answer = this.#answers.get(`${player}|${moves}`);
    return answer?.value;
  }

  /** @returns {Promise<{move: number, policy: number[]|null, value: number|null, scores: (number|null)[]|null}>} */
  async ask(player, moves) {
    const key = `${player}|${moves}`;
    if (!this.#answers.has(key)) {
      const entry = {};
      entry.promise = this.#engine.opinion(player, moves).then(
        (value) => (entry.value = value),
        (error) => {
          this.#answers.delete(key); // may be requested again
          throw error;
        },
      );
      this.#keep(key, entry);
    }
    return this.#answers.get(key).promise;
  }

  /** The opinion before each move of a game, and of its last position if that is open: one request at most for all. */
  async askGame(player, moves, signal) {
    const answers = Array.from(moves, (_, ply) => this.known(player, moves.slice(0, ply)));
    if (!replay(moves).isOver) answers.push(this.known(player, moves));
    if (answers.every(Boolean)) return answers;
    const found = await this.#engine.opinions(player, moves, signal);
    for (const [ply, value] of found.entries()) {
      this.#keep(`${player}|${moves.slice(0, ply)}`, { value, promise: Promise.resolve(value) });
    }
    return found;
  }

  #keep(key, entry) {
    this.#answers.set(key, entry);
    if (this.#answers.size > LARGEST_CACHE) this.#answers.delete(this.#answers.keys().next().value);
  }
}

/** One strip: a line with name and value, seven cells in line with the board's columns. */
export class Strip {
  #cells;
  #value;
  #title;

  constructor(root, kind) {
    root.classList.add("strip", kind);
    const head = element("div", "strip-head");
    this.#title = element("span", "strip-title");
    this.#value = element("span", "strip-value");
    head.append(this.#title, this.#value);
    const row = element("ul", "strip-row");
    this.#cells = Array.from({ length: COLUMNS }, () => {
      const cell = element("li", "strip-cell");
      cell.append(element("span", "bar"), element("span", "number"));
      return cell;
    });
    row.append(...this.#cells);
    root.append(head, row);
    this.root = root;
  }

  /** Show that an answer is on its way; what stood there stays, faint. */
  wait(title) {
    this.#title.textContent = title;
    this.root.dataset.state = "waiting";
  }

  /** Nothing to show: the game is over, or the question failed. */
  clear(title, reason) {
    this.#title.textContent = title;
    this.#value.textContent = reason;
    this.root.dataset.state = "empty";
    for (const cell of this.#cells) fill(cell, { number: "", label: "" });
  }

  /**
   * @param {string} title
   * @param {object} opinion of an engine
   * @param {string} colour of the side to move, "red" or "yellow"
   * @param {number} ply of the position
   */
  show(title, opinion, colour, ply) {
    this.#title.textContent = title;
    this.root.dataset.state = "shown";
    this.root.dataset.colour = colour;
    this.#value.textContent = opinion.scores ? outlook(opinion.scores, colour, ply) : expectation(opinion.value, colour);
    const describe = opinion.scores ? scoreCells(opinion.scores, ply) : shareCells(opinion.policy, opinion.move);
    for (const [column, cell] of this.#cells.entries()) fill(cell, describe(column));
  }
}

/** Plies until the game ends if the side to move gets this score; see `players/solver.py` for the convention. */
export function pliesToEnd(score, ply) {
  const own = Math.floor(ply / 2);
  const other = ply - own;
  if (score > 0) return 2 * (22 - score - own) - 1;
  return score < 0 ? 2 * (22 + score - other) : 42 - ply;
}

/** Moves of the side that wins, its last among them. */
const movesToEnd = (score, ply) => Math.ceil(pliesToEnd(score, ply) / 2);

function shareCells(policy, chosen) {
  const most = Math.max(...policy);
  return (column) => {
    const percent = Math.round(100 * policy[column]);
    return {
      number: policy[column] > 0 && percent === 0 ? "<1" : String(percent),
      height: most ? policy[column] / most : 0,
      isBest: column === chosen,
      label: `column ${column + 1}: ${percent} percent`,
    };
  };
}

function scoreCells(scores, ply) {
  const best = Math.max(...scores.filter((score) => score !== null));
  return (column) => {
    const score = scores[column];
    if (score === null) return { number: "–", label: `column ${column + 1}: full` };
    const kind = score > 0 ? "win" : score < 0 ? "loss" : "draw";
    const soon = score ? ` in ${count(movesToEnd(score, ply), "move")}` : "";
    return {
      number: score > 0 ? `+${score}` : score < 0 ? `−${-score}` : "0",
      kind,
      isBest: score === best,
      label: `column ${column + 1}: ${kind}${soon}`,
    };
  };
}

/** How a position of these scores ends, in words. */
export function outlook(scores, colour, ply) {
  const best = Math.max(...scores.filter((score) => score !== null));
  if (best === 0) return "a draw";
  const winner = best > 0 ? colour : colour === "red" ? "yellow" : "red";
  return `${capital(winner)} wins in ${count(movesToEnd(best, ply), "move")}`;
}

/** A search's or a network's value in words. */
export function expectation(value, colour) {
  return value === null || value === undefined ? "" : `value ${signed(value)} for ${capital(colour)}`;
}

export function signed(value) {
  const sign = value > 0.005 ? "+" : value < -0.005 ? "−" : "";
  return `${sign}${Math.abs(value).toFixed(2)}`;
}

function fill(cell, { number, label, height = 0, isBest = false, kind = "" }) {
  cell.firstChild.style.setProperty("--height", height.toFixed(3));
  cell.lastChild.textContent = number;
  cell.classList.toggle("best", isBest);
  cell.dataset.kind = kind;
  cell.setAttribute("aria-label", label);
  cell.title = label;
}

export const capital = (word) => word[0].toUpperCase() + word.slice(1);

export const count = (number, noun, plural = `${noun}s`) => `${number} ${number === 1 ? noun : plural}`;

function element(tag, className) {
  const made = document.createElement(tag);
  made.className = className;
  return made;
}
