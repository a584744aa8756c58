"""Enumerate all games of a network that moves first against every legal reply, on an accelerator.

    KERAS_BACKEND=jax python -m experiments.large.tree --network OUT/best.keras --out tree

The same enumeration as `distill.walk --replies all`, in minutes in place of hours. In bfloat16 some near-equal logits
change places, so its counts guide the training; the proof is what `distill.walk` counts with the exported file. Out, in
`--out`: the layers, and `not_won.npz` with `key`: positions where some reply leads to a loss or a draw.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.evaluation import enumeration
from distill.evaluation.enumeration import Choose, Enumeration, Keys
from distill.game.rules import CELLS, legal_mask
from experiments.large.label import evaluator

BATCH = 1 << 15
"""Boards that the accelerator evaluates at once."""
THREADS = 4
"""Batches under way: one is computed while others are copied."""


def chooser(path: Path, precision: str) -> Choose:
    """The network's best legal moves for any number of positions."""
    evaluate = evaluator(path, BATCH, precision)

    def batch(current: Keys, mask: Keys) -> NDArray[np.int8]:
        logits, _ = evaluate(current, mask)
        return np.where(legal_mask(mask), logits, -np.inf).argmax(axis=1).astype(np.int8)

    def choose(current: Keys, mask: Keys) -> NDArray[np.integer[Any]]:
        parts = [slice(start, start + BATCH) for start in range(0, len(mask), BATCH)]
        with ThreadPoolExecutor(THREADS) as threads:
            return np.concatenate(list(threads.map(lambda part: batch(current[part], mask[part]), parts)))

    return choose


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--network", type=Path, required=True)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--most-stones", type=int, default=CELLS)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    enumeration.CHUNK = 1 << 21
    began = time.monotonic()
    tree = Enumeration(options.out, chooser(options.network, options.precision))
    layers = []
    for layer in tree.run(options.most_stones):
        layers.append(layer)
        print(f"{time.monotonic() - began:.0f} s: {json.dumps(layer)}", flush=True)
    last = layers[-1]["stones"]
    not_won, blunders = [], []
    for stones, failed, found in tree.back_up(last):
        layers[stones // 2] |= {"not_won": len(failed), "blunders": len(found)}
        not_won.append(failed)
        blunders.append(found)
    keys = np.concatenate(not_won)
    np.savez_compressed(options.out / "not_won.npz", key=keys, blunders=np.concatenate(blunders))
    (options.out / "layers.json").write_text(json.dumps(layers, indent=1) + "\n")
    total = {name: sum(layer[name] for layer in layers) for name in layers[0] if name != "stones"}
    print(f"{time.monotonic() - began:.0f} s: {json.dumps(total)}")


if __name__ == "__main__":
    main()
