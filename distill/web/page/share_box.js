/**
 * The dialog that shares a game: a picture of the board with a headline, its link, and the last moves as a GIF. Everything
 * is drawn in the browser.
 */

import { encode } from "./gif.js";
import { drawBoard, penOf, saveFile, write } from "./image.js";
import { PERSON, REMOTE } from "./game.js";
import { capital, count } from "./opinions.js";
import { replay } from "./rules.js";
import { copy, isHandheld, send } from "./sending.js";

const [WIDTH, HEIGHT] = [1000, 900];
const GIF_SCALE = 0.45;
const GIF_MOVES = 8; // the last ones
const DELAYS = { move: 70, end: 250 }; // hundredths of a second

const MARKUP = `
  <h2 id="sharing-title">Share</h2>
  <p id="sharing-text"></p>
  <canvas id="sharing-picture" role="img"></canvas>
  <div class="buttons">
    <button id="sharing-send" type="button" class="primary" autofocus></button>
    <button id="sharing-png" type="button">Save picture</button>
    <button id="sharing-gif" type="button">Save GIF</button>
  </div>
  <p id="sharing-note" class="note" role="status"></p>
  <form method="dialog"><button>Close</button></form>`;

const $ = (id) => document.getElementById(id);

export class ShareBox {
  #dialog;
  #what = null; // {moves, colour, text, link}

  /** @param {HTMLDialogElement} dialog to fill */
  constructor(dialog) {
    this.#dialog = dialog;
    dialog.innerHTML = MARKUP;
    $("sharing-send").addEventListener("click", () => this.#send());
    $("sharing-png").addEventListener("click", () => this.#save(this.#png(), "png"));
    $("sharing-gif").addEventListener("click", () => this.#save(this.#gif(), "gif"));
  }

  /**
   * @param {object} what
   * @param {string} what.moves on the board
   * @param {(side: number) => string} what.colour
   * @param {string} what.text the headline
   * @param {string} what.link
   */
  open(what) {
    this.#what = what;
    const canvas = $("sharing-picture");
    draw(canvas, what, what.moves, WIDTH);
    canvas.setAttribute("aria-label", `The board: ${what.text}`);
    $("sharing-text").textContent = what.text;
    $("sharing-send").textContent = isHandheld() ? "Send…" : "Copy link";
    $("sharing-gif").disabled = !what.moves;
    $("sharing-note").textContent = "";
    this.#dialog.showModal();
  }

  async #send() {
    const { text, link } = this.#what;
    const files = isHandheld() ? [await this.#png()] : undefined;
    $("sharing-note").textContent = await (files ? send({ url: link, text, files }, "The link") : copy(link, "The link"));
  }

  async #png() {
    const blob = await new Promise((resolve) => $("sharing-picture").toBlob(resolve, "image/png"));
    return this.#file(blob, "png");
  }

  async #gif() {
    const { moves } = this.#what;
    const canvas = document.createElement("canvas");
    const first = Math.max(0, moves.length - GIF_MOVES);
    const lengths = Array.from({ length: moves.length - first + 1 }, (_, place) => first + place);
    const pictures = lengths.map((length) => draw(canvas, this.#what, moves.slice(0, length), Math.round(WIDTH * GIF_SCALE)));
    const delays = lengths.map((length) => (length === moves.length ? DELAYS.end : DELAYS.move));
    return this.#file(encode(pictures, delays), "gif");
  }

  #file(content, kind) {
    return new File([content], `connect4-${this.#what.moves || "empty"}.${kind}`, { type: `image/${kind}` });
  }

  async #save(making, kind) {
    const file = await making;
    saveFile(file, file.name);
    $("sharing-note").textContent = kind === "gif" ? "The GIF is saved." : "The picture is saved.";
  }
}

/** Draw the board after these moves, with headline and address; returns the pixels. */
function draw(canvas, { colour, text, link }, moves, width) {
  const scale = width / WIDTH;
  canvas.width = width;
  canvas.height = Math.round(HEIGHT * scale);
  const pen = penOf(canvas);
  pen.scale(scale, scale);
  let size = 46;
  while (measured(pen, text, size) > WIDTH - 80) size -= 2;
  write(pen, text, WIDTH / 2, 58, { size, weight: 700, align: "center" });
  drawBoard(pen, { shown: moves, colour });
  const address = link.replace(/^https?:\/\//, "").replace(/#.*/, "");
  write(pen, address, WIDTH / 2, HEIGHT - 50, { size: 26, align: "center" });
  return pen.getImageData(0, 0, canvas.width, canvas.height);
}

function measured(pen, text, size) {
  pen.font = `700 ${size}px Inter, system-ui, sans-serif`;
  return pen.measureText(text).width;
}

/**
 * What a person says about a game: the result against somebody, or a question about the position.
 * @param {Game} game
 * @param {string} moves on the board
 * @param {string} opponent the title of the other player
 */
export function headline(game, moves, opponent) {
  const { winner: onBoard, isOver, side, ply } = replay(moves);
  const { winner } = (moves === game.moves && game.result) || { winner: onBoard }; // one may have resigned
  const isResult = moves === game.moves && game.counted !== "shown" && game.side !== undefined;
  const length = count(Math.ceil(ply / 2), "move");
  if (!isOver && winner === null) return `Connect 4: what would you play as ${capital(game.colour(side))}?`;
  if (winner === null) return isResult ? `I drew against ${opponent}: your turn` : "Connect 4: a draw";
  if (!isResult) return `Connect 4: ${capital(game.colour(winner))} won in ${length}`;
  return game.players[winner] === PERSON ? `I beat ${opponent} in ${length}: your turn` : `${opponent} beat me in ${length}: your turn`;
}

/** The other player's name in a headline. */
export const nameInHeadline = (title, name) => (name === REMOTE ? "my friend" : title);
