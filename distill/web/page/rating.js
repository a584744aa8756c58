/**
 * A rating that follows results: Glicko (Mark Glickman, "Parameter estimation in large dynamic paired comparison
 * experiments", 1999), one result at a time. A rating is on the Elo scale and has a deviation, its standard error.
 */

export const START = { rating: 500, deviation: 200 }; // the first puzzles are easy, and none moves it far
const LEAST_DEVIATION = 50; // so that a rating keeps up with somebody who learns
export const UNSURE = 110; // a larger deviation is shown as "?"
const Q = Math.LN10 / 400;

/**
 * The rating after one result.
 * @param {{rating: number, deviation: number}} own
 * @param {{rating: number, deviation: number}} other
 * @param {number} score 1 for a win, 0 for a loss, ½ between them
 */
export function rated(own, other, score) {
  const g = 1 / Math.sqrt(1 + (3 * Q ** 2 * other.deviation ** 2) / Math.PI ** 2);
  const expected = 1 / (1 + 10 ** ((-g * (own.rating - other.rating)) / 400));
  const information = Q ** 2 * g ** 2 * expected * (1 - expected);
  const variance = 1 / (1 / own.deviation ** 2 + information);
  return {
    rating: own.rating + Q * variance * g * (score - expected),
    deviation: Math.max(LEAST_DEVIATION, Math.sqrt(variance)),
  };
}
