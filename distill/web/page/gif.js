/**
 * Pictures as an animated GIF (GIF89a): one palette for all, and of each picture after the first only the rectangle that
 * has changed. For flat drawings, which have few colours.
 */

const MOST_COLOURS = 256;
const LARGEST_CODE = 4096;

/**
 * @param {ImageData[]} pictures of one size
 * @param {number[]} delays how long each is shown, in hundredths of a second
 * @returns {Uint8Array} the file
 */
export function encode(pictures, delays) {
  const [{ width, height }] = pictures;
  const palette = commonColours(pictures);
  const indices = indexer(palette);
  const file = [..."GIF89a"].map((letter) => letter.charCodeAt(0));
  file.push(...short(width), ...short(height), 0xf7, 0, 0); // 256 colours for all pictures
  for (let place = 0; place < MOST_COLOURS; place += 1) file.push(...channels(palette[place] ?? 0));
  file.push(0x21, 0xff, 11, ...[..."NETSCAPE2.0"].map((letter) => letter.charCodeAt(0)), 3, 1, 0, 0, 0); // for ever
  let before = null;
  for (const [place, picture] of pictures.entries()) {
    const pixels = indices(picture);
    const [left, top, right, bottom] = changed(before, pixels, width, height);
    const part = new Uint8Array((right - left) * (bottom - top));
    for (let y = top; y < bottom; y += 1) part.set(pixels.subarray(y * width + left, y * width + right), (y - top) * (right - left));
    file.push(0x21, 0xf9, 4, 4, ...short(delays[place]), 0, 0); // the next picture is drawn over this one
    file.push(0x2c, ...short(left), ...short(top), ...short(right - left), ...short(bottom - top), 0, 8);
    const codes = compress(part);
    for (let start = 0; start < codes.length; start += 255) {
      const block = codes.slice(start, start + 255);
      file.push(block.length, ...block);
    }
    file.push(0);
    before = pixels;
  }
  file.push(0x3b);
  return Uint8Array.from(file);
}

const short = (number) => [number & 255, number >> 8];

const channels = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];

/** The pixels as numbers: red in the lowest byte. */
const colours = (picture) => new Uint32Array(picture.data.buffer).map((pixel) => pixel & 0xffffff);

/** The most frequent colours. */
function commonColours(pictures) {
  const counts = new Map();
  for (const picture of [pictures[0], pictures.at(-1)]) {
    for (const colour of colours(picture)) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  return [...counts].sort((one, other) => other[1] - one[1]).slice(0, MOST_COLOURS).map(([colour]) => colour);
}

/** A function from a picture to the places of its colours in the palette, of the nearest ones for those that it lacks. */
function indexer(palette) {
  const places = new Map(palette.map((colour, place) => [colour, place]));
  const nearest = (colour) => {
    const own = channels(colour);
    const distances = palette.map((other) => channels(other).reduce((sum, part, place) => sum + (part - own[place]) ** 2, 0));
    return distances.indexOf(Math.min(...distances));
  };
  return (picture) => Uint8Array.from(colours(picture), (colour) => {
    if (!places.has(colour)) places.set(colour, nearest(colour));
    return places.get(colour);
  });
}

/** The rectangle in which two pictures differ: [left, top, right, bottom], the last two outside; of one pixel at least. */
function changed(before, pixels, width, height) {
  if (!before) return [0, 0, width, height];
  let [left, top, right, bottom] = [width, height, 0, 0];
  for (let place = 0; place < pixels.length; place += 1) {
    if (pixels[place] === before[place]) continue;
    const [x, y] = [place % width, Math.floor(place / width)];
    [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x + 1), Math.max(bottom, y + 1)];
  }
  return right ? [left, top, right, bottom] : [0, 0, 1, 1];
}

/** LZW as GIF has it: codes of 9 to 12 bits, the lowest bit first. */
function compress(pixels) {
  const [clear, end] = [MOST_COLOURS, MOST_COLOURS + 1];
  const bytes = [];
  let [waiting, count] = [0, 0]; // bits that do not fill a byte yet
  let [size, next] = [9, end + 1];
  let codes = new Map(); // of sequences: code of all but the last pixel, and that pixel → code
  const put = (code) => {
    waiting |= code << count;
    for (count += size; count >= 8; count -= 8) {
      bytes.push(waiting & 255);
      waiting >>>= 8;
    }
  };
  put(clear);
  let sequence = pixels[0];
  for (const pixel of pixels.subarray(1)) {
    const key = (sequence << 8) | pixel;
    if (codes.has(key)) {
      sequence = codes.get(key);
      continue;
    }
    put(sequence);
    if (next === LARGEST_CODE) {
      put(clear);
      [size, next, codes] = [9, end + 1, new Map()];
    } else {
      if (next === 1 << size) size += 1;
      codes.set(key, next);
      next += 1;
    }
    sequence = pixel;
  }
  put(sequence);
  put(end);
  if (count) bytes.push(waiting & 255);
  return bytes;
}
