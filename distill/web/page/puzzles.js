/**
 * Puzzles: positions in which one column alone keeps the win or the draw, to be played to the end. They come from
 * `puzzles.json` (`experiments/page/puzzles.py` makes it and says what is in it), with the opponent's answers; no engine
 * is queried until a puzzle is solved.
 */

import { Attempt } from "./attempt.js";
import { Daily } from "./daily.js";
import { fetched } from "./files.js";
import { capital } from "./opinions.js";
import { Progress } from "./puzzle_progress.js";
import * as text from "./puzzle_text.js";
import { UNSURE } from "./rating.js";
import { copy } from "./sending.js";

const PACE = 600; // ms between a stone and the answer to it
const NEAR = 8; // the next puzzle is drawn from this many with a rating near the person's

const options = (all, names) =>
  [["", all], ...Object.entries(names)].map(([value, name]) => `<option value="${value}">${name}</option>`).join("");

const PANEL = `
  <div class="puzzle-daily">
    <button id="puzzle-daily" type="button">Daily puzzle</button>
    <span id="daily-squares" role="img"></span>
    <button id="daily-copy" type="button">Copy result</button>
  </div>
  <h2 id="puzzle-task"></h2>
  <p id="puzzle-facts" class="note"></p>
  <p id="puzzle-text" aria-live="polite"></p>
  <p id="puzzle-found" class="note"></p>
  <div class="buttons">
    <button id="puzzle-again" type="button" class="primary">Try again</button>
    <button id="puzzle-show" type="button">Solution</button>
    <button id="puzzle-line" type="button">Play the line</button>
    <button id="puzzle-analyse" type="button">Analyse</button>
    <button id="puzzle-next" type="button">Next</button>
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
  #actions;
  #daily = new Daily();
  #isDaily = false; // whether the puzzle on the board was opened as that of the day
  #file = null; // {players, puzzles}, once it has been fetched
  #progress = new Progress();
  #wanted = ""; // id of the puzzle that a link asks for
  #puzzle = null;
  #attempt = null;
  #state = "loading"; // "open", "wrong", "solved", "shown" (the person gave up) or "failed" (no file)
  #line = ""; // the whole solution, once it is known
  #remark = ""; // on the last stone, while the puzzle is open
  #wrong = 0; // the wrong column
  #hasFailed = false; // a wrong column was tried
  #isCounted = false;
  #gain = null; // of the rating, by this puzzle
  #timer = 0; // of the opponent's answer
  #isChosen = false; // whether this tab is

  /**
   * @param {Game} game
   * @param {HTMLElement} panel to fill
   * @param {object} actions
   * @param {() => void} actions.show redraws the page where the game does not change
   * @param {() => void} actions.replay plays the moves that follow
   * @param {(moves: string, cursor: number) => void} actions.analyse opens a game in the analysis
   */
  constructor(game, panel, actions) {
    this.#game = game;
    this.#panel = panel;
    this.#actions = actions;
    panel.innerHTML = PANEL;
    for (const name of ["tactic", "difficulty"]) {
      $(`puzzle-${name}`).addEventListener("change", ({ target }) => this.#pick({ [name]: target.value }));
    }
    $("puzzle-again").addEventListener("click", () => this.#again());
    $("puzzle-show").addEventListener("click", () => this.#giveUp());
    $("puzzle-line").addEventListener("click", () => this.#playLine());
    $("puzzle-next").addEventListener("click", () => this.#next());
    $("puzzle-analyse").addEventListener("click", () => actions.analyse(this.#puzzle.moves + this.#line, this.#puzzle.moves.length));
    $("puzzle-daily").addEventListener("click", () => this.openLink("daily"));
    $("daily-copy").addEventListener("click", () => this.#copy(this.#daily.result(linkTo("daily")), "The result"));
    $("puzzle-copy").addEventListener("click", () => this.#copy(linkTo(this.address()), "The link to this puzzle"));
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
    if (!this.#file) return this.#actions.show();
    this.#fit();
    if (this.#wanted || !this.#puzzle) return this.#openLinked();
    if (this.#isDone && !this.#isDaily) return this.#open(this.#draw());
    if (this.#isDone) return this.#put(this.#line.slice(this.#attempt.moves.length - this.#puzzle.moves.length), 0);
    if (this.#state === "wrong") this.#enterState("open");
    this.#put("", 0);
  }

  leave() {
    this.#isChosen = false;
    this.#answerNow();
  }

  /** The part of the address after the "#". */
  address() {
    const id = this.#wanted || (this.#isDaily ? "daily" : this.#puzzle?.id ?? "");
    return id && (id === "daily" ? id : `puzzle/${id}`);
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
    const isLast = kind === "right" && this.#attempt.isLast(column);
    if (this.#isDaily) this.#daily.add(kind, isLast);
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
    if (!this.#isDone) this.#progress.endStreak();
    this.#open(this.#draw());
  }

  #openLinked() {
    const id = this.#wanted || this.#progress.current;
    const isDaily = id === "daily";
    if (isDaily) this.#daily = new Daily(); // midnight may have passed
    const puzzle = isDaily ? this.#daily.puzzle(this.#file.puzzles) : this.#file.puzzles.find((one) => one.id === id);
    const isUnknown = this.#wanted && !puzzle;
    this.#wanted = "";
    this.#open(puzzle ?? this.#draw(), isDaily);
    if (!isUnknown) return;
    this.#remark = `There is no puzzle “${id}”. Here is another one: ${text.task(this.#attempt, this.#colour)}.`;
    this.#actions.show();
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

  #open(puzzle, isDaily = false) {
    this.#puzzle = puzzle;
    this.#isDaily = isDaily;
    this.#attempt = new Attempt(puzzle);
    this.#line = this.#attempt.line();
    this.#hasFailed = this.#progress.failed === puzzle.id;
    this.#isCounted = false;
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
      this.#count(this.#hasFailed ? 0.5 : 1);
      this.#enterState("solved");
    }
    this.#dropBoth(start, `${column + 1}${isLast ? "" : reply}`);
  }

  #refute(column) {
    this.#hasFailed = true;
    if (!this.#isCounted) this.#progress.endStreak({ failed: this.#puzzle.id });
    this.#wrong = column;
    this.#enterState("wrong");
    this.#dropBoth(this.#attempt.moves, `${column + 1}${this.#attempt.replyTo(column)}`);
  }

  /** A win that takes longer costs nothing, but is not the solution. */
  #remind(column) {
    this.#enterState("open", text.reminder(this.#attempt, column));
    this.#put("", 0);
    this.#actions.show();
  }

  #again() {
    if (this.#state !== "wrong") return;
    this.#enterState("open");
    this.#put("", 0);
  }

  #giveUp() {
    this.#count(0);
    if (this.#isDaily) this.#daily.add("shown", true);
    this.#line = this.#attempt.moves.slice(this.#puzzle.moves.length) + this.#attempt.line();
    this.#enterState("shown");
    this.#put(this.#attempt.line(), 1);
  }

  #playLine() {
    this.#game.load(this.#puzzle.moves + this.#line);
    this.#game.goTo(this.#puzzle.moves.length);
    this.#actions.replay();
  }

  #count(score) {
    if (!this.#isCounted) this.#gain = this.#progress.count(this.#puzzle, score);
    this.#isCounted = true;
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
    const isWrong = this.#state === "wrong";
    $("puzzle-again").hidden = !isWrong;
    $("puzzle-analyse").hidden = !isDone;
    $("puzzle-show").hidden = !hasPuzzle || isDone;
    $("puzzle-line").hidden = !isDone || this.#line.length < 2;
    $("puzzle-next").textContent = isDone ? "Next" : "Skip";
    $("puzzle-next").classList.toggle("primary", isDone);
    $("puzzle-next").hidden = !hasPuzzle || isWrong;
    $("puzzle-copy").hidden = !hasPuzzle;
    this.#renderDaily();
    if (this.#panel.contains(before) && before.hidden) $(isWrong ? "puzzle-again" : "puzzle-next").focus();
  }

  #renderDaily() {
    const { tries, inWords, isDone } = this.#daily;
    $("puzzle-daily").setAttribute("aria-pressed", String(this.#isDaily));
    $("puzzle-daily").disabled = !this.#file;
    $("daily-squares").replaceChildren(...tries.map((kind) => Object.assign(document.createElement("i"), { className: kind })));
    $("daily-squares").hidden = !tries.length;
    $("daily-squares").setAttribute("aria-label", inWords || "Your tries at the daily puzzle so far");
    $("daily-copy").hidden = !isDone;
  }

  #facts() {
    const { difficulty, rating, tactic } = this.#puzzle;
    const day = this.#isDaily ? `Puzzle of ${this.#daily.day} · ` : "";
    return `${day}${text.DIFFICULTIES[difficulty]}, rated ${rating}${this.#isDone ? ` · ${text.TACTICS[tactic]}` : ""}`;
  }

  async #copy(written, name) {
    $("puzzle-copied").textContent = await copy(written, name);
  }
}

const linkTo = (address) => new URL(`#${address}`, location.href).href;

/** The file's puzzles as objects, named by its fields. */
async function load() {
  const { players, fields, puzzles } = await fetched("puzzles.json", "puzzles");
  return { players, puzzles: puzzles.map((values) => Object.fromEntries(fields.map((field, place) => [field, values[place]]))) };
}
