/** The one line that a finished game is worth: which move decided it. Nothing of the screen. */

import { estimatedMarks, marks } from "./review.js";

const THEORY = 6; // moves before which a missed win is known from books only

const outcomeOf = ({ scores, value }) => Math.sign(scores ? Math.max(...scores.filter((score) => score !== null)) : Math.abs(value) < 0.2 ? 0 : value);

/**
 * The story of a game for one side.
 * @param {string} moves of a game that is over
 * @param {object[]} opinions before each move
 * @param {number} side whose story it is
 * @param {number|null} winner
 * @param {string} opponent its name
 * @returns {{text: string, ply: number|null}} the line, and the number of moves before the one to be seen
 */
export function storyOf(moves, opinions, side, winner, opponent) {
  const given = opinions[0].scores ? marks(opinions.map(({ scores }) => scores), moves) : estimatedMarks(opinions, moves);
  const turns = given.flatMap((mark, ply) => (["mistake", "blunder"].includes(mark) ? [ply] : []));
  const own = turns.filter((ply) => ply % 2 === side);
  const theirs = turns.filter((ply) => ply % 2 !== side);
  const missedWin = own.findLast((ply) => ply >= THEORY && outcomeOf(opinions[ply]) > 0);
  const isWon = winner === side;
  if (!isWon && missedWin !== undefined) return { text: `You could have won on move ${missedWin + 1}.`, ply: missedWin };
  if (!isWon && own.length) return { text: `The game turned on move ${own.at(-1) + 1}.`, ply: own.at(-1) };
  if (isWon && own.length) return { text: `It was close: you gave ${opponent} a chance on move ${own.at(-1) + 1}.`, ply: own.at(-1) };
  if (isWon && theirs.length) return { text: `${opponent} slipped on move ${theirs.at(-1) + 1}, and you took it.`, ply: theirs.at(-1) };
  if (isWon) return { text: "You made no mistake.", ply: null };
  if (winner === null) return { text: "Neither side made a mistake.", ply: null };
  return { text: side ? `You made no big mistake: ${opponent} moved first, and that wins.` : "You made no big mistake.", ply: null };
}
