/**
 * A game as a picture to keep: the board as it is shown, the moves, and their marks if the game was analysed.
 */

import { capital } from "./opinions.js";
import { SIGNS } from "./review.js";
import { CELLS, COLUMNS, ROWS, replay } from "./rules.js";

const WIDTH = 1000;
const EDGE = 40;
const CELL = 104;
const TOP = 120; // of the board
const PER_ROW = 14; // moves
const CHIP = (WIDTH - 2 * EDGE) / PER_ROW;
const FONT = "Inter, 'Segoe UI', system-ui, sans-serif";
const COLOURS = {
  paper: "#fffefb", ink: "#1b2030", soft: "#5b6172", plate: "#3655d3", hole: "#dfe4f6",
  red: ["#cf2f38", "#a8232f", "#fff"], yellow: ["#ffc02e", "#dd9a10", "#3a2a00"], // body, rim, figures
};

/**
 * @param {Game} game
 * @param {{marks: string[], accuracy: (number|null)[]}|null} result of its analysis, if there is one
 * @param {string} by who checked it
 * @returns {HTMLCanvasElement}
 */
export function drawGame(game, result, by) {
  const rows = Math.ceil(game.moves.length / PER_ROW);
  const movesTop = TOP + ROWS * CELL + 60;
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH;
  canvas.height = movesTop + rows * (CHIP + 8) + 80;
  const pen = penOf(canvas);
  drawHead(pen, game, result);
  drawBoard(pen, game);
  for (const [index, column] of [...game.moves].entries()) {
    const x = EDGE + CHIP * ((index % PER_ROW) + 0.5);
    const y = movesTop + (CHIP + 8) * (Math.floor(index / PER_ROW) + 0.5);
    pen.globalAlpha = index < game.cursor ? 1 : 0.45;
    stone(pen, x, y, CHIP * 0.4, game.colour(index % 2));
    write(pen, column, x, y, { size: 26, weight: 700, colour: COLOURS[game.colour(index % 2)][2], align: "center" });
    pen.globalAlpha = 1;
    badge(pen, SIGNS[result?.marks[index]], x + CHIP * 0.3, y - CHIP * 0.32);
  }
  write(pen, `distill · Connect 4 · ${game.moves}`, EDGE, canvas.height - 56, { size: 20, colour: COLOURS.soft });
  write(pen, by, EDGE, canvas.height - 28, { size: 20, colour: COLOURS.soft });
  return canvas;
}

/** A pen on a canvas of blank paper. */
export function penOf(canvas) {
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.fillStyle = COLOURS.paper;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  return pen;
}

/** Hand a canvas to the person as a PNG file of this name. */
export async function save(canvas, name) {
  saveFile(await new Promise((resolve) => canvas.toBlob(resolve, "image/png")), name);
}

/** Hand a file to the person. */
export function saveFile(file, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000); // once the browser has read it
}

function drawHead(pen, game, result) {
  for (const side of [0, 1]) {
    const x = side ? WIDTH / 2 + 20 : EDGE;
    stone(pen, x + 24, 60, 22, game.colour(side));
    const percent = result?.accuracy[side];
    const accuracy = percent === undefined || percent === null ? "" : `: accuracy ${percent} %`;
    write(pen, `${capital(game.colour(side))}${accuracy}`, x + 62, 60, { size: 28, weight: 600 });
  }
}

/** Its place is fixed: below a headline, in a picture 1000 wide. */
export function drawBoard(pen, game) {
  const left = (WIDTH - COLUMNS * CELL) / 2;
  const position = replay(game.shown);
  pen.fillStyle = COLOURS.plate;
  pen.beginPath();
  pen.roundRect(left - 14, TOP - 14, COLUMNS * CELL + 28, ROWS * CELL + 28, 36);
  pen.fill();
  for (let cell = 0; cell < CELLS; cell += 1) {
    const x = left + CELL * ((cell % COLUMNS) + 0.5);
    const y = TOP + CELL * (Math.floor(cell / COLUMNS) + 0.5);
    const side = position.cells[cell];
    if (side < 0) disc(pen, x, y, 42, COLOURS.hole);
    else stone(pen, x, y, 42, game.colour(side));
    if (position.line.includes(cell) || (cell === position.last && !position.line.length)) ring(pen, x, y);
  }
  for (let column = 0; column < COLUMNS; column += 1) {
    const at = left + CELL * (column + 0.5);
    write(pen, String(column + 1), at, TOP + ROWS * CELL + 38, { size: 22, colour: COLOURS.soft, align: "center" });
  }
}

/** Yellow has a dot, so that colours are not needed. */
function stone(pen, x, y, radius, colour) {
  const [body, rim] = COLOURS[colour];
  disc(pen, x, y, radius, rim);
  disc(pen, x, y, radius * 0.88, body);
  if (colour === "yellow" && radius > 40) disc(pen, x, y, radius * 0.2, rim);
}

function disc(pen, x, y, radius, colour) {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

function ring(pen, x, y) {
  pen.strokeStyle = "#fff";
  pen.lineWidth = 7;
  pen.beginPath();
  pen.arc(x, y, 30, 0, 2 * Math.PI);
  pen.stroke();
}

function badge(pen, sign, x, y) {
  if (!sign) return;
  disc(pen, x, y, 16, COLOURS.ink);
  write(pen, sign, x, y, { size: 19, weight: 700, colour: COLOURS.paper, align: "center" });
}

export function write(pen, text, x, y, { size, weight = 400, colour = COLOURS.ink, align = "left" }) {
  pen.font = `${weight} ${size}px ${FONT}`;
  pen.fillStyle = colour;
  pen.textAlign = align;
  pen.textBaseline = "middle";
  pen.fillText(text, x, y);
}
