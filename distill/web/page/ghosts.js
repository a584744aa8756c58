/**
 * Ghost stones on the board's picture: above the columns, sized by shares, or in the holes, numbered in the order of a
 * line of moves. They say nothing to a screen reader: whoever draws them says it in words.
 */

import { COLUMNS, replay } from "./rules.js";
import { LANE, SVG, x, y } from "./board.js";

const REACH = 0.8; // size of a ghost stone with the whole share, of a stone
const LEAST = 0.2; // share from which its percentage is written on it
const LEAST_RING = 0.02; // share from which a ring shows it
const STONE = 43;

const part = (name, attributes, parent) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
};

export class Ghosts {
  #above; // a group per column: {stone, ring, number}
  #root;
  #line;
  #board;

  /** @param {HTMLElement} board element with the picture */
  constructor(board) {
    this.#board = board;
    const svg = board.querySelector("svg");
    this.#root = part("g", { class: "ghosts" }, svg);
    this.#line = part("g", { class: "ghost-line" }, svg);
    this.#above = Array.from({ length: COLUMNS }, (_, column) => {
      const group = part("g", { transform: `translate(${x(column)} ${-LANE / 2})` }, this.#root);
      return {
        stone: part("use", { class: "ghost-stone" }, group),
        ring: part("circle", { class: "ghost-ring", r: 0 }, group),
        number: part("text", { class: "ghost-number", y: 8 }, group),
      };
    });
  }

  /**
   * Stones above the columns whose areas are their shares.
   * @param {number[]} shares of each column
   * @param {string} colour "red" or "yellow"
   * @param {number[]} [before] shares that rings show
   */
  show(shares, colour, before) {
    this.#board.classList.add("has-sight");
    this.#root.setAttribute("class", `ghosts ${colour}`);
    for (const [column, { stone, ring, number }] of this.#above.entries()) {
      const share = shares[column];
      stone.setAttribute("href", `#${colour}`);
      stone.style.transform = `scale(${(REACH * Math.sqrt(share)).toFixed(3)})`;
      stone.dataset.share = share.toFixed(3);
      ring.setAttribute("r", before?.[column] >= LEAST_RING ? STONE * REACH * Math.sqrt(before[column]) : 0);
      number.textContent = share >= LEAST ? Math.round(100 * share) : "";
    }
  }

  /** No stones above the columns. */
  hide() {
    this.#board.classList.remove("has-sight");
    for (const { stone, ring, number } of this.#above) {
      stone.style.transform = "scale(0)";
      ring.setAttribute("r", 0);
      number.textContent = "";
    }
  }

  /**
   * The stones of a line of moves in their holes, numbered from 1; none for an empty line.
   * @param {string} from moves before the line
   * @param {string} line
   * @param {(side: number) => string} colour
   */
  line(from, line, colour) {
    this.#line.replaceChildren();
    const { order } = replay(from + line);
    for (const [index, cell] of order.slice(from.length).entries()) {
      const place = `translate(${x(cell % COLUMNS)} ${y(Math.floor(cell / COLUMNS))})`;
      const name = colour((from.length + index) % 2);
      const group = part("g", { class: name, transform: place }, this.#line);
      part("use", { href: `#${name}`, transform: "scale(.88)" }, group);
      part("text", { class: "ghost-number", y: 10 }, group).textContent = index + 1;
    }
  }
}
