"""How often the teacher gives a label again, the most that a student can agree with it, and how much players do.

In: rows of a folder of games. Out: shares of rows with 95 % intervals, all together and by stones on the board. A row
is a position as it was met, so a board that was met often counts often.

A row is put to the teacher N = 9 times more, every time with draws of its own, which gives the fresh labels l_1 … l_N,
each the majority of the K searches that the run's settings ask for. Then, of a row,

    pairs     2 / (N(N − 1)) · Σ_{i<j} [l_i = l_j]                    two labels are equal
    ceiling   1/N · Σ_i [commonest of the labels without l_i = l_i]   the commonest of eight is the ninth
    stored    1/N · Σ_i [l_i = the label in the folder]               as pairs, with the label that is there

A student that always says the commonest label agrees with a label more often than another label does: that is the
ceiling, and pairs is none. Eight labels do not always show which is commonest, so the ceiling is a little too low.
The commonest is the one of most labels, then of most visits in the searches behind these eight labels, then nearest the
centre, then the lower column. On a board that is its own mirror a column and its mirror are one answer.

Dimensions: R rows, N labels a row, A = 7 columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from distill.common import DataError, Progress, say
from distill.common.progress import Advance, silent
from distill.game.rules import CENTRE, COLUMNS, is_own_mirror
from distill.games.games import RawRows
from distill.games.majority import majority
from distill.games.schema import PACKED, RELABELLED, read_manifest
from distill.mcts import compiling
from distill.players.intervals import Estimate, share
from distill.players.network import NetworkPlayer
from distill.players.player import Boards, seeds_for
from distill.players.search import SearchPlayer
from distill.training.top1 import FIRST_ROWS, agrees, chosen_columns, is_early

if TYPE_CHECKING:
    from distill.mcts.uct import UctSettings

LABELS = 9
"""Fresh labels of a row: eight tell the commonest, the ninth is what it is compared with."""

BANDS = ((0, 8), (9, 16), (17, 24), (25, 32), (33, 41))
"""Stones on the board that are counted together."""

ALL = "all"

AT_MOST = (15, 19)
"""Stones up to which a student's agreement is summed, to stand beside figures of shorter games."""

EARLY = f"first {FIRST_ROWS} rows of a game"

_AT_ONCE = 2048
"""Labels asked for between two reports of progress; enough to share among processes."""


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """How often a teacher repeats itself; pairs, ceiling and stored as above, by BANDS and then ALL.

    Attributes:
      labels: fresh labels of every row.
    """

    labels: int
    pairs: dict[str, Estimate]
    ceiling: dict[str, Estimate]
    stored: dict[str, Estimate]


def teacher_of(folder: Path) -> UctSettings | None:
    """The settings of the search that labelled a run; None where it cannot be asked again.

    That is where a network's own search labelled, which needs the network, where labels were changed afterwards, and
    for packed boards, which are of many runs. Raises DataError for a manifest that names no settings.
    """
    from distill.mcts.uct import UctSettings

    manifest = read_manifest(folder)
    identity = manifest.get("identity", {})
    if manifest.get("kind") == PACKED or "network" in identity or RELABELLED in identity:
        return None
    if "simulations" not in identity:
        raise DataError(f"{folder}: its manifest names no simulations, so its teacher cannot be asked again")
    names = [field.name for field in dataclasses.fields(UctSettings)]
    return UctSettings(**{name: identity[name] for name in names if name in identity})


def ask_again(rows: RawRows, settings: UctSettings, seed: int, workers: int = 1) -> Repeats:
    """Ask a teacher with these settings for LABELS fresh labels a row, and show how far it is."""
    say(f"querying the teacher, {LABELS} times for each of {len(rows):,} rows")
    compiling.prepare("uct")
    with Progress(len(rows) * LABELS, "labels") as progress:
        labels, visits = fresh_labels(rows.current, rows.mask, settings, seed, workers, progress.advance)
    labels, visits = one_answer(rows.current, rows.mask, labels), _one_count(rows.current, rows.mask, visits)
    stored = one_answer(rows.current, rows.mask, rows.label.astype(np.int64))
    return Repeats(
        labels=LABELS,
        pairs=by_band(pairs(labels), rows.ply, LABELS),
        ceiling=by_band(ceiling(labels, visits), rows.ply, LABELS),
        stored=by_band((labels == stored[:, None]).mean(1), rows.ply, LABELS),
    )


