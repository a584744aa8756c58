"""How right every move is: grades of moves by exact scores, and what a player's answers add up to.

Terms, for a board with scores s[0..6] (from the side to move), its legal columns L and the column m played:

    optimal     s[m] = max over L of s                        keeps the best score: wins soonest, loses latest
    outcome     sign s[m] = sign of that maximum              keeps win, draw or loss
    critical    outcome, over boards on which legal columns differ in it; on the others it cannot be lost
    blunder     not outcome

Every board is graded as stored and mirrored. The board is the unit of the statistics: its grade is the mean of the
two. In sets whose name holds a diagonal the mirrored half counts for the mirrored set (`strata.MIRROR_SET`).

Dimensions: B boards, A = 7 columns. Everything is computed from the stored scores; no solver is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common.progress import Advance, silent
from distill.datasets.benchmark import FULL_COLUMN, GradedBoards
from distill.evaluation.strata import MIRROR_SET, best_scores, is_critical, keeps_class
from distill.game.rules import COLUMNS, is_own_mirror, mirror_bits
from distill.players.intervals import Estimate, difference, share
from distill.players.player import Choices, Player, checked_choices, seeds_for

METRICS = ("optimal", "outcome", "critical")

HEADLINES = ("midgame", "heldout")
"""Boards of 10 to 16 stones, of mixed play and of games in which no player of this project took part."""

GENERAL = (
    *HEADLINES, "heldout-all", "begin-easy", "begin-medium", "begin-hard", "middle-easy", "middle-medium", "end-easy"
)  # fmt: skip
"""Sets drawn from play by stage and length alone; the others are picked for what stands on them."""

BINS = 10
"""Bins of equal width for calibration."""

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Graded:
    """A player's answers to both orientations of B boards, turned back to the stored orientation.

    Attributes:
      moves: int64 (2, B), columns played; row 1 is the answer to the mirrored board, mirrored.
      policy: float64 (2, B, 7), likewise; None where the player has none.
      value: float64 (2, B); None where the player has none.
      optimal, keeps: bool (2, B), whether the move keeps the best score, and the class.
    """

    name: str
    moves: NDArray[np.int64]
    policy: NDArray[np.float64] | None
    value: NDArray[np.float64] | None
    optimal: NDArray[np.bool_]
    keeps: NDArray[np.bool_]


_STEP = 2048
"""Boards between two words of progress."""


def grade(player: Player, boards: GradedBoards, seed: int, advance: Advance = silent) -> Graded:
    """Ask a player about every board and its mirror; `advance` is told the number of answers."""
    turned = [(boards.current, boards.mask), (mirror_bits(boards.current), mirror_bits(boards.mask))]
    answers = [_ask(player, *bits, seeds_for(seed, side, np.arange(len(boards))), advance) for side, bits in
               enumerate(turned)]  # fmt: skip
    moves = np.stack([answers[0].moves, 6 - answers[1].moves])
    policy = value = None
    if answers[0].policy is not None and answers[1].policy is not None:
        policy = np.stack([answers[0].policy, answers[1].policy[:, ::-1]])
    if answers[0].value is not None and answers[1].value is not None:
        value = np.stack([answers[0].value, answers[1].value])
    optimal, keeps = grade_moves(boards.scores, moves)
    return Graded(name=player.name, moves=moves, policy=policy, value=value, optimal=optimal, keeps=keeps)


def _ask(player: Player, current: Array, mask: Array, seeds: Array, advance: Advance) -> Choices:
    parts = []
    for start in range(0, len(mask), _STEP):
        rows = slice(start, start + _STEP)
        parts.append(checked_choices(player, current[rows], mask[rows], seeds[rows]))
        advance(len(parts[-1].moves))

    def joined(name: str) -> Array | None:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    return Choices(moves=np.concatenate([part.moves for part in parts]), policy=joined("policy"), value=joined("value"))


def grade_moves(scores: NDArray[np.int8], moves: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether moves (..., B) keep the best score and the class, bool (..., B) each; int8 (B, 7) scores.

    Raises ValueError for a move into a full column.
    """
    rows = np.arange(len(scores))
    played = scores[rows, moves]
    if (played == FULL_COLUMN).any():
        raise ValueError("a move falls into a full column")
    return played == best_scores(scores), keeps_class(scores)[rows, moves]


