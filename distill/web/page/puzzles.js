/**
 * Puzzles: positions in which one column alone keeps the win or the draw, to be played to the end. They come from
 * `puzzles.json` (`experiments/page/puzzles.py` makes it and says what is in it), with the opponent's answers; no engine
 * is queried until a puzzle is solved.
 */

import { Attempt } from "./attempt.js";
import { fetched } from "./files.js";
import { capital } from "./opinions.js";
import { Progress } from "./puzzle_progress.js";
import * as text from "./puzzle_text.js";
import { UNSURE } from "./rating.js";

const PACE = 600; // ms between a stone and the answer to it
const NEAR = 8; // the next puzzle is drawn from this many with a rating near the person's

const options = (all, names) =>
  [["", all], ...Object.entries(names)].map(([value, name]) => `<option value="${value}">${name}</option>`).join("");

const PANEL = `
  <h2 id="puzzle-task"></h2>
  <p id="puzzle-facts" class="note"></p>
  <p id="puzzle-text" aria-live="polite"></p>
  <p id="puzzle-found" class="note"></p>
  <div class="buttons">
    <button id="puzzle-again" type="button">Try again</button>
    <button id="puzzle-show" type="button">Solution</button>
    <button id="puzzle-line" type="button">Play the line</button>
    <button id="puzzle-next" type="button" class="primary">Next</button>
  </div>
  <dl class="tally">
    <div><dt>Your rating</dt><dd id="puzzle-rating"></dd></div>
    <div><dt>In a row</dt><dd id="puzzle-streak"></dd></div>
    <div><dt>Best</dt><dd id="puzzle-best"></dd></div>
  </dl>
  <div class="pickers">
    <label>Tactic <select id="puzzle-tactic">${options("All", text.TACTICS)}</select></label>
    <label>Difficulty <select id="puzzle-difficulty">${options("Your level", text.DIFFICULTIES)}</select></label>
  </div>
  <div class="puzzle-link">
    <button id="puzzle-copy" type="button">Copy link</button>
    <p id="puzzle-copied" class="note" role="status"></p>
  </div>`;

const $ = (id) => document.getElementById(id);

