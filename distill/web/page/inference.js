/**
 * Networks in a worker: ONNX Runtime Web evaluates boards here, and searches run beside it.
 *
 * A message is {network, boards} or {network, moves, simulations}, with a port for the one reply, {answer} or {error};
 * any message through the port ends a search.
 */

import * as ort from "./ort/ort.wasm.bundle.min.mjs";
import { search } from "./puct.js";
import { COLUMNS, ROWS, replay } from "./rules.js";

const KEPT = 50_000; // largest number of cached evaluations
const BREATH = 40; // ms of a search after which messages are handled

ort.env.wasm.numThreads = 1; // more would need headers that a plain file host does not send
ort.env.wasm.wasmPaths = { wasm: new URL("./ort/ort-wasm-simd-threaded.wasm", import.meta.url).href };

/** One network; construction starts loading it. */
class Network {
  #answers = new Map();
  #queue = Promise.resolve(); // a session computes one batch at a time

  constructor(name) {
    const file = `${encodeURIComponent(name)}.onnx`;
    this.session = ort.InferenceSession.create(file, { executionProviders: ["wasm"] });
  }

  /** The outputs, by name, of each board. */
  predict(boards) {
    const run = async () => {
      const cells = Int8Array.from(boards.flatMap((board) => [...board]));
      const session = await this.session;
      const outputs = await session.run({ board: new ort.Tensor("int8", cells, [boards.length, ROWS, COLUMNS]) });
      return boards.map((_, index) => ({
        logits: [...outputs.logits.data.slice(index * COLUMNS, (index + 1) * COLUMNS)],
        policy: [...outputs.policy.data.slice(index * COLUMNS, (index + 1) * COLUMNS)],
        move: Number(outputs.move.data[index]),
        value: outputs.value?.data[index],
      }));
    };
    const answer = this.#queue.then(run);
    this.#queue = answer.catch(() => {});
    return answer;
  }

  /** The outputs of one board, cached: searches reach a position by several move orders. */
  async evaluate(board) {
    const key = board.join("");
    if (!this.#answers.has(key)) {
      const [answer] = await this.predict([board]);
      this.#answers.set(key, answer);
      if (this.#answers.size > KEPT) this.#answers.delete(this.#answers.keys().next().value);
    }
    return this.#answers.get(key);
  }
}

const networks = new Map();

async function called(name) {
  if (!networks.has(name)) networks.set(name, new Network(name));
  const network = networks.get(name);
  await network.session.catch((error) => {
    networks.delete(name); // may be tried again
    throw new Error(`The network ${name} cannot be loaded. ${error.message}`);
  });
  return network;
}

async function answer({ network: name, boards, moves, simulations }, signal) {
  const network = await called(name);
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
