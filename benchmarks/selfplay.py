"""Self-play with every answer calculated: network evaluations a second beside the model's own peak, and games an hour.

    python benchmarks/selfplay.py                              # a fresh `pillar`, PUCT, 100 and 600 simulations
    python benchmarks/selfplay.py --model models/pillar --precision bfloat16

Whole games are played to their end. Self-play stops every second or so for a burst of calls of the network alone, at
its best batch size on random positions: the peak. So peak and self-play are measured in turns, under the same load of
the machine. `share` is the rate of evaluations while all lanes are at work, as a part of the peak; `by CPU` compares
the processor time of an evaluation instead of the wall time. The range of `share` over ten parts of the run says how
sure it is. `games_per_hour` counts everything but the bursts, also the last games with few lanes at work. A run of
`selfplay` keeps the answers that it has met and asks less, so it plays more games than these.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from distill import networks
from distill.games import runs
from distill.games.selfplay import SelfPlaySettings
from distill.mcts import puct

BATCHES = (64, 128, 256, 512)
AT_WORK = 0.75
"""Share of the lanes in a batch from which self-play counts; after that there are too few games left to fill it."""
STRETCH = 1.0
"""Seconds of self-play between two bursts of the network alone, which take half as long."""
PUBLISHED = "AlphaZero.jl: 5,000 games an hour at 600 simulations with a desktop GPU"


def starts(games: int, moves: tuple[int, int]) -> tuple[Any, Any]:
    """Positions after random openings, (current, mask)."""
    settings = SelfPlaySettings(opening_moves=moves)
    found = [runs.opening(settings, game) for game in range(games)]
    return tuple(np.array([getattr(each, name) for each in found], np.uint64) for name in ("current", "mask"))


class Clock:
    """Wall and processor seconds, and evaluations, of what ran between `start` and `stop`."""

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
    """The batch size with most evaluations a second; the sizes take turns."""
    clocks = {batch: Clock() for batch in BATCHES}
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        for batch, clock in clocks.items():
            clock.start()
            predict(*(bits[:batch] for bits in positions))
            clock.stop(batch)
    return max(BATCHES, key=lambda batch: clocks[batch].boards / clocks[batch].wall)


class Watched:
    """A network whose calls are counted, and which after every second of a search is measured alone for a while."""

    def __init__(self, predict: Any, positions: Any, lanes: int) -> None:
        self.predict, self.positions, self.lanes = predict, positions, lanes
        self.stretches: list[tuple[Clock, Clock]] = []  # self-play with all lanes at work, then the network alone
        self.boards = 0
        self.aside = 0.0  # seconds of the bursts
        self._begin()

    def _begin(self) -> None:
        self._play, self._began = Clock(), time.perf_counter()
        self._play.start()
        self._evaluations = 0

    def __call__(self, current: Any, mask: Any) -> Any:
        answers = self.predict(current, mask)
        self.boards += len(current)
        self._evaluations += len(current)
        if len(current) < AT_WORK * self.lanes:
            self._begin()
        elif time.perf_counter() - self._began > STRETCH:
            self._play.stop(self._evaluations)
            alone, began = Clock(), time.perf_counter()
            while time.perf_counter() - began < STRETCH / 2:
                alone.start()
                self.predict(*self.positions)
                alone.stop(len(self.positions[0]))
            self.aside += time.perf_counter() - began
            self.stretches.append((self._play, alone))
            self._begin()
        return answers


def rate(clocks: Any) -> float:
    return float(sum(clock.boards for clock in clocks) / sum(clock.wall for clock in clocks))


def cost(clocks: Any) -> float:
    """Microseconds of all processors an evaluation."""
    return float(1e6 * sum(clock.processor for clock in clocks) / sum(clock.boards for clock in clocks))


def shares(stretches: Any) -> tuple[float, float]:
    """Of self-play in the peak, by wall and by processor time."""
    play, alone = zip(*stretches, strict=True)
    return rate(play) / rate(alone), cost(alone) / cost(play)


def self_play(predict: Any, settings: SelfPlaySettings, games: int, lanes: int, batch: int) -> dict[str, Any]:
    """What a run of whole games takes. Raises SystemExit where too few games leave nothing to compare."""
    current, mask = starts(games, (1, 8))
    positions = tuple(bits[:batch] for bits in starts(batch, (0, 20)))
    watched = Watched(predict, positions, min(lanes, games))
    began = time.perf_counter()
    record = puct.play(current, mask, settings, watched, lanes=lanes)
    wall = time.perf_counter() - began - watched.aside
    parts = np.array_split(np.arange(len(watched.stretches)), 10)
    if not len(parts[-1]):
        raise SystemExit(f"all lanes were at work for less than {10 * STRETCH:.0f} s: give more --games")
    by_part = [shares([watched.stretches[place] for place in part]) for part in parts]
    play, alone = zip(*watched.stretches, strict=True)
    share, share_cpu = shares(watched.stretches)
    return {
        "peak_per_s": rate(alone),
        "batch": batch,
        "evaluations_per_s": rate(play),
        "share": share,
        "share_low": min(each for each, _ in by_part),
        "share_high": max(each for each, _ in by_part),
        "share_cpu": share_cpu,
        "evaluations_per_simulation": float(watched.boards / record.simulations.sum()),
        "plies_per_game": float(record.length.mean()),
        "games_per_hour": games / wall * 3600,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="a network, by name, folder or .keras file; none: a fresh `pillar`")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--games", type=int, default=512)
    parser.add_argument("--lanes", type=int, default=512)
    parser.add_argument("--simulations", type=int, nargs="+", default=(100, 600))
    parser.add_argument("--root", choices=("puct", "gumbel"), default="puct")
    parser.add_argument("--seconds", type=float, default=8, help="given to finding the best batch size")
    arguments = parser.parse_args()

    networks.start_backend()
    from distill.networks import finding, saved
    from distill.networks.evaluator import Evaluator

    core = saved.load_core(finding.network_file(arguments.model)) if arguments.model else networks.build("pillar", True)
    predict = Evaluator(core, precision=arguments.precision)
    puct.play(*starts(16, (1, 8)), SelfPlaySettings(simulations=2, root=arguments.root), predict, lanes=8)  # compiles
    print(
        f"{networks.arch_of(core)}, {core.count_params():,} parameters, {arguments.precision}, {arguments.lanes} lanes"
    )
    batch = best_batch(predict, starts(max(BATCHES), (0, 20)), arguments.seconds)
    figures: dict[str, float] = {}
    print(
        f"{'simulations':>11}{'peak/s':>9}{'batch':>6}{'self-play/s':>12}{'share':>7}"
        f"{'range':>12}{'by CPU':>8}{'games/h':>9}"
    )
    for simulations in arguments.simulations:
        settings = SelfPlaySettings(simulations=simulations, root=arguments.root)
        found = self_play(predict, settings, arguments.games, arguments.lanes, batch)
        span = f"{found['share_low']:.0%}–{found['share_high']:.0%}"
        print(
            f"{simulations:>11}{found['peak_per_s']:>9,.0f}{batch:>6}{found['evaluations_per_s']:>12,.0f}"
            f"{found['share']:>7.0%}{span:>12}{found['share_cpu']:>8.0%}{found['games_per_hour']:>9,.0f}"
        )
        figures |= {f"{name}_{simulations}": value for name, value in found.items()}
    print(f"for comparison, {PUBLISHED}")
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
