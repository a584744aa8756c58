/**
 * Sounds, synthesised: a stone that lands, and the end of a game. Browsers play none before a click or a key.
 */

const CHORDS = { won: [523, 659, 784, 1047], drawn: [440, 440], lost: [392, 330, 262] }; // Hz, one after another
const STEP = 0.13; // s between the tones of a chord

let context = null;

/** The knock of a stone, so many milliseconds from now. */
export function knock(wait) {
  tone(150, wait / 1000, 0.09, "triangle", 0.5);
}

/** @param {"won"|"drawn"|"lost"} result */
export function finish(result, wait) {
  for (const [index, pitch] of CHORDS[result].entries()) tone(pitch, wait / 1000 + 0.15 + index * STEP, 0.3, "sine", 0.2);
}

function tone(pitch, delay, length, type, volume) {
  context ??= new AudioContext();
  context.resume();
  const begin = context.currentTime + delay;
  const source = new OscillatorNode(context, { type, frequency: pitch });
  const gain = new GainNode(context, { gain: volume });
  gain.gain.setValueAtTime(volume, begin);
  gain.gain.exponentialRampToValueAtTime(0.001, begin + length); // a tone that is cut off clicks
  source.connect(gain).connect(context.destination);
  source.start(begin);
  source.stop(begin + length);
}
