/**
 * The tab "Review": has every position of the game graded, by the solver or else by a network's search, and shows how
 * well each side played, where it erred, and what was better.
 */

import { drawGame, save } from "./image.js";
import { capital, outlook } from "./opinions.js";
import {
  DECIDED, LINE, POINTS, SERIOUS, SIGNS, SLIP, SLOW, accuracy, bestColumn, estimatedMarks, isError, lineFrom, marks, worthOf,
} from "./review.js";
import { ReviewGraph, shape } from "./review_graph.js";
import { replay } from "./rules.js";

const SIMULATIONS = 400; // of the search that grades without the solver
const AT_A_TIME = 6; // questions: the server takes eight for the solver, and the strips ask too
const SIDES = [0, 1];

const WORDS = { best: "A best move.", "only move": "The only move.", good: "A good move.", forced: "No other column is open." };

const MARKUP = `
  <div class="buttons">
    <button id="review-go" type="button" class="primary"></button>
    <button id="review-image" type="button">Save image</button>
  </div>
  <progress id="review-progress" max="1" value="0" aria-label="Positions looked at" hidden></progress>
  <p id="review-note" class="note" role="status"></p>
  <div id="review-result" hidden>
    <dl class="accuracy">
      ${SIDES.map((side) => `<div><dt><i id="review-chip-${side}"></i><span id="review-side-${side}"></span></dt>
        <dd id="review-accuracy-${side}"></dd></div>`).join("")}
    </dl>
    <svg id="review-graph" class="graph" role="slider" tabindex="0" aria-label="Evaluation after each move" aria-valuemin="0"></svg>
    <ul class="legend"></ul>
    <div class="detail">
      <p id="review-detail" role="status"></p>
      <div id="review-line-box">
        <p class="note" id="review-line-note" role="status"></p>
        <ol id="review-line" class="chips" aria-label="The line from here"></ol>
        <button id="review-back" type="button" hidden>Back to the game</button>
      </div>
    </div>
    <ol id="review-errors" aria-label="Moves that could have been better"></ol>
    <p id="review-none" class="note">No move could clearly have been better.</p>
  </div>
  <details>
    <summary>How moves are marked</summary>
    <dl class="help">
      <dt>Blunder</dt><dd>a won game is lost by it: ${POINTS.blunder} points</dd>
      <dt>Mistake</dt><dd>a won game is a draw, or a drawn one lost: ${POINTS.mistake}</dd>
      <dt>Inaccuracy</dt><dd>the result is kept, but a win takes at least ${SLOW} own moves more, or a loss comes as many
        moves sooner: ${POINTS.inaccuracy}</dd>
      <dt>Good</dt><dd>less is lost than that: ${POINTS.good}</dd>
      <dt>Best</dt><dd>no column is better; the only move if every other one has a worse result: ${POINTS.best}</dd>
    </dl>
    <p class="note">Accuracy is the mean of a side’s points, rounded down, so 100 % says that every move was best. Moves
      without a choice do not count.</p>
    <p class="note">The solver’s marks are exact. A network’s search estimates: a game counts as won or lost from a value
      of ${DECIDED} or −${DECIDED}. Its first choice is best; a column with ${100 * SERIOUS} % of its visits, or
      less than ${SLIP} below the value before it, is good. It knows no only moves.</p>
  </details>`;

