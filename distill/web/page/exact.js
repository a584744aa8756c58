/** The exact scores of a position: from the solver, or without one from the opening book or the tour. */

import { fetched } from "./files.js";
import { scoresIn } from "./openings.js";

const lists = new Map(); // the files' contents, once they are fetched

async function known(name, field) {
  if (!lists.has(name)) lists.set(name, fetched(name, field));
  return lists.get(name);
}

/**
 * @param {string} moves a position that is not over
 * @param {Opinions} opinions
 * @param {boolean} hasSolver
 * @returns {Promise<(number|null)[]|null>} for the side to move, null for full columns; null where nobody knows
 */
export async function exactScores(moves, opinions, hasSolver) {
  if (hasSolver) return (await opinions.ask("solver", moves)).scores;
  const { positions } = await known("tour.json", "positions");
  const shown = positions.find((position) => position.moves === moves);
  return shown?.scores ?? scoresIn(await known("openings.json", "positions"), moves);
}