export class Puzzles {
  keys = { n: () => this.#next(), u: () => this.#again() };
  #game;
  #panel;
  #show;
  #replay;
  #file = null; // {players, puzzles}, once it has been fetched
  #progress = new Progress();
  #wanted = ""; // id of the puzzle that a link asks for
  #puzzle = null;
  #attempt = null;
  #state = "loading"; // "open", "wrong", "solved", "shown" (the person gave up) or "failed" (no file)
  #line = ""; // the whole solution, once it is known
  #remark = ""; // on the last stone, while the puzzle is open
  #wrong = 0; // the wrong column
  #isFirst = true; // nothing has been counted for this puzzle yet
  #gain = null; // of the rating, by this puzzle
  #timer = 0; // of the opponent's answer
  #isChosen = false; // whether this tab is

  /**
   * @param {Game} game
   * @param {HTMLElement} panel to fill
   * @param {() => void} show redraws the page where the game does not change
   * @param {() => void} replay plays the moves that follow
   */
  constructor(game, panel, show, replay) {
    this.#game = game;
    this.#panel = panel;
    this.#show = show;
    this.#replay = replay;
    panel.innerHTML = PANEL;
    for (const name of ["tactic", "difficulty"]) {
      $(`puzzle-${name}`).addEventListener("change", ({ target }) => this.#pick({ [name]: target.value }));
    }
    $("puzzle-again").addEventListener("click", () => this.#again());
    $("puzzle-show").addEventListener("click", () => this.#giveUp());
    $("puzzle-line").addEventListener("click", () => this.#playLine());
    $("puzzle-next").addEventListener("click", () => this.#next());
    $("puzzle-copy").addEventListener("click", () => this.#copyLink());
    this.#render();
  }

  /* ---- a mode, as main.js calls it ---- */

  async enter() {
    this.#isChosen = true;
    try {
      this.#file ??= await load();
    } catch {
      this.#state = "failed";
    }
    if (!this.#isChosen) return; // another tab since
    if (!this.#file) return this.#show();
    this.#fit();
    if (this.#wanted || !this.#puzzle) return this.#openLinked();
    if (this.#isDone) return this.#open(this.#draw());
    if (this.#state === "wrong") this.#enterState("open");
    this.#put("", 0);
  }

  leave() {
    this.#isChosen = false;
    this.#answerNow();
  }

  /** The part of the address after the "#". */
  address() {
    const id = this.#wanted || (this.#puzzle?.id ?? "");
    return id && `puzzle/${id}`;
  }

  /** A link to a puzzle has been followed; the tab is chosen already or about to be. */
  openLink(id) {
    this.#wanted = id;
    if (this.#isChosen && this.#file) this.#openLinked();
  }

  /** A stone is an answer until the puzzle is done; afterwards the board is there to try things. */
  drop(column) {
    if (!this.#puzzle || this.#isAnswering) return true;
    if (this.#isDone) return false;
    if (this.#state === "open" && this.#game.shown !== this.#attempt.moves) return this.#put("", 0), true; // an earlier position
    const kind = this.#attempt.classify(column);
    if (kind === "full") {
      this.#put("", 0);
      return false; // the page says that it is full
    }
    if (kind === "slower") this.#remind(column);
    if (kind === "wrong") this.#refute(column);
    if (kind === "right") this.#goOn(column);
    return true;
  }

  change() {
    this.#render();
  }

  status(position) {
    if (this.#state === "loading") return "Loading the puzzles…";
    if (this.#state === "failed") return "The puzzles cannot be loaded. Please try again later.";
    if (this.#state === "open") return this.#remark || `${text.task(this.#attempt, this.#colour)}.`;
    if (this.#state === "wrong") return text.refutation(this.#attempt, this.#wrong, this.#colour);
    if (this.#game.shown === this.#attempt.moves && this.#state === "solved") return text.praise(this.#attempt, this.#colour);
    if (this.#state === "shown" && this.#game.cursor === this.#attempt.moves.length + 1) {
      return `The solution is column ${this.#attempt.best + 1}.`;
    }
    const since = this.#game.cursor - this.#puzzle.moves.length;
    return position.isOver || since < 0 ? null : `Move ${since} after the puzzle: ${this.#colour(position.side)} to move.`;
  }

  /* ---- one puzzle after another ---- */

  /** The next puzzle. One that is left unsolved ends the streak. */
  #next() {
    if (!this.#file) return;
    if (this.#isFirst && !this.#isDone) this.#progress.skip();
    this.#open(this.#draw());
  }

  #openLinked() {
    const id = this.#wanted || this.#progress.current;
    const puzzle = this.#file.puzzles.find((one) => one.id === id);
    const isUnknown = this.#wanted && !puzzle;
    this.#wanted = "";
    this.#open(puzzle ?? this.#draw());
    if (!isUnknown) return;
    this.#remark = `There is no puzzle “${id}”. Here is another one: ${text.task(this.#attempt, this.#colour)}.`;
    this.#show();
  }

  /** A puzzle of the chosen kind, not rated yet while there is one, with a rating near the person's. */
  #draw() {
    const { rating, done } = this.#progress;
    const kind = this.#file.puzzles.filter((puzzle) => this.#isOfKind(puzzle) && puzzle !== this.#puzzle);
    const fresh = kind.filter((puzzle) => !done.includes(puzzle.id));
    const distance = (puzzle) => Math.abs(puzzle.rating - rating.rating);
    const near = (fresh.length ? fresh : kind).sort((one, other) => distance(one) - distance(other));
    const among = fresh.length ? near.slice(0, NEAR) : near;
    return among[Math.floor(Math.random() * among.length)] ?? this.#puzzle;
  }

  #isOfKind(puzzle, { tactic, difficulty } = this.#progress) {
    return (!tactic || puzzle.tactic === tactic) && (!difficulty || puzzle.difficulty === difficulty);
  }

  /** A puzzle of the new kind stays; another one is skipped. */
  #pick(choice) {
    this.#progress.keep(choice);
    this.#fit();
    if (!this.#puzzle || this.#isDone || !this.#isOfKind(this.#puzzle)) this.#next();
  }

  /** Only what there is can be chosen; a choice that there is not, as of another version of the page, becomes all. */
  #fit() {
    const isThere = (kind) => this.#file.puzzles.some((puzzle) => this.#isOfKind(puzzle, kind));
    if (!isThere({ tactic: this.#progress.tactic })) this.#progress.keep({ tactic: "" });
    const { tactic } = this.#progress;
    if (!isThere({ tactic, difficulty: this.#progress.difficulty })) this.#progress.keep({ difficulty: "" });
    for (const option of $("puzzle-difficulty").options) option.disabled = !isThere({ tactic, difficulty: option.value });
    $("puzzle-tactic").value = tactic;
    $("puzzle-difficulty").value = this.#progress.difficulty;
  }

  #open(puzzle) {
    this.#puzzle = puzzle;
    this.#attempt = new Attempt(puzzle);
    this.#line = this.#attempt.line();
    this.#isFirst = true;
    this.#gain = null;
    this.#progress.keep({ current: puzzle.id });
    this.#enterState("open");
    $("puzzle-copied").textContent = "";
    this.#put("", 0);
  }

  /* ---- stones ---- */

  #goOn(column) {
    const start = this.#attempt.moves;
    const reply = this.#attempt.replyTo(column);
    const isLast = this.#attempt.play(column);
    if (!isLast) {
      this.#enterState("open", `Right! ${this.#colour(1 - this.#attempt.side)} replies ${reply}. Now ${text.goal(this.#attempt)}.`);
    } else {
      this.#line = this.#attempt.moves.slice(this.#puzzle.moves.length);
      this.#count(true);
      this.#enterState("solved");
    }
    this.#dropBoth(start, `${column + 1}${isLast ? "" : reply}`);
  }

  #refute(column) {
    this.#count(false);
    this.#wrong = column;
    this.#enterState("wrong");
    this.#dropBoth(this.#attempt.moves, `${column + 1}${this.#attempt.replyTo(column)}`);
  }

  /** A win that takes longer costs nothing, but is not the solution. */
  #remind(column) {
    this.#enterState("open", text.reminder(this.#attempt, column));
    this.#put("", 0);
    this.#show();
  }

  #again() {
    if (this.#state !== "wrong") return;
    this.#enterState("open");
    this.#put("", 0);
  }

  #giveUp() {
    this.#count(false);
    this.#line = this.#attempt.moves.slice(this.#puzzle.moves.length) + this.#attempt.line();
    this.#enterState("shown");
    this.#put(this.#attempt.line(), 1);
  }

  #playLine() {
    this.#game.load(this.#puzzle.moves + this.#line);
    this.#game.goTo(this.#puzzle.moves.length);
    this.#replay();
  }

  #count(isSolved) {
    if (this.#isFirst) this.#gain = this.#progress.count(this.#puzzle, isSolved);
    this.#isFirst = false;
  }

  #enterState(state, remark = "") {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#state = state;
    this.#remark = remark;
  }

  /** The position in which the person is to move, with what follows it, and so many stones of that. */
  #put(line, shown) {
    const { moves } = this.#attempt;
    this.#game.load(moves);
    this.#game.moves += line;
    this.#game.goTo(moves.length + shown);
  }

  /** Two stones onto a position, one after the other. */
  #dropBoth(start, stones) {
    this.#game.load(start);
    this.#game.moves += stones;
    if (stones.length > 1) this.#timer = setTimeout(() => this.#answerNow(), PACE);
    this.#game.goTo(start.length + 1);
  }

  #answerNow() {
    if (!this.#isAnswering) return;
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (this.#isChosen) this.#game.goTo(this.#game.moves.length);
  }

  /* ---- text ---- */

  get #isAnswering() {
    return this.#timer > 0;
  }

  get #isDone() {
    return ["solved", "shown"].includes(this.#state);
  }

  #colour = (side) => capital(this.#game.colour(side));

  #text() {
    if (this.#state === "wrong") return "Try another column.";
    if (this.#isDone) return text.explanation(this.#puzzle.tactic, this.#attempt, this.#line, this.#colour);
    return this.#attempt.moves === this.#puzzle.moves ? "Choose a column on the board." : "Play on to the end.";
  }

  #render() {
    const hasPuzzle = this.#puzzle !== null;
    const isDone = this.#isDone;
    const { streak, best, rating } = this.#progress;
    const before = document.activeElement;
    this.#panel.dataset.state = this.#state;
    $("puzzle-task").textContent = hasPuzzle ? text.task(new Attempt(this.#puzzle), this.#colour) : "";
    $("puzzle-facts").textContent = hasPuzzle ? this.#facts() : "";
    $("puzzle-text").textContent = hasPuzzle ? this.#text() : "";
    $("puzzle-found").textContent = isDone ? text.foundBy(this.#puzzle.found, this.#file.players) : "";
    const gain = this.#gain === null ? "" : ` ${text.signed(this.#gain)}`;
    $("puzzle-rating").textContent = `${Math.round(rating.rating)}${rating.deviation > UNSURE ? "?" : ""}${gain}`;
    $("puzzle-streak").textContent = streak;
    $("puzzle-best").textContent = best;
    $("puzzle-again").hidden = this.#state !== "wrong";
    $("puzzle-show").hidden = !hasPuzzle || isDone;
    $("puzzle-line").hidden = !isDone || this.#line.length < 2;
    $("puzzle-next").textContent = isDone || !this.#isFirst ? "Next" : "Skip";
    for (const id of ["puzzle-next", "puzzle-copy"]) $(id).hidden = !hasPuzzle;
    if (this.#panel.contains(before) && before.hidden) $("puzzle-next").focus();
  }

  #facts() {
    const { difficulty, rating, tactic } = this.#puzzle;
    return `${text.DIFFICULTIES[difficulty]}, rated ${rating}${this.#isDone ? ` · ${text.TACTICS[tactic]}` : ""}`;
  }

  async #copyLink() {
    const link = new URL(`#${this.address()}`, location.href).href;
    try {
      await navigator.clipboard.writeText(link);
      $("puzzle-copied").textContent = "The link to this puzzle is copied.";
    } catch {
      $("puzzle-copied").textContent = `The link: ${link}`;
    }
  }
}

/** The file's puzzles as objects, named by its fields. */
async function load() {
  const { players, fields, puzzles } = await fetched("puzzles.json", "puzzles");
  return { players, puzzles: puzzles.map((values) => Object.fromEntries(fields.map((field, place) => [field, values[place]]))) };
}
