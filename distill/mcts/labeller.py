"""What labels positions: the `Labeller` protocol, the check of what it returns, and the majority rule of several votes.

Yours is a function in a module of yours, here `my_engine`:

    import numpy as np
    from distill import Labels

    def label(boards, seeds):
        legal = boards[:, 0] == 0  # a column is open while its top cell is empty
        visits = np.array([np.random.default_rng(seed).multinomial(100, np.full(7, 1 / 7)) for seed in seeds])
        return Labels(visits=visits * legal + legal, value=np.zeros(len(boards)))

    python -m distill.generate --labeller my_engine:label --games 100

Dimensions: B positions, A = 7 columns, K votes of a position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from distill.common import OutputError
from distill.game import outputs
from distill.game.rules import best_columns


@dataclass(frozen=True, kw_only=True)
class Labels:
    """What a labeller finds in B positions.

    Attributes:
      visits: whole numbers (B, A), at least 0, and 0 on full columns: how often a search chose each column, or any
        other weight of the columns. Networks learn their shares.
      value: float (B,), expected outcome in [-1, 1] for the side to move.
      label: whole numbers (B,), the best column, 0-6; None: the column with most visits, as in `majority`.
      votes: whole numbers (B, K), the columns that K independent searches chose, -1 for a vote that was skipped; None:
        the label is the only vote.
    """

    visits: NDArray[Any]
    value: NDArray[Any]
    label: NDArray[Any] | None = None
    votes: NDArray[Any] | None = None


class Labeller(Protocol):
    """Anything that labels positions."""

    def __call__(self, boards: NDArray[np.int8], seeds: NDArray[np.uint64]) -> Labels:
        """Label B positions that are not over, several games side by side.

        Args:
          boards: int8 (B, 6, 7), row 0 on top, +1 the side to move, -1 the opponent, 0 empty.
          seeds: uint64 (B, 3), run seed, game, and number of the position in its game. All randomness must come from
            them, for example by `np.random.default_rng(seeds[i])`, so that a run has the same games on any machine.
        """


def check_labels(labels: Any, legal: NDArray[np.bool_]) -> Labels:
    """Complete labels of positions with these legal columns, bool (B, A), in the types of a row.

    Raises OutputError for wrong shapes and types, NaN, values outside [-1, 1], full columns and boards without visits.
    """
    if not isinstance(labels, Labels):
        raise OutputError(f"returned {type(labels).__name__}, not distill.Labels")
    visits = outputs.visits(labels.visits, legal).astype(np.int64)
    value = np.clip(outputs.values(labels.value, len(legal)), -1, 1)
    label = majority(visits, visits) if labels.label is None else outputs.moves(labels.label, legal, "label")
    votes = label[:, None] if labels.votes is None else outputs.votes(labels.votes, legal)
    return Labels(visits=visits, value=value, label=label, votes=votes)


def majority(counts: NDArray[Any], visits: NDArray[Any]) -> NDArray[np.int8]:
    """int8 (B,): the column with most votes, then most visits, then nearest the centre, then the lower.

    Args:
      counts: (B, A), votes for each column.
      visits: (B, A), or whatever else decides between columns with equal votes.
    """
    leading = np.where(counts == counts.max(axis=1, keepdims=True), visits, -np.inf)
    return best_columns(leading).astype(np.int8)
