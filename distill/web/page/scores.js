/**
 * Won, drawn and lost games against each opponent, kept on this device.
 */

import { stored, tryEffect } from "./effects.js";

const KEY = "distill-scores"; // in localStorage: {opponent: {won, drawn, lost}}

/** @returns {{won: number, drawn: number, lost: number}} */
export function scoreAgainst(opponent) {
  const { won, drawn, lost } = stored(KEY)[opponent] ?? {};
  return { won: won || 0, drawn: drawn || 0, lost: lost || 0 };
}

/** @param {"won"|"drawn"|"lost"} result; `by` is −1 for a game that is not over after all */
export function count(opponent, result, by = 1) {
  const score = scoreAgainst(opponent);
  score[result] = Math.max(0, score[result] + by);
  tryEffect(() => localStorage.setItem(KEY, JSON.stringify({ ...stored(KEY), [opponent]: score })));
}

/** "3 won, 1 drawn, 2 lost"; empty before the first game. */
export function inWords({ won, drawn, lost }) {
  return won + drawn + lost ? `${won} won, ${drawn} drawn, ${lost} lost` : "";
}
