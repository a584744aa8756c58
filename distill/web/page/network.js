/**
 * Players without a server: the network in `model.onnx`, run by ONNX Runtime Web, and a search in a worker. The same
 * functions as `server.js`; `write_static_page` puts this module in its place.
 */

import * as ort from "./ort/ort.wasm.bundle.min.mjs";
import { LEVELS, cards, levelOpinion } from "./levels.js";
import { COLUMNS, ROWS, boardOf, legalColumns, replay } from "./rules.js";

export const isServed = false;

ort.env.wasm.numThreads = 1; // more would need headers that a plain file host does not send
ort.env.wasm.wasmPaths = { wasm: new URL("./ort/ort-wasm-simd-threaded.wasm", import.meta.url).href };
const facts = await (await fetch("model.json")).json();
const session = await ort.InferenceSession.create("model.onnx", { executionProviders: ["wasm"] });
let search = null; // the worker, once somebody asks for one
let queue = Promise.resolve(); // a session computes one batch at a time

export async function players() {
  const parameters = facts.parameters.toLocaleString("en");
  return {
    players: [
      ...cards.filter(({ name }) => !LEVELS[name].mode), // those that ask for a search are for where there is one
      { name: facts.name, kind: "network", title: facts.name, note: `${facts.network}, ${parameters} parameters` },
      { name: "uct:N", kind: "search", title: "Search", note: "Monte-Carlo tree search with playouts" },
      { name: "random", kind: "simple", title: "Random", note: "any legal column" },
    ],
    max_simulations: 100_000,
    notices: ["Everything is computed in this browser, by ONNX Runtime Web (MIT licence, see licences/)."],
  };
}

export const choose = async (player, moves) => (await opinion(player, moves)).column;

export async function opinion(player, moves) {
  const position = replay(moves);
  if (player === "random") {
    const legal = legalColumns(position);
    const policy = Array.from({ length: COLUMNS }, (_, column) => (legal.includes(column) ? 1 / legal.length : 0));
    return { column: legal[Math.floor(Math.random() * legal.length)], policy, value: null, scores: null };
  }
  if (player in LEVELS) return levelOpinion(player, moves, () => opinion(facts.name, moves));
  if (player === facts.name) {
    const [answer] = await predict([boardOf(position)]);
    return { column: answer.move, policy: answer.policy, value: answer.value ?? null, scores: null };
  }
  return askSearch(Number(player.split(":")[1]), moves);
}

/**
 * The network's outputs, by name, of each board.
 * @param {Int8Array[]} boards 42 cells each, rows from the top, +1 side to move
 */
export function predict(boards) {
  const run = async () => {
    const cells = Int8Array.from(boards.flatMap((board) => [...board]));
    const outputs = await session.run({ board: new ort.Tensor("int8", cells, [boards.length, ROWS, COLUMNS]) });
    return boards.map((_, index) => ({
      logits: [...outputs.logits.data.slice(index * COLUMNS, (index + 1) * COLUMNS)],
      policy: [...outputs.policy.data.slice(index * COLUMNS, (index + 1) * COLUMNS)],
      move: Number(outputs.move.data[index]),
      value: outputs.value?.data[index],
    }));
  };
  const answer = queue.then(run);
  queue = answer.catch(() => {});
  return answer;
}

function askSearch(simulations, moves) {
  search ??= new Worker(new URL("./search.js", import.meta.url), { type: "module" });
  return new Promise((resolve, reject) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = ({ data }) => resolve(data);
    search.onerror = () => reject(new Error("The search failed in this browser."));
    search.postMessage({ simulations, moves }, [channel.port2]);
  });
}
