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
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.evaluation import walk
from distill.evaluation.walk import Choose, Enumeration, Keys, replies
from distill.game.rules import CELLS, COLUMNS, from_keys, legal_mask
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


def back_up(tree: Enumeration, last: int) -> Iterator[tuple[int, Keys, Keys]]:
    """Back up results through the layers of an enumeration, from `last` stones to none.

    Yields for each layer its stones; the keys of positions that are not won, where some reply leads to a loss or a
    draw; and those of them that are blunders: another move has every reply won inside the tree. In an enumeration that
    was cut off, positions beyond its last layer count as won.
    """
    won_keys: Keys | None = None  # None: beyond the last layer
    for stones in range(last, -1, -2):
        keys = tree.keys(stones)
        moves = tree.moves(stones, len(keys))
        parts = [slice(start, start + walk.EXPAND) for start in range(0, len(keys), walk.EXPAND)]
        here = ([keys[part] for part in parts], [moves[part] for part in parts])
        with ThreadPoolExecutor(THREADS) as threads:
            won = np.concatenate(list(threads.map(_all_won, *here, repeat(won_keys))))
        failed = keys[~won]
        yield stones, failed, failed[_another_wins(failed, moves[~won], won_keys)]
        won_keys = keys[won]


def _another_wins(keys: Keys, moves: NDArray[np.int8], won_keys: Keys | None) -> NDArray[np.bool_]:
    """bool (B,): whether a move that the player did not choose has every reply won."""
    legal = legal_mask(from_keys(keys)[1])
    found = np.zeros(len(keys), np.bool_)
    for column in range(COLUMNS):
        here = np.flatnonzero(legal[:, column] & (moves != column))
        found[here] |= _all_won(keys[here], np.full(len(here), column), won_keys)
    return found


def _all_won(keys: Keys, moves: NDArray[np.integer[Any]], won_keys: Keys | None) -> NDArray[np.bool_]:
    """bool (B,): whether the move wins, or every reply leads to a position in `won_keys`, sorted; None holds all."""
    found = replies(keys, moves)
    fine = ~(found.lost | found.drawn)
    if won_keys is not None:
        place = np.minimum(np.searchsorted(won_keys, found.key), max(len(won_keys) - 1, 0))
        fine &= (won_keys[place] == found.key) if len(won_keys) else False
    result = np.ones(len(keys), np.bool_)
    result[found.parent[~fine]] = False
    return result


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--network", type=Path, required=True)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--most-stones", type=int, default=CELLS)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    walk.CHUNK = 1 << 21
    began = time.monotonic()
    tree = Enumeration(options.out, chooser(options.network, options.precision))
    layers = []
    for layer in tree.run(options.most_stones):
        layers.append(layer)
        print(f"{time.monotonic() - began:.0f} s: {json.dumps(layer)}", flush=True)
    last = layers[-1]["stones"]
    not_won, blunders = [], []
    for stones, failed, found in back_up(tree, last):
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
