/**
 * Networks in a worker: they evaluate boards here, and searches run beside them. `pillar` is computed by our own kernel,
 * other networks by ONNX Runtime Web, which is loaded with the first of them.
 *
 * A message is {network, boards} or {network, moves, simulations}, `network` as in `networks.json`, with a port for the
 * one reply, {answer} or {error}; any message through the port ends a search. While weights are on their way, the worker
 * tells how large a share of them it has: {loaded}.
 */

import { Pillar } from "./pillar.js";
import { search } from "./puct.js";
import { COLUMNS, ROWS, replay } from "./rules.js";

const LARGEST_CACHE = 50_000; // largest number of cached evaluations
const BREATH = 40; // ms of a search after which messages are handled

/** A function from boards to their outputs, by name. */
async function load({ file, parameters }) {
  const address = encodeURIComponent(file);
  if (!file.endsWith(".f32")) return loadOnnx(address);
  const reply = await fetch(address);
  if (!reply.ok) throw new Error(`The server replied ${reply.status}.`);
  const network = await Pillar.load(await received(reply, Float32Array.BYTES_PER_ELEMENT * parameters));
  return (boards) => boards.map((board) => network.evaluate(board));
}

/** The bytes of a reply, of which there are about so many. */
async function received(reply, total) {
  const parts = [];
  let bytes = 0;
  for (const reader = reply.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    bytes += value.length;
    postMessage({ loaded: Math.min(1, bytes / total) });
  }
  return new Blob(parts).arrayBuffer();
}

async function loadOnnx(address) {
  const ort = await import("./ort/ort.wasm.bundle.min.js");
  ort.env.wasm.numThreads = 1; // more would need headers that a plain file host does not send
  ort.env.wasm.wasmPaths = { wasm: new URL("./ort/ort-wasm-simd-threaded.wasm", import.meta.url).href };
  const session = await ort.InferenceSession.create(address, { executionProviders: ["wasm"] });
  let queue = Promise.resolve(); // a session computes one batch at a time
  const run = async (boards) => {
    const cells = Int8Array.from(boards.flatMap((board) => [...board]));
    const { logits, policy, move, value } = await session.run({ board: new ort.Tensor("int8", cells, [boards.length, ROWS, COLUMNS]) });
    const row = (output, index) => [...output.data.slice(index * COLUMNS, (index + 1) * COLUMNS)];
    return boards.map((_, index) => ({
      logits: row(logits, index), policy: row(policy, index), move: Number(move.data[index]), value: value?.data[index],
    }));
  };
  return (boards) => {
    const answer = queue.then(() => run(boards));
    queue = answer.catch(() => {});
    return answer;
  };
}

/** Evaluations of a network, cached: searches reach a position by several move orders. */
class Network {
  #answers = new Map();

  constructor(card) {
    this.predict = async (boards) => (await this.loaded)(boards);
    this.loaded = load(card);
  }

  async evaluate(board) {
    const key = board.join("");
    if (!this.#answers.has(key)) {
      const [answer] = await this.predict([board]);
      this.#answers.set(key, answer);
      if (this.#answers.size > LARGEST_CACHE) this.#answers.delete(this.#answers.keys().next().value);
    }
    return this.#answers.get(key);
  }
}

const networks = new Map();

async function called(card) {
  const { name } = card;
  if (!networks.has(name)) networks.set(name, new Network(card));
  const network = networks.get(name);
  await network.loaded.catch((error) => {
    networks.delete(name); // may be tried again
    throw new Error(`The network ${name} cannot be loaded. ${error.message}`);
  });
  return network;
}

async function answer({ network: card, boards, moves, simulations }, signal) {
  const network = await called(card);
  if (boards) return network.predict(boards);
  let since = performance.now();
  const evaluate = async (board) => {
    if (performance.now() - since > BREATH) {
      await new Promise((resolve) => setTimeout(resolve));
      since = performance.now();
    }
    return network.evaluate(board);
  };
  return search(replay(moves), simulations, evaluate, signal);
}

onmessage = async ({ data, ports: [port] }) => {
  const signal = { aborted: false };
  port.onmessage = () => (signal.aborted = true);
  try {
    port.postMessage({ answer: await answer(data, signal) });
  } catch (error) {
    port.postMessage({ error: error.message });
  }
};
