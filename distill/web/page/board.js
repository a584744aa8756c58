/**
 * The board on screen: an SVG with falling stones, and seven buttons over its columns.
 *
 * The buttons carry the meaning (they are what keyboard and screen reader meet), the SVG is a picture.
 */

import { tryEffect } from "./effects.js";
import { CELLS, COLUMNS, ROWS } from "./rules.js";

export const SVG = "http://www.w3.org/2000/svg";
const CELL = 96; // of a board 696 wide
const EDGE = 12;
const HOLE = 40;
const STONE = 43; // a little larger than the hole it is seen through
export const LANE = 76; // above the board, where the next stone hovers
const CENTRE = 3;
const SLOP = 12; // px: a pointer that moved farther drags
const FALL = 150; // ms for the first row; a fall of n rows takes √n times as long

const WIDTH = CELL * COLUMNS + 2 * EDGE;
export const x = (column) => EDGE + CELL * (column + 0.5);
export const y = (row) => EDGE + CELL * (row + 0.5);

export class Board {
  #stones = new Array(CELLS).fill(null); // {element, side}
  #buttons;
  #layers;
  #drag = null; // {x, hasMoved}: where a pointer took the stone
  #hasDropped = false; // a dragged stone, in the gesture that is ending
  wait = 0; // ms until the last stone lands

