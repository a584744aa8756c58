/**
 * Players without a server: the networks of `networks.json` in workers, a search with rollouts in another. It has
 * the functions of `server.js`, which `write_static_page` replaces by this module.
 */

import { fetched } from "./files.js";
import { LEVELS, cards as levels, levelOpinion } from "./levels.js";
import { COLUMNS, boardOf, legalColumns, replay } from "./rules.js";

export const isServed = false;

const MOST_GUIDED = 2000; // largest number of simulations of a search guided by a network
const BROKEN = "The networks cannot be computed in this browser.";
const WORKERS = Math.min(4, navigator.hardwareConcurrency || 1);
const WARM_UP = 100; // simulations that let the browser optimize the code
const { networks, elo } = await fetched("networks.json", "networks");
const inference = [startInference()]; // workers; the others start when a whole game is first analysed
let isBroken = false; // whether the first one cannot compute
let rollouts = null; // {worker, unanswered}, from the first search with rollouts on

const isOnnx = ({ file }) => file.endsWith(".onnx");
const loaded = predict([boardOf(replay(""))]); // early; the first request gets the error, if there is one
loaded.then(() => navigator.serviceWorker?.register("sw.js")).catch(() => {}); // from now on it works offline
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
      ...levels.filter(({ name }) => networks[0].value_head || !LEVELS[name].mode)
        .map((level) => ({ ...level, elo: elo[level.name] ?? null })),
      ...cards,
      ...guided,
      { name: "uct:N", kind: "search", title: "Search", note: "Monte-Carlo tree search with rollouts" },
      { name: "random", kind: "simple", title: "Random", note: "Plays any open column at random" },
    ],
    max_simulations: 100_000,
    notices: [`Everything is computed in this browser: pillar and searches by our own code${networks.some(isOnnx) ? ", other networks by ONNX Runtime Web (MIT licence, see licences/)" : ""}.`],
  };
}

export const choose = async (player, moves, signal) => (await opinion(player, moves, signal)).move;

export async function opinion(player, moves, signal, worker = inference[0]) {
  const position = replay(moves);
  if (player === "random") {
    const legal = legalColumns(position);
    const policy = Array.from({ length: COLUMNS }, (_, column) => (legal.includes(column) ? 1 / legal.length : 0));
    return { move: legal[Math.floor(Math.random() * legal.length)], policy, value: null, scores: null };
  }
  if (player in LEVELS) return levelOpinion(player, moves, (mode) => opinion(`${networks[0].name}${mode}`, moves, signal, worker));
  if (player.startsWith("uct:")) return askRollouts(Number(player.split(":")[1]), moves, signal);
  const [network, mode] = read(player);
  if (mode) {
    const { move, visits, value } = await ask({ network, moves, simulations: Number(mode.split(":")[1]) }, signal, worker);
    const total = visits.reduce((sum, number) => sum + number, 0);
    return { move, policy: visits.map((number) => number / total), value, scores: null };
  }
  const [answer] = await predict([boardOf(position)], network);
  return { move: answer.move, policy: answer.policy, value: answer.value ?? null, scores: null };
}

/** The opinion before each move of a game, and of its last position if that is open; several workers share them. */
export async function opinions(player, moves, signal) {
  const places = Array.from({ length: moves.length + 1 }, (_, ply) => moves.slice(0, ply));
  if (replay(moves).isOver) places.pop();
  while (inference.length < WORKERS) inference.push(startInference());
  const answers = [];
  let next = 0;
  await Promise.all(inference.map(async (worker) => {
    while (next < places.length) {
      const ply = next++;
      answers[ply] = await opinion(player, places[ply], signal, worker).catch((error) => {
        if (inference.includes(worker)) throw error;
        worker = inference[0]; // instead of one that cannot start
        return opinion(player, places[ply], signal, worker);
      });
    }
  }));
  return answers;
}

/**
 * A network's outputs, by name, of each board.
 * @param {Int8Array[]} boards 42 cells each, rows from the top, +1 side to move
 */
export function predict(boards, network = networks[0].name) {
  return ask({ network, boards });
}

/** The network of a player's name, and its mode: "" or "puct:N". Throws an Error for other names. */
function read(player) {
  const [name, mode = ""] = networks.some(({ name }) => name === player) ? [player] : player.split(/@(?=[^@]*$)/);
  const network = networks.find((each) => each.name === name);
  const [, number] = mode.match(/^puct:(\d+)$/) ?? [];
  const isMode = !mode || (network?.value_head && number >= 1 && number <= MOST_GUIDED);
  if (!network || !isMode) throw new Error(`There is no player “${player}” here.`);
  return [name, mode];
}

/** Query a worker with the networks; an aborted signal ends a search. */
function ask({ network: name, ...question }, signal, worker = inference[0]) {
  if (isBroken) return Promise.reject(new Error(BROKEN));
  const network = networks.find((each) => each.name === name) ?? { name, file: `${name}.onnx` };
  return answered(worker, worker.unanswered, { network, ...question }, (port) => {
    signal?.addEventListener("abort", () => port.postMessage("stop"));
  });
}

function startInference() {
  const worker = new Worker(new URL("./inference.js", import.meta.url), { type: "module" });
  worker.unanswered = new Set(); // functions that reject a pending request
  worker.addEventListener("message", ({ data }) => dispatchEvent(new CustomEvent("progress", { detail: data.loaded })));
  worker.addEventListener("error", () => {
    const place = inference.indexOf(worker);
    if (place > 0) inference.splice(place, 1)[0].terminate();
    if (place === 0) isBroken = true;
    for (const reject of worker.unanswered) reject(new Error(BROKEN));
  });
  return worker;
}

/** Query the worker that searches with rollouts; aborting ends it unless other requests wait for it. */
function askRollouts(simulations, moves, signal) {
  rollouts ??= startRollouts();
  const { worker, unanswered } = rollouts;
  return answered(worker, unanswered, { simulations, moves }, () => {
    signal?.addEventListener("abort", () => unanswered.size === 1 && endRollouts(worker, "The search was called off."));
  });
}

function startRollouts() {
  const worker = new Worker(new URL("./search.js", import.meta.url), { type: "module" });
  worker.onerror = () => endRollouts(worker, "The search failed in this browser.");
  return { worker, unanswered: new Set() };
}

/** End this worker if it still runs; the next request starts a new one. */
function endRollouts(worker, why) {
  if (rollouts?.worker !== worker) return;
  const { unanswered } = rollouts;
  rollouts = null;
  worker.terminate();
  for (const reject of unanswered) reject(new Error(why));
}

/** A worker's answer to a request; the function that ends the worker rejects pending requests. */
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
