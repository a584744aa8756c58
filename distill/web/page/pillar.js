/**
 * The networks `pillar` and `pillar-plain` (`distill/networks/`) in the browser without ONNX Runtime: their weights, as
 * `static_page.py` writes them, and the kernel. Boards have 42 cells in rows from the top, +1 side to move.
 *
 * Features come in pairs, a detector and its mirror image, so half of the kernels are stored; see `networks/pillar.py`.
 */

import { assemble, pack } from "./kernel.js";
import { CELLS, COLUMNS, FROM_CENTRE, ROWS } from "./rules.js";

const HALF = 32; // detectors; as many more are their mirror images
const WIDTH = 2 * HALF;
const BLOCKS = 3;
const HIDDEN = 128;
const VALUE_HIDDEN = 64;
const OUTPUTS = 16; // of a group; the last layers fill one
const FULL_COLUMN = -1e9;
const PAGE = 65536;
const FLOAT = 4;

/** Cells lie in rows of eight, the last one empty: so they have neighbours on all sides that are zero outside. */
const STRIDE = COLUMNS + 1;
const place = (row, column) => (row + 1) * STRIDE + column + 1;
const PLACES = (ROWS + 2) * STRIDE + 1;

export class Pillar {
  #memory;
  #floats;
  #layer;
  #used = 16; // bytes of the memory; address 0 means none
  #layers = []; // arguments of the kernel
  #head; // as #layers, by name
  #views; // what is filled and read between layers
  #channels; // of the input: 2, or 9 with lines

  /** @param {ArrayBuffer} weights float32: kernel and bias of each layer in order, as Keras stores them */
  static async load(weights) {
    const network = new Pillar();
    network.#memory = new WebAssembly.Memory({ initial: Math.ceil((3 * weights.byteLength) / PAGE) + 4 });
    network.#floats = new Float32Array(network.#memory.buffer);
    network.#layer = await assemble(network.#memory);
    network.#build(new Float32Array(weights));
    return network;
  }

  /* ---- memory ---- */

  /** The address of new memory with these numbers, of 32 bits each. */
  #put(numbers) {
    const address = this.#used;
    new numbers.constructor(this.#memory.buffer, address, numbers.length).set(numbers);
    this.#used += FLOAT * Math.ceil(numbers.length / 4) * 4; // vectors are aligned
    return address;
  }

  #space = (floats) => this.#put(new Float32Array(floats));

  /** A table of offsets in bytes. */
  #table = (places, size) => this.#put(Int32Array.from(places, (each) => FLOAT * size * each));

  /* ---- layers ---- */

  #build(weights) {
    this.#channels = channelsOf(weights.length);
    let next = 0;
    const take = (length) => weights.subarray(next, (next += length));