  /**
   * @param {HTMLElement} root
   * @param {(column: number) => void} onDrop called for every press, of a full column too
   */
  constructor(root, onDrop) {
    const svg = picture();
    this.#layers = Object.fromEntries([...svg.querySelectorAll("[id]")].map((part) => [part.id, part]));
    const columns = document.createElement("div");
    columns.className = "columns";
    columns.setAttribute("role", "group");
    columns.setAttribute("aria-label", "Board: left and right choose a column, Enter drops a stone");
    this.#buttons = Array.from({ length: COLUMNS }, (_, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.tabIndex = column === CENTRE ? 0 : -1;
      button.addEventListener("click", () => {
        if (!this.#hasDropped) onDrop(column);
      });
      button.addEventListener("focus", () => this.#rove(column));
      for (const [event, target] of [["pointerenter", column], ["focus", column], ["pointerleave", null], ["blur", null]]) {
        button.addEventListener(event, () => this.#aim(target));
      }
      return button;
    });
    columns.append(...this.#buttons);
    columns.addEventListener("keydown", (event) => this.#steer(event));
    columns.addEventListener("pointerdown", ({ clientX }) => (this.#drag = { x: clientX, hasMoved: false }));
    addEventListener("pointermove", (event) => this.#follow(event));
    addEventListener("pointerup", (event) => this.#release(event, columns, onDrop));
    addEventListener("pointercancel", () => this.#letGo());
    root.append(svg, columns);
    this.root = root;
  }

  /**
   * Show a position.
   * @param {object} position of rules.js
   * @param {object} look
   * @param {(side: number) => "red"|"yellow"} look.colour
   * @param {boolean} look.isOpen whether a person may drop a stone now
   * @param {boolean} look.isOver
   * @param {boolean} look.isThinking
   * @param {number|null} look.hint a column to mark
   * @param {boolean} look.isAnimated whether new stones fall
   */
  show(position, look) {
    const isStill = !look.isAnimated || matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.wait = 0;
    for (let cell = 0; cell < CELLS; cell += 1) {
      const side = position.cells[cell];
      const stone = this.#stones[cell];
      if (stone && stone.side !== side) {
        stone.element.remove();
        this.#stones[cell] = null;
      }
      if (side >= 0 && !this.#stones[cell]) {
        const element = this.#place(cell, side);
        if (!isStill && cell === position.last) tryEffect(() => (this.wait = fall(element, Math.floor(cell / COLUMNS) + 1)));
      }
    }
    for (const [cell, stone] of this.#stones.entries()) {
      if (!stone) continue;
      stone.element.setAttribute("href", `#${look.colour(stone.side)}`);
      stone.element.classList.toggle("last", cell === position.last);
      stone.element.classList.toggle("won", position.line.includes(cell));
    }
    this.#mark(position, this.wait);
    for (const [column, button] of this.#buttons.entries()) button.classList.toggle("hinted", column === look.hint);
    const state = look.isOver ? "over" : look.isThinking ? "thinking" : look.isOpen ? "open" : "closed";
    this.root.dataset.state = state;
    this.root.dataset.colour = look.colour(position.side);
    this.#layers.ghost.setAttribute("href", `#${look.colour(position.side)}`);
    this.#label(position, look);
  }

  /** Say no to a column. */
  refuse(column) {
    const button = this.#buttons[column];
    button.classList.remove("refused");
    void button.offsetWidth; // restarts the animation
    button.classList.add("refused");
  }

  focus(column) {
    this.#buttons[column].focus();
  }

  #place(cell, side) {
    const element = document.createElementNS(SVG, "use");
    element.setAttribute("class", "stone");
    element.setAttribute("x", x(cell % COLUMNS));
    element.setAttribute("y", y(Math.floor(cell / COLUMNS)));
    this.#layers.stones.append(element);
    this.#stones[cell] = { element, side };
    return element;
  }

  /** A ring on the last stone; rings and a line on the winning ones, once the stone has fallen. */
  #mark(position, wait) {
    const marks = [];
    if (position.last !== null && !position.line.length) marks.push(ring(position.last, "last-ring"));
    marks.push(...position.line.map((cell) => ring(cell, "won-ring")), ...sweeps(position));
    const drawn = this.#layers.marks.dataset;
    const key = `${position.last}/${position.line.join()}`;
    if (drawn.key === key) return;
    drawn.key = key;
    for (const mark of marks) mark.style.animationDelay = `${wait}ms`;
    this.#layers.marks.replaceChildren(...marks);
    this.root.style.setProperty("--wait", `${wait}ms`);
    this.root.classList.toggle("is-won", position.line.length > 0);
  }

  #label(position, look) {
    for (const [column, button] of this.#buttons.entries()) {
      const stones = position.heights[column];
      const isFull = stones === ROWS;
      const names = [];
      for (let row = ROWS - 1; row >= ROWS - stones; row -= 1) {
        names.push(look.colour(position.cells[row * COLUMNS + column]));
      }
      const holds = stones ? `${isFull ? "full, " : ""}from the bottom ${names.join(", ")}` : "empty";
      button.setAttribute("aria-label", `Column ${column + 1}, ${holds}`);
      button.setAttribute("aria-disabled", String(isFull || look.isOver || !look.isOpen));
    }
  }

  /** The next stone hovers over a column, or over the centre. */
  #aim(column) {
    this.root.style.setProperty("--aim", column ?? CENTRE);
  }

  /** A dragged stone follows the pointer above the board. */
  #follow({ clientX }) {
    if (!this.#drag) return;
    this.#drag.hasMoved ||= Math.abs(clientX - this.#drag.x) > SLOP;
    if (!this.#drag.hasMoved) return;
    this.root.classList.add("is-dragged");
    this.#aim(Math.max(0, Math.min(COLUMNS - 1, this.#columnAt(clientX) - 0.5)));
  }

  /** A dragged stone falls into the column below it; beside the board nothing happens. */
  #release({ clientX, clientY }, columns, onDrop) {
    const isDragged = this.#drag?.hasMoved;
    this.#letGo();
    if (!isDragged) return;
    this.#hasDropped = true; // a click may follow at once
    setTimeout(() => (this.#hasDropped = false));
    const { top, bottom } = columns.getBoundingClientRect();
    const column = Math.floor(this.#columnAt(clientX));
    if (column >= 0 && column < COLUMNS && clientY >= top && clientY <= bottom) onDrop(column);
  }

  #letGo() {
    this.#drag = null;
    this.root.classList.remove("is-dragged");
  }

  /** Where a point of the screen is, in columns from the left edge of the first. */
  #columnAt(clientX) {
    const { left, width } = this.root.getBoundingClientRect();
    return (((clientX - left) / width) * WIDTH - EDGE) / CELL;
  }

  #rove(column) {
    for (const [index, button] of this.#buttons.entries()) button.tabIndex = index === column ? 0 : -1;
  }

  #steer(event) {
    const now = this.#buttons.indexOf(document.activeElement);
    const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: COLUMNS - 1 }[event.key];
    if (now < 0 || next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.#buttons[(next + COLUMNS) % COLUMNS].focus();
  }
}

/** Let a stone fall so many rows, as under gravity with one bounce; returns the milliseconds until it lands. */
function fall(element, rows) {
  const landing = FALL * Math.sqrt(rows);
  const height = -CELL * (rows + 0.1);
  const bounce = height * 0.06;
  const total = landing * 1.45;
  element.animate(
    [
      { transform: `translateY(${height}px)`, easing: "cubic-bezier(.45,.05,.9,.6)" },
      { transform: "translateY(0)", offset: landing / total, easing: "cubic-bezier(.1,.5,.5,1)" },
      { transform: `translateY(${bounce}px)`, offset: (landing * 1.22) / total, easing: "cubic-bezier(.5,0,.9,.5)" },
      { transform: "translateY(0)" },
    ],
    { duration: total },
  );
  return landing;
}

function ring(cell, className) {
  const circle = document.createElementNS(SVG, "circle");
  circle.setAttribute("class", className);
  circle.setAttribute("cx", x(cell % COLUMNS));
  circle.setAttribute("cy", y(Math.floor(cell / COLUMNS)));
  circle.setAttribute("r", className === "won-ring" ? HOLE - 3 : 11);
  return circle;
}

/** A stroke along every four or more in a row through the last stone. */
function sweeps({ line, last }) {
  const [row, column] = [Math.floor(last / COLUMNS), last % COLUMNS];
  return [[0, 1], [1, 0], [1, 1], [1, -1]].flatMap(([down, right]) => {
    const isIn = (step) => {
      const [r, c] = [row + step * down, column + step * right];
      return r >= 0 && r < ROWS && c >= 0 && c < COLUMNS && line.includes(r * COLUMNS + c);
    };
    let [from, to] = [0, 0];
    while (isIn(from - 1)) from -= 1;
    while (isIn(to + 1)) to += 1;
    if (to - from < 3) return [];
    const stroke = document.createElementNS(SVG, "path");
    const at = (step) => `${x(column + step * right)} ${y(row + step * down)}`;
    stroke.setAttribute("class", "sweep");
    stroke.setAttribute("pathLength", 1);
    stroke.setAttribute("d", `M${at(from)}L${at(to)}`);
    return [stroke];
  });
}

/** Everything that does not change: plate with holes, what a stone of either colour looks like, and empty layers. */
function picture() {
  const holes = [];
  const rims = [];
  for (let cell = 0; cell < CELLS; cell += 1) {
    const [cx, cy] = [x(cell % COLUMNS), y(Math.floor(cell / COLUMNS))];
    holes.push(`M${cx - HOLE} ${cy}a${HOLE} ${HOLE} 0 1 0 ${2 * HOLE} 0a${HOLE} ${HOLE} 0 1 0 ${-2 * HOLE} 0z`);
    rims.push(`<circle cx="${cx}" cy="${cy}" r="${HOLE}"/>`);
  }
  const [width, height] = [WIDTH, CELL * ROWS + 2 * EDGE];
  const corner = 34;
  const plate =
    `M${corner} 0H${width - corner}a${corner} ${corner} 0 0 1 ${corner} ${corner}V${height - corner}` +
    `a${corner} ${corner} 0 0 1 ${-corner} ${corner}H${corner}a${corner} ${corner} 0 0 1 ${-corner} ${-corner}` +
    `V${corner}a${corner} ${corner} 0 0 1 ${corner} ${-corner}z`;
  const stone = (colour, centre) => `
    <g id="${colour}" class="${colour}">
      <circle class="body" r="${STONE}"/><circle class="groove" r="27"/>${centre}
      <path class="shine" d="M-31 -14A34 34 0 0 1 -6 -33.5"/>
    </g>`;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 ${-LANE} ${width} ${height + LANE}`);
  svg.setAttribute("class", "picture");
  svg.setAttribute("aria-hidden", "true");
  svg.innerHTML = `
    <defs>
      <linearGradient id="plate-fill" x1="0" y1="0" x2="0" y2="1">
        <stop class="plate-top" offset="0"/><stop class="plate-bottom" offset="1"/>
      </linearGradient>
      ${stone("red", "")}
      ${stone("yellow", '<circle class="dot" r="9"/>')}
      <clipPath id="shaft"><rect x="0" y="${-LANE}" width="${width}" height="${height + LANE}"/></clipPath>
    </defs>
    <use id="ghost" href="#red" y="-30"/>
    <path class="back" d="${plate}"/>
    <g id="stones" clip-path="url(#shaft)"></g>
    <path class="plate" fill-rule="evenodd" d="${plate}${holes.join("")}"/>
    <g class="rims">${rims.join("")}</g>
    <g id="marks"></g>`;
  return svg;
}
