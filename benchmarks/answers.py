"""How fast a network answers a search, against its own layers as TensorFlow computes them.

    python benchmarks/answers.py                                   # every arch
    python benchmarks/answers.py --archs pillar --boards 16 --bfloat16
    python benchmarks/answers.py --games 16                        # what it gains to keep answers

`layers` are the network as it is saved, in float32, in a graph of exactly so many boards; `evaluator` is
`networks/evaluator.py`, which a search asks. In every round the contestants answer the same boards for `--seconds`, one
after the other; medians over the rounds are compared. `start` is the time of an evaluator's first answer.

`--games` lets a network play so many games against itself, with searches of 200 simulations: once with evaluators that
keep their answers, once with such as calculate each anew.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distill import networks
from distill.games import runs
from distill.games.selfplay import SelfPlaySettings
from distill.mcts import puct


def positions(number: int) -> tuple[Any, Any]:
    """(current, mask), uint64 (number,) each, after up to 20 random stones."""
    found = [runs.opening(SelfPlaySettings(opening_moves=(0, 20)), game) for game in range(number)]
    return tuple(np.array([getattr(each, name) for each in found], np.uint64) for name in ("current", "mask"))


def boards_a_second(ask: Callable[..., object], asked: Sequence[Any], number: int, seconds: float) -> float:
    """How many boards `ask(*asked)`, which answers so many, does in about so many seconds."""
    began, calls = time.perf_counter(), 0
    while (took := time.perf_counter() - began) < seconds:
        ask(*asked)
        calls += 1
    return number * calls / took


def time_games(name: str, games: int, rounds: int) -> None:
    """Print the seconds of games with kept answers and with new ones, and the ratio, paired by round."""
    from distill.players import match, names, network

    settings = puct.quiet(puct.PuctSettings(simulations=200))
    pairings = match.paired(0, 1, match.openings(games // 2, 4, 3))
    found: list[tuple[float, float]] = []
    for _ in range(rounds):
        times = []
        for kept in (True, False):
            asked = [names.make(f"{name}@puct:200").predict for _ in range(2)]
            for each in asked:
                each(np.zeros(1, np.uint64), np.zeros(1, np.uint64))  # compiles
            both = [
                network.GuidedPlayer(name=name, predict=each if kept else each.evaluate, settings=settings)
                for each in asked
            ]
            began = time.perf_counter()
            match.play_games(both, pairings, 1)
            times.append(time.perf_counter() - began)
        found.append((times[0], times[1]))
        print(f"{games} games: answers kept {times[0]:.1f} s, each anew {times[1]:.1f} s")
    print(json.dumps({"kept_answers_gain": round(statistics.median(anew / kept for kept, anew in found), 3)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--archs", nargs="+", choices=networks.ARCHS, default=networks.ARCHS)
    parser.add_argument("--boards", nargs="+", type=int, default=[16, 64])
    parser.add_argument("--bfloat16", action="store_true", help="evaluators in bfloat16 too")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--games", type=int, help="time so many games in place of answers, an even number")
    parser.add_argument("--model", default="pillar", help="the network that plays them [%(default)s]")
    arguments = parser.parse_args()

    networks.start_backend()
    if arguments.games:
        return time_games(arguments.model, arguments.games, arguments.rounds)
    import tensorflow as tf

    from distill.game import encoding
    from distill.networks import heads
    from distill.networks.evaluator import Evaluator

    precisions: list[networks.Precision] = ["float32", "bfloat16"] if arguments.bfloat16 else ["float32"]
    figures: dict[str, float] = {}
    print(f"{'arch':12} {'boards':>6} {'precision':>9} {'start':>7} {'layers':>9} {'evaluator':>9} {'ratio':>6}")
    for arch in arguments.archs:
        core = networks.build(arch, True)
        layers = tf.function(heads.played(core))
        evaluators = {precision: Evaluator(core, precision=precision) for precision in precisions}
        for number in arguments.boards:
            asked = positions(number)
            board = tf.constant(encoding.boards(*asked))
            layers(board)
            for precision, evaluator in evaluators.items():
                began = time.perf_counter()
                evaluator.evaluate(*asked)
                start = time.perf_counter() - began
                speeds = [
                    (
                        boards_a_second(layers, [board], number, arguments.seconds),
                        boards_a_second(evaluator.evaluate, asked, number, arguments.seconds),
                    )
                    for _ in range(arguments.rounds)
                ]
                own, quick = (statistics.median(each) for each in zip(*speeds, strict=True))
                ratio = statistics.median(quick / own for own, quick in speeds)
                figures[f"{arch}_{number}_{precision}_ratio"] = round(ratio, 3)
                print(f"{arch:12} {number:6} {precision:>9} {start:5.1f} s {own:9,.0f} {quick:9,.0f} {ratio:6.2f}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
