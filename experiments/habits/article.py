"""What the article about the UT Project says of how its two networks play, and whether it holds for a player."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from distill.evaluation.report import percent
from distill.game.rules import COLUMNS
from distill.players.intervals import Estimate
from experiments.habits.measure import BANDS, PLACES, Habits, Rate


def signed(estimate: Estimate) -> str:
    """A difference in points, with its interval."""
    return f"{100 * estimate.mean:+.1f} ({100 * estimate.low:+.1f} to {100 * estimate.high:+.1f})".replace("-", "−")


def above(estimate: Estimate, bound: float) -> str:
    """Whether an estimate is above a bound: "holds", "does not hold", or "not measurable" where the interval has it."""
    if estimate.low > bound:
        return "holds"
    return "does not hold" if estimate.high < bound else "not measurable"


def below(estimate: Estimate, bound: float) -> str:
    verdict = above(estimate, bound)
    return {"holds": "does not hold", "does not hold": "holds"}.get(verdict, verdict)


def misses_threes(habits: Habits) -> tuple[str, str]:
    done = worst([habits.threes[f"{task} {place}"] for task in ("win", "block") for place in PLACES])
    return below(done.rate, 0.9), percent(done.rate)


def misses_traps(habits: Habits) -> tuple[str, str]:
    done = worst([*habits.traps.values()])
    return below(done.rate, 0.9), percent(done.rate)


def worst(rates: Sequence[Rate]) -> Rate:
    """The lowest rate."""
    return min(rates, key=lambda one: one.rate.mean)


def prefers_the_left(habits: Habits) -> tuple[str, str]:
    return above(habits.left_less_right, 0.01), signed(habits.left_less_right)


def opens_in_column_two(habits: Habits) -> tuple[str, str]:
    moves = [int(np.argmax(habits.openings[first])) + 1 for first in "1234567"]
    return "holds" if moves.count(2) >= 5 else "does not hold", f"{moves.count(2)} of 7: {moves}"


def is_weaker_early(habits: Habits) -> tuple[str, str]:
    (_, early), *_, (_, late) = habits.stones.items()
    shown = f"{percent(early.rate)}, {percent(late.rate)}"
    if early.rate.high < late.rate.low:
        return "holds", shown
    return "does not hold" if early.rate.low > late.rate.high else "not measurable", shown


def opens_evenly(habits: Habits) -> tuple[str, str]:
    policy = np.array(habits.openings[""])
    entropy = -float((policy * np.log(np.maximum(policy, 1e-12))).sum())
    return "holds" if entropy > 0.9 * math.log(COLUMNS) else "does not hold", f"{entropy:.2f} nats"


def against_chance(name: str, compare: Callable[[Estimate, float], str]) -> Callable[[Habits], tuple[str, str]]:
    def judged(habits: Habits) -> tuple[str, str]:
        one = habits.games[name]
        return compare(one.rate, one.chance), f"{percent(one.rate)}, {100 * one.chance:.1f}"

    return judged


Judged: TypeAlias = Callable[[Habits], tuple[str, str]]
STATEMENTS: Mapping[tuple[str, str], tuple[str, Judged]] = {
    ("both", "miss open horizontal threes"): ("under 90 % completed or blocked, where it is worst", misses_threes),
    ("both", "miss traps of two moves"): ("outcome under 90 % on `trap-set` or `trap-avoid`", misses_traps),
    ("CNN", "more alert on the left than on the right"): (
        "the left is above the right by more than 1 point",
        prefers_the_left,
    ),
    ("CNN", "column 2 in 5 of 7 tests"): ("its answer to each first stone", opens_in_column_two),
    ("CNN", "weaker early than late"): (f"{BANDS[0][0]} to {BANDS[0][1]} stones below the last band", is_weaker_early),
    ("Transformer", "opens almost evenly"): ("entropy above 90 % of ln 7, 1.75 nats", opens_evenly),
    ("Transformer", "does not control the centre"): (
        "centre played less often than by chance",
        against_chance("plays the centre", below),
    ),
    ("Transformer", "stacks where stones are"): (
        "the column just played, more often than by chance",
        against_chance("the column just played", above),
    ),
    ("Transformer", "reacts"): (
        "threats answered more often than by chance",
        against_chance("answers a threat", above),
    ),
    ("Transformer", "makes no threats"): (
        "threats made less often than by chance",
        against_chance("makes a threat", below),
    ),
}
"""By whom the article says it of and what it says: when it holds here, and how that is decided."""