def fresh_labels(
    current: Boards, mask: Boards, settings: UctSettings, seed: int, workers: int = 1, advance: Advance = silent
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Labels int64 (R, N) and the visits behind each (R, N, A); label k of row r depends on (seed, k, r) alone."""
    rows = np.repeat(np.arange(len(mask)), LABELS)
    seeds = seeds_for(seed, np.tile(np.arange(1, LABELS + 1), len(mask)), rows)
    teacher = SearchPlayer(name="teacher", settings=settings, workers=workers)
    found = []
    for start in range(0, len(rows), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        found += teacher.search(current[rows[part]], mask[rows[part]], seeds[part])
        advance(len(rows[part]))
    labels = np.array([result.label for result in found], np.int64).reshape(-1, LABELS)
    visits = np.array([result.visits for result in found], np.int64).reshape(-1, LABELS, COLUMNS)
    return labels, visits


def pairs(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64 (R,), the share of equal ones among the pairs of a row's labels (R, N)."""
    counts = _counts(labels)
    number = labels.shape[1]
    equal: NDArray[np.float64] = (counts * (counts - 1)).sum(1) / (number * (number - 1))
    return equal


def ceiling(labels: NDArray[np.int64], visits: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64 (R,), how often the commonest of a row's labels but one is that one, over which one is left out.

    `labels` is (R, N); `visits`, (R, N, A), of the searches behind each label, decide between equally common ones.
    """
    counts, total = _counts(labels), visits.sum(1)
    columns = np.arange(COLUMNS)
    hits = [
        majority(counts - (label[:, None] == columns), total - its_visits) == label
        for label, its_visits in zip(labels.T, np.moveaxis(visits, 1, 0), strict=True)
    ]
    return np.mean(hits, axis=0)


def students(players: Sequence[NetworkPlayer], rows: RawRows) -> dict[str, dict[str, Estimate]]:
    """Of each network, in one pass, the shares of rows whose label it plays: `by_band`, AT_MOST, EARLY rows."""
    number = "1 network" if len(players) == 1 else f"{len(players)} networks"
    say(f"evaluating {number} on {len(rows):,} rows")
    beside = {f"at most {stones}": rows.ply <= stones for stones in AT_MOST} | {EARLY: is_early(rows)}
    found = {}
    for player in players:
        same = agrees(rows, chosen_columns(player.predict, rows))
        found[player.name] = by_band(same, rows.ply, 1)
        found[player.name] |= {name: share(same[where], 1) for name, where in beside.items()}
    return found


def by_band(values: NDArray[np.float64] | NDArray[np.bool_], ply: NDArray[np.int8], trials: int) -> dict[str, Estimate]:
    """The mean of the rows' values, each of `trials` trials, by BANDS and then ALL."""
    chosen = {f"{low}–{high}": (low <= ply) & (ply <= high) for low, high in BANDS} | {ALL: np.ones(len(ply), np.bool_)}
    return {name: share(values[where], trials) for name, where in chosen.items()}


def one_answer(current: Boards, mask: Boards, columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Columns (R,) or (R, N), on boards that are their own mirror the lower of a column and its mirror."""
    own = is_own_mirror(current, mask).reshape(-1, *[1] * (columns.ndim - 1))
    return np.where(own, np.minimum(columns, COLUMNS - 1 - columns), columns)


def _one_count(current: Boards, mask: Boards, visits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Visits (R, N, A), on boards that are their own mirror those of a column and its mirror as the lower's."""
    folded = visits + visits[..., ::-1]
    folded[..., CENTRE] = visits[..., CENTRE]
    folded[..., CENTRE + 1 :] = 0
    return np.where(is_own_mirror(current, mask)[:, None, None], folded, visits)


def _counts(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64 (R, A), how many of a row's labels (R, N) are each column."""
    counts: NDArray[np.int64] = (labels[..., None] == np.arange(COLUMNS)).sum(1)
    return counts
