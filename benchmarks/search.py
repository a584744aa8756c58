"""Speed of whole searches on one core: ours, OpenSpiel's C++ MCTSBot, and the textbook in plain Python.

    pip install -e ".[openspiel]"
    python benchmarks/search.py                       # this processor
    python benchmarks/search.py --puct . ../before    # PUCT without a network, of two checkouts
    NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx2,+bmi,+bmi2,+popcnt,+lzcnt python benchmarks/search.py   # AVX2

Every round runs all contestants on all positions, so other load on the machine affects all of them; the table shows the
median over the rounds and the range. OpenSpiel's only built-in rollouts are random; ours is timed with heuristic
rollouts and root noise, and with random rollouts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

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
"""Moves of a position → simulations executed, and seconds."""


def ours(rollout: str, searches: int) -> Contestant:
    """This package's UCT."""
    settings = UctSettings(simulations=SIMULATIONS, votes=1, rollout=rollout)  # type: ignore[arg-type]

    def run(moves: str) -> tuple[int, float]:
        positions = [from_moves(moves)] * searches
        began = time.perf_counter()
        results = search(positions, settings, seeds=1)
        return sum(result.simulations for result in results), time.perf_counter() - began

    return run


def openspiel(searches: int) -> Contestant:
    """OpenSpiel's MCTSBot."""
    try:
        import pyspiel
    except ImportError:
        raise SystemExit('benchmarks/search.py needs OpenSpiel: pip install -e ".[openspiel]"') from None
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
    """The textbook's UCT."""
    position = from_moves(moves)
    began = time.perf_counter()
    reference.uct(position, TEXTBOOK, 1, list(range(7)), [1.0] * 7)
    return TEXTBOOK.simulations, time.perf_counter() - began


GAMES = 256
PUCT_MOVES = 4
"""Searches in each game."""


def predict(current: Any, mask: Any) -> tuple[Any, Any]:
    """Logits and values that are pseudo-random functions of the position."""
    word = (current * np.uint64(3) + mask * np.uint64(5)) * np.uint64(0x9E3779B97F4A7C15)
    columns = np.arange(1, 9, dtype=np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
    drawn = ((word[:, None] ^ (word[:, None] >> np.uint64(29))) * columns >> np.uint64(40)) / np.float32(1 << 24)
    drawn = drawn.astype(np.float32)
    return 3 * drawn[:, :7], 1.6 * drawn[:, 7] - 0.8


def puct_speed(simulations: int, seconds: float) -> float:
    """PUCT simulations a second of processor time, in this process."""
    from distill.games import playing
    from distill.games.settings import SelfPlaySettings
    from distill.mcts import puct

    settings = SelfPlaySettings(search=puct.PuctSettings(simulations=simulations), opening_moves=(0, 20))

    def search(first: int, steps: int) -> int:
        current, mask = playing.starts(settings, range(first, first + GAMES))
        return int(puct.play(current, mask, predict, settings.search, lanes=GAMES, steps=steps).simulations.sum())

    search(0, 1)  # compiles
    made, spent, first = 0, 0.0, GAMES
    while spent < seconds:
        began = time.process_time()
        made += search(first, PUCT_MOVES)
        spent += time.process_time() - began
        first += GAMES
    return made / spent


def puct_speed_of(place: Path, arguments: argparse.Namespace) -> float:
    """The same, measured in a new process with the package of a checkout."""
    command = [sys.executable, __file__, "--puct", "--alone", "--seconds", str(arguments.seconds)]
    command += ["--simulations", str(arguments.simulations)]
    environment = os.environ | {"PYTHONPATH": str(place.resolve())}
    run = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(run.stdout))


def compare_puct(arguments: argparse.Namespace) -> None:
    """PUCT with evaluations that take almost no time; every round measures each checkout once, in a new process."""
    if arguments.alone:
        print(json.dumps(puct_speed(arguments.simulations, arguments.seconds)))
        return
    rounds = [[puct_speed_of(place, arguments) for place in arguments.checkouts] for _ in range(arguments.rounds)]
    for place, speeds in zip(arguments.checkouts, zip(*rounds, strict=True), strict=True):
        print(f"{place}: {statistics.median(speeds):,.0f} simulations a second of processor time")
    for other, place in enumerate(arguments.checkouts[1:], start=1):
        ratios = sorted(speeds[0] / speeds[other] for speeds in rounds)
        print(f"the first / {place}: {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--puct", action="store_true", help="measure PUCT, of these checkouts")
    parser.add_argument("checkouts", type=Path, nargs="*", default=[Path(__file__).parents[1]])
    parser.add_argument("--simulations", type=int, default=200, help="simulations of a PUCT search [%(default)s]")
    parser.add_argument("--seconds", type=float, default=5, help="processor time of one measurement [%(default)s]")
    parser.add_argument("--alone", action="store_true", help="measure PUCT once, in this process")
    parser.add_argument("--searches", type=int, default=4 * LANES, help="our searches of each position in a round")
    arguments = parser.parse_args()
    if arguments.puct:
        compare_puct(arguments)
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    contestants: dict[str, Contestant] = {
        "ours": ours("heuristic", arguments.searches),
        "ours, random rollouts": ours("random", arguments.searches),
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
            against = "ours" if name == "textbook" else "ours, random rollouts"
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
            ratios(speed[place, "ours, random rollouts"], speed[place, "OpenSpiel C++"])
        )
    print("\n(OpenSpiel's row: ours with heuristic rollouts / with random ones, paired by round)")
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}))


def ratios(above: list[float], below: list[float]) -> list[float]:
    """Ratios paired by round."""
    return [one / other for one, other in zip(above, below, strict=True)]


if __name__ == "__main__":
    main()
