/**
 * Puzzles: positions in which one column alone keeps the win or the draw, from `puzzles.json` (`experiments/page/puzzles.py`
 * makes it and says what is in it). Every answer to the person comes from that file; no engine is queried until a puzzle is
 * solved.
 */

import { capital, pliesToEnd } from "./opinions.js";
import { ROWS, replay } from "./rules.js";

const KEPT = "distill-puzzles"; // in localStorage: {streak, best, tactic, difficulty}
const PACE = 700; // ms between a wrong stone and the answer to it

const TACTICS = {
  win: "Win at once",
  block: "Block four in a row",
  "double-threat": "Double threat",
  escape: "Escape a double threat",
  "open-two": "Stop an open three",
  "long-win": "Long win",
  "only-draw": "Save the draw",
  zugzwang: "Zugzwang",
};
const DIFFICULTIES = { easy: "Easy", medium: "Medium", hard: "Hard" };

const options = (all, names) =>
  [["", all], ...Object.entries(names)].map(([value, name]) => `<option value="${value}">${name}</option>`).join("");

const PANEL = `
  <div class="pickers">
    <label>Tactic <select id="puzzle-tactic">${options("All", TACTICS)}</select></label>
    <label>Difficulty <select id="puzzle-difficulty">${options("All", DIFFICULTIES)}</select></label>
  </div>
  <h2 id="puzzle-task"></h2>
  <p id="puzzle-streak" class="note"></p>
  <p id="puzzle-text" aria-live="polite"></p>
  <p id="puzzle-missed" class="note"></p>
  <div class="buttons">
    <button id="puzzle-again" type="button">Try again</button>
    <button id="puzzle-show" type="button">Solution</button>
    <button id="puzzle-line" type="button">Play the line</button>
    <button id="puzzle-next" type="button" class="primary">Next</button>
  </div>`;

const $ = (id) => document.getElementById(id);

