"""How fast the trees of guided searches grow, where a network's answers cost next to nothing.

    python benchmarks/trees.py                # simulations a second of one core
    python benchmarks/trees.py . ../before    # of two checkouts of the project, in turns

Games are searched from random openings for a few moves; what answers is a formula. A process of each checkout measures
once in every round, so that both meet the same machine; the ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

LANES = 256
MOVES = 4
"""Searched in each game."""


def predict(current: Any, mask: Any) -> tuple[Any, Any]:
    """Logits and value that look random, functions of the position."""
    word = (current * np.uint64(3) + mask * np.uint64(5)) * np.uint64(0x9E3779B97F4A7C15)
    columns = np.arange(1, 9, dtype=np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
    drawn = ((word[:, None] ^ (word[:, None] >> np.uint64(29))) * columns >> np.uint64(40)) / np.float32(1 << 24)
    drawn = drawn.astype(np.float32)
    return 3 * drawn[:, :7], 1.6 * drawn[:, 7] - 0.8


def measured(simulations: int, seconds: float) -> float:
    """Simulations a second of processor time."""
    from distill.games import runs
    from distill.games.selfplay import SelfPlaySettings
    from distill.mcts import puct

    settings = SelfPlaySettings(simulations=simulations, root="puct", opening_moves=(0, 20))

    def search(first: int, steps: int) -> int:
        found = [runs.opening(settings, game) for game in range(first, first + LANES)]
        current, mask = (np.array([getattr(each, name) for each in found], np.uint64) for name in ("current", "mask"))
        return int(puct.play(current, mask, settings, predict, lanes=LANES, steps=steps).simulations.sum())

    search(0, 1)  # compiles
    made, spent, first = 0, 0.0, LANES
    while spent < seconds:
        began = time.process_time()
        made += search(first, MOVES)
        spent += time.process_time() - began
        first += LANES
    return made / spent


def of_checkout(place: Path, arguments: argparse.Namespace) -> float:
    """What a process of its own measures with the package of a checkout."""
    command = [sys.executable, __file__, "--alone", "--seconds", str(arguments.seconds)]
    command += ["--simulations", str(arguments.simulations)]
    environment = os.environ | {"PYTHONPATH": str(place.resolve())}
    run = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(run.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkouts", type=Path, nargs="*", default=[Path(__file__).parents[1]])
    parser.add_argument("--simulations", type=int, default=200, help="of a search [%(default)s]")
    parser.add_argument("--seconds", type=float, default=5, help="of processor time, of each measurement [%(default)s]")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--alone", action="store_true", help="measure once, in this process")
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(measured(arguments.simulations, arguments.seconds)))
        return
    rounds = [[of_checkout(place, arguments) for place in arguments.checkouts] for _ in range(arguments.rounds)]
    for place, speeds in zip(arguments.checkouts, zip(*rounds, strict=True), strict=True):
        print(f"{place}: {statistics.median(speeds):,.0f} simulations a second of processor time")
    for other, place in enumerate(arguments.checkouts[1:], start=1):
        ratios = sorted(speeds[0] / speeds[other] for speeds in rounds)
        print(f"the first / {place}: {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")


if __name__ == "__main__":
    main()
