"""How good the labels of a data folder are: graded exactly, and asked for a second time.

In: a folder of finished games. Out: how many of its labels keep the best score and the class, by ply, and how often
the teacher gives the same label twice, which bounds any agreement with it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distill.data import games
from distill.data.schema import DataError, read_manifest
from distill.game.rules import canonicalise, mirror_bits
from distill.judge.grading import grade_moves
from distill.judge.intervals import Estimate, share
from distill.judge.players import Boards, SearchPlayer, seeds_for
from distill.judge.solver import score_boards
from distill.judge.strata import is_decisive

if TYPE_CHECKING:
    from distill.search.teacher import SearchSettings

BANDS = ((1, 8), (9, 16), (17, 24), (25, 32), (33, 41))
"""Plies counted together where there are too few rows for one ply."""


@dataclass(frozen=True, kw_only=True)
class LabelQuality:
    """What the labels of a folder are worth.

    Attributes:
      rows, of: labels graded, and labels in the folder.
      exact, keeps, decisive: of the labels, as `grading.py` defines them; the row is the unit.
      by_ply: the same for every ply.
      boards, seconds: unlike boards scored, up to mirror, and the wall time it took.
      agreement: share of rows on which two fresh searches with the run's settings give the same label (on a board that
        is its own mirror, a column and its mirror are the same); None where it was not asked for, or cannot be.
      agreement_by_band: the same by BANDS.
      stored_agreement: the same between the stored label and the first fresh one.
    """

    rows: int
    of: int
    exact: Estimate
    keeps: Estimate
    decisive: Estimate
    by_ply: dict[int, dict[str, Any]]
    boards: int
    seconds: float
    agreement: Estimate | None
    agreement_by_band: dict[str, Estimate]
    stored_agreement: Estimate | None


def grade_labels(
    folder: Path,
    rows: int | None,
    agreement_rows: int,
    seed: int,
    workers: int = 1,
    advance: Callable[[int], None] | None = None,
) -> LabelQuality:
    """Grade a random sample of `rows` labels, all for None, and ask again for the first `agreement_rows` of them.

    `advance` is told the boards scored. Raises DataError for a folder that is no finished run, UserError where the
    solver is not installed.
    """
    everything = games.raw_rows([folder], None, 0.0)
    if not len(everything):
        raise DataError(f"{folder}: holds no rows")
    chosen = np.random.default_rng(seed).permutation(len(everything))[:rows]
    current, mask = everything.current[chosen], everything.mask[chosen]
    label, ply = everything.label[chosen].astype(np.int64), everything.ply[chosen]
    began = time.perf_counter()
    scores, boards = score_once(current, mask, workers, advance)
    seconds = time.perf_counter() - began
    exact, keeps = grade_moves(scores, label)
    decisive = is_decisive(scores)
    by_ply = {
        int(number): {
            "rows": int((ply == number).sum()),
            "exact": share(exact[ply == number], trials=1),
            "class": share(keeps[ply == number], trials=1),
            "decisive": share(keeps[(ply == number) & decisive], trials=1),
        }
        for number in np.unique(ply)
    }
    again = slice(0, agreement_rows)
    same = stored = None
    bands: dict[str, Estimate] = {}
    if agreement_rows and (teacher := teacher_of(folder)):
        first, second = ask_again(teacher, current[again], mask[again], seed, workers)
        agree = same_answer(current[again], mask[again], first, second)
        same = share(agree, trials=1)
        stored = share(same_answer(current[again], mask[again], label[again], first), trials=1)
        for low, high in BANDS:
            band = (low <= ply[again]) & (ply[again] <= high)
            bands[f"{low}–{high}"] = share(agree[band], trials=1)
    return LabelQuality(
        rows=len(chosen),
        of=len(everything),
        exact=share(exact, trials=1),
        keeps=share(keeps, trials=1),
        decisive=share(keeps[decisive], trials=1),
        by_ply=by_ply,
        boards=boards,
        seconds=seconds,
        agreement=same,
        agreement_by_band=bands,
        stored_agreement=stored,
    )


def score_once(
    current: Boards, mask: Boards, workers: int = 1, advance: Callable[[int], None] | None = None
) -> tuple[NDArray[np.int8], int]:
    """int8 (B, 7) scores of boards of which many may be equal up to mirror, and how many unlike ones there were."""
    small_current, small_mask, mirrored = canonicalise(current, mask)
    unlike, place = np.unique(np.stack([small_current, small_mask], 1), axis=0, return_inverse=True)
    columns = np.ascontiguousarray(unlike.T)
    scores = score_boards(columns[0], columns[1], workers, advance)[place.reshape(-1)]
    return np.where(mirrored[:, None], scores[:, ::-1], scores), len(unlike)


def teacher_of(folder: Path) -> SearchSettings | None:
    """The settings of the search that labelled a run; None where a network's own search did, which needs the network.

    Raises DataError for a manifest that names no settings.
    """
    from distill.search.teacher import SearchSettings

    identity = read_manifest(folder).get("identity", {})
    if "network" in identity:
        return None
    if "simulations" not in identity:
        raise DataError(f"{folder}: its manifest names no simulations, so its teacher cannot be asked again")
    names = [field.name for field in dataclasses.fields(SearchSettings)]
    return SearchSettings(**{name: identity[name] for name in names if name in identity})


def ask_again(
    settings: SearchSettings, current: Boards, mask: Boards, seed: int, workers: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two fresh labels a row, int64 (B,) each, by searches with these settings and unlike seeds."""
    teacher = SearchPlayer(name="teacher", settings=settings, workers=workers)
    first, second = (teacher.play(current, mask, seeds_for(seed, 1 + k, np.arange(len(mask)))).moves for k in range(2))
    return first, second


def same_answer(current: Boards, mask: Boards, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool (B,), whether two columns are equal, or each other's mirror on a board that is its own mirror."""
    own_mirror = (mirror_bits(current) == current) & (mirror_bits(mask) == mask)
    same: NDArray[np.bool_] = (one == other) | (own_mirror & (one == 6 - other))
    return same
