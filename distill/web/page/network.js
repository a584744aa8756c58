/**
 * Players without a server: the networks that `networks.json` lists, in a worker, and a search with playouts in another.
 * The same functions as `server.js`; `write_static_page` puts this module in its place.
 */

import { LEVELS, cards as levels, levelOpinion } from "./levels.js";
import { COLUMNS, FROM_CENTRE, boardOf, legalColumns, replay } from "./rules.js";

export const isServed = false;

const MOST_GUIDED = 2000; // simulations of a search guided by a network
const BROKEN = "The networks cannot be computed in this browser.";
const WARM_UP = 100; // simulations in which the browser finds out what to compile well
const { networks } = await (await fetch("networks.json")).json();
const inference = new Worker(new URL("./inference.js", import.meta.url), { type: "module" });
const unanswered = new Set(); // functions that reject a question to it
let isBroken = false; // whether it cannot compute
let playouts = null; // {worker, unanswered}, once somebody asks for a search with playouts

inference.addEventListener("error", () => {
  isBroken = true;
  for (const reject of unanswered) reject(new Error(BROKEN));
});

const loaded = predict([boardOf(replay(""))]); // before anybody asks for it; whoever does is told what went wrong
loaded.then(() => navigator.serviceWorker?.register("sw.js")).catch(() => {}); // from now on without a connection
loaded.then(() => networks[0].value_head && ask({ network: networks[0].name, moves: "", simulations: WARM_UP })).catch(() => {});

export async function players() {
  const cards = networks.map(({ name, arch, parameters }) => ({
    name, kind: "network", title: name, note: `${arch}, ${parameters.toLocaleString("en")} parameters`,
  }));
  const guided = networks.filter((each) => each.value_head).map(({ name }) => ({
    name: `${name}@puct:N`, kind: "guided", title: `${name} with search`, note: `N from 1 to ${MOST_GUIDED.toLocaleString("en")}`,
  }));
  return {
    players: [
      ...levels.filter(({ name }) => networks[0].value_head || !LEVELS[name].mode),
      ...cards,
      ...guided,
      { name: "uct:N", kind: "search", title: "Search", note: "Monte-Carlo tree search with playouts" },
      { name: "random", kind: "simple", title: "Random", note: "any legal column" },
    ],
    max_simulations: 100_000,
    notices: ["Everything is computed in this browser, by ONNX Runtime Web (MIT licence, see licences/)."],
  };
}

export const choose = async (player, moves, signal) => (await opinion(player, moves, signal)).column;

export async function opinion(player, moves, signal) {
  const position = replay(moves);
  if (player === "random") {
    const legal = legalColumns(position);
    const policy = Array.from({ length: COLUMNS }, (_, column) => (legal.includes(column) ? 1 / legal.length : 0));
    return { column: legal[Math.floor(Math.random() * legal.length)], policy, value: null, scores: null };
  }
  if (player in LEVELS) return levelOpinion(player, moves, (mode) => opinion(`${networks[0].name}${mode}`, moves, signal));
  if (player.startsWith("uct:")) return askPlayouts(Number(player.split(":")[1]), moves, signal);
  const [network, mode] = read(player);
  if (mode === "value") return byValue(network, moves);
  if (mode) {
    const { column, visits, value } = await ask({ network, moves, simulations: Number(mode.split(":")[1]) }, signal);
    const total = visits.reduce((sum, number) => sum + number, 0);
    return { column, policy: visits.map((number) => number / total), value, scores: null };
  }
  const [answer] = await predict([boardOf(position)], network);
  return { column: answer.move, policy: answer.policy, value: answer.value ?? null, scores: null };
}

/**
 * A network's outputs, by name, of each board.
 * @param {Int8Array[]} boards 42 cells each, rows from the top, +1 side to move
 */
export function predict(boards, network = networks[0].name) {
  return ask({ network, boards });
}

/** The network that a player's word names, and its mode: "", "value" or "puct:N". Throws an Error for anybody else. */
function read(player) {
  const [name, mode = ""] = networks.some(({ name }) => name === player) ? [player] : player.split(/@(?=[^@]*$)/);
  const network = networks.find((each) => each.name === name);
  const [, number] = mode.match(/^puct:(\d+)$/) ?? [];
  const isMode = !mode || (network?.value_head && (mode === "value" || (number >= 1 && number <= MOST_GUIDED)));
  if (!network || !isMode) throw new Error(`There is no player “${player}” here.`);
  return [name, mode];
}

/** The move to the position that the value head likes least for the opponent; a win counts 1 and a full board 0. */
async function byValue(network, moves) {
  const worth = new Array(COLUMNS).fill(-Infinity);
  const asked = new Map();
  for (const column of legalColumns(replay(moves))) {
    const after = replay(`${moves}${column + 1}`);
    worth[column] = after.winner === null ? 0 : 1;
    if (!after.isOver) asked.set(column, boardOf(after));
  }
  const answers = asked.size ? await predict([...asked.values()], network) : [];
  for (const [index, column] of [...asked.keys()].entries()) worth[column] = -answers[index].value;
  const column = FROM_CENTRE.reduce((best, other) => (worth[other] > worth[best] ? other : best));
  return { column, policy: null, value: worth[column], scores: null };
}

/** Ask the worker with the networks; an aborted signal calls a search off. */
function ask(question, signal) {
  if (isBroken) return Promise.reject(new Error(BROKEN));
  return answered(inference, unanswered, question, (port) => {
    signal?.addEventListener("abort", () => port.postMessage("stop"));
  });
}

/** Ask the worker that searches with playouts; called off where nobody else waits for it, or all would begin anew. */
function askPlayouts(simulations, moves, signal) {
  playouts ??= startPlayouts();
  const { worker, unanswered } = playouts;
  return answered(worker, unanswered, { simulations, moves }, () => {
    signal?.addEventListener("abort", () => unanswered.size === 1 && endPlayouts(worker, "The search was called off."));
  });
}

function startPlayouts() {
  const worker = new Worker(new URL("./search.js", import.meta.url), { type: "module" });
  worker.onerror = () => endPlayouts(worker, "The search failed in this browser.");
  return { worker, unanswered: new Set() };
}

/** End this worker, if it has not been; who asks next gets a new one. */
function endPlayouts(worker, why) {
  if (playouts?.worker !== worker) return;
  const { unanswered } = playouts;
  playouts = null;
  worker.terminate();
  for (const reject of unanswered) reject(new Error(why));
}

/** What a worker answers to a question; whoever ends the worker rejects those that are unanswered. */
function answered(worker, unanswered, question, begun) {
  return new Promise((resolve, reject) => {
    const { port1, port2 } = new MessageChannel();
    const give = (settle) => (result) => {
      unanswered.delete(fail);
      port1.close();
      settle(result);
    };
    const fail = give(reject);
    const done = give(resolve);
    unanswered.add(fail);
    port1.onmessage = ({ data: { answer, error } }) => (error ? fail(new Error(error)) : done(answer));
    worker.postMessage(question, [port2]);
    begun(port1);
  });
}
