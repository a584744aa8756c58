/**
 * A board that searches play on in place. Cells are 42 in rows from the top, as in `rules.js`.
 */

import { CELLS, COLUMNS, ROWS } from "./rules.js";

const STEPS = [[0, 1], [1, 0], [1, 1], [1, -1]];

/** Four cells in a row through each cell. */
const LINES = Array.from({ length: CELLS }, (_, cell) => {
  const found = [];
  for (const [down, right] of STEPS) {
    for (let shift = -3; shift <= 0; shift += 1) {
      const cells = [0, 1, 2, 3].map((step) => {
        const row = Math.floor(cell / COLUMNS) + down * (shift + step);
        const column = (cell % COLUMNS) + right * (shift + step);
        return row >= 0 && row < ROWS && column >= 0 && column < COLUMNS ? row * COLUMNS + column : -1;
      });
      if (!cells.includes(-1)) found.push(cells);
    }
  }
  return found;
});

/** `cells` holds −1 or the owner, `side` is to move. */
export class Stones {
  constructor(position) {
    this.cells = Int8Array.from(position.cells);
    this.heights = [...position.heights];
    this.ply = position.ply;
    this.side = position.side;
  }

  copyFrom(other) {
    this.cells.set(other.cells);
    for (let column = 0; column < COLUMNS; column += 1) this.heights[column] = other.heights[column];
    this.ply = other.ply;
    this.side = other.side;
  }

  /** Whether a stone of a side in this column makes four. */
  wins(column, side) {
    const { cells } = this;
    const cell = (ROWS - 1 - this.heights[column]) * COLUMNS + column;
    return LINES[cell].some((line) => line.every((other) => other === cell || cells[other] === side));
  }

  play(column) {
    this.cells[(ROWS - 1 - this.heights[column]) * COLUMNS + column] = this.side;
    this.heights[column] += 1;
    this.ply += 1;
    this.side = 1 - this.side;
  }

  /** Take back the last stone, which lies in this column. */
  undo(column) {
    this.heights[column] -= 1;
    this.cells[(ROWS - 1 - this.heights[column]) * COLUMNS + column] = -1;
    this.ply -= 1;
    this.side = 1 - this.side;
  }
}
