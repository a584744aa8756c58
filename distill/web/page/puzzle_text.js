/** What the page says about a puzzle. `colour(side)` gives a side's colour, such as "Red". */

import { capital, pliesToEnd } from "./opinions.js";

export const TACTICS = {
  win: "Win at once",
  block: "Block four in a row",
  "double-threat": "Double threat",
  escape: "Escape a double threat",
  "open-two": "Stop an open three",
  "long-win": "Long win",
  "only-draw": "Save the draw",
  zugzwang: "Zugzwang",
};
export const DIFFICULTIES = { easy: "Easy", medium: "Medium", hard: "Hard" };
const NUMBERS = ["no", "one", "two", "three", "four", "five", "six"];

/** In how many of its moves the winner wins, if the person gets this score. */
export function soon(score, { moves }) {
  const count = Math.ceil(pliesToEnd(score, moves.length) / 2);
  return count === 1 ? "at once" : `in ${count}`;
}

export const goal = (attempt) => (attempt.score > 0 ? `win ${soon(attempt.score, attempt)}` : "hold the draw");

export const task = (attempt, colour) => `${colour(attempt.side)} to move and ${goal(attempt)}`;

export const praise = (attempt, colour) => `Solved! ${attempt.score > 0 ? `${colour(attempt.side)} wins.` : "The draw is safe."}`;

export const reminder = (attempt, column) =>
  `Column ${column + 1} wins too, but only ${soon(attempt.scores[column], attempt)}. Find the win ${soon(attempt.score, attempt)}.`;

export function refutation(attempt, column, colour) {
  const score = attempt.scores[column];
  const reply = attempt.replyTo(column);
  const result = score === 0 ? "holds the draw" : `wins ${soon(score, attempt)}`;
  const consequence = reply ? `${colour(1 - attempt.side)} replies ${reply} and ${result}` : "the game ends in a draw";
  return `Column ${column + 1} fails: ${consequence}.`;
}

/** Why the first move is the right one, and the line that followed or would follow. */
export function explanation(tactic, attempt, line, colour) {
  const [own, other] = [colour(attempt.side), colour(1 - attempt.side)];
  const only = `Only column ${line[0]} ${attempt.score > 0 ? "wins" : "holds the draw"}.`;
  const reason = {
    win: `Column ${line[0]} makes four in a row.`,
    block: `${other} threatens four in a row in column ${line[0]}. ${only}`,
    "double-threat": `After column ${line[0]}, ${own} makes four in a row whatever ${other} replies.`,
    escape: `After many other columns ${other} gets a threat that no single reply stops. ${only}`,
    "open-two": `${other} has two in a row with room on both sides; a third would be open at both ends. ${only}`,
    "long-win": `There is no threat on the board yet, but column ${line[0]} forces the win.`,
    "only-draw": "Every other column loses.",
    zugzwang: `Every other column lets ${other} take the square it needs. ${only}`,
  }[tactic];
  return line.length > 1 ? `${reason} The line: ${[...line].join(" ")}.` : reason;
}

export function foundBy(found, players) {
  const names = found.map((place) => capital(players[place]));
  if (!names.length) return "No computer level found it.";
  if (names.length === players.length) return `All ${NUMBERS[players.length]} computer levels found it.`;
  return `Found by ${names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`}.`;
}

export const signed = (number) => (number < 0 ? `−${-number}` : `+${number}`);
