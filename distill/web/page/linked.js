/** What stands above the analysis of a game that came by a link: a line about it, Replay, and a way to play on. */

import { capital, count } from "./opinions.js";
import { replay } from "./rules.js";

const MARKUP = `
  <p id="linked-text"></p>
  <div class="buttons">
    <button id="linked-play" type="button" class="primary"></button>
    <button id="linked-replay" type="button">Replay</button>
  </div>`;

const $ = (id) => document.getElementById(id);

export class Linked {
  #root;
  moves = null; // of the game in the link

  /**
   * @param {HTMLElement} root to fill
   * @param {() => void} onReplay
   * @param {() => void} onPlay from the position on the board, or a new game if that one is over
   */
  constructor(root, onReplay, onPlay) {
    this.#root = root;
    root.innerHTML = MARKUP;
    $("linked-replay").addEventListener("click", onReplay);
    $("linked-play").addEventListener("click", onPlay);
  }

  /** A link was opened. */
  open(moves) {
    this.moves = moves;
  }

  /**
   * @param {Game} game of the analysis; null where another tab is open
   * @param {string} shown moves on the board
   */
  show(game, shown) {
    this.#root.hidden = game?.moves !== this.moves || !this.moves;
    $("analysis-play").hidden = !this.#root.hidden; // which does the same
    if (this.#root.hidden) return;
    const { isOver, winner, side, ply } = replay(game.moves);
    const end = winner === null ? "a draw" : `${capital(game.colour(winner))} won in ${count(Math.ceil(ply / 2), "move")}`;
    $("linked-text").textContent = isOver ? `A shared game: ${end}.` : `A shared position: ${capital(game.colour(side))} to move.`;
    $("linked-play").textContent = replay(shown).isOver ? "Play a game" : "Play this position";
  }
}