def uniform_grades(scores: NDArray[np.int8]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The exact expectation of both grades for a uniformly random legal move, float64 (B,) each: the shares of the
    legal columns that keep the best score, and the class."""
    legal = (scores != FULL_COLUMN).sum(1)
    optimal = (scores == best_scores(scores)[:, None]).sum(1) / legal
    return optimal, keeps_class(scores).sum(1) / legal


# Accuracy by set and by ply -------------------------------------------------------------------------------------------


def units(boards: GradedBoards, grades: NDArray[Any], name: str) -> NDArray[np.float64]:
    """float64 (U,), the grade of each board of a set: the mean over its orientations that belong to the set.

    `grades` are (2, B), as stored and mirrored. Boards of a diagonal set give one orientation to their own set and
    the other to the mirrored one.
    """
    stored = boards.set == name
    if name in MIRROR_SET:
        return np.concatenate([grades[0, stored], grades[1, boards.set == MIRROR_SET[name]]]).astype(np.float64)
    return grades[:, stored].mean(0)


def _critical(boards: GradedBoards, name: str) -> NDArray[np.bool_]:
    both = np.broadcast_to(is_critical(boards.scores), (2, len(boards)))
    return units(boards, both, name) > 0


def set_units(boards: GradedBoards, optimal: Array, keeps: Array, name: str) -> dict[str, NDArray[np.float64]]:
    """The values of each metric, one a board of the set (of its decisive boards for `decisive`)."""
    classes = units(boards, keeps, name)
    return {"optimal": units(boards, optimal, name), "outcome": classes, "critical": classes[_critical(boards, name)]}


def by_set(boards: GradedBoards, graded: Graded) -> dict[str, dict[str, Estimate]]:
    """For every set, each of METRICS with its 95 % interval."""
    return {
        name: {
            metric: share(values, trials=1 if name in MIRROR_SET else 2)
            for metric, values in set_units(boards, graded.optimal, graded.keeps, name).items()
        }
        for name in boards.sets
    }


def uniform_by_set(boards: GradedBoards) -> dict[str, dict[str, float]]:
    """What a uniformly random player scores on average, exactly."""
    optimal, keeps = (np.stack([grades, grades]) for grades in uniform_grades(boards.scores))
    return {
        name: {
            metric: float(values.mean()) if len(values) else float("nan")
            for metric, values in set_units(boards, optimal, keeps, name).items()
        }
        for name in boards.sets
    }


def compare(boards: GradedBoards, one: Graded, other: Graded) -> dict[str, dict[str, Estimate]]:
    """For every set, how much better `one` is than `other` on the same boards, paired."""
    result = {}
    for name in boards.sets:
        ours = set_units(boards, one.optimal, one.keeps, name)
        theirs = set_units(boards, other.optimal, other.keeps, name)
        result[name] = {metric: difference(ours[metric], theirs[metric]) for metric in METRICS}
    return result


def by_ply(boards: GradedBoards, graded: Graded) -> dict[int, dict[str, Any]]:
    """For every ply of the GENERAL sets: boards, optimal, outcome, critical, and the blunder rate 1 − outcome."""
    general = np.isin(boards.set, GENERAL)
    optimal, keeps, critical = graded.optimal.mean(0), graded.keeps.mean(0), is_critical(boards.scores)
    rows: dict[int, dict[str, Any]] = {}
    for ply in np.unique(boards.ply[general]).tolist():
        here = general & (boards.ply == ply)
        rows[ply] = {
            "boards": int(here.sum()),
            "optimal": share(optimal[here]),
            "outcome": share(keeps[here]),
            "critical": share(keeps[here & critical]),
            "blunder_rate": share(1 - keeps[here]),
        }
    return rows


def confusion(boards: GradedBoards, graded: Graded) -> NDArray[np.int64]:
    """int64 (7, 7), moves by best column (row) and column played, on GENERAL boards with one best column."""
    from sklearn.metrics import confusion_matrix

    best = boards.scores == best_scores(boards.scores)[:, None]
    rows = np.flatnonzero(np.isin(boards.set, GENERAL) & (best.sum(1) == 1))
    if not len(rows):
        return np.zeros((COLUMNS, COLUMNS), np.int64)
    right = best[rows].argmax(1)
    # Mirrored boards count in the orientation they were shown in.
    shown = np.concatenate([right, COLUMNS - 1 - right])
    played = np.concatenate([graded.moves[0, rows], COLUMNS - 1 - graded.moves[1, rows]])
    table: NDArray[np.int64] = confusion_matrix(shown, played, labels=range(COLUMNS))
    return table


def worst(boards: GradedBoards, graded: Graded, count: int = 6) -> list[int]:
    """Indices of the boards of the GENERAL sets on which the stored orientation's move costs most.

    Most classes lost first (win to loss is two), then most points of score, then fewest stones.
    """
    rows = np.flatnonzero(np.isin(boards.set, GENERAL))
    played = boards.scores[rows, graded.moves[0, rows]].astype(np.int64)
    best = best_scores(boards.scores)[rows]
    order = np.lexsort((boards.ply[rows], played - best, np.sign(played) - np.sign(best)))
    costly = rows[order][(played < best)[order]]
    return [int(row) for row in costly[:count]]


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A board of a set on which the move `played` has `score`, and the `best` ones have `best_score`."""

    set: str
    current: int
    mask: int
    played: int
    score: int
    best: list[int]
    best_score: int


def mistakes(boards: GradedBoards, graded: Graded, count: int = 3) -> list[Mistake]:
    """The `worst` ones."""
    found = []
    for row in worst(boards, graded, count):
        scores, played = boards.scores[row], int(graded.moves[0, row])
        found.append(
            Mistake(
                set=str(boards.set[row]),
                current=int(boards.current[row]),
                mask=int(boards.mask[row]),
                played=played,
                score=int(scores[played]),
                best=np.flatnonzero(scores == scores.max()).tolist(),
                best_score=int(scores.max()),
            )
        )
    return found


# What the answers themselves show -------------------------------------------------------------------------------------


def mirror_consistency(boards: GradedBoards, graded: Graded) -> dict[str, float]:
    """Answers to a board and its mirror, over boards that are not their own mirror.

    `mirrored_moves`: share of boards on which the two moves are each other's mirror. `largest_policy_difference`: the
    largest |p − p mirrored| of any column of any board; `mean_policy_difference`: the mean over boards of half the
    sum of |p − p mirrored|, the total variation. Where every board is its own mirror there is none of them.
    """
    both = ~is_own_mirror(boards.current, boards.mask)
    report = {"boards": float(both.sum())}
    if not both.any():
        return report
    report["mirrored_moves"] = float((graded.moves[0] == graded.moves[1])[both].mean())
    if graded.policy is not None:
        gaps = np.abs(graded.policy[0] - graded.policy[1])[both]
        report["largest_policy_difference"] = float(gaps.max())
        report["mean_policy_difference"] = float(gaps.sum(1).mean() / 2)
    return report


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Predictions against what happened, in BINS bins of equal width; empty bins are left out.

    Attributes:
      predicted, observed: float64 (K,), means of each bin.
      count: int64 (K,), answers in each bin.
      error: Σ count · |predicted − observed| / Σ count, the expected calibration error.
    """

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    count: NDArray[np.int64]
    error: float


def calibration(predicted: Array, observed: Array, low: float, high: float) -> Calibration | None:
    """Predictions (N,) in [low, high] against observations (N,) on the same scale; None where there are none."""
    if not len(predicted):
        return None
    place = np.clip(((predicted - low) / (high - low) * BINS).astype(np.int64), 0, BINS - 1)
    count = np.bincount(place, minlength=BINS)
    kept = count > 0
    means = [np.bincount(place, values, BINS)[kept] / count[kept] for values in (predicted, observed)]
    error = float((count[kept] * np.abs(means[0] - means[1])).sum() / count.sum())
    return Calibration(predicted=means[0], observed=means[1], count=count[kept], error=error)


def policy_calibration(boards: GradedBoards, graded: Graded) -> Calibration | None:
    """The probability of the move played against how often it is optimal, on the GENERAL sets."""
    if graded.policy is None:
        return None
    rows = np.flatnonzero(np.isin(boards.set, GENERAL))
    sides = np.arange(2)[:, None]
    return calibration(
        graded.policy[sides, rows, graded.moves[:, rows]].ravel(), graded.optimal[:, rows].ravel().astype(float), 0, 1
    )


def value_calibration(boards: GradedBoards, graded: Graded) -> Calibration | None:
    """The value against the outcome under perfect play (1, 0, −1), on the GENERAL sets."""
    if graded.value is None:
        return None
    rows = np.flatnonzero(np.isin(boards.set, GENERAL))
    outcome = np.broadcast_to(np.sign(best_scores(boards.scores))[rows], (2, len(rows)))
    return calibration(graded.value[:, rows].ravel(), outcome.ravel().astype(float), -1, 1)


def sample(boards: GradedBoards, count: int, seed: int, sets: Sequence[str] | None = None) -> GradedBoards:
    """At most `count` boards of every set, drawn evenly and kept in order; the same for every player."""
    rng = np.random.default_rng(seed)
    rows = []
    for name in sets or boards.sets:
        members = np.flatnonzero(boards.set == name)
        rows.append(np.sort(rng.permutation(members)[:count]))
    return boards[np.concatenate(rows)]
