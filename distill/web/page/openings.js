/**
 * The opening explorer: what finished games played in the position looked at, how they ended and what each move is
 * worth, from `openings.json` (`experiments/page/openings.py` makes it and says what is in it).
 */

import { capital, pliesToEnd } from "./opinions.js";
import { COLUMNS, ROWS, cellOf, legalColumns, replay } from "./rules.js";

const PANEL = `
  <h2 id="openings-title"></h2>
  <div class="openings-head" aria-hidden="true"><span>Move</span><span>Games</span><span>Results</span><span>Best play</span></div>
  <ul id="openings-moves"></ul>
  <button id="openings-back" type="button" hidden>Back to the book</button>
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
   */
  constructor(game, panel, show) {
    this.#game = game;
    this.#show = show;
    panel.innerHTML = PANEL;
    $("openings-back").addEventListener("click", () => game.goTo(this.#lastKnown()));
  }

  /* ---- what the page asks of a mode ---- */

  async enter() {
    this.#isChosen = true;
    try {
      this.#book ??= await fetched("openings.json");
      this.#hasFailed = false;
    } catch {
      this.#hasFailed = true;
    }
    if (!this.#isChosen) return;
    this.#render();
    this.#show();
  }

  leave() {
    this.#isChosen = false;
  }

  change() {
    this.#render();
  }

  status(position) {
    if (this.#hasFailed) return "The openings cannot be fetched. Please try again later.";
    if (!this.#book) return "The openings are being fetched.";
    if (position.isOver) return null;
    const entry = this.#entry(this.#game.shown);
    const told = entry ? `${number(entry.games)} of ${number(this.#book.games)} games were here.` : "The book ends here.";
    return `${capital(this.#game.colour(position.side))} to move. ${told}`;
  }

  /* ---- the book ---- */

  /** What the file says of a position, turned to its orientation; null where it says nothing. */
  #entry(moves) {
    const position = replay(moves);
    const { name, isMirrored, isSymmetric } = keyOf(position);
    const found = this.#book.positions[name];
    if (!found) return null;
    const [scores, played] = found;
    const counts = new Map(played.map(([column, ...rest]) => [isMirrored ? COLUMNS - column : column - 1, rest]));
    const columns = legalColumns(position).filter((column) => !isSymmetric || column <= (COLUMNS - 1) / 2);
    const rows = columns.map((column) => {
      const [games, chosen, won, drawn] = counts.get(column) ?? [0, 0, 0, 0];
      const twin = COLUMNS - 1 - column;
      const name = isSymmetric && twin !== column ? `${column + 1} or ${twin + 1}` : String(column + 1);
      return { column, name, games, chosen, won, drawn, score: scores[isMirrored ? twin : column] };
    });
    rows.sort((one, other) => other.games - one.games || one.column - other.column);
    return { rows, games: rows.reduce((sum, row) => sum + row.games, 0), best: Math.max(...rows.map((row) => row.score)) };
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
    const who = capital(this.#game.colour(position.side));
    $("openings-title").textContent = entry ? `${who}’s moves in ${number(entry.games)} games` : "Beyond the book";
    const before = document.activeElement.closest("#openings-moves") !== null;
    $("openings-moves").replaceChildren(...(entry?.rows ?? []).map((row) => this.#row(row, entry, position)));
    if (before) ($("openings-moves").querySelector("button") ?? $("openings-back")).focus();
    $("openings-moves").previousElementSibling.hidden = !entry;
    $("openings-back").hidden = Boolean(entry);
    $("openings-note").textContent = entry
      ? `Of ${number(games)} games by the search that the networks learned from. Each began with 1 to 8 random moves; the darker part of a bar is what the search chose. Positions count together, mirrored or reached another way.`
      : `The book holds the first ${plies} moves of positions that ${least} games or more passed.`;
  }

  #row(row, entry, position) {
    const { column, name, games, chosen, won, drawn, score } = row;
    const [first, second] = [0, 1].map((side) => capital(this.#game.colour(side)));
    const count = Math.ceil(pliesToEnd(score, position.ply) / 2);
    const kind = score > 0 ? "win" : score < 0 ? "loss" : "draw";
    const worth = score ? `${kind === "win" ? "wins" : "loses"} in ${count}` : "draw";
    const shares = games ? [won, drawn, games - won - drawn].map((part) => percent(part, games)) : null;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "opening";
    button.classList.toggle("best", score === entry.best);
    button.innerHTML = `
      <span class="opening-column"><i class="chip ${this.#game.colour(position.side)}"></i>${name.replace(" or ", "/")}</span>
      <span class="opening-games"><i></i><b></b><span>${games ? `${percent(games, entry.games)} %` : "–"}</span></span>
      <span class="opening-results">${shares ? "<i></i><i></i><i></i>" : "–"}</span>
      <span class="opening-worth" data-kind="${kind}">${worth}</span>`;
    const [all, own] = button.querySelectorAll(".opening-games > i, .opening-games > b");
    const most = entry.rows[0].games;
    all.style.width = `${(100 * games) / most}%`;
    own.style.width = `${(100 * chosen) / most}%`;
    const results = shares ? `, ${first} won ${shares[0]} percent, drawn ${shares[1]}, ${second} won ${shares[2]}` : "";
    for (const [place, part] of [...button.querySelectorAll(".opening-results > i")].entries()) {
      part.className = [this.#game.colour(0), "drawn", this.#game.colour(1)][place];
      part.style.flexGrow = [won, drawn, games - won - drawn][place];
    }
    const played = `${number(games)} games, ${number(chosen)} chosen by the search`;
    button.setAttribute("aria-label", `Column ${name}: ${played}${results}; best play: ${worth}`);
    button.title = `${played}${results}`;
    button.addEventListener("click", () => this.#game.play(column));
    const item = document.createElement("li");
    item.append(button);
    return item;
  }
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

async function fetched(name) {
  const reply = await fetch(new URL(name, import.meta.url));
  if (!reply.ok) throw new Error(`${name}: ${reply.status}`);
  return reply.json();
}

const number = (count) => count.toLocaleString("en");
