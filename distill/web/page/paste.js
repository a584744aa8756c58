/**
 * Read a game that somebody pasted, in any of the usual notations:
 *
 *   4453 · 4 4 5 3 · 4,4,5,3 · [4, 4, 5, 3]    columns from 1 to 7
 *   1. 4 4 2. 5 3 · 1) 4 4 2) 5 3              the same with move numbers
 *   Moves: 4! 4 5?? 3 {a comment}              with annotations
 *   ddec · D D E C                             columns from a to g
 *   https://…/#4453 · #puzzle/k3x9q · #openings/44   a link to this page
 *   https://…/?pos=4453                        a link to connect4.gamesolver.org
 *   3340                                       columns from 0 to 6, because of the 0; the person has to confirm it
 *   42 cells of 0, 1 and 2                     Kaggle's board, the top row first; 1 has moved first
 */

import { CELLS, COLUMNS, FROM_CENTRE, ROWS, replay } from "./rules.js";

const LONGEST = 10_000; // characters of a text; a game has at most 42 moves
const LABEL = /^\s*[a-z]+\s*:/i;
const AROUND = /^\s*(?:\[([^\][(){}]*)\]|\(([^\][(){}]*)\)|\{([^\][(){}]*)\})\s*$/;
const COMMENT = /\{[^{}]*\}/g;
const ANNOTATION = /([0-9a-z])[!?]{1,2}/gi;
const MOVE_NUMBER = /([0-9]{1,2})(\.{1,3}|\))/;
const PERIODS = /^(?:[^.)]*\.?\s*|\s*[0-9](?:\s*\.\s*[0-9])+\s*\.?\s*)$/; // as separators, or at the end
const SEPARATORS = /[\s,;.|/\-"']/g;
const MOST_IN_THREE = 3 * ROWS; // moves that three columns hold: longer texts of 0, 1 and 2 are boards

/**
 * What a text holds.
 * @param {string} text
 * @returns {{moves: string} | {zeroBased: string} | {puzzle: string} | {link: string}} moves of a game; moves if the
 *   columns are counted from 0, to be confirmed; the id of a puzzle; or another address of this page
 * @throws {Error} naming the first thing that cannot be read
 */
export function read(text) {
  if (text.length > LONGEST) throw new Error(`The text has ${text.length.toLocaleString("en")} characters; a game has at most ${CELLS} moves.`);
  const board = /board\W*\[([^\]]*)\]/i.exec(text); // Kaggle's observation
  const puzzle = /#puzzle\/(\w+)/.exec(text);
  const link = /#((?:openings|friend)\b[/\d]*|room\/[\w-]+|daily|\d*\/\d+\/\d+)\s*$/.exec(text);
  if (puzzle) return { puzzle: puzzle[1] };
  if (link) return { link: link[1] };
  if (text.includes("://") && movesOfQuery(text)) return { moves: legal(movesOfQuery(text)) };
  if (text.includes("://") && !text.includes("#")) throw new Error("This link has no game after a “#”.");
  const symbols = [...movesOf(board?.[1] ?? text.split("#").at(-1))];
  if (/^[a-z]/i.test(symbols[0])) return { moves: legal(symbols.map((symbol, index) => columnOfLetter(symbol, index)).join("")) };
  if (board || symbols.length > MOST_IN_THREE && symbols.every((symbol) => "012".includes(symbol))) return { moves: gameOf(symbols) };
  for (const [index, symbol] of symbols.entries()) if (!"01234567".includes(symbol)) throw unreadable(symbol, index, "1 to 7");
  const zero = symbols.indexOf("0");
  if (zero < 0) return { moves: legal(symbols.join("")) };
  if (symbols.includes("7")) throw unreadable("0", zero, "1 to 7");
  return { zeroBased: legal(symbols.map((symbol) => Number(symbol) + 1).join("")) };
}