export class ReviewPanel {
  keys = { u: () => this.#back() }; // "Take back", too
  #context;
  #grader = null; // {player, by, isExact}
  #result = null; // of the game last reviewed: {moves, opinions, marks, accuracy}
  #running = null; // moves of the game under review
  #line = null; // {from, moves, shown}: what was better than the move after `from`, and how much of it is on the board
  #isChosen = false; // whether this tab is
  #graph;

  /**
   * @param {HTMLElement} root
   * @param {object} context
   * @param {Game} context.game
   * @param {Opinions} context.opinions
   * @param {Board} context.board
   * @param {(why?: string) => void} context.refresh redraws the page
   * @param {(line: string) => void} context.say tells the person
   */
  constructor(root, context) {
    this.#context = context;
    root.innerHTML = MARKUP;
    this.root = root;
    root.querySelector(".legend").append(...Object.keys(SIGNS).map(legend));
    this.#graph = new ReviewGraph(this.#part("graph"), (ply) => this.#context.game.goTo(ply));
    this.#part("go").addEventListener("click", () => (this.#running === null ? this.#review() : this.#stop()));
    this.#part("image").addEventListener("click", () => this.#saveImage());
    this.#part("back").addEventListener("click", () => this.#showLine(0));
    this.show();
  }

  /** Choose the grader among the players. */
  offer({ players, max_simulations: most }) {
    const searches = players.filter(({ kind }) => kind === "guided");
    const shipped = ["reference/pillar@puct:N", "pillar@puct:N"]; // as in the terminal; by its name on a static page
    const guided = searches.find(({ name }) => shipped.includes(name)) ?? searches[0];
    if (players.some(({ kind }) => kind === "solver")) {
      this.#grader = { player: "solver", by: "By the solver: exact.", isExact: true };
    } else if (guided) {
      const simulations = Math.min(SIMULATIONS, most);
      const by = `By ${guided.name.split("@")[0]} with a search of ${simulations} simulations: an estimate.`;
      this.#grader = { player: guided.name.replace(/N$/, simulations), by, isExact: false };
    }
    this.show();
  }

  /* ---- hooks of the page ---- */

  enter() {
    this.#isChosen = true;
    this.show();
  }

  leave() {
    this.#isChosen = false;
    this.#line = null;
    this.#pointAt(null);
  }

  /** Anything changed; a line that was looked at belonged to where the game stood. */
  change() {
    this.#line = null;
    this.show();
  }

  /** The moves that are on the board in place of the game's. */
  preview() {
    const line = this.#line;
    return line?.shown && line.from === this.#context.game.shown ? line.from + line.moves.slice(0, line.shown) : undefined;
  }

  /** What the page says above the board, where it does not say what it always does. */
  status() {
    const { game } = this.#context;
    const line = this.#grader?.isExact ? "Best play" : "The search’s line";
    if (this.preview()) return `${line}, move ${this.#line.shown} of ${this.#line.moves.length}.`;
    if (!this.#isOf(game) || !isError(this.#result.marks[game.cursor])) return undefined;
    const colour = capital(game.colour(game.cursor % 2));
    const better = bestColumn(this.#result.opinions[game.cursor]) + 1;
    return `${colour} played column ${game.moves[game.cursor]}; better is column ${better}.`;
  }

  /** A column is pressed: the game or the line continues where that is its move; a reviewed game stays as it is. */
  drop(column) {
    const { game, say } = this.#context;
    if (!this.#isOf(game)) return false;
    const text = String(column + 1);
    const shown = this.#line?.shown ?? 0;
    if (!shown && game.moves[game.cursor] === text) game.goTo(game.cursor + 1);
    else if (this.#line?.moves[shown] === text) this.#showLine(shown + 1);
    else say("A reviewed game stays as it is. Choose Play to try another move from here.");
    return true;
  }

  /** A reviewed game stays as it is: to take back is to look one move back. */
  #back() {
    const { game } = this.#context;
    if (this.#isOf(game)) game.goTo(game.cursor - 1);
    else game.takeBack();
  }

  /** Where a click on a move leads: to the position after it, or before it where it could have been better. */
  placeOf(index) {
    return this.#isOf(this.#context.game) && isError(this.#result.marks[index]) ? index : index + 1;
  }

  /** The mark of a move of the game in words, undefined where it is not reviewed. */
  gradeOf(index) {
    if (!this.#isOf(this.#context.game)) return undefined;
    const mark = this.#result.marks[index];
    return mark === "best" ? "best move" : mark in SIGNS ? mark : "";
  }

  /* ---- reviewing ---- */

  #isOf(game) {
    return this.#result?.moves === game.moves;
  }

  async #review() {
    const { moves } = this.#context.game;
    const { player, isExact } = this.#grader;
    this.#running = moves;
    this.show();
    try {
      const opinions = await this.#askAll(moves, player);
      if (this.#running !== moves) return;
      const found = isExact ? marks(opinions.map(({ scores }) => scores), moves) : estimatedMarks(opinions, moves);
      this.#result = { moves, opinions, marks: found, accuracy: accuracy(found) };
      this.#running = null;
      this.#part("note").textContent = this.#grader.by;
    } catch (error) {
      if (this.#running !== moves) return;
      this.#running = null;
      this.#part("note").textContent = error.message;
    }
    this.#context.refresh();
    if (this.#isChosen) this.show(); // else the board is another tab's
  }

  #stop() {
    this.#running = null;
    this.#part("note").textContent = "";
    this.show();
  }

  /** Opinions on all positions of a game that are not over; stops asking when another one is under review, or none. */
  async #askAll(moves, player) {
    const length = moves.length + (replay(moves).isOver ? 0 : 1);
    const opinions = [];
    let next = 0;
    let done = 0;
    const asker = async () => {
      while (next < length && this.#running === moves) {
        const ply = next++;
        opinions[ply] = await this.#context.opinions.ask(player, moves.slice(0, ply));
        done += 1;
        if (this.#running === moves) this.#part("progress").value = done / length;
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, asker));
    return opinions;
  }

  /* ---- showing ---- */

  show() {
    const { game } = this.#context;
    if (this.#running !== null && this.#running !== game.moves) this.#stop();
    const isRunning = this.#running !== null;
    const isDone = this.#isOf(game);
    this.#part("go").textContent = isRunning ? "Stop" : "Review this game";
    this.#part("go").disabled = !isRunning && (!this.#grader || !game.moves);
    this.#part("image").disabled = !game.moves;
    this.#part("progress").hidden = !isRunning;
    if (!isRunning) this.#part("progress").value = 0;
    this.#part("result").hidden = !isDone;
    if (isRunning) this.#part("note").textContent = "Every position is being looked at.";
    else if (!this.#grader) this.#part("note").textContent = "No review here: it needs the solver, or a network with a value.";
    else if (!game.moves) this.#part("note").textContent = "Play a game or paste one, and see where it turned.";
    else if (isDone) this.#part("note").textContent = this.#grader.by;
    if (isDone) this.#showResult();
    else this.#pointAt(null);
  }

  #showResult() {
    const { game } = this.#context;
    for (const side of SIDES) {
      const percent = this.#result.accuracy[side];
      this.#part(`chip-${side}`).className = `chip ${game.colour(side)}`;
      this.#part(`side-${side}`).textContent = capital(game.colour(side));
      this.#part(`accuracy-${side}`).textContent = percent === null ? "–" : `${percent} %`;
    }
    this.#graph.show(this.#result, game);
    this.#showErrors();
    this.#showDetail();
  }

  #showErrors() {
    const { game } = this.#context;
    const found = this.#result.marks.flatMap((mark, index) => (isError(mark) ? [index] : []));
    const items = found.map((index) => {
      const mark = this.#result.marks[index];
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.append(shape(mark), ` ${index + 1}. ${capital(game.colour(index % 2))} ${game.moves[index]}, ${mark}`);
      if (index === game.cursor) button.setAttribute("aria-current", "step");
      button.addEventListener("click", () => {
        game.goTo(index);
        this.#context.board.root.scrollIntoView({ block: "nearest" }); // a phone shows one of the two
      });
      item.append(button);
      return item;
    });
    const hadFocus = [...this.#part("errors").querySelectorAll("button")].indexOf(document.activeElement);
    this.#part("errors").replaceChildren(...items);
    items[hadFocus]?.firstChild.focus();
    this.#part("none").hidden = items.length > 0;
  }

  /** What is to be said of the move that comes after the position looked at. */
  #showDetail() {
    const { game } = this.#context;
    const index = game.cursor;
    const mark = this.#result.marks[index];
    this.#part("line-box").hidden = !isError(mark);
    this.#pointAt(null);
    if (isError(mark)) {
      this.#part("detail").textContent = this.#whatWasBetter(index, mark);
      this.#pointAt(bestColumn(this.#result.opinions[index]));
      this.#findLine(game.shown);
    } else {
      const played = mark && `Move ${index + 1}: ${capital(game.colour(index % 2))} plays column ${game.moves[index]}. ${WORDS[mark]}`;
      this.#part("detail").textContent = played ?? "The end of the game. Choose a sign or a bar above.";
    }
  }

  #whatWasBetter(index, mark) {
    const { game } = this.#context;
    const { moves, opinions } = this.#result;
    const opinion = opinions[index];
    const colour = game.colour(index % 2);
    const better = bestColumn(opinion);
    const [before, after] = opinion.scores
      ? [opinion.scores[better], opinion.scores[moves[index] - 1]].map((score) => outlook([score], colour, index))
      : [opinion.value, worthOf(opinions, moves, index)].map((value) => `value ${signed(value)}`);
    const named = `${mark === "inaccuracy" ? "an" : "a"} ${mark}`;
    return `Move ${index + 1}: ${capital(colour)} plays column ${moves[index]}, ${named}: ${after}. ` +
      `Better is column ${better + 1}: ${before}.`;
  }

  /** The better column, or the next of the line, marked on the board; none for what is no column. */
  #pointAt(column) {
    for (const [index, button] of [...this.#context.board.root.querySelectorAll(".columns button")].entries()) {
      button.classList.toggle("better", index === column);
    }
  }

  async #findLine(from) {
    const { game, opinions } = this.#context;
    if (this.#line?.from === from) return this.#fillLine();
    this.#line = { from, moves: "", shown: 0 };
    this.#fillLine();
    try {
      const moves = await lineFrom(from, (position) => opinions.ask(this.#grader.player, position));
      if (this.#line?.from !== from || game.shown !== from) return;
      this.#line.moves = moves;
      this.#fillLine();
    } catch (error) {
      if (this.#line?.from === from) this.#part("line-note").textContent = error.message;
    }
  }

  #fillLine() {
    const { game } = this.#context;
    const { from, moves, shown } = this.#line;
    const chips = [...moves].map((column, index) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      const colour = game.colour((from.length + index) % 2);
      button.type = "button";
      button.className = `chip ${colour}`;
      button.textContent = column;
      button.setAttribute("aria-label", `Show this line to move ${index + 1}: ${colour}, column ${column}`);
      if (index + 1 === shown) button.setAttribute("aria-current", "step");
      button.addEventListener("click", () => this.#showLine(index + 1));
      item.append(button);
      return item;
    });
    const hadFocus = [...this.#part("line").querySelectorAll("button")].indexOf(document.activeElement);
    this.#part("line").replaceChildren(...chips);
    chips[hadFocus]?.firstChild.focus();
    this.#part("back").hidden = !shown;
    this.#part("line-note").textContent = moves ? this.#nameOfLine(replay(from + moves)) : "Looking for the line…";
  }

  #nameOfLine(end) {
    const kind = this.#grader.isExact ? "Perfect play from here" : "The search’s line from here";
    if (!end.isOver) return `${kind}, its first ${LINE} moves`;
    return `${kind}: ${end.winner === null ? "a draw" : `${capital(this.#context.game.colour(end.winner))} wins`}`;
  }

  /** Show so many moves of the line on the board; 0 is the game again. */
  #showLine(shown) {
    if (!this.#line) return;
    this.#line.shown = Math.min(shown, this.#line.moves.length);
    this.#pointAt(Number(this.#line.moves[this.#line.shown]) - 1);
    this.#fillLine();
    this.#context.refresh("step");
  }

  async #saveImage() {
    const { game } = this.#context;
    const result = this.#isOf(game) ? this.#result : null;
    const by = result ? this.#grader.by : "";
    await save(drawGame(game, result, by), `connect4-${game.moves}.png`);
    this.#part("note").textContent = "The image is saved.";
  }

  #part(name) {
    return this.root.querySelector(`#review-${name}`);
  }
}

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

function legend(mark) {
  const item = document.createElement("li");
  item.append(shape(mark), `${SIGNS[mark]} ${mark}`);
  return item;
}
