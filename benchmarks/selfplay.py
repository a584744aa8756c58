"""Self-play as it runs: network evaluations a second beside the model's own peak, and games an hour.

    python benchmarks/selfplay.py                              # a fresh column net, PUCT, 100 and 600 simulations
    python benchmarks/selfplay.py --model models/column --precision bfloat16

Whole games are played to their end. `share` is the rate of evaluations while all lanes are at work, as a part of the
peak: the best rate over batch sizes on random positions, measured right before. `share_cpu` compares processor time
instead of wall time, which other work on the machine disturbs less. `games_per_hour` counts everything, the last games
with few lanes at work among it; the median of `--rounds`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from distill import nets
from distill.data import shards
from distill.data.selfplay import SelfPlaySettings
from distill.search import puct

BATCHES = (64, 128, 256, 512)
AT_WORK = 0.95
"""Share of the lanes in a batch from which all are said to be at work; the rest are between two games."""
PUBLISHED = "AlphaZero.jl: 5,000 games an hour at 600 simulations with a desktop GPU"


def starts(games: int, moves: tuple[int, int]) -> tuple[Any, Any]:
    """Positions after random openings, (current, mask)."""
    settings = SelfPlaySettings(opening_moves=moves)
    found = [shards.opening(settings, game) for game in range(games)]
    return tuple(np.array([getattr(each, name) for each in found], np.uint64) for name in ("current", "mask"))


def peak(predict: Any, seconds: float) -> dict[str, float]:
    """Evaluations a second and processor seconds an evaluation at the best batch size."""
    current, mask = starts(max(BATCHES), (0, 20))
    found: dict[str, float] = {}
    for batch in BATCHES:
        predict(current[:batch], mask[:batch])
        calls, began, processor = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - began < seconds / len(BATCHES):
            predict(current[:batch], mask[:batch])
            calls += 1
        rate = calls * batch / (time.perf_counter() - began)
        if rate > found.get("peak_per_s", 0.0):
            cost = (time.process_time() - processor) / (calls * batch)
            found = {"peak_per_s": rate, "peak_cpu_us": 1e6 * cost, "batch": batch}
    return found


def self_play(predict: Any, simulations: int, root: Any, games: int, lanes: int) -> dict[str, float]:
    """What a run of whole games takes."""
    calls: list[tuple[float, float, int]] = []  # wall and processor time before each call, and its boards

    def counting(current: Any, mask: Any) -> Any:
        calls.append((time.perf_counter(), time.process_time(), len(current)))
        return predict(current, mask)

    settings = SelfPlaySettings(simulations=simulations, root=root)
    current, mask = starts(games, (1, 8))
    began = time.perf_counter()
    record = puct.play(current, mask, settings, counting, lanes=lanes)
    wall = time.perf_counter() - began
    times, processor, boards = (np.array(values) for values in zip(*calls, strict=True))
    full = np.flatnonzero(boards >= AT_WORK * min(lanes, games))
    first, last = full[0], full[-1]
    evaluations = boards[first:last].sum()
    return {
        "evaluations_per_s": float(evaluations / (times[last] - times[first])),
        "cpu_us": float(1e6 * (processor[last] - processor[first]) / evaluations),
        "evaluations_per_simulation": float(boards.sum() / record.simulations.sum()),
        "plies_per_game": float(record.length.mean()),
        "games_per_hour": games / wall * 3600,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, help="folder or .keras file; none: a fresh column net")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--games", type=int, default=512)
    parser.add_argument("--lanes", type=int, default=512)
    parser.add_argument("--simulations", type=int, nargs="+", default=(100, 600))
    parser.add_argument("--root", choices=("puct", "gumbel"), default="puct")
    parser.add_argument("--seconds", type=float, default=8, help="given to each measurement of the peak")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()

    nets.start_backend()
    from distill.nets import saved
    from distill.nets.evaluator import Evaluator

    core = saved.load_core(saved.network_file(arguments.model)) if arguments.model else nets.build("column", True)
    predict = Evaluator(core, precision=arguments.precision)
    self_play(predict, 2, arguments.root, 16, 8)  # compiles
    figures: dict[str, float] = {}
    print(f"{core.name}, {core.count_params():,} parameters, {arguments.precision}, {arguments.lanes} lanes")
    print(f"{'simulations':>11}{'peak/s':>9}{'batch':>6}{'self-play/s':>12}{'share':>7}{'by CPU':>8}{'games/h':>9}")
    for simulations in arguments.simulations:
        runs = []
        for _ in range(arguments.rounds):
            best = peak(predict, arguments.seconds)
            found = self_play(predict, simulations, arguments.root, arguments.games, arguments.lanes)
            share = found["evaluations_per_s"] / best["peak_per_s"]
            runs.append({**best, **found, "share": share, "share_cpu": best["peak_cpu_us"] / found["cpu_us"]})
        middle = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        print(
            f"{simulations:>11}{middle['peak_per_s']:>9,.0f}{middle['batch']:>6.0f}{middle['evaluations_per_s']:>12,.0f}"
            f"{middle['share']:>7.0%}{middle['share_cpu']:>8.0%}{middle['games_per_hour']:>9,.0f}"
        )
        figures |= {f"{name}_{simulations}": value for name, value in middle.items()}
    print(f"for comparison, {PUBLISHED}")
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
