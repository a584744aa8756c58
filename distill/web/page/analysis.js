/**
 * The tab "Analysis": steps through a game, evaluates the position on the board and, for a whole game, marks every move.
 * The game here is a copy: playing a move from an earlier position starts a variation, and the game stays.
 */

import { Evaluation, WhatTheyThink } from "./evaluation.js";
import { drawGame, save } from "./image.js";
import { addressOfGame } from "./links.js";
import { capital, count, outlook, signed } from "./opinions.js";
import { usualSearch } from "./players.js";
import { Retry, pliesOf } from "./retry.js";
import {
  DECIDED, LINE, POINTS, SERIOUS, SIGNS, SLIP, SLOW, accuracy, bestColumn, estimatedMarks, isError, lineFrom, marks, worthOf,
} from "./review.js";
import { ReviewGraph, shape } from "./review_graph.js";
import { ROWS, replay } from "./rules.js";

const SIMULATIONS = 400; // of the search that checks a game without the solver
const SIDES = [0, 1];
const UNFINISHED = 5; // moves drawn on the board of a line that does not end in four in a row
const DEBOUNCE = 100; // ms on a position before it is evaluated: not every position that one steps over

const BOARD_MARKUP = `
  <p id="evaluation" class="evaluation" role="status"></p>
  <svg id="analysis-graph" class="graph" role="slider" tabindex="0" aria-label="Evaluation after each move" aria-valuemin="0" hidden></svg>
  <div id="strips" aria-label="Evaluation of each column" role="region">
    <div id="network-strip"></div><div id="search-strip"></div><div id="solver-strip"></div>
  </div>`;

const MARKUP = `
  <div class="buttons">
    <button id="analysis-go" type="button" class="primary"></button>
    <button id="analysis-play" type="button">Play from here</button>
    <button id="analysis-image" type="button">Save image</button>
  </div>
  <progress id="analysis-progress" aria-label="Analysing" hidden></progress>
  <p id="analysis-note" class="note" role="status"></p>
  <div id="analysis-result" hidden>
    <dl class="accuracy">
      ${SIDES.map((side) => `<div><dt><i id="analysis-chip-${side}"></i><span id="analysis-side-${side}"></span></dt>
        <dd id="analysis-accuracy-${side}"></dd></div>`).join("")}
    </dl>
    <div class="detail">
      <p id="analysis-detail" role="status"></p>
      <div id="analysis-line-box">
        <p class="note" id="analysis-line-note" role="status"></p>
        <ol id="analysis-line" class="chips" aria-label="Best line from here"></ol>
      </div>
    </div>
    <ol id="analysis-errors" class="errors" aria-label="Turning points"></ol>
    <details id="analysis-slips"><summary></summary><ol class="errors" aria-label="Inaccuracies"></ol></details>
    <p id="analysis-none" class="note">No mistakes found.</p>
    <button id="analysis-retry" type="button"></button>
    <ul class="legend"></ul>
  </div>
  <div id="retry-box" hidden>
    <h2 id="retry-text"></h2>
    <div class="buttons">
      <button id="retry-again" type="button" class="primary">Try again</button>
      <button id="retry-show" type="button">Solution</button>
      <button id="retry-next" type="button" class="primary">Next</button>
      <button id="retry-end" type="button">Back to the review</button>
    </div>
  </div>
  <div id="variation-box" hidden>
    <p class="note" id="variation-note"></p>
    <ol id="variation" class="chips" aria-label="Variation"></ol>
    <button id="analysis-back" type="button">Back to the game</button>
  </div>
  <div id="analysis-players"></div>
  <details>
    <summary>How moves are marked</summary>
    <dl class="help">
      <dt>Blunder</dt><dd>turns a win into a loss: ${POINTS.blunder} points</dd>
      <dt>Mistake</dt><dd>turns a win into a draw, or a draw into a loss: ${POINTS.mistake}</dd>
      <dt>Inaccuracy</dt><dd>keeps the result, but wins at least ${SLOW} moves later or loses at least ${SLOW} moves
        sooner: ${POINTS.inaccuracy}</dd>
      <dt>Good</dt><dd>a little slower than best: ${POINTS.good}</dd>
      <dt>Best</dt><dd>no column is better: ${POINTS.best}; the only winning (drawing) move if every other column has a worse result</dd>
    </dl>
    <p class="note">Accuracy is the average of a side’s points, rounded down: at 100 % every move was best. Forced moves do
      not count.</p>
    <p class="note">The solver’s marks are exact. A network’s search estimates: it counts a value of ${DECIDED} or more as a win
      and −${DECIDED} or less as a loss. Its first choice is best; a column with ${100 * SERIOUS} % of its visits, or at most
      ${SLIP} below the position’s value, is good. It marks no move as the only one.</p>
  </details>`;

