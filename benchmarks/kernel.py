"""Profile of one UCT simulation on one core, and the effect of each optimization of the compiled search.

    python benchmarks/kernel.py

Each variant replaces one part of `distill.mcts` and recompiles it. Every round runs all variants, and each is compared
with the unchanged kernel, paired by round:

    rollouts alone     only the rollouts of a search's leaves, without a tree
    scalar choice      the best child found by a loop over the columns, as Numba compiles it
    drop every N       finished rollouts are dropped after every N plies instead of four
    lanes N            another number of trees in lock step
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from distill.game.encoding import bitboards_of
from distill.game.rules import from_moves
from distill.mcts import compiling, uct
from distill.mcts.engine import rollout, uct_simulation
from distill.mcts.engine.best_ucb1 import SLOTS

POSITIONS = {"empty": "", "stones16": "4444532322676656"}
SIMULATIONS = 10_000

Timed = Callable[[str], float]
"""Moves of a position → nanoseconds a simulation."""


def fresh(function: Any) -> Any:
    """The function, recompiled with the current contents of its module."""
    return numba.njit(nogil=True, error_model="numpy")(function.py_func)


@numba.njit(inline="always", error_model="numpy")
def scalar_choice(rows: Any, base: Any, weights: Any, weight_base: Any, order: Any, order_base: Any, bonus: Any) -> Any:
    """The loop that `best_ucb1` replaces."""
    best, best_score = 0, np.float32(-np.inf)
    for slot in range(7):
        n = rows[base + slot]
        if n == 0:
            score = order[order_base + slot]
        else:
            r = np.float32(1.0) / np.sqrt(np.float32(n))
            score = (np.float32(rows[base + SLOTS + slot]) * r + bonus * weights[weight_base + slot]) * r
        if score > best_score:
            best, best_score = slot, score
    return best


def searching(search: Any, lanes: int = uct.LANES) -> Timed:
    """Whole searches, in this number of lanes."""
    trees = uct_simulation.new_trees(lanes, uct.UctSettings(simulations=SIMULATIONS))

    def run(moves: str) -> float:
        arguments = roots(moves, lanes)
        began = time.perf_counter()
        search(trees, *arguments)
        return (time.perf_counter() - began) / (lanes * SIMULATIONS) * 1e9

    return run


def roots(moves: str, lanes: int) -> tuple[Any, ...]:
    """The arguments of searches of one position: its bitboards and the random numbers of each search."""
    current, mask = bitboards_of([from_moves(moves)] * lanes)
    draws = uct.draw([(1, lane) for lane in range(lanes)], 1, uct.UctSettings(votes=1))
    return current, mask, draws.key[:, 0, 0], draws.order[:, 0, 0], draws.gamma[:, 0, 0]


def rolling_out(search: Any, roll_out: Any) -> Timed:
    """Repeats the rollouts of the leaves that a search ends at."""
    lanes, repeats = uct.LANES, 2000
    trees = uct_simulation.new_trees(lanes, uct.UctSettings(simulations=1000))
    scratch = rollout.new_rollouts(lanes)

    @numba.njit(nogil=True)
    def again(own: Any, other: Any, scratch: Any, repeats: int) -> None:
        for repeat in range(repeats):
            for lane in range(len(own)):
                scratch.current[lane], scratch.opponent[lane] = own[lane], other[lane]
                scratch.random[lane] = rollout.rollout_seed(np.uint64(lane), repeat)
            roll_out(scratch, len(own), True)

    def run(moves: str) -> float:
        search(trees, *roots(moves, lanes))
        own, other = trees.leaf_current.copy(), trees.leaf_current ^ trees.leaf_mask
        again(own, other, scratch, 1)
        began = time.perf_counter()
        again(own, other, scratch, repeats)
        return (time.perf_counter() - began) / (lanes * repeats) * 1e9

    return run


def variants() -> dict[str, Timed]:
    """The kernel and its variants by name; each variant is compiled here, while its part is replaced."""
    found = {
        "the kernel": searching(uct_simulation.search),
        "rollouts alone": rolling_out(uct_simulation.search, rollout.roll_out),
    }
    vector_choice = uct_simulation.best_ucb1
    uct_simulation.best_ucb1 = scalar_choice
    found["scalar choice"] = searching(fresh(uct_simulation.search))
    found["scalar choice"](POSITIONS["empty"])  # compiles
    uct_simulation.best_ucb1 = vector_choice
    usual_plies, usual_roll_out = rollout.PLIES_BETWEEN_DROPS, rollout.roll_out
    for plies in (1, 2, 8):
        rollout.PLIES_BETWEEN_DROPS = plies
        uct_simulation.roll_out = fresh(usual_roll_out)
        found[f"drop every {plies}"] = searching(fresh(uct_simulation.search))
        found[f"drop every {plies}"](POSITIONS["empty"])
    rollout.PLIES_BETWEEN_DROPS, uct_simulation.roll_out = usual_plies, usual_roll_out
    return found | {f"lanes {lanes}": searching(uct_simulation.search, lanes) for lanes in (1, 4, 8, 16, 64, 128)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    compiling.compile_search("uct")
    contestants = variants()
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(arguments.rounds):
        for place, moves in POSITIONS.items():
            for name, run in contestants.items():
                times.setdefault((place, name), []).append(run(moves))
    figures: dict[str, float] = {}
    print(f"{'position':10}{'variant':18}{'ns a simulation (min - max)':>30}{'against the kernel':>20}")
    for (place, name), values in times.items():
        ratio = statistics.median(v / k for v, k in zip(values, times[place, "the kernel"], strict=True))
        figures[f"{place}: {name}"] = round(statistics.median(values), 1)
        spread = f"{statistics.median(values):.0f} ({min(values):.0f} - {max(values):.0f})"
        print(f"{place:10}{name:18}{spread:>30}{ratio:>19.2f}x")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
