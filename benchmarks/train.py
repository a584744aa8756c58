"""Training speed of the networks, and the cost of their input.

    python benchmarks/train.py                                       # every arch, in every form
    python benchmarks/train.py --archs pillar --batch-size 1024
    python benchmarks/train.py --archs pillar --profile        # where the time of float32 goes

`layers` is a network as Keras computes it; `kernels` has the fast CPU kernels of `networks/cpu_kernels`, as in
training; `--without separable` also measures it without that kernel. The table holds random boards, since the cost of a
batch does not depend on its content. In every round each contestant makes `--steps` steps with batches from
`training/streams.py`, and as many with batches kept in memory; the table shows medians over the rounds. `input` is the
time to make a batch, divided by the time of a step. It is measured without training, because other load on the machine
disturbs that less than the difference between two whole steps.

`--profile` prints instead, from TensorFlow's profiler, the share of each kind of operation in a step and in an
evaluation of self-play.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from distill import networks
from distill.common.settings import build
from distill.common.tables import table as text_table
from distill.datasets import batching
from distill.training.recipe import Recipe

KERNELS = ("whole_board", "separable", "batch_norm", "encoder")


def random_table(rows: int) -> batching.Examples:
    """A table like that of 5,000 games, with random stones in columns of random height."""
    rng = np.random.default_rng(0)
    heights = rng.integers(0, 6, (rows, 7), dtype=np.uint64)
    shifts = np.arange(7, dtype=np.uint64) * np.uint64(7)
    mask = (((np.uint64(1) << heights) - np.uint64(1)) << shifts).sum(axis=1, dtype=np.uint64)
    return batching.Examples(
        current=mask & rng.integers(0, 2**49, rows, dtype=np.uint64),
        mask=mask,
        visits=rng.integers(0, 10_000, (rows, 7)),
        label=rng.integers(0, 7, rows).astype(np.int8),
        value=rng.uniform(-1, 1, rows).astype(np.float32),
        outcome=rng.integers(-1, 2, rows).astype(np.float32),
        count=rng.integers(1, 9, rows).astype(np.int32),
    )


def operations(work: Callable[[], object]) -> Counter[tuple[str, str]]:
    """Picoseconds by part of a step, and kind of operation, over all threads."""
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space, found = xplane_pb2.XSpace(), Counter[tuple[str, str]]()
    with tempfile.TemporaryDirectory() as place:
        with tf.profiler.experimental.Profile(place):
            work()
        for path in Path(place).rglob("*.xplane.pb"):
            space.MergeFromString(path.read_bytes())
    for plane in space.planes:
        for event in itertools.chain.from_iterable(line.events for line in plane.lines):
            about = plane.event_metadata[event.metadata_id]
            compiled = any(plane.stat_metadata[each.metadata_id].name == "hlo_op" for each in event.stats)
            if not compiled and (not about.display_name or about.name.startswith("__inference")):
                continue  # not one operation, but what runs them
            kind = about.name if compiled else about.display_name
            part = "gradient" if about.name.startswith("gradient_tape/") else "forward"
            if re.match("(adam|adam_w|muon|sgd)/", about.name):
                part = "optimizer"
            found[part, re.sub(r"(_\d+)?(\.\d+)?$", "", kind.removeprefix("_Mkl"))] += event.duration_ps
    return found


def profile(arch: str, recipe: Recipe, rows: int) -> None:
    """Print the shares of the operations that take most, in float32."""
    from distill.networks.copies import fast_copy
    from distill.networks.evaluator import NetworkEvaluator
    from distill.training import step, streams

    table, core = random_table(rows), networks.build(arch, True)
    model, evaluate = step.compiled(fast_copy(core), recipe), NetworkEvaluator(core)
    batch = next(streams.table(model, table, batching.picks(rows, recipe.batch_size, seed=0)))
    works = {
        f"{arch}, a step of {recipe.batch_size} boards": lambda: step.train_step(model, batch),
        f"{arch}, evaluation in self-play": lambda: evaluate(table.current[:2048], table.mask[:2048]),
    }
    for title, work in works.items():
        work()  # compiles
        found = operations(lambda work=work: [work() for _ in range(10)])
        most = [[part, kind, f"{time / found.total():.0%}"] for (part, kind), time in found.most_common(10)]
        print(text_table([title, "operation", "share"], most), end="\n\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--archs", nargs="+", choices=networks.ARCHS, default=networks.ARCHS)
    parser.add_argument("--batch-size", type=int, default=256)
    quick = networks.fast_precision() == "bfloat16"
    parser.add_argument("--bfloat16", action=argparse.BooleanOptionalAction, default=quick, help="[%(default)s]")
    parser.add_argument("--rows", type=int, default=110_000)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without", nargs="*", choices=KERNELS, default=(), help="kernels to leave out, one at a time")
    parser.add_argument("--profile", action="store_true", help="where the time goes, instead of speeds")
    arguments = parser.parse_args()

    networks.start_backend()
    from distill.networks import copies
    from distill.networks.copies import fast_copy
    from distill.training import step, streams

    table = random_table(arguments.rows)
    recipe = build(Recipe, {"count_weights": "root", "batch_size": arguments.batch_size})
    if arguments.profile:
        for arch in arguments.archs:
            profile(arch, recipe, arguments.rows)
        return
    models = {}
    for arch in arguments.archs:
        core = networks.build(arch)
        models[arch, "layers, float32"] = step.compiled(core, recipe)
        models[arch, "kernels, float32"] = step.compiled(fast_copy(core), recipe)
        for kernel in arguments.without:
            every = copies.KERNELS
            copies.KERNELS = tuple(module for module in every if module.__name__.rpartition(".")[2] != kernel)
            models[arch, f"without {kernel}"] = step.compiled(fast_copy(core), recipe)
            copies.KERNELS = every
        if arguments.bfloat16:
            models[arch, "kernels, bfloat16"] = step.compiled(fast_copy(core, "bfloat16"), recipe)

    first_model = next(iter(models.values()))

    def fed() -> Iterable[streams.Batch]:
        picks = batching.picks(len(table), recipe.batch_size, seed=0)
        return itertools.islice(streams.table(first_model, table, picks), arguments.steps)

    def seconds_a_step(batches: Iterable[streams.Batch], model: object | None) -> float:
        began = time.perf_counter()
        for batch in batches:
            if model is not None:
                step.train_step(model, batch)
        return (time.perf_counter() - began) / arguments.steps

    kept = list(fed())
    for model in models.values():
        seconds_a_step(kept[:2], model)  # compiles
    pipeline: dict[tuple[str, str], list[float]] = {name: [] for name in models}
    memory: dict[tuple[str, str], list[float]] = {name: [] for name in models}
    alone = []
    for _ in range(arguments.rounds):
        alone.append(seconds_a_step(fed(), None))
        for name, model in models.items():
            memory[name].append(seconds_a_step(kept, model))
            pipeline[name].append(seconds_a_step(fed(), model))

    print(f"batch {recipe.batch_size}, {arguments.rows:,} rows, median of {arguments.rounds} rounds")
    print(f"{'arch':12} {'form':18} {'boards/s':>9} {'from memory':>12} {'input':>7} {'against layers':>16}")
    figures: dict[str, float] = {}
    for (arch, form), times in pipeline.items():
        seconds, from_memory = statistics.median(times), statistics.median(memory[arch, form])
        gain = statistics.median(a / b for a, b in zip(pipeline[arch, "layers, float32"], times, strict=True))
        of_step = statistics.median(alone) / seconds
        speed, speed_from_memory = recipe.batch_size / seconds, recipe.batch_size / from_memory
        print(f"{arch:12} {form:18} {speed:9,.0f} {speed_from_memory:12,.0f} {of_step:7.1%} {gain:15.2f}x")
        name = f"{arch}_{form}".replace(", ", "_")
        figures[f"{name}_boards_per_s"] = round(speed)
        figures[f"{name}_input"] = round(of_step, 4)
        figures[f"{name}_gain"] = round(gain, 3)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
