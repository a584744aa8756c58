/**
 * The tab "Idea": three positions that show what a network does that a search does not. `tour.json`
 * (`experiments/page/tour.py` makes it) has the positions with their exact scores.
 */

import { fetched } from "./files.js";
import { capital } from "./opinions.js";

const MARKUP = `
  <h2 id="tour-title"></h2>
  <p id="tour-text"></p>
  <div class="buttons">
    <button id="tour-back" type="button">Back</button>
    <button id="tour-next" type="button">Next</button>
  </div>`;

/** By the `kind` of a position. */
const CHAPTERS = {
  right: {
    title: "Right at a glance",
    text: (colour) => `${colour} is to move, and one column alone keeps the win. The network has not tried a single move: the stones above the
      board are its first thought, a larger stone for a better move. Let a search check it.`,
  },
  wrong: {
    title: "Wrong at a glance, and the search finds it",
    text: (colour) => `${colour} is to move. The glance falls on a column that throws the win away. Watch the stones move while the search tries out
      replies: such answers, millions of them, are what the network learned from.`,
  },
  surprising: {
    title: "Both right, against intuition",
    text: (colour) => `${colour} is to move. Most people would play near the centre. The network sees at a glance that an outer column is the
      one that wins, and the search agrees.`,
  },
};

const $ = (id) => document.getElementById(id);

export class Tour {
  keys = {};
  #game;
  #sight;
  #show;
  #leave;
  #positions = null;
  #place = 0;
  #hasFailed = false;
  #isChosen = false;
  #wasOn = false; // whether the sight was, before the tour

  /**
   * @param {Game} game
   * @param {Sight} sight
   * @param {() => void} show redraws the page where the game does not change
   * @param {() => void} leave to the tab "Play", for a game
   */
  constructor(game, sight, show, leave) {
    this.#game = game;
    this.#sight = sight;
    this.#show = show;
    this.#leave = leave;
    $("panel-idea").innerHTML = MARKUP;
    $("tour-back").addEventListener("click", () => this.#open(this.#place - 1));
    $("tour-next").addEventListener("click", () => (this.#isLast ? this.#leave() : this.#open(this.#place + 1)));
  }

  get #isLast() {
    return this.#place === (this.#positions?.length ?? 1) - 1;
  }

  /* ---- a mode, as main.js calls it ---- */

  address() {
    return "idea";
  }

  async enter() {
    this.#isChosen = true;
    this.#wasOn = this.#sight.isOn;
    try {
      ({ positions: this.#positions } = await fetched("tour.json", "positions"));
      this.#hasFailed = false;
    } catch {
      this.#hasFailed = true;
    }
    if (!this.#isChosen) return;
    if (this.#hasFailed) return this.#show();
    this.#sight.toggle(true);
    this.#open(this.#place);
  }

  leave() {
    this.#isChosen = false;
    this.#sight.toggle(this.#wasOn);
  }

  status({ side, isOver }) {
    if (this.#hasFailed) return "The tour cannot be loaded. Please try again later.";
    if (isOver || !this.#positions) return null;
    return `${CHAPTERS[this.#positions[this.#place].kind].title}: ${capital(this.#game.colour(side))} to move`;
  }

  #open(place) {
    this.#place = place;
    const { kind, moves } = this.#positions[place];
    const { title, text } = CHAPTERS[kind];
    $("tour-title").textContent = `${place + 1} of ${this.#positions.length}: ${title}`;
    $("tour-text").textContent = text(capital(this.#game.colour(moves.length % 2)));
    $("tour-back").disabled = place === 0;
    $("tour-next").textContent = this.#isLast ? "Play a game" : "Next";
    this.#game.load(moves);
  }
}
