"""Agreement with the teacher. Properties:

- a column and its mirror image are one answer on a symmetric board, and on no other;
- raw rows are counted, each board is asked for once, and boards that training had, mirrored or not, are known.
"""

from __future__ import annotations

import numpy as np

from distill.game import rules
from distill.learn import agreement
from distill.tables import tables

LOPSIDED = """
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . . . . .
    X O . . . . .
"""
SYMMETRIC = """
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . O . . .
    . . . X . . .
"""


def rows_of(*labelled: tuple[str, int]) -> tables.RawRows:
    positions = [rules.parse_board(drawing) for drawing, _ in labelled]
    return tables.RawRows(
        game=np.zeros(len(positions), np.int64),
        current=np.array([p.current for p in positions], np.uint64),
        mask=np.array([p.mask for p in positions], np.uint64),
        label=np.array([label for _, label in labelled], np.int8),
        ply=np.array([p.ply for p in positions], np.int8),
    )


def test_a_column_and_its_mirror_are_one_answer_on_a_symmetric_board_only():
    rows = rows_of((LOPSIDED, 2), (LOPSIDED, 4), (SYMMETRIC, 2), (SYMMETRIC, 4), (SYMMETRIC, 3))
    assert agreement.agrees(rows, np.full(5, 2)).tolist() == [True, False, True, True, False]


def test_agreement_counts_raw_rows_and_boards_that_training_never_had():
    rows = rows_of((LOPSIDED, 2), (LOPSIDED, 4), (SYMMETRIC, 3), (SYMMETRIC, 3))
    lopsided = rules.mirror(rules.parse_board(LOPSIDED))
    seen = tables.Examples(
        current=np.array([lopsided.current], np.uint64),
        mask=np.array([lopsided.mask], np.uint64),
        visits=np.ones((1, 7), np.int64),
        label=np.zeros(1, np.int8),
        value=np.zeros(1, np.float32),
        outcome=np.zeros(1, np.float32),
        count=np.ones(1, np.int32),
    )
    asked = []

    def predict(boards):
        asked.append(len(boards))
        return {"move": np.where((boards[:, 5, 0] != 0), 2, 3)}

    measured = agreement.measure(predict, rows, seen)
    assert asked == [2]  # each board once
    assert (measured["agreement_all"], measured["rows_all"]) == (0.75, 4)
    assert (measured["agreement_unseen"], measured["rows_unseen"]) == (1.0, 2)
    assert measured["by_ply"] == {
        "2": {"agreement_all": 0.75, "agreement_unseen": 1.0, "rows_all": 4, "rows_unseen": 2}
    }
