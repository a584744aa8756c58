/**
 * The rules of Connect 4 on move strings: what `distill/game/rules.py` says, for the browser.
 *
 * A move string holds columns 1–7; everything else here counts columns 0–6 and rows 0–5, row 0 on top.
 * Sides are 0 (moves first) and 1.
 */

export const ROWS = 6;
export const COLUMNS = 7;
export const CELLS = ROWS * COLUMNS;
export const FROM_CENTRE = [3, 2, 4, 1, 5, 0, 6]; // columns: of equal ones the first is taken

const DIRECTIONS = [[0, 1], [1, 0], [1, 1], [1, -1]];

/**
 * The position after a move string.
 * @param {string} moves
 * @returns {{cells: Int8Array, heights: number[], ply: number, side: number, winner: number|null, line: number[],
 *   isOver: boolean, last: number|null, order: number[]}}
 *   cells: 42 in rows from the top, −1 empty or the side; side: whose turn it is; line: the cells of all winning lines;
 *   order: the cell each move fell to.
 * @throws {Error} naming the move that is no column, falls into a full one or comes after the end.
 */
export function replay(moves) {
  const cells = new Int8Array(CELLS).fill(-1);
  const heights = new Array(COLUMNS).fill(0);
  const order = [];
  let line = [];
  for (const [index, text] of [...moves].entries()) {
    const column = "1234567".indexOf(text);
    if (column < 0) throw new Error(`Move ${index + 1} is “${text}”, not a column from 1 to 7.`);
    if (line.length) throw new Error(`Move ${index + 1} comes after the end of the game.`);
    if (heights[column] === ROWS) throw new Error(`Move ${index + 1} falls into column ${text}, which is full.`);
    const cell = cellOf(ROWS - 1 - heights[column], column);
    cells[cell] = index % 2;
    heights[column] += 1;
    order.push(cell);
    line = linesThrough(cells, cell);
  }
  const ply = order.length;
  return {
    cells, heights, ply, order, line,
    side: ply % 2,
    winner: line.length ? (ply - 1) % 2 : null,
    isOver: line.length > 0 || ply === CELLS,
    last: ply ? order[ply - 1] : null,
  };
}

/** The board as networks take it: +1 side to move, −1 opponent, 0 empty. */
export function boardOf(position) {
  return Int8Array.from(position.cells, (owner) => (owner < 0 ? 0 : owner === position.side ? 1 : -1));
}

/** Columns that are not full. */
export function legalColumns(position) {
  return position.heights.flatMap((height, column) => (height < ROWS ? [column] : []));
}

export function cellOf(row, column) {
  return row * COLUMNS + column;
}

/** Cells of every line of four or more through a cell, without repetition; empty where there is none. */
function linesThrough(cells, cell) {
  const found = new Set();
  for (const [down, right] of DIRECTIONS) {
    const run = [...reach(cells, cell, -down, -right).reverse(), cell, ...reach(cells, cell, down, right)];
    if (run.length >= 4) run.forEach((member) => found.add(member));
  }
  return [...found];
}

/** Cells of the same owner next to a cell, going one way. */
function reach(cells, cell, down, right) {
  const found = [];
  let row = Math.floor(cell / COLUMNS) + down;
  let column = (cell % COLUMNS) + right;
  while (row >= 0 && row < ROWS && column >= 0 && column < COLUMNS && cells[cellOf(row, column)] === cells[cell]) {
    found.push(cellOf(row, column));
    row += down;
    column += right;
  }
  return found;
}