    const cells = Array.from({ length: CELLS }, (_, cell) => place(Math.floor(cell / COLUMNS), cell % COLUMNS));
    const around = [-1, 0, 1].flatMap((down) => [-1, 0, 1].map((right) => down * STRIDE + right));
    const top = [...Array.from({ length: COLUMNS }, (_, column) => place(0, column)), place(0, 0)]; // the eighth is a dummy
    const [planes, x, y] = [this.#channels, WIDTH, WIDTH].map((size) => this.#space(PLACES * size));
    const columns = this.#space(8 * WIDTH);
    const features = this.#space(2 * COLUMNS * WIDTH);
    const [hidden, logits, value, outcome] = [2 * HIDDEN, 2 * OUTPUTS, 2 * VALUE_HIDDEN, 2 * OUTPUTS].map(this.#space);
    const wide = this.#table(cells, WIDTH);
    const square = this.#table(around, WIDTH);

    const convolution = (source, sourceCells, taps, tapCount, width, inputs, isPaired, target, targetCells, count, skip = 0) => {
      const [kernel, bias] = [take(tapCount * inputs * HALF), take(HALF)];
      const weightOf = (tap, input, output) => {
        if (output < HALF) return kernel[(tap * inputs + input) * HALF + output];
        const mirrored = Math.floor(tap / width) * width + (width - 1 - (tap % width));
        const swapped = isPaired ? (input + HALF) % WIDTH : input;
        return kernel[(mirrored * inputs + swapped) * HALF + output - HALF];
      };
      const packed = this.#put(pack(tapCount, inputs, WIDTH, weightOf, (output) => bias[output % HALF]));
      this.#layers.push([source, sourceCells, target, targetCells, count, taps, tapCount, inputs, packed, WIDTH / OUTPUTS, skip, 0]);
    };
    const one = this.#table([0], 1);
    /** A dense layer on two rows. */
    const dense = (source, inputs, target, outputs, floor = 0) => {
      const [kernel, bias] = [take(inputs * outputs), take(outputs)];
      const packed = this.#put(pack(1, inputs, outputs, (_, input, output) => kernel[input * outputs + output], (output) => bias[output]));
      const groups = Math.ceil(outputs / OUTPUTS);
      const [from, to] = [this.#table([0, 1], inputs), this.#table([0, 1], groups * OUTPUTS)];
      return [source, from, target, to, 2, one, 1, inputs, packed, groups, 0, floor];
    };

    convolution(planes, this.#table(cells, this.#channels), this.#table(around, this.#channels), 9, 3, this.#channels, false, x, wide, CELLS);
    for (let block = 0; block < BLOCKS; block += 1) {
      convolution(x, wide, square, 9, 3, WIDTH, true, y, wide, CELLS);
      convolution(y, wide, square, 9, 3, WIDTH, true, x, wide, CELLS, x);
    }
    const down = this.#table(Array.from({ length: ROWS }, (_, row) => row * STRIDE), WIDTH);
    convolution(x, this.#table(top, WIDTH), down, ROWS, 1, WIDTH, true, columns, this.#table(Array(8).keys(), WIDTH), 8);
    this.#head = {
      hidden: dense(features, COLUMNS * WIDTH, hidden, HIDDEN),
      logits: dense(hidden, HIDDEN, logits, COLUMNS, -Infinity),
      value: dense(hidden, HIDDEN, value, VALUE_HIDDEN),
      outcome: dense(value, VALUE_HIDDEN, outcome, 1, -Infinity),
    };
    const view = (address, length) => this.#floats.subarray(address / FLOAT, address / FLOAT + length);
    this.#views = {
      planes: view(planes, PLACES * this.#channels), columns: view(columns, 8 * WIDTH), features: view(features, 2 * COLUMNS * WIDTH),
      hidden: view(hidden, 2 * HIDDEN), logits: view(logits, 2 * OUTPUTS), outcome: view(outcome, 1),
    };
  }

  /** The outputs, by name, of a board. */
  evaluate(board) {
    const { planes, columns, features, hidden, logits, outcome } = this.#views;
    fillPlanes(planes, board, this.#channels);
    for (const layer of this.#layers) this.#layer(...layer);
    // Both the board's features and those of its mirror image are read out.
    for (let column = 0; column < COLUMNS; column += 1) {
      for (let channel = 0; channel < WIDTH; channel += 1) {
        const found = columns[column * WIDTH + channel];
        features[column * WIDTH + channel] = found;
        features[(2 * COLUMNS - 1 - column) * WIDTH + ((channel + HALF) % WIDTH)] = found;
      }
    }
    this.#layer(...this.#head.hidden);
    this.#layer(...this.#head.logits);
    for (let index = 0; index < HIDDEN; index += 1) hidden[index] += hidden[HIDDEN + index]; // for the value
    this.#layer(...this.#head.value);
    this.#layer(...this.#head.outcome);
    const masked = Array.from({ length: COLUMNS }, (_, column) => (
      board[column] ? FULL_COLUMN : Math.fround(logits[column] + logits[OUTPUTS + COLUMNS - 1 - column])));
    return { logits: masked, ...chosen(masked, board), value: Math.tanh(outcome[0]) };
  }
}

/** The input's channels, from the number of weights: the first kernel has what the other layers leave. */
function channelsOf(length) {
  const dense = [[COLUMNS * WIDTH, HIDDEN], [HIDDEN, COLUMNS], [HIDDEN, VALUE_HIDDEN], [VALUE_HIDDEN, 1]];
  const convolutions = [...Array(2 * BLOCKS).fill(9 * WIDTH), ROWS * WIDTH].map((inputs) => [inputs, HALF]);
  const others = [...dense, ...convolutions].reduce((sum, [inputs, outputs]) => sum + (inputs + 1) * outputs, HALF);
  return (length - others) / (9 * HALF);
}

/** Policy and move; a full board has policy 0 and move −1. */
function chosen(logits, board) {
  const highest = Math.max(...logits);
  const shares = logits.map((logit, column) => (board[column] ? 0 : Math.exp(logit - highest)));
  const total = shares.reduce((sum, share) => sum + share, 0) || 1;
  const move = FROM_CENTRE.find((column) => !board[column] && logits[column] === highest) ?? -1;
  return { policy: shares.map((share) => share / total), move };
}

/** Lines of four through each cell, by its other three cells: of vertical ones that below, for no stone lies above. */
const LINES = Array.from({ length: CELLS }, (_, cell) => {
  const [row, column] = [Math.floor(cell / COLUMNS), cell % COLUMNS];
  const lines = [[1, 2, 3].map((step) => [row + step, column])];
  for (const [down, right] of [[0, 1], [1, 1], [-1, 1]]) {
    for (let start = -3; start <= 0; start += 1) {
      const steps = [0, 1, 2, 3].map((step) => start + step).filter((step) => step);
      lines.push(steps.map((step) => [row + down * step, column + right * step]));
    }
  }
  return lines
    .filter((line) => line.every(([r, c]) => r >= 0 && r < ROWS && c >= 0 && c < COLUMNS))
    .map((line) => line.map(([r, c]) => r * COLUMNS + c));
});

/** The network's input: stones of both sides, and with nine channels the facts of `networks/pillar.py`. */
function fillPlanes(planes, board, channels) {
  const count = board.reduce((sum, owner) => sum + (owner ? 1 : 0), 0);
  const second = count % 2;
  for (let cell = 0; cell < CELLS; cell += 1) {
    const [row, column] = [Math.floor(cell / COLUMNS), cell % COLUMNS];
    const at = place(row, column) * channels;
    const owner = board[cell];
    planes[at] = owner === 1 ? 1 : 0;
    planes[at + 1] = owner === -1 ? 1 : 0;
    if (channels === 2) continue;
    const odd = (ROWS - row) % 2; // the lowest row is the first
    planes[at + 2] = !owner && (row === ROWS - 1 || board[cell + COLUMNS]) ? 1 : 0;
    planes[at + 3] = odd + second - 2 * odd * second;
    planes[at + 4] = second;
    for (const [index, side] of [1, -1].entries()) {
      let [three, two] = [0, 0];
      for (const line of owner ? [] : LINES[cell]) {
        let stones = 0;
        for (const other of line) stones += board[other] === side ? 1 : board[other] ? -3 : 0;
        if (stones === 3) three = 1;
        if (stones >= 2) two += 0.25;
      }
      planes[at + 5 + index] = three;
      planes[at + 7 + index] = two;
    }
  }
}
