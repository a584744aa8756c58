"""Self-play without a cache: network evaluations a second, against the network's peak, and games an hour.

    python benchmarks/selfplay.py                              # a new `pillar-plain`, PUCT, 100 and 600 simulations
    python benchmarks/selfplay.py --model models/pillar --precision bfloat16

Whole games are played to their end. About every second, self-play pauses while the network alone evaluates random
positions at its best batch size: the peak. So both are measured alternately, under the same load of the machine.
`of peak` is the rate of evaluations in self-play, while nearly all lanes have a game, divided by the peak; `by CPU`
compares processor time instead of wall time. The range of `of peak` over ten parts of the run shows its uncertainty.
`games_per_hour` includes the end of the run, when few games are left, but not the pauses. The command `selfplay` caches
evaluations, so it plays more games an hour.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from distill import networks
from distill.games import playing
from distill.games.settings import SelfPlaySettings
from distill.mcts import puct

BATCHES = (64, 128, 256, 512)
FULL = 0.75
"""Self-play is measured while a batch has at least this fraction of the lanes; later there are too few games left."""
STRETCH = 1.0
"""Seconds of self-play between two measurements of the network alone, which take half as long."""
PUBLISHED = "AlphaZero.jl: 5,000 games an hour at 600 simulations with a desktop GPU"


def starts(games: int, moves: tuple[int, int]) -> tuple[Any, Any]:
    """Positions after random openings: current and mask."""
    settings = SelfPlaySettings(opening_moves=moves)
    return playing.starts(settings, range(games))


class Clock:
    """Wall seconds, processor seconds and evaluated boards between `start` and `stop`."""

    def __init__(self) -> None:
        self.wall = self.processor = 0.0
        self.boards = 0

    def start(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def stop(self, boards: int) -> None:
        self.wall += time.perf_counter() - self._began[0]
        self.processor += time.process_time() - self._began[1]
        self.boards += boards


def best_batch(predict: Any, positions: Any, seconds: float) -> int:
    """The batch size with most evaluations a second; the measurement alternates between the sizes."""
    clocks = {batch: Clock() for batch in BATCHES}
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        for batch, clock in clocks.items():
            clock.start()
            predict(*(bits[:batch] for bits in positions))
            clock.stop(batch)
    return max(BATCHES, key=lambda batch: clocks[batch].boards / clocks[batch].wall)


class Watched:
    """A network that counts its evaluations, and every STRETCH seconds of self-play also measures itself alone."""

    def __init__(self, predict: Any, positions: Any, lanes: int) -> None:
        self.predict, self.positions, self.lanes = predict, positions, lanes
        self.stretches: list[tuple[Clock, Clock]] = []  # self-play, and the network alone after it
        self.boards = 0
        self.paused = 0.0  # seconds for which self-play waited
        self._begin()

    def _begin(self) -> None:
        self._play, self._began = Clock(), time.perf_counter()
        self._play.start()
        self._evaluations = 0

    def __call__(self, current: Any, mask: Any) -> Any:
        found = self.predict(current, mask)
        self.boards += len(current)
        self._evaluations += len(current)
        if len(current) < FULL * self.lanes:  # not a full batch: measure from the next one on
            self._begin()
        elif time.perf_counter() - self._began > STRETCH:
            self._play.stop(self._evaluations)
            alone, began = Clock(), time.perf_counter()
            while time.perf_counter() - began < STRETCH / 2:
                alone.start()
                self.predict(*self.positions)
                alone.stop(len(self.positions[0]))
            self.paused += time.perf_counter() - began
            self.stretches.append((self._play, alone))
            self._begin()
        return found


def rate(clocks: Any) -> float:
    """Evaluations a second."""
    return float(sum(clock.boards for clock in clocks) / sum(clock.wall for clock in clocks))


def cost(clocks: Any) -> float:
    """Processor time of one evaluation in microseconds, over all cores."""
    return float(1e6 * sum(clock.processor for clock in clocks) / sum(clock.boards for clock in clocks))


def of_peak(stretches: Any) -> tuple[float, float]:
    """The speed of self-play divided by the peak, in wall time and in processor time."""
    play, alone = zip(*stretches, strict=True)
    return rate(play) / rate(alone), cost(alone) / cost(play)


def self_play(predict: Any, settings: puct.PuctSettings, games: int, lanes: int, batch: int) -> dict[str, Any]:
    """The figures of a run of whole games. Raises SystemExit if there are too few games to measure."""
    current, mask = starts(games, (1, 8))
    positions = tuple(bits[:batch] for bits in starts(batch, (0, 20)))
    watched = Watched(predict, positions, min(lanes, games))
    began = time.perf_counter()
    record = puct.play(current, mask, watched, settings, lanes=lanes)
    wall = time.perf_counter() - began - watched.paused
    parts = np.array_split(np.arange(len(watched.stretches)), 10)
    if not len(parts[-1]):
        raise SystemExit(f"nearly all lanes had a game for less than {10 * STRETCH:.0f} s: give more --games")
    by_part = [of_peak([watched.stretches[place] for place in part]) for part in parts]
    play, alone = zip(*watched.stretches, strict=True)
    whole, whole_by_cpu = of_peak(watched.stretches)
    return {
        "peak_per_s": rate(alone),
        "batch": batch,
        "evaluations_per_s": rate(play),
        "of_peak": whole,
        "of_peak_low": min(each for each, _ in by_part),
        "of_peak_high": max(each for each, _ in by_part),
        "of_peak_by_cpu": whole_by_cpu,
        "evaluations_per_simulation": float(watched.boards / record.simulations.sum()),
        "plies_per_game": float(record.length.mean()),
        "games_per_hour": games / wall * 3600,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="a network, by name, folder or .keras file; none: a new `pillar-plain`")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--games", type=int, default=512)
    parser.add_argument("--lanes", type=int, default=512)
    parser.add_argument("--simulations", type=int, nargs="+", default=(100, 600))
    parser.add_argument("--root", choices=("puct", "gumbel"), default="puct")
    parser.add_argument("--seconds", type=float, default=8, help="time for finding the best batch size")
    arguments = parser.parse_args()

    networks.start_backend()
    from distill.networks import finding, saved
    from distill.networks.evaluator import NetworkEvaluator

    core = (
        saved.load_core(finding.network_file(arguments.model))
        if arguments.model
        else networks.build("pillar-plain", True)
    )
    predict = NetworkEvaluator(core, precision=arguments.precision)
    puct.play(*starts(16, (1, 8)), predict, puct.PuctSettings(simulations=2, root=arguments.root), lanes=8)  # compiles
    print(
        f"{networks.arch_of(core)}, {core.count_params():,} parameters, {arguments.precision}, {arguments.lanes} lanes"
    )
    batch = best_batch(predict, starts(max(BATCHES), (0, 20)), arguments.seconds)
    figures: dict[str, float] = {}
    print(
        f"{'simulations':>11}{'peak/s':>9}{'batch':>6}{'self-play/s':>12}{'of peak':>9}"
        f"{'range':>12}{'by CPU':>8}{'games/h':>9}"
    )
    for simulations in arguments.simulations:
        settings = puct.PuctSettings(simulations=simulations, root=arguments.root)
        found = self_play(predict, settings, arguments.games, arguments.lanes, batch)
        span = f"{found['of_peak_low']:.0%}–{found['of_peak_high']:.0%}"
        print(
            f"{simulations:>11}{found['peak_per_s']:>9,.0f}{batch:>6}{found['evaluations_per_s']:>12,.0f}"
            f"{found['of_peak']:>9.0%}{span:>12}{found['of_peak_by_cpu']:>8.0%}{found['games_per_hour']:>9,.0f}"
        )
        figures |= {f"{name}_{simulations}": value for name, value in found.items()}
    print(f"for comparison, {PUBLISHED}")
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
