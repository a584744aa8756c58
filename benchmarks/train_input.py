"""What the input of training costs: steps fed by `tables.batches`, and the same steps fed from memory.

    python benchmarks/train_input.py                       # CNN, batch 256
    python benchmarks/train_input.py --arch column --steps 100

The table holds random boards, as the cost of a batch does not depend on what is on them. Both feeds are timed in turn,
`--rounds` times, and the medians compared. `alone` is the time to make a batch without training on it, which a busy
machine disturbs less.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Iterable

import numpy as np

from distill import nets
from distill.data import tables
from distill.nets.recipe import Recipe


def random_table(rows: int) -> tables.Examples:
    """Rows like those of 5,000 games in size and type; boards of random stones in columns of random height."""
    rng = np.random.default_rng(0)
    heights = rng.integers(0, 6, (rows, 7), dtype=np.uint64)
    shifts = np.arange(7, dtype=np.uint64) * np.uint64(7)
    mask = (((np.uint64(1) << heights) - np.uint64(1)) << shifts).sum(axis=1, dtype=np.uint64)
    return tables.Examples(
        current=mask & rng.integers(0, 2**49, rows, dtype=np.uint64),
        mask=mask,
        visits=rng.integers(0, 10_000, (rows, 7)),
        label=rng.integers(0, 7, rows).astype(np.int8),
        value=rng.uniform(-1, 1, rows).astype(np.float32),
        outcome=rng.integers(-1, 2, rows).astype(np.float32),
        count=rng.integers(1, 9, rows).astype(np.int32),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--arch", choices=nets.ARCHS, default="cnn")
    parser.add_argument("--rows", type=int, default=110_000)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    nets.start_backend()
    from distill.nets import training

    recipe = Recipe(count_weights="root")
    table = random_table(arguments.rows)
    training.make_repeatable(0)
    model = training.compiled(nets.build(arguments.arch), recipe)

    def fed() -> Iterable[tables.Batch]:
        return itertools.islice(tables.batches(table, recipe.batch_size, seed=0, epoch=0), arguments.steps)

    def seconds_a_step(batches: Iterable[tables.Batch], train: bool = True) -> float:
        began = time.perf_counter()
        for batch in batches:
            if train:
                training.train_step(model, batch, recipe, 1.0)
        return (time.perf_counter() - began) / arguments.steps

    kept = list(fed())
    seconds_a_step(kept)  # compiles
    times: dict[str, list[float]] = {"pipeline": [], "memory": [], "alone": []}
    for _ in range(arguments.rounds):
        times["memory"].append(seconds_a_step(kept))
        times["pipeline"].append(seconds_a_step(fed()))
        times["alone"].append(seconds_a_step(fed(), train=False))

    median = {name: statistics.median(values) for name, values in times.items()}
    print(f"{arguments.arch}, batch {recipe.batch_size}, {arguments.rows:,} rows, median of {arguments.rounds} rounds")
    for name in ("memory", "pipeline", "alone"):
        print(f"{name:10} {median[name] * 1e3:8.2f} ms a step")
    figures = {f"{name}_ms": round(value * 1e3, 3) for name, value in median.items()} | {
        "arch": arguments.arch,
        "boards_per_s": round(recipe.batch_size / median["pipeline"]),
        "overhead": round(median["pipeline"] / median["memory"] - 1, 4),
        "share_alone": round(median["alone"] / median["memory"], 4),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
