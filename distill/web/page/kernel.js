/**
 * The arithmetic of a network's layer as WebAssembly with 128-bit vectors, assembled here. Plain JavaScript, which has no
 * vectors, takes five times as long.
 *
 * One function computes a convolution or a dense layer over cells that lie anywhere in memory:
 *
 *   layer(source, sourceCells, target, targetCells, cells, taps, tapCount, inputs, weights, groups, skip, floor)
 *
 *     target[cell][output] = max(floor, bias[output] + skip[cell][output]
 *       + Σ over taps and inputs of source[cell + tap][input] · weight[tap][input][output])
 *
 * All but `floor` are byte addresses and counts. Cells come two at a time, outputs in groups of 16: a group's weights are
 * its 16 biases, then 16 for each tap and input. `sourceCells`, `targetCells` and `taps` are tables of byte offsets (int32).
 * `skip` 0 is none. The accumulators stay in registers: 2 cells × 4 vectors of 4.
 */

const GROUP = 16;
const CELLS = 2;

/* ---- instructions, as bytes ---- */

const leb = (number) => (number < 128 ? [number] : [(number & 127) | 128, ...leb(number >>> 7)]);
const get = (local) => [0x20, ...leb(local)];
const set = (local) => [0x21, ...leb(local)];
const constant = (number) => [0x41, number]; // below 64
const ADD = [0x6a];
const SHIFT = [0x74];
const LESS = [0x49];
const END = [0x0b];
const loadInteger = (offset = 0) => [0x28, 2, ...leb(offset)];
const vector = (code, ...rest) => [0xfd, ...leb(code), ...rest];
const loadVector = (offset) => vector(0x00, 4, ...leb(offset));
const storeVector = (offset) => vector(0x0b, 4, ...leb(offset));
const LOAD_SPLAT = vector(0x09, 2, 0);
const SPLAT = vector(0x13);
const ADD_VECTORS = vector(0xe4);
const MULTIPLY_VECTORS = vector(0xe6);
const MAX_VECTORS = vector(0xe9);
/** The body, again as long as the counter is below the limit after so many steps. */
const loop = (counter, step, limit, ...body) => [
  ...constant(0), ...set(counter), 0x03, 0x40, ...body.flat(),
  ...get(counter), ...constant(step), ...ADD, 0x22, counter, ...get(limit), ...LESS, 0x0d, 0, ...END,
];
const when = (local, ...body) => [...get(local), 0x04, 0x40, ...body.flat(), ...END];
const increase = (local, by) => [...get(local), ...by, ...ADD, ...set(local)];
/** The table's entry for a counter plus a constant. */
const entry = (table, counter, plus = 0) => [...get(table), ...get(counter), ...constant(2), ...SHIFT, ...ADD, ...loadInteger(4 * plus)];

const I32 = 0x7f;
const F32 = 0x7d;
const V128 = 0x7b;
const [source, sourceCells, target, targetCells, cells, taps, tapCount, inputs, weights, groups, skip, floor] = Array(12).keys();
const [group, cell, tap, input, weight, place, offset, groupOffset] = Array.from({ length: 8 }, (_, index) => 12 + index);
const from = (index) => 20 + index; // source pointers of the two cells
const at = (index) => 22 + index;
const sum = (index, part) => 24 + 4 * index + part;
const factor = (part) => 32 + part;
const value = 36;

const each = (count, make) => Array.from({ length: count }, (_, index) => make(index)).flat();

const BODY = [
  ...get(weights), ...set(place),
  ...constant(0), ...set(groupOffset),
  ...loop(group, 1, groups,
    loop(cell, CELLS, cells,
      each(CELLS, (index) => [...get(source), ...entry(sourceCells, cell, index), ...ADD, ...set(from(index))]),
      each(CELLS, (index) => each(4, (part) => [...get(place), ...loadVector(16 * part), ...set(sum(index, part))])),
      get(place), constant(32), constant(1), SHIFT, ADD, set(weight), // behind the 64 bytes of biases
      loop(tap, 1, tapCount,
        entry(taps, tap), set(offset),
        each(CELLS, (index) => [...get(from(index)), ...get(offset), ...ADD, ...set(at(index))]),
        loop(input, 1, inputs,
          each(4, (part) => [...get(weight), ...loadVector(16 * part), ...set(factor(part))]),
          each(CELLS, (index) => [
            ...get(at(index)), ...LOAD_SPLAT, ...set(value),
            ...each(4, (part) => [
              ...get(sum(index, part)), ...get(value), ...get(factor(part)), ...MULTIPLY_VECTORS, ...ADD_VECTORS, ...set(sum(index, part)),
            ]),
            ...increase(at(index), constant(4)),
          ]),
          increase(weight, [...constant(32), ...constant(1), ...SHIFT]))),
      each(CELLS, (index) => [
        ...entry(targetCells, cell, index), ...get(groupOffset), ...ADD, ...set(offset),
        ...when(skip, each(4, (part) => [
          ...get(sum(index, part)), ...get(skip), ...get(offset), ...ADD, ...loadVector(16 * part), ...ADD_VECTORS, ...set(sum(index, part)),
        ])),
        ...each(4, (part) => [
          ...get(target), ...get(offset), ...ADD,
          ...get(sum(index, part)), ...get(floor), ...SPLAT, ...MAX_VECTORS, ...storeVector(16 * part),
        ]),
      ])),
    get(weight), set(place), // the next group's weights follow
    increase(groupOffset, [...constant(32), ...constant(1), ...SHIFT])),
  ...END,
];

const section = (id, ...content) => [id, ...leb(content.flat().length), ...content.flat()];
const name = (text) => [text.length, ...new TextEncoder().encode(text)];
const FUNCTION = [2, 12, I32, 13, V128, ...BODY]; // local variables by type, then code

const MODULE = Uint8Array.from([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
  ...section(1, [1, 0x60, 12, ...Array(11).fill(I32), F32, 0]),
  ...section(2, [1, ...name("js"), ...name("memory"), 2, 0, 1]),
  ...section(3, [1, 0]),
  ...section(7, [1, ...name("layer"), 0, 0]),
  ...section(10, [1, ...leb(FUNCTION.length), ...FUNCTION]),
]);

/**
 * @param {WebAssembly.Memory} memory
 * @returns {Promise<Function>} `layer`, which works on it
 */
export async function assemble(memory) {
  const { instance } = await WebAssembly.instantiate(MODULE, { js: { memory } });
  return instance.exports.layer;
}

/**
 * A layer's weights in the kernel's order.
 * @param {(tap: number, input: number, output: number) => number} weightOf
 * @param {(output: number) => number} biasOf
 */
export function pack(tapCount, inputs, outputs, weightOf, biasOf) {
  const groups = Math.ceil(outputs / GROUP);
  const packed = new Float32Array(groups * GROUP * (1 + tapCount * inputs));
  let next = 0;
  for (let group = 0; group < groups; group += 1) {
    const write = (of) => {
      for (let index = 0; index < GROUP; index += 1) {
        const output = group * GROUP + index;
        packed[next] = output < outputs ? of(output) : 0;
        next += 1;
      }
    };
    write(biasOf);
    for (let tap = 0; tap < tapCount; tap += 1) {
      for (let input = 0; input < inputs; input += 1) write((output) => weightOf(tap, input, output));
    }
  }
  return packed;
}
