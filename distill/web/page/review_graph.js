/**
 * The evaluation of a game over its plies: a bar for each position, up where the side that began stands better, down
 * where the other does, and above or below it a sign for what was played from there. Works as a slider.
 */

import { capital, outlook } from "./opinions.js";
import { SIGNS, isError, standing } from "./review.js";
import { replay } from "./rules.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 150; // of the drawing; its width follows from the element's shape
const MIDDLE = 75;
const REACH = 48; // of the longest bar
const LANES = [12, 138]; // of the signs of either side
const LEAST = 2; // of any bar, a draw's too

/** Told apart by outline and not by colour; each about the origin. */
const SHAPES = {
  inaccuracy: '<circle r="4.6" class="hollow"/>',
  mistake: '<path d="M0 -6L6 0L0 6L-6 0z"/>',
  blunder: '<path d="M-5 -5H5V5H-5z"/><path class="cross" d="M-2.5 -2.5L2.5 2.5M-2.5 2.5L2.5 -2.5"/>',
  "only move": '<path class="hollow" d="M0 -5.5L5.5 4.5H-5.5z"/>',
};

/** A sign by itself, for a line of text. */
export function shape(mark) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "-7 -7 14 14");
  svg.setAttribute("class", "sign");
  svg.setAttribute("aria-hidden", "true");
  svg.innerHTML = SHAPES[mark];
  return svg;
}

export class ReviewGraph {
  #svg;
  #marks = [];
  #length = 0;
  #place = 0;
  #width = 3 * HEIGHT;
  #redraw = () => {};

  /**
   * @param {SVGElement} svg
   * @param {(ply: number) => void} onPick the position after so many moves was chosen
   */
  constructor(svg, onPick) {
    this.#svg = svg;
    this.onPick = onPick;
    new ResizeObserver(() => this.#redraw()).observe(svg);
    svg.addEventListener("click", (event) => this.#pick(event));
    svg.addEventListener("keydown", (event) => this.#steer(event));
  }

  /**
   * @param {{moves: string, opinions: object[], marks: string[]}} result
   * @param {Game} game
   */
  show(result, game) {
    this.#redraw = () => this.#draw(result, game);
    this.#redraw();
  }

  #draw({ moves, opinions, marks }, game) {
    const { width, height } = this.#svg.getBoundingClientRect();
    if (!height) return;
    this.#width = (HEIGHT * width) / height;
    this.#svg.setAttribute("viewBox", `0 0 ${this.#width} ${HEIGHT}`);
    this.#marks = marks;
    this.#length = moves.length;
    this.#place = game.cursor;
    const { position } = game;
    const step = this.#step();
    const parts = Array.from({ length: moves.length + 1 }, (_, ply) => {
      const value = ply < opinions.length ? standing(opinions[ply]) * (ply % 2 ? -1 : 1) : resultOf(moves);
      return bar(ply, value, step, game) + sign(marks[ply], ply, step);
    });
    const here = `<rect class="here" x="${game.cursor * step}" y="0" width="${step}" height="${HEIGHT}" rx="3"/>`;
    this.#svg.innerHTML = `${here}<path class="axis" d="M0 ${MIDDLE}H${this.#width}"/>${parts.join("")}`;
    const opinion = opinions[game.cursor];
    const stands = opinion?.scores ? outlook(opinion.scores, game.colour(position.side), position.ply)
      : opinion ? `value ${opinion.value.toFixed(2)} for ${game.colour(position.side)}` : "the end";
    const mark = marks[game.cursor];
    const next = mark ? `; next ${game.colour(position.side)} plays ${moves[game.cursor]}${mark in SIGNS ? `, ${mark}` : ""}` : "";
    this.#svg.setAttribute("aria-valuemax", this.#length);
    this.#svg.setAttribute("aria-valuenow", game.cursor);
    this.#svg.setAttribute("aria-valuetext", capital(`after ${game.cursor} moves: ${stands}${next}`));
  }

  #step() {
    return this.#width / (this.#length + 1);
  }

  #pick(event) {
    const { left, width } = this.#svg.getBoundingClientRect();
    const ply = Math.floor(((event.clientX - left) / width) * (this.#length + 1));
    this.onPick(Math.max(0, Math.min(this.#length, ply)));
  }

  #steer(event) {
    const before = this.#marks.findLastIndex((mark, ply) => isError(mark) && ply < this.#place);
    const after = this.#marks.findIndex((mark, ply) => isError(mark) && ply > this.#place);
    const target = {
      ArrowLeft: this.#place - 1, ArrowDown: this.#place - 1, ArrowRight: this.#place + 1, ArrowUp: this.#place + 1,
      Home: 0, End: this.#length, PageUp: before < 0 ? 0 : before, PageDown: after < 0 ? this.#length : after,
    }[event.key];
    if (target === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.onPick(Math.max(0, Math.min(this.#length, target)));
  }
}

/** How a game that is over ended, for the side that began. */
function resultOf(moves) {
  const { winner } = replay(moves);
  return winner === null ? 0 : winner === 0 ? 1 : -1;
}

function bar(ply, value, step, game) {
  const height = Math.max(LEAST, Math.abs(value) * REACH);
  const leader = Math.abs(value) * REACH < LEAST ? "level" : game.colour(value > 0 ? 0 : 1);
  const y = value >= 0 ? MIDDLE - height : MIDDLE;
  const gap = Math.min(1.5, step / 5);
  return `<rect class="bar-of ${leader}" x="${ply * step + gap / 2}" y="${y}" width="${step - gap}" height="${height}"/>`;
}

function sign(mark, ply, step) {
  if (!(mark in SHAPES)) return "";
  return `<g class="sign" data-mark="${mark}" data-ply="${ply}" transform="translate(${(ply + 0.5) * step} ${LANES[ply % 2]})">${SHAPES[mark]}</g>`;
}
