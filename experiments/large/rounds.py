"""Rounds towards a network that wins against every reply: enumerate, search what is not won, learn it, again.

    KERAS_BACKEND=jax python -m experiments.large.rounds --shape lines-64x6 --network OUT/best.keras \
        --graded graded.npz --data boards.npz --minutes 6 --out rounds

Each round writes a folder, `1`, `2` and so on, with its tree's `layers.json`, the searched boards and `best.keras`.
A round whose `best.keras` is there is not repeated; none begins that would end after --minutes, if it took as long as
the longest so far.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from distill.game.rules import CELLS
from experiments.large import boards, search, train, tree


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shape", required=True)
    parser.add_argument("--network", type=Path, required=True)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--extra", type=Path, nargs="*", default=[], help="boards of earlier rounds")
    parser.add_argument("--graded", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--lanes", type=int, default=1 << 15)
    parser.add_argument("--most", type=int, default=1 << 17, help="most positions searched in a round")
    parser.add_argument("--most-stones", type=int, default=CELLS, help="deepest positions of the enumeration")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--lr", type=float, default=6e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    began, network, searched = time.monotonic(), options.network, [*options.extra]
    excluded = np.load(options.graded)["excluded"]
    longest = 0.0
    for number in range(1, options.rounds + 1):
        round_began = time.monotonic()
        if round_began - began + longest > 60 * options.minutes:
            break
        here = options.out / str(number)
        found = here / "searched.npz"
        if not (here / "best.keras").exists():
            if not (here / "not_won.npz").exists():
                tree.main(["--network", str(network), "--most-stones", str(options.most_stones), "--out", str(here)])
            keys = np.load(here / "not_won.npz")["key"]
            if not len(keys):
                print(f"{network} wins against every reply")
                break
            if not found.exists():
                find = search.searcher(network, options.lanes, options.simulations)
                keys = np.random.default_rng([options.seed, number]).permutation(keys)[: options.most]
                boards.save(found, boards.merge(search.search_all(find, options.lanes, keys, 64), excluded), False)
                print(f"{time.monotonic() - round_began:.0f} s: {len(keys):,} positions searched", flush=True)
            train.main([
                "--shape", options.shape, "--init", str(network), "--graded", str(options.graded),
                "--data", *map(str, options.data), "--extra", *map(str, [*searched, found]), "--extra-share", "0.2",
                "--tree", str(here), "--tree-share", "0.3", "--children", str(options.network), "--lr", str(options.lr),
                "--steps", str(options.steps), "--seed", str(options.seed + number), "--out", str(here),
            ])  # fmt: skip
            for file in [*here.glob("keys-*.npy"), *here.glob("moves-*.npy"), here / "state.npz"]:
                file.unlink()
            longest = max(longest, time.monotonic() - round_began)
        counts = json.loads((here / "layers.json").read_text())
        totals = {name: sum(layer[name] for layer in counts) for name in ("not_won", "losing_replies", "draws")}
        print(f"{time.monotonic() - began:.0f} s, round {number} began at {totals}", flush=True)
        searched.append(found)
        network = here / "best.keras"


if __name__ == "__main__":
    main()