const WORDS = { best: "A best move.", good: "A good move: a little slower than best.", forced: "No other column is open." };

const $ = (id) => document.getElementById(id);

export class Analysis {
  keys = {
    ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), ",": () => this.step(-1), ".": () => this.step(1),
    u: () => (this.#retry?.state === "wrong" ? $("retry-again").click() : this.step(-1)), Home: () => this.#toStart(), End: () => this.#toEnd(), o: () => this.#players.toggle(),
  };
  #context;
  #grader = null; // {player, by, isExact}
  #result = null; // of the game analysed last: {moves, opinions, marks, accuracy}
  #running = null; // AbortController of the analysis that is under way
  #failure = ""; // why the last analysis did not end
  #best = null; // {from, moves}: the best line from a position before an error
  #variation = null; // {from, moves, shown}: leaves the game after `from` moves; `shown` of its moves are on the board
  #retry = null; // while the person retries the mistakes
  #isChosen = false; // whether this tab is
  #graph;
  #evaluation;
  #players;

  /**
   * @param {object} context
   * @param {Game} context.game
   * @param {Opinions} context.opinions
   * @param {Board} context.board
   * @param {Ghosts} context.ghosts
   * @param {(why?: string) => void} context.refresh redraws the page
   * @param {(moves: string) => void} context.play continues from a position in the tab "Play"
   */
  constructor(context) {
    this.#context = context;
    $("panel-analysis").innerHTML = MARKUP;
    $("under-board").innerHTML = BOARD_MARKUP;
    document.querySelector("#panel-analysis .legend").append(...Object.keys(SIGNS).map(legend));
    this.#graph = new ReviewGraph($("analysis-graph"), (ply) => this.#goTo(ply));
    this.#evaluation = new Evaluation($("gauge"), $("evaluation"));
    this.#players = new WhatTheyThink($("analysis-players"), context.opinions, () => this.#evaluate());
    $("analysis-go").addEventListener("click", () => (this.#running ? (this.#stop(), this.show()) : this.start()));
    $("analysis-play").addEventListener("click", () => context.play(this.#onBoard));
    $("analysis-image").addEventListener("click", () => this.#saveImage());
    $("analysis-retry").addEventListener("click", () => this.#startRetry());
    $("retry-again").addEventListener("click", () => (this.#retry.again(), this.#showRetry(null)));
    $("retry-show").addEventListener("click", () => (this.#retry.show(), this.#showRetry(this.#retry.column)));
    $("retry-next").addEventListener("click", () => (this.#retry.next(), this.#showRetry(null)));
    $("retry-end").addEventListener("click", () => this.#endRetry());
    $("analysis-back").addEventListener("click", () => this.#showVariation(0));
  }

  /** Whether there is a player that grades moves. */
  get canGrade() {
    return this.#grader !== null;
  }

  /** The grader's opinions before each move of a finished game; a later analysis has them at once. */
  grade(moves) {
    return this.#context.opinions.askGame(this.#grader.player, moves);
  }

  /** Take over the players: the solver checks games, or else a network's search. */
  offer(catalogue) {
    const { players, max_simulations: most } = catalogue;
    const guided = usualSearch(players.filter(({ kind }) => kind === "guided"));
    if (players.some(({ kind }) => kind === "solver")) {
      this.#grader = { player: "solver", by: "Checked by the perfect solver", isExact: true };
    } else if (guided) {
      const simulations = Math.min(SIMULATIONS, most);
      const by = `Estimated by ${guided.name.split("@")[0]} with a search of ${simulations} simulations`;
      this.#grader = { player: guided.name.replace(/N$/, simulations), by, isExact: false };
    }
    this.#players.offer(catalogue, !this.#grader?.isExact);
  }

  /* ---- hooks of the page ---- */

  enter(view) {
    this.#isChosen = true;
    this.#variation = view?.variation ?? null;
    releaseFocus(); // or arrow keys would choose another tab
    for (const id of ["under-board", "gauge"]) $(id).hidden = false;
    this.show();
  }

  leave() {
    const view = this.view();
    this.#isChosen = false;
    this.#retry = null;
    this.#stop();
    this.#pointAt(null);
    for (const id of ["under-board", "gauge"]) $(id).hidden = true;
    return view;
  }

  /** What is on the board besides the game, as `enter` takes it. */
  view() {
    return { variation: this.#retry ? null : this.#variation };
  }

  get isInVariation() {
    return this.#isChosen && !this.#retry && Boolean(this.#variation?.shown);
  }

  /** The part of the address after the "#". */
  address() {
    return addressOfGame(this.#context.game.moves, this.isInVariation ? this.#variation : null);
  }

  /** A link to a variation was opened: its last position. */
  openVariation({ from, moves }) {
    this.#context.game.goTo(from);
    this.#startVariation(moves, moves.length);
  }

  /** Anything changed. A variation stays listed while its game does, and leaves the board when the game is stepped. */
  change(why) {
    if (this.#running && this.#running.moves !== this.#context.game.moves) this.#stop();
    const { moves, cursor } = this.#context.game;
    if (this.#retry?.ply !== cursor || !this.#isOf(this.#context.game)) this.#retry = null;
    if (this.#variation?.game !== moves) this.#variation = null;
    else if (why === "step") this.#variation.shown = 0;
    this.show();
  }

  /** The moves that are on the board instead of the game's. */
  preview() {
    const { moves, shown } = this.#variation ?? {};
    return shown ? this.#context.game.shown + moves.slice(0, shown) : undefined;
  }

  /** The line above the board, where the page's own does not do. */
  status(position) {
    const { game } = this.#context;
    const { shown, moves, isBest } = this.#variation ?? {};
    if (this.#retry) return this.#retry.inWords((side) => capital(game.colour(side)));
    if (shown) {
      const toMove = position.isOver ? "" : `: ${capital(game.colour(position.side))} to move`;
      return `${isBest ? "Best line" : "Variation"}, move ${shown} of ${moves.length}${toMove}.`;
    }
    if (position.isOver) return undefined;
    const mark = this.#isOf(game) ? this.#result.marks[game.cursor] : "";
    if (!isError(mark)) return game.moves ? `Move ${game.cursor} of ${game.moves.length}: ${capital(game.colour(position.side))} to move.` : undefined;
    const better = bestColumn(this.#result.opinions[game.cursor]) + 1;
    return `${capital(game.colour(position.side))} played column ${game.moves[game.cursor]}, ${withArticle(mark)}: column ${better} was better.`;
  }

  /** A column is pressed: the game or the variation continues if this is its next move; else a variation begins. */
  drop(column) {
    const { game } = this.#context;
    const { shown = 0, moves = "", from } = this.#variation ?? {};
    if (this.#retry) return this.#answer(column);
    const position = replay(this.#onBoard);
    if (position.isOver || position.heights[column] === ROWS) {
      if (shown) this.#context.board.refuse(column);
      return shown > 0; // else the page says why
    }
    releaseFocus(); // after a click: arrow keys step
    const text = String(column + 1);
    if (!shown && game.moves[game.cursor] === text) return game.goTo(game.cursor + 1), true;
    if (!shown && game.isAtEnd && !this.#isOf(game)) return false; // the game goes on
    const isOn = shown || from === game.cursor;
    if (isOn && moves[shown] === text) return this.#showVariation(shown + 1), true;
    const played = (shown ? moves.slice(0, shown) : "") + text;
    this.#startVariation(played, played.length);
    return true;
  }

  /** One move back or forward, in the variation if it is on the board. */
  step(by) {
    const { game } = this.#context;
    const { shown, moves } = this.#variation ?? {};
    if (!shown) game.goTo(game.cursor + by);
    else if (shown + by <= moves.length) this.#showVariation(shown + by);
  }

  #toStart() {
    this.#goTo(0);
  }

  #toEnd() {
    if (this.#variation?.shown) this.#showVariation(this.#variation.moves.length);
    else this.#goTo(this.#context.game.moves.length);
  }

  /** To a position of the game itself. */
  #goTo(cursor) {
    const { game } = this.#context;
    if (game.cursor === cursor) this.#showVariation(0);
    else game.goTo(cursor);
  }

  /** Where a click on a move leads: to the position after it, or before it if it could have been better. */
  open(index) {
    this.#goTo(this.#isOf(this.#context.game) && isError(this.#result.marks[index]) ? index : index + 1);
  }

  /** What can be stepped to: [back, forward]. */
  get ends() {
    const { game } = this.#context;
    const { shown, moves } = this.#variation ?? {};
    return shown ? [false, shown === moves.length] : [game.cursor === 0, game.isAtEnd];
  }

  /** The mark of a move of this game, "" where it has none or is not analysed. */
  gradeOf(index) {
    if (!this.#isOf(this.#context.game)) return "";
    const mark = this.#result.marks[index];
    return mark === "best" ? "best move" : mark in SIGNS ? mark : "";
  }

  get #onBoard() {
    return this.preview() ?? this.#context.game.shown;
  }

  /* ---- a whole game ---- */

  #isOf(game) {
    return this.#result?.moves === game.moves;
  }

  /** Analyse the whole game, unless that is done. */
  async start() {
    const { game, opinions } = this.#context;
    if (!this.#grader || !game.moves || this.#isOf(game)) return;
    const { moves } = game;
    const { player, isExact } = this.#grader;
    const running = Object.assign(new AbortController(), { moves });
    this.#stop();
    this.#running = running;
    this.#failure = "";
    this.show();
    try {
      const answers = await opinions.askGame(player, moves, running.signal);
      if (this.#running !== running) return;
      const marked = isExact ? marks(answers.map(({ scores }) => scores), moves) : estimatedMarks(answers, moves);
      this.#result = { moves, opinions: answers, marks: marked, accuracy: accuracy(marked) };
    } catch (error) {
      if (this.#running !== running) return;
      this.#failure = error.message;
    }
    this.#running = null;
    this.#context.refresh();
    this.show();
  }

  #stop() {
    this.#running?.abort();
    this.#running = null;
  }

  /* ---- showing ---- */

  show() {
    if (!this.#isChosen) return;
    const { game } = this.#context;
    const isDone = this.#isOf(game);
    $("analysis-go").textContent = this.#running ? "Stop" : "Analyse game";
    $("analysis-go").hidden = isDone;
    $("analysis-go").disabled = !this.#running && (!this.#grader || !game.moves);
    $("analysis-play").disabled = replay(this.#onBoard).isOver;
    $("analysis-image").disabled = !game.moves;
    $("analysis-progress").hidden = !this.#running;
    $("analysis-result").hidden = !isDone;
    $("analysis-graph").toggleAttribute("hidden", !isDone);
    $("analysis-note").textContent = this.#note(isDone);
    this.#pointAt(null);
    if (isDone) this.#showResult();
    this.#showVariationChips();
    this.#showRetryBox();
    this.#evaluate();
  }

  #note(isDone) {
    if (this.#running) return "Analysing…";
    if (!this.#grader) return "A whole game cannot be analysed here: that needs the solver, or a network with a value.";
    if (this.#failure) return this.#failure;
    if (isDone) return this.#grader.by;
    return this.#context.game.moves ? "" : "Play moves on the board, or paste a game below.";
  }

  #showResult() {
    const { game } = this.#context;
    for (const side of SIDES) {
      const percent = this.#result.accuracy[side];
      $(`analysis-chip-${side}`).className = `chip ${game.colour(side)}`;
      const isPerson = game.side === side && game.counted !== "shown";
      $(`analysis-side-${side}`).textContent = isPerson ? "Your accuracy" : `${capital(game.colour(side))}’s accuracy`;
      $(`analysis-accuracy-${side}`).textContent = percent === null ? "–" : `${percent} %`;
    }
    this.#graph.show(this.#result, game);
    this.#showErrors();
    this.#showDetail();
  }

  #showErrors() {
    const { game } = this.#context;
    const { marks } = this.#result;
    const errors = marks.flatMap((mark, index) => (isError(mark) ? [index] : []));
    const button = (index) => {
      const mark = marks[index];
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.mark = mark;
      button.append(shape(mark), ` ${index + 1}. ${capital(game.colour(index % 2))} ${game.moves[index]}${SIGNS[mark]}, ${mark}`);
      if (index === game.cursor) button.setAttribute("aria-current", "step");
      button.addEventListener("click", () => {
        this.#goTo(index);
        this.#context.board.root.scrollIntoView({ block: "nearest" }); // a phone shows one of the two
      });
      return button;
    };
    const slips = errors.filter((index) => marks[index] === "inaccuracy");
    fill($("analysis-errors"), errors.filter((index) => !slips.includes(index)).map(button));
    fill($("analysis-slips").lastElementChild, slips.map(button));
    $("analysis-slips").hidden = slips.length === 0;
    if (slips.includes(game.cursor)) $("analysis-slips").open = true;
    $("analysis-slips").firstElementChild.textContent = count(slips.length, "inaccuracy", "inaccuracies");
    $("analysis-none").hidden = errors.length > 0;
    $("analysis-retry").hidden = !pliesOf(this.#result, this.#own).length;
    $("analysis-retry").textContent = this.#own === undefined ? "Retry the mistakes" : "Retry your mistakes";
  }

  /** About the move that comes next in the game. */
  #showDetail() {
    const { game } = this.#context;
    const index = game.cursor;
    const mark = this.#result.marks[index];
    $("analysis-line-box").hidden = !isError(mark);
    if (isError(mark)) {
      $("analysis-detail").textContent = this.#whatWasBetter(index, mark);
      if (!this.#variation?.shown && !this.#retry) this.#pointAt(bestColumn(this.#result.opinions[index]));
      this.#findBestLine(game.shown);
    } else if (mark) {
      const played = `Move ${index + 1}: ${capital(game.colour(index % 2))} plays column ${game.moves[index]}.`;
      $("analysis-detail").textContent = `${played} ${mark === "only move" ? this.#onlyMove(index) : WORDS[mark]}`;
    } else {
      $("analysis-detail").textContent = "Select a move above.";
    }
  }

  #onlyMove(index) {
    const kind = Math.max(...this.#result.opinions[index].scores.filter((score) => score !== null)) > 0 ? "winning" : "drawing";
    return `The only ${kind} move.`;
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
    return `Move ${index + 1}: ${capital(colour)} plays column ${moves[index]}, ${withArticle(mark)}: ${after}. ` +
      `Column ${better + 1} is better: ${before}.`;
  }

  /** The better column marked on the board; null for none. */
  #pointAt(column) {
    for (const [index, button] of [...this.#context.board.root.querySelectorAll(".columns button")].entries()) {
      button.classList.toggle("better", index === column);
    }
    if (column === null) this.#context.ghosts.line("", "", () => "red");
  }

  async #findBestLine(from) {
    const { game, opinions } = this.#context;
    if (this.#best?.from !== from) {
      this.#best = { from, moves: "" };
      fill($("analysis-line"), []);
      $("analysis-line-note").textContent = "Analysing…";
      try {
        const moves = await lineFrom(from, (position) => opinions.ask(this.#grader.player, position));
        if (this.#best?.from !== from) return;
        this.#best.moves = moves; // also for a position that was left meanwhile
        if (game.shown !== from) return;
      } catch (error) {
        if (this.#best?.from !== from) return;
        $("analysis-line-note").textContent = error.message;
        this.#best = null;
        return;
      }
    }
    const { moves } = this.#best;
    if (!moves) return; // still on its way
    fill($("analysis-line"), this.#chips(moves, game.cursor, "Show the best line", (count) => this.#startVariation(moves, count, true)));
    $("analysis-line-note").textContent = this.#nameOfLine(replay(from + moves));
    const ghosts = replay(from + moves).winner === null ? moves.slice(0, UNFINISHED) : moves;
    if (!this.#variation?.shown) this.#context.ghosts.line(from, ghosts, (side) => game.colour(side));
  }

  #nameOfLine(end) {
    if (!end.isOver) return `Best line, the first ${LINE} moves`;
    return `Best line: ${end.winner === null ? "a draw" : `${capital(this.#context.game.colour(end.winner))} wins`}`;
  }

  /* ---- the mistakes again ---- */

  /** The side of the person who played this game; undefined for a game of other people. */
  get #own() {
    const { counted, side } = this.#context.game;
    return ["loaded", "shown"].includes(counted) ? undefined : side;
  }

  #startRetry() {
    this.#retry = new Retry(this.#result, this.#own);
    this.#showRetry(null);
  }

  #endRetry() {
    this.#retry = null;
    this.#showVariation(0);
    this.show();
    $("analysis-retry").focus();
  }

  /** A column is pressed while the mistakes are retried. Returns whether it was an answer. */
  #answer(column) {
    if (replay(this.#context.game.shown).heights[column] === ROWS || this.#retry.state === "over") return false;
    if (this.#retry.isAnswered) return true;
    releaseFocus();
    this.#retry.try(column);
    this.#showRetry(column);
    return true;
  }

  /** Show the mistake's position, with a stone in this column. */
  #showRetry(column) {
    const retry = this.#retry;
    if (this.#context.game.cursor !== retry.ply) this.#context.game.goTo(retry.ply);
    this.#retry = retry; // which stepping the game has ended
    this.#variation = null;
    if (column !== null) this.#startVariation(String(column + 1), 1);
    this.#context.refresh(column === null ? undefined : "step");
    this.show();
    const { activeElement } = document;
    if (activeElement.closest("#retry-box") && activeElement.hidden) $(retry.isAnswered ? "retry-next" : "retry-end").focus();
  }

  #showRetryBox() {
    const retry = this.#retry;
    $("retry-box").hidden = !retry;
    for (const id of ["under-board", "gauge"]) $(id).hidden = Boolean(retry);
    if (!retry) return;
    $("retry-text").textContent = retry.title;
    $("retry-again").hidden = retry.state !== "wrong";
    $("retry-show").hidden = !["open", "wrong"].includes(retry.state);
    $("retry-next").hidden = !retry.isAnswered;
    $("retry-next").textContent = retry.isLast ? "Finish" : "Next";
  }

  /* ---- variations ---- */

  #startVariation(moves, shown, isBest = false) {
    const { game } = this.#context;
    this.#variation = { game: game.moves, from: game.cursor, moves, shown: 0, isBest };
    this.#showVariation(shown);
  }

  /** Show so many moves of the variation on the board; 0 is the game again. */
  #showVariation(shown) {
    if (!this.#variation) return;
    this.#variation.shown = shown;
    if (this.#context.game.cursor !== this.#variation.from) this.#context.game.goTo(this.#variation.from);
    this.#variation.shown = shown; // which stepping the game has set to 0
    this.#context.refresh("step");
    this.show();
  }

  #showVariationChips() {
    const { from, moves = "", shown } = this.#variation ?? {};
    $("variation-box").hidden = !moves || Boolean(this.#retry);
    $("analysis-back").hidden = !shown;
    if (!moves) return;
    const branch = from ? `after move ${from}` : "from the start";
    $("variation-note").textContent = `Variation ${branch}`;
    fill($("variation"), this.#chips(moves, from, "Show the variation", (count) => this.#showVariation(count), shown));
  }

  /** Buttons of a line's moves that begin after so many moves of the game. */
  #chips(moves, from, what, show, shown) {
    const { game } = this.#context;
    return [...moves].map((column, index) => {
      const button = document.createElement("button");
      const colour = game.colour((from + index) % 2);
      button.type = "button";
      button.className = `chip ${colour}`;
      button.textContent = column;
      button.setAttribute("aria-label", `${what} to move ${index + 1}: ${colour}, column ${column}`);
      if (index + 1 === shown) button.setAttribute("aria-current", "step");
      button.addEventListener("click", () => show(index + 1));
      return button;
    });
  }

  /* ---- the position on the board ---- */

  async #evaluate() {
    const { game, opinions } = this.#context;
    const moves = this.#onBoard;
    const position = replay(moves);
    const colours = SIDES.map((side) => game.colour(side));
    const isWanted = () => this.#isChosen && this.#onBoard === moves;
    this.#players.show(moves, position, colours[position.side], isWanted);
    if (this.#retry) return;
    if (position.isOver || !this.#grader) return this.#evaluation.show(position, null, colours);
    const known = opinions.known(this.#grader.player, moves);
    if (known) return this.#evaluation.show(position, known, colours);
    this.#evaluation.wait();
    await new Promise((resolve) => setTimeout(resolve, DEBOUNCE));
    if (!isWanted() || this.#running) return; // the whole game's analysis has it soon
    try {
      const opinion = await opinions.ask(this.#grader.player, moves);
      if (isWanted()) this.#evaluation.show(position, opinion, colours);
    } catch (error) {
      if (isWanted()) this.#evaluation.fail(error.message);
    }
  }

  async #saveImage() {
    const { game } = this.#context;
    const result = this.#isOf(game) ? this.#result : null;
    await save(drawGame(game, result, result ? this.#grader.by : ""), `connect4-${game.moves}.png`);
    $("analysis-note").textContent = "The image is saved.";
  }
}

const withArticle = (mark) => `${mark === "inaccuracy" ? "an" : "a"} ${mark}`;

/** Replace a list's buttons, and keep the focus. */
function fill(list, buttons) {
  const hadFocus = [...list.querySelectorAll("button")].indexOf(document.activeElement);
  list.replaceChildren(...buttons.map((button) => {
    const item = document.createElement("li");
    item.append(button);
    return item;
  }));
  buttons[hadFocus]?.focus();
}

/** Arrow keys belong to what has the focus; what was only clicked gives it up. */
function releaseFocus() {
  const focused = document.activeElement;
  if (!focused.matches(":focus-visible")) focused.blur();
}

function legend(mark) {
  const item = document.createElement("li");
  item.dataset.mark = mark;
  item.append(shape(mark), `${SIGNS[mark]} ${mark}`);
  return item;
}
