/**
 * The opening explorer: each move of the current position, with its result under perfect play, how much strong players
 * like it, and how finished games with it ended, from `openings.json` (`experiments/page/openings.py` makes it and says
 * what is in it).
 */

import { fetched } from "./files.js";
import { capital, pliesToEnd } from "./opinions.js";
import { COLUMNS, FROM_CENTRE, ROWS, cellOf, replay } from "./rules.js";

const PANEL = `
  <h2 id="openings-title"></h2>
  <p id="openings-reached" class="note" aria-live="polite"></p>
  <div class="openings-head" aria-hidden="true"><span>Move</span><span>Perfect play</span><span>Strong players</span><span>Games</span></div>
  <ul id="openings-moves"></ul>
  <div class="buttons">
    <button id="openings-play" type="button">Play this opening</button>
    <button id="openings-back" type="button" hidden>Back to the book</button>
  </div>
  <p id="openings-note" class="note"></p>`;

const $ = (id) => document.getElementById(id);
const percent = (part, whole) => Math.round((100 * part) / whole);

export class Openings {
  keys = { u: () => this.#game.goTo(this.#game.cursor - 1) };
  #game;
  #show;
  #book = null; // the file, once it has been fetched
  #hasFailed = false;
  #isChosen = false; // whether this tab is

  /**
   * @param {Game} game
   * @param {HTMLElement} panel to fill
   * @param {() => void} show redraws the page where the game does not change
   * @param {(moves: string) => void} play continues from a position in the tab "Play"
   */
  constructor(game, panel, show, play) {
    this.#game = game;
    this.#show = show;
    panel.innerHTML = PANEL;
    $("openings-play").addEventListener("click", () => play(game.shown));
    $("openings-back").addEventListener("click", () => game.goTo(this.#lastKnown()));
  }

  /* ---- a mode, as main.js calls it ---- */

  async enter() {
    this.#isChosen = true;
    try {
      this.#book ??= await fetched("openings.json", "positions");
      this.#hasFailed = false;
    } catch {
      this.#hasFailed = true;
    }
    if (!this.#isChosen) return;
    if (!this.#hasFailed && this.#game.position.isOver) this.#game.goTo(this.#lastKnown()); // of a game that is over
    this.#render();
    this.#show();
  }

  leave() {
    this.#isChosen = false;
  }

  /** The part of the address after the "#". */
  address() {
    return this.#game.shown ? `openings/${this.#game.shown}` : "openings";
  }

  change() {
    this.#render();
  }

  status(position) {
    if (this.#hasFailed) return "The openings cannot be loaded. Please try again later.";
    if (!this.#book) return "Loading the openings…";
    if (position.isOver) return null;
    const end = this.#entry(this.#game.shown) ? "" : " The book ends here.";
    return `${capital(this.#game.colour(position.side))} to move.${end}`;
  }

  /* ---- the book ---- */

  /**
   * What the file says of a position, turned to its orientation, the best move first; null where it says nothing. Of
   * moves with equal scores the one that strong players like more comes first, then the one nearer to the centre.
   */
  #entry(moves) {
    const position = replay(moves);
    const { name, isMirrored, isSymmetric } = keyOf(position);
    const found = this.#book.positions[name];
    if (!found) return null;
    const [scores, shares, played] = found;
    const counts = new Map(played.map(([column, ...rest]) => [isMirrored ? COLUMNS - column : column - 1, rest]));
    const columns = FROM_CENTRE.filter((column) => position.heights[column] < ROWS && (!isSymmetric || column <= (COLUMNS - 1) / 2));
    const rows = columns.map((column) => {
      const [games, chosen, won, drawn] = counts.get(column) ?? [0, 0, 0, 0];
      const twin = COLUMNS - 1 - column;
      const isPair = isSymmetric && twin !== column;
      const own = isMirrored ? twin : column;
      const share = shares[own] * (isPair ? 2 : 1); // of both together
      const name = isPair ? `${column + 1} or ${twin + 1}` : String(column + 1);
      return { column, name, games, chosen, won, drawn, share, score: scores[own] };
    });
    rows.sort((one, other) => other.score - one.score || other.share - one.share); // stable
    return { rows, games: rows.reduce((sum, row) => sum + row.games, 0), best: rows[0].score };
  }

  /** Moves of the game until it leaves the book. */
  #lastKnown() {
    for (let length = this.#game.cursor; length > 0; length -= 1) {
      if (this.#entry(this.#game.moves.slice(0, length))) return length;
    }
    return 0;
  }

  /* ---- showing ---- */

  #render() {
    if (!this.#book) return;
    const { shown, position } = this.#game;
    const entry = position.isOver ? null : this.#entry(shown);
    const { games, plies, least } = this.#book;
    $("openings-title").textContent = entry ? `Perfect play: ${this.#result(entry.best, position)}` : "Beyond the book";
    $("openings-reached").textContent = entry ? `Reached in ${number(entry.games)} of ${number(games)} games` : "";
    const before = document.activeElement.closest("#openings-moves") !== null;
    $("openings-moves").replaceChildren(...(entry?.rows ?? []).map((row) => this.#row(row, entry, position)));
    if (before) ($("openings-moves").querySelector("button") ?? $("openings-back")).focus();
    $("openings-moves").previousElementSibling.hidden = !entry;
    $("openings-back").hidden = Boolean(entry);
    $("openings-play").disabled = position.isOver || !shown;
    $("openings-note").textContent = entry
      ? `Strong players: how much of their search two of them spend on each move. Games: ${number(games)} by the search that the networks learned from, each after 1 to 8 random moves. Mirror images and transpositions are merged.`
      : `The book has the first ${plies} moves of positions that at least ${least} games reached.`;
  }

  /** "Red wins in 21", counted in Red's moves, or "draw". */
  #result(score, position) {
    if (score === 0) return "draw";
    const winner = score > 0 ? position.side : 1 - position.side;
    return `${capital(this.#game.colour(winner))} wins in ${Math.ceil(pliesToEnd(score, position.ply) / 2)}`;
  }

  #row(row, entry, position) {
    const { column, name, games, chosen, won, drawn, share, score } = row;
    const [first, second] = [0, 1].map((side) => capital(this.#game.colour(side)));
    const kind = score > 0 ? "win" : score < 0 ? "loss" : "draw";
    const result = this.#result(score, position);
    const parts = [won, drawn, games - won - drawn];
    const button = document.createElement("button");
    button.type = "button";
    button.className = "opening";
    button.classList.toggle("best", score === entry.best);
    button.innerHTML = `
      <span class="opening-column"><i class="chip ${this.#game.colour(position.side)}"></i>${name.replace(" or ", "/")}</span>
      <span class="opening-worth" data-kind="${kind}">${capital(result)}</span>
      <span class="opening-share"><i></i><span>${share ? `${share} %` : "–"}</span></span>
      <span class="opening-results">${games ? "<i></i><i></i><i></i>" : "–"}</span>`;
    button.querySelector(".opening-share > i").style.width = `${share}%`;
    for (const [place, part] of [...button.querySelectorAll(".opening-results > i")].entries()) {
      part.className = [this.#game.colour(0), "drawn", this.#game.colour(1)][place];
      part.style.flexGrow = parts[place];
    }
    const [ofFirst, ofNone, ofSecond] = parts.map((part) => percent(part, games || 1));
    const ends = games ? `, ${first} won ${ofFirst} percent, drawn ${ofNone}, ${second} won ${ofSecond}` : "";
    const played = `${number(games)} games, ${number(chosen)} chosen by the search${ends}`;
    button.setAttribute("aria-label", `Column ${name}: ${result}; strong players ${share} percent; ${played}`);
    button.title = played;
    button.addEventListener("click", () => this.#game.play(column));
    const item = document.createElement("li");
    item.append(button);
    return item;
  }
}

/** The exact score of each column after these moves; null where the book has no such position. */
export function scoresIn(book, moves) {
  const { name, isMirrored } = keyOf(replay(moves));
  const [scores] = book.positions[name] ?? [];
  return scores ? (isMirrored ? scores.toReversed() : scores) : null;
}

/** A position's name in the book, as `key` of `experiments/page/openings.py` gives it. */
function keyOf(position) {
  const columns = Array.from({ length: COLUMNS }, (_, column) => {
    let text = "";
    for (let row = ROWS - 1; row >= ROWS - position.heights[column]; row -= 1) text += position.cells[cellOf(row, column)];
    return text;
  });
  const own = columns.join();
  const mirrored = [...columns].reverse().join();
  return { name: mirrored < own ? mirrored : own, isMirrored: mirrored < own, isSymmetric: mirrored === own };
}

const number = (count) => count.toLocaleString("en");