/** The moves in a link's query `pos`; empty without it. */
export const movesOfQuery = (text) => /[?&]pos=([^&#]*)/.exec(text)?.[1] ?? "";

/** The moves of a text, without a label, brackets around them, comments, annotations and move numbers. */
function movesOf(text) {
  const plain = text.replace(LABEL, "").replace(AROUND, "$1$2$3").replace(COMMENT, " ").replace(ANNOTATION, "$1");
  const pieces = plain.split(MOVE_NUMBER);
  const [before, ...parts] = pieces.filter((_, place) => place % 3 === 0).map((piece) => piece.replace(SEPARATORS, ""));
  if (!parts.length || PERIODS.test(plain) && (before || !parts[0])) return plain.replace(SEPARATORS, "");
  // Numbers count moves, 1. 4 2. 4, or pairs of moves, 1. 4 4 2. 5 or 1. 4 1... 4 2. 5.
  let [count, ofMoves, ofPairs] = [before.length, !before, !before];
  for (const [place, part] of parts.entries()) {
    const [number, mark] = pieces.slice(3 * place + 1);
    ofMoves &&= count === place && place === number - 1 && mark.length === 1;
    ofPairs &&= count === 2 * number - 2 + (mark.length > 1);
    if (!ofMoves && !ofPairs) throw new Error(`Cannot read “${number}${mark}” as the number of move ${count + 1}.`);
    count += part.length;
  }
  return parts.join("");
}

function columnOfLetter(symbol, index) {
  const column = "abcdefg".indexOf(symbol.toLowerCase());
  if (column < 0) throw unreadable(symbol, index, "a to g");
  return column + 1;
}

const unreadable = (symbol, index, columns) =>
  new Error(`Cannot read “${symbol}”: move ${index + 1} is not a column from ${columns}.`);

function legal(moves) {
  replay(moves); // names the first move that is not
  return moves;
}

/** A game that leads to a board of 42 cells. */
function gameOf(cells) {
  const wrong = cells.findIndex((cell) => !"012".includes(cell));
  if (wrong >= 0) throw new Error(`Cannot read “${cells[wrong]}”: cell ${wrong + 1} of the board is not 0, 1 or 2.`);
  if (cells.length !== CELLS) throw new Error(`This board has ${cells.length} cells, not ${CELLS}.`);
  const floating = cells.findIndex((cell, place) => cell !== "0" && cells[place + COLUMNS] === "0");
  if (floating >= 0) {
    const [row, column] = [Math.floor(floating / COLUMNS) + 1, (floating % COLUMNS) + 1];
    throw new Error(`The stone in row ${row} from the top, column ${column}, has an empty cell below it.`);
  }
  const [first, second] = ["1", "2"].map((mark) => cells.filter((cell) => cell === mark).length);
  if (first !== second && first !== second + 1) throw new Error(`This board has ${first} stones of 1 and ${second} of 2; 1 moves first.`);
  const columns = Array.from({ length: COLUMNS }, (_, column) =>
    Array.from({ length: ROWS }, (_, height) => cells[(ROWS - 1 - height) * COLUMNS + column]).join("").replaceAll("0", ""));
  const last = columns.flatMap((column, index) => (column.at(-1) === "21"[(first + second) % 2] ? [index] : []));
  for (const end of [null, ...last]) { // after a win the winning stone has to be the last one
    const moves = end === null ? inOrder(columns) : inOrder(columns.with(end, columns[end].slice(0, -1)), end);
    try {
      if (moves !== null) return legal(moves);
    } catch { /* this order goes on after a win */ }
  }
  throw new Error("No game leads to this board.");
}

/**
 * Moves that fill columns in turn, a stone of 1 first (depth-first search), or null.
 * @param {string[]} columns marks from the bottom
 * @param {number|null} end a column to be played last
 */
function inOrder(columns, end = null) {
  const total = columns.join("").length;
  const dead = new Set();
  const complete = (heights, moves) => {
    if (moves.length === total) return moves;
    if (dead.has(heights.join())) return null;
    for (const column of FROM_CENTRE) {
      if (columns[column][heights[column]] !== "12"[moves.length % 2]) continue;
      const found = complete(heights.with(column, heights[column] + 1), `${moves}${column + 1}`);
      if (found !== null) return found;
    }
    dead.add(heights.join());
    return null;
  };
  const moves = complete(new Array(COLUMNS).fill(0), "");
  return moves === null || end === null ? moves : `${moves}${end + 1}`;
}