export class Puzzles {
  keys = { n: () => this.#next(), u: () => this.#again() };
  #game;
  #panel;
  #show;
  #replay;
  #file = null; // {players, puzzles}, once it has been fetched
  #seen = new Set();
  #puzzle = null;
  #state = "loading"; // "open", "wrong", "solved", "shown" (the person gave up) or "failed" (no file)
  #wrong = 0; // the wrong column, 1–7
  #isFirst = true; // no wrong answer to this puzzle yet
  #answering = 0; // the timer of the answer to a wrong stone
  #isChosen = false; // whether this tab is
  #kept = { streak: 0, best: 0, tactic: "", difficulty: "" };

  /**
   * @param {Game} game
   * @param {HTMLElement} panel to fill
   * @param {() => void} show redraws the page where the game does not change
   * @param {() => void} replay plays the moves that follow
   */
  constructor(game, panel, show, replay) {
    Object.assign(this.#kept, stored());
    this.#game = game;
    this.#panel = panel;
    this.#show = show;
    this.#replay = replay;
    panel.innerHTML = PANEL;
    for (const name of ["tactic", "difficulty"]) {
      $(`puzzle-${name}`).value = this.#kept[name];
      $(`puzzle-${name}`).addEventListener("change", ({ target }) => this.#pick({ [name]: target.value }));
    }
    $("puzzle-again").addEventListener("click", () => this.#again());
    $("puzzle-show").addEventListener("click", () => this.#giveUp());
    $("puzzle-line").addEventListener("click", () => this.#playLine());
    $("puzzle-next").addEventListener("click", () => this.#next());
    this.#render();
  }

  /* ---- what the page asks of a mode ---- */

  async enter() {
    this.#isChosen = true;
    if (this.#puzzle) return this.#open(this.#isDone ? this.#draw() : this.#puzzle);
    try {
      this.#file ??= await fetched("puzzles.json");
    } catch {
      this.#state = "failed";
    }
    if (!this.#isChosen || this.#puzzle) return; // another tab since, or back here in the meantime
    if (!this.#file) return this.#show();
    this.#fit();
    this.#next();
  }

  leave() {
    this.#isChosen = false;
    clearTimeout(this.#answering);
  }

  /** A stone is an answer until the right one has been given; afterwards the board is there to try things. */
  drop(column) {
    if (!this.#puzzle) return true;
    if (this.#isDone) return false;
    const { moves, solution } = this.#puzzle;
    if (replay(moves).heights[column] === ROWS) {
      this.#game.load(moves);
      return false; // the page says that it is full
    }
    if (column + 1 === solution) this.#solve();
    else this.#refute(column + 1);
    return true;
  }

  change() {
    this.#render();
  }

  status(position) {
    if (this.#state === "loading") return "The puzzles are being fetched.";
    if (this.#state === "failed") return "The puzzles cannot be fetched. Please try again later.";
    if (this.#state === "open") return `${this.#task()}.`;
    if (this.#state === "wrong") return this.#refutation();
    const since = this.#game.cursor - this.#puzzle.moves.length;
    if (since <= 1) return this.#state === "solved" ? `Right! ${this.#promise()}` : `The solution is column ${this.#puzzle.solution}.`;
    return position.isOver ? null : `Move ${since} from the puzzle on: ${this.#colour(position.side)} to move.`;
  }

  /* ---- one puzzle after another ---- */

  #next() {
    if (this.#file) this.#open(this.#draw());
  }

  /** A puzzle of the chosen kind that has not been shown yet; all of them again where there is none left. */
  #draw() {
    const kind = this.#file.puzzles.filter((puzzle) => this.#isOfKind(puzzle));
    if (kind.every((puzzle) => this.#seen.has(puzzle))) for (const puzzle of kind) this.#seen.delete(puzzle);
    const fresh = kind.filter((puzzle) => !this.#seen.has(puzzle));
    return fresh[Math.floor(Math.random() * fresh.length)];
  }

  #isOfKind(puzzle, { tactic, difficulty } = this.#kept) {
    return (!tactic || puzzle.tactic === tactic) && (!difficulty || puzzle.difficulty === difficulty);
  }

  /** Only what there is can be chosen; a difficulty that the tactic has not becomes all. */
  #pick(choice) {
    this.#keep(choice);
    this.#fit();
    this.#next();
  }

  #fit() {
    const names = new Set(this.#file.puzzles.map((puzzle) => puzzle.tactic));
    if (this.#kept.tactic && !names.has(this.#kept.tactic)) this.#keep({ tactic: "" }); // of another version of the page
    const { tactic } = this.#kept;
    $("puzzle-tactic").value = tactic;
    for (const option of $("puzzle-difficulty").options) {
      option.disabled = !this.#file.puzzles.some((puzzle) => this.#isOfKind(puzzle, { tactic, difficulty: option.value }));
    }
    if ($("puzzle-difficulty").selectedOptions[0]?.disabled) {
      $("puzzle-difficulty").value = "";
      this.#keep({ difficulty: "" });
    }
  }

  #open(puzzle) {
    if (puzzle !== this.#puzzle) this.#isFirst = true;
    this.#seen.add(puzzle);
    this.#puzzle = puzzle;
    this.#go("open", "", 0);
  }

  #again() {
    if (this.#state === "open" || !this.#puzzle) return;
    this.#isFirst = false;
    this.#open(this.#puzzle);
  }

  #solve() {
    const { streak, best } = this.#kept;
    if (this.#isFirst) this.#keep({ streak: streak + 1, best: Math.max(best, streak + 1) });
    this.#go("solved", this.#puzzle.line, 1);
  }

  #giveUp() {
    this.#keep({ streak: 0 });
    this.#go("shown", this.#puzzle.line, 1);
  }

  /** The wrong stone falls, then the stone that refutes it. */
  #refute(column) {
    this.#keep({ streak: 0 });
    this.#isFirst = false;
    this.#wrong = column;
    this.#go("wrong", `${column}${this.#puzzle.replies[column - 1]}`, 1);
    this.#answering = setTimeout(() => this.#game.goTo(this.#puzzle.moves.length + 2), PACE);
  }

  #playLine() {
    const { moves, line } = this.#puzzle;
    const isOnIt = this.#game.moves === moves + line && this.#game.cursor > moves.length;
    if (!isOnIt || this.#game.isAtEnd) this.#go(this.#state, line, 1);
    this.#replay();
  }

  /** Put the puzzle on the board with what follows it, and so many stones of that. */
  #go(state, line, shown) {
    clearTimeout(this.#answering);
    this.#state = state;
    this.#game.load(this.#puzzle.moves);
    this.#game.moves += line;
    this.#game.goTo(this.#puzzle.moves.length + shown);
  }

  /* ---- what is said ---- */

  get #isDone() {
    return ["solved", "shown"].includes(this.#state);
  }

  get #side() {
    return this.#puzzle.moves.length % 2;
  }

  #colour(side) {
    return capital(this.#game.colour(side));
  }

  /** In how many of its moves the winner has won, if the side to move gets this score. */
  #soon(score) {
    const count = Math.ceil(pliesToEnd(score, this.#puzzle.moves.length) / 2);
    return count === 1 ? "at once" : `in ${count}`;
  }

  #task() {
    const { outcome, scores, solution } = this.#puzzle;
    const goal = outcome ? `win ${this.#soon(scores[solution - 1])}` : "hold the draw";
    return `${this.#colour(this.#side)} to move and ${goal}`;
  }

  #promise() {
    const { outcome, scores, solution } = this.#puzzle;
    return `${this.#colour(this.#side)} ${outcome ? `wins ${this.#soon(scores[solution - 1])}` : "holds the draw"}.`;
  }

  #refutation() {
    const { scores, replies } = this.#puzzle;
    const score = scores[this.#wrong - 1];
    const gain = score === 0 ? "holds the draw" : `wins ${this.#soon(score)}`;
    return `Not column ${this.#wrong}: ${this.#colour(1 - this.#side)} answers ${replies[this.#wrong - 1]} and ${gain}.`;
  }

  #explanation() {
    const { tactic, solution, outcome } = this.#puzzle;
    const [own, other] = [this.#colour(this.#side), this.#colour(1 - this.#side)];
    const reasons = {
      win: `Column ${solution} makes four in a row.`,
      block: `${other} would have made four in a row in column ${solution}.`,
      "double-threat": `After column ${solution}, ${own} makes four in a row whatever ${other} answers.`,
      escape: `After many other columns ${other} wins with its second stone, whatever is blocked.`,
      "open-two": `${other} had two in a row with room beside them: a third would have been open at both ends.`,
      "long-win": `There is no threat on the board yet, but from column ${solution} on ${own} can force the win.`,
      "only-draw": "After every other column the game is lost.",
      zugzwang: `${own} would rather not move at all: every column but ${solution} gives the right stone to ${other}.`,
    };
    const rest = tactic === "win" || tactic === "double-threat" || tactic === "long-win" ? ""
      : outcome ? " It is the only column that still wins." : " It is the only column that still draws.";
    return reasons[tactic] + (tactic === "only-draw" ? "" : rest);
  }

  #missed() {
    const { players } = this.#file;
    const names = this.#puzzle.missed.map((place) => named(players[place]));
    return names.length ? `Missed by ${joined(names)}.` : `None of ${players.length} players missed it.`;
  }

  #render() {
    const hasPuzzle = this.#puzzle !== null;
    const isDone = this.#isDone;
    const { streak, best } = this.#kept;
    const before = document.activeElement;
    this.#panel.dataset.state = this.#state;
    $("puzzle-task").textContent = hasPuzzle ? this.#task() : "";
    const difficulty = hasPuzzle ? `${DIFFICULTIES[this.#puzzle.difficulty]} · ` : "";
    $("puzzle-streak").textContent = `${difficulty}${streak} in a row, best ${best}`;
    $("puzzle-text").textContent = hasPuzzle ? this.#text() : "";
    $("puzzle-missed").textContent = isDone ? this.#missed() : "";
    $("puzzle-again").hidden = this.#state !== "wrong";
    $("puzzle-show").hidden = !hasPuzzle || isDone;
    $("puzzle-line").hidden = !isDone || this.#puzzle.line.length < 2;
    $("puzzle-next").textContent = isDone ? "Next" : "Skip";
    $("puzzle-next").hidden = !hasPuzzle;
    if (this.#panel.contains(before) && before.hidden) $("puzzle-next").focus();
  }

  #text() {
    if (this.#state === "wrong") return "Drop another stone: the board goes back by itself.";
    if (!this.#isDone) return "Drop a stone: a column of the board, or a key from 1 to 7.";
    const { line, outcome } = this.#puzzle;
    const rest = line.length < 2 ? "" : ` Best play: ${[...line].join(" ")}, ${outcome ? `and ${this.#colour(this.#side)} wins` : "a draw"}.`;
    return `${this.#explanation()}${rest}`;
  }

  #keep(change) {
    Object.assign(this.#kept, change);
    this.#kept.best = Math.max(this.#kept.best, Number(stored().best) || 0); // another tab may have more
    try {
      localStorage.setItem(KEPT, JSON.stringify(this.#kept));
    } catch { /* private windows may refuse; the streak lasts as long as the page */ }
  }
}

function stored() {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

/** The file's puzzles as objects, named by its fields. */
async function fetched(name) {
  const reply = await fetch(new URL(name, import.meta.url));
  if (!reply.ok) throw new Error(`${name}: ${reply.status}`);
  const { players, fields, puzzles } = await reply.json();
  return { players, puzzles: puzzles.map((values) => Object.fromEntries(fields.map((field, place) => [field, values[place]]))) };
}

/** A player's word for a reader: `uct:100` is a search of 100 simulations. */
function named(word) {
  const search = /^uct:(\d+)$/.exec(word);
  return search ? `a search of ${Number(search[1]).toLocaleString("en")} simulations` : word;
}

const joined = (names) => (names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);
