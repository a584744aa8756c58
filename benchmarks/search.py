"""Whole searches on one core: ours, OpenSpiel's C++ MCTSBot and the textbook in plain Python, in turn.

    pip install -e ".[bench]"
    python benchmarks/search.py                       # this processor
    NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx2,+bmi,+bmi2,+popcnt,+lzcnt python benchmarks/search.py   # AVX2

Every round runs all contestants on all positions, so a slow spell of a shared machine hits all
alike; printed are the median over the rounds and the spread. OpenSpiel plays random playouts (it has
no others built in); ours is timed with heuristic playouts, root noise on, and with random ones.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable

from distill.game.rules import from_moves
from distill.mcts import compiling, reference
from distill.mcts.uct import LANES, UctSettings, search

POSITIONS = {  # one game of the teacher against itself
    "empty": "",
    "stones8": "44445323",
    "stones16": "4444532322676656",
    "stones24": "444453232267665655454516",
}
SIMULATIONS = 10_000
TEXTBOOK = UctSettings(simulations=100, votes=1)

Contestant = Callable[[str], tuple[int, float]]
"""Moves of a position in; simulations executed and seconds out."""


def ours(rollout: str, searches: int) -> Contestant:
    settings = UctSettings(simulations=SIMULATIONS, votes=1, rollout=rollout)  # type: ignore[arg-type]

    def run(moves: str) -> tuple[int, float]:
        positions = [from_moves(moves)] * searches
        began = time.perf_counter()
        results = search(positions, settings, seeds=1)
        return sum(result.simulations for result in results), time.perf_counter() - began

    return run


def openspiel(searches: int) -> Contestant:
    try:
        import pyspiel
    except ImportError:
        raise SystemExit('benchmarks/search.py needs OpenSpiel: pip install -e ".[bench]"') from None
    game = pyspiel.load_game("connect_four")

    def run(moves: str) -> tuple[int, float]:
        seconds = 0.0
        for seed in range(searches):
            evaluator = pyspiel.RandomRolloutEvaluator(1, seed)
            bot = pyspiel.MCTSBot(game, evaluator, 1.0, SIMULATIONS, 1000, False, seed, False)
            state = game.new_initial_state()
            for move in moves:
                state.apply_action(int(move) - 1)
            began = time.perf_counter()
            bot.mcts_search(state)
            seconds += time.perf_counter() - began
        return searches * SIMULATIONS, seconds

    return run


def plain_python(moves: str) -> tuple[int, float]:
    position = from_moves(moves)
    began = time.perf_counter()
    reference.uct(position, TEXTBOOK, 1, list(range(7)))
    return TEXTBOOK.simulations, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--searches", type=int, default=4 * LANES, help="of ours in one round, a position")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    contestants: dict[str, Contestant] = {
        "ours": ours("heuristic", arguments.searches),
        "ours, random playouts": ours("random", arguments.searches),
        "OpenSpiel C++": openspiel(2),
        "textbook": plain_python,
    }
    began = time.perf_counter()
    compiling.compile_search("uct")
    print(f"compiled or loaded in {time.perf_counter() - began:.1f} s; {arguments.rounds} rounds on one core\n")
    speed: dict[tuple[str, str], list[float]] = {}
    for _ in range(arguments.rounds):
        for place, moves in POSITIONS.items():
            for name, run in contestants.items():
                simulations, seconds = run(moves)
                speed.setdefault((place, name), []).append(simulations / seconds)

    figures: dict[str, float] = {}
    print(f"{'position':10}{'contestant':24}{'thousand simulations/s (min - max)':>38}{'ours is':>22}")
    for place in POSITIONS:
        for name in contestants:
            values = speed[place, name]
            against = "ours" if name == "textbook" else "ours, random playouts"
            text = ""
            if name in ("OpenSpiel C++", "textbook"):
                pairs = {key: ratios(speed[place, key], values) for key in ("ours", against)}
                text = " / ".join(f"{statistics.median(pair):.1f}x" for pair in pairs.values())
            spread = f"{statistics.median(values) / 1e3:,.1f} ({min(values) / 1e3:,.1f} - {max(values) / 1e3:,.1f})"
            print(f"{place:10}{name:24}{spread:>38}{text:>22}")
        figures[f"{place}_sims_per_s"] = statistics.median(speed[place, "ours"])
        figures[f"{place}_vs_openspiel"] = statistics.median(
            ratios(speed[place, "ours"], speed[place, "OpenSpiel C++"])
        )
        figures[f"{place}_random_vs_openspiel"] = statistics.median(
            ratios(speed[place, "ours, random playouts"], speed[place, "OpenSpiel C++"])
        )
    print("\n(OpenSpiel's row: ours with heuristic playouts / with random ones, paired by round)")
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}))


def ratios(above: list[float], below: list[float]) -> list[float]:
    return [one / other for one, other in zip(above, below, strict=True)]


if __name__ == "__main__":
    main()
