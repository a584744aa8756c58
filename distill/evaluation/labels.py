"""How good labels are: by exact scores, and by how often the teacher and networks give them.

In: rows of games. Out: shares of rows with 95 % intervals. A row is a position as it was met, so a board that was met
often counts often.

**Quality**, by the solver: shares of labels that are optimal, keep the outcome, or keep it where it is critical
(`grading.py`).

**Noise ceiling** of top-1 accuracy: the teacher labels every row again N = 9 times, each time with draws of its own,
which gives the fresh labels l_1 … l_N, each the majority of the K searches that the run's settings ask for. Then, for a
row,

    ceiling = 1/N · Σ_i [most frequent of the labels without l_i = l_i]    the most frequent of eight is the ninth

No model can predict more labels than one that always predicts the most frequent. Eight labels do not always show which
is the most frequent, so the figure is slightly too low. Ties are broken by most visits in the searches behind the eight
labels, then nearest the centre, then the lower column. On a board that is its own mirror a column and its mirror are
one label.

**Top-1 accuracy**: how often a network's move is the label; more comparisons in `training/accuracy.py`.

Dimensions: R rows, N labels a row, A = 7 columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import Progress, executors, say
from distill.common.progress import Advance, silent
from distill.common.settings import as_json
from distill.datasets.grades import grade_moves, is_critical
from distill.game.rules import COLUMNS, Bitboards, is_own_mirror
from distill.games.reader import RawRows
from distill.mcts import compiling
from distill.mcts.labeller import majority
from distill.mcts.settings import UctSettings
from distill.players.intervals import Estimate, share
from distill.players.network import NetworkPlayer, SearchPlayer
from distill.players.player import seeds_for
from distill.players.solver import score_boards
from distill.training.accuracy import answers, compare, fold_columns, fold_shares, is_early

LABELS = 9
"""Fresh labels of a row: eight show the most frequent one, and the ninth is compared with it."""

BANDS = ((0, 8), (9, 16), (17, 24), (25, 32), (33, 41))
"""Numbers of stones that are counted together."""

CHUNK = 2048
"""Labels between two reports of progress; enough to share between processes."""


def sample(rows: RawRows, count: int, seed: int) -> RawRows:
    """`count` random rows; fewer are the first of more."""
    return rows[np.random.default_rng(seed).permutation(len(rows))[:count]]


def quality(rows: RawRows, workers: int = 1) -> dict[str, Estimate]:
    """Grade the labels with a progress bar; the metrics of `grading.METRICS`.

    Raises UserError where the solver is not installed.
    """
    say(f"grading {len(rows):,} labels with the solver")
    with Progress(len(rows), "boards") as progress:
        scores = score_boards(rows.current, rows.mask, workers, progress.advance)
    optimal, outcome = grade_moves(scores, rows.label.astype(np.int64))
    critical = is_critical(scores)
    grades = {"optimal": share(optimal, 1, rows.game), "outcome": share(outcome, 1, rows.game)}
    return grades | {"critical": share(outcome[critical], 1, rows.game[critical])}


# The noise ceiling ----------------------------------------------------------------------------------------------------


def teacher_of(identity: Mapping[str, Any]) -> UctSettings | None:
    """The settings of the search that labelled a run of this identity; None where it cannot label again.

    That is the case for labels of a network's search, which needs the network, for those of a user's own engine, for
    packed boards, which come from many runs, and for labels of another version of the search.
    """
    from distill.mcts import uct  # which loads Numba

    try:
        settings = UctSettings(**{name: identity[name] for name in UctSettings.model_fields if name in identity})
    except ValueError:  # another version's
        return None
    ours = {"search_version": uct.SEARCH_VERSION, **as_json(settings)}
    return settings if ours.items() <= identity.items() else None


def noise_ceiling(rows: RawRows, settings: UctSettings, seed: int, workers: int = 1) -> Estimate:
    """The ceiling over rows: let a teacher with these settings label every row LABELS times, with a progress bar."""
    say(f"labelling {len(rows):,} rows again, {LABELS} times each")
    compiling.prepare("uct")
    with Progress(len(rows) * LABELS, "labels") as progress:
        labels, visits = fresh_labels(rows.current, rows.mask, settings, seed, workers, progress.advance)
    own_mirror = is_own_mirror(rows.current, rows.mask)
    return share(ceiling(fold_columns(labels, own_mirror), fold_shares(visits, own_mirror)), LABELS, rows.game)


def fresh_labels(
    current: Bitboards, mask: Bitboards, settings: UctSettings, seed: int, workers: int = 1, advance: Advance = silent
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Labels int64 (R, N) and the visits behind each (R, N, A); label k of row r depends on (seed, k, r) alone."""
    # Each row LABELS times, each time with a seed of its own.
    rows = np.repeat(np.arange(len(mask)), LABELS)
    seeds = seeds_for(seed, np.tile(np.arange(1, LABELS + 1), len(mask)), rows)
    teacher = SearchPlayer(name="teacher", settings=settings, workers=executors.shared(workers))
    labels, visits = np.empty(len(rows), np.int64), np.empty((len(rows), COLUMNS), np.int64)
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        labels[part], visits[part], _ = teacher.search(current[rows[part]], mask[rows[part]], seeds[part])
        advance(len(rows[part]))
    return labels.reshape(-1, LABELS), visits.reshape(-1, LABELS, COLUMNS)


def ceiling(labels: NDArray[np.int64], visits: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64 (R,), the share of a row's labels (R, N) that equal the most frequent of its others.

    `visits`, (R, N, A), of the searches behind each label, decide ties.
    """
    # Leave each label out in turn, with its visits, and compare it with the most frequent of the others.
    columns, total = np.arange(COLUMNS), visits.sum(1)
    counts = (labels[..., None] == columns).sum(1)
    hits = [
        majority(counts - (label[:, None] == columns), total - its_visits) == label
        for label, its_visits in zip(labels.T, np.moveaxis(visits, 1, 0), strict=True)
    ]
    return np.mean(hits, axis=0)


# Networks against labels ----------------------------------------------------------------------------------------------


def against(players: Sequence[NetworkPlayer], rows: RawRows) -> dict[str, dict[str, Any]]:
    """By the network's name: `top1`, `first_rows` (top-1 accuracy on a game's first rows), and `accuracy.compare`."""
    say(f"evaluating {len(players)} network{'s' if len(players) > 1 else ''} on {len(rows):,} rows")
    compared = {}
    for player in players:
        answered = answers(player.predict, rows)
        same = answered.label == answered.move
        early = is_early(rows)
        shares = {"top1": share(same, 1, rows.game), "first_rows": share(same[early], 1, rows.game[early])}
        compared[player.name] = {**shares, **compare(answered, rows)}
    return compared
