/**
 * Players behind the JSON API of `python -m distill.serve`. An engine has four functions, here and in `network.js`:
 * players(), choose(player, moves) → column, opinion(player, moves) → {move, policy, value, scores}, and
 * opinions(player, moves) → the opinion before each move of a game, and of its last position if that is open.
 */

import { contentOf } from "./files.js";

export const isServed = true;

const TRIES = 4;
const LONGEST_WAIT = 30; // s between two tries

export const players = () => ask("api/v1/players", "players");

export const choose = async (player, moves, signal) => (await opinion(player, moves, signal)).move;

export const opinion = (player, moves, signal) => post("api/v1/analysis", "move", player, moves, signal);

export const opinions = async (player, moves, signal) => (await post("api/v1/game", "analyses", player, moves, signal)).analyses;

function post(path, field, player, moves, signal) {
  const body = JSON.stringify({ player, moves });
  return ask(path, field, { method: "POST", headers: { "Content-Type": "application/json" }, body, signal });
}

/** The reply's JSON. While the server is busy, says so by the event "busy" and tries again; throws its error line. */
async function ask(path, field, options = {}) {
  for (let attempt = 1; ; attempt += 1) {
    const reply = await fetch(path, options).catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new Error("The server does not answer. Is it still running?");
    });
    const seconds = Number(reply.headers.get("Retry-After")) || 1;
    if (reply.status !== 503 || attempt === TRIES || seconds > LONGEST_WAIT) return contentOf(reply, field);
    dispatchEvent(new Event("busy"));
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  }
}
