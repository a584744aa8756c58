"""Agreement with the teacher. Properties:

- a column and its mirror image are one answer on a symmetric board, and on no other;
- raw rows are counted, each board is asked for once, and boards that training had, mirrored or not, are known
- the first 19 rows of a game are counted from its first, in one run and in several whose games have the same numbers.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from helpers import make_games, write_games

from distill.datasets import batching
from distill.game import rules
from distill.games import reader
from distill.training import top1

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


def rows_of(*labelled: tuple[str, int]) -> reader.RawRows:
    positions = [rules.parse_board(drawing) for drawing, _ in labelled]
    return reader.RawRows(
        game=np.zeros(len(positions), np.int64),
        current=np.array([p.current for p in positions], np.uint64),
        mask=np.array([p.mask for p in positions], np.uint64),
        label=np.array([label for _, label in labelled], np.int8),
        ply=np.array([p.ply for p in positions], np.int8),
    )


def test_a_column_and_its_mirror_are_one_answer_on_a_symmetric_board_only():
    rows = rows_of((LOPSIDED, 2), (LOPSIDED, 4), (SYMMETRIC, 2), (SYMMETRIC, 4), (SYMMETRIC, 3))
    assert top1.agrees(rows, np.full(5, 2)).tolist() == [True, False, True, True, False]


def test_top1_counts_raw_rows_and_boards_that_training_never_had():
    rows = rows_of((LOPSIDED, 2), (LOPSIDED, 4), (SYMMETRIC, 3), (SYMMETRIC, 3))
    lopsided = rules.mirror(rules.parse_board(LOPSIDED))
    seen = batching.Examples(
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

    measured = top1.measure(predict, rows, seen)
    assert asked == [2]  # each board once
    assert (measured["top1_all"], measured["rows_all"]) == (0.75, 4)
    assert (measured["top1_unseen"], measured["rows_unseen"]) == (1.0, 2)
    assert (measured["top1_first_19"], measured["rows_first_19"]) == (0.75, 4)


def test_the_first_rows_of_every_game_are_found(tmp_path):
    table = make_games(12, seed=2)
    write_games(tmp_path / "run", table, shard_games=5)
    early = top1.is_early(reader.raw_rows([tmp_path / "run"], None, 0.0))
    expected = [row < 19 for game in Counter(table["game_id"].to_pylist()).values() for row in range(game)]
    assert early.tolist() == expected
    assert 0 < early.sum() < len(expected)


def test_games_of_several_runs_that_have_one_number_are_told_apart(tmp_path):
    folders = [tmp_path / str(seed) for seed in range(3)]
    for seed, folder in enumerate(folders):
        write_games(folder, make_games(1, seed), identity={"seed": seed})
    lengths = [run.rows for run in reader.open_runs(folders)]
    early = top1.is_early(reader.raw_rows(folders, None, 0.0))
    assert early.tolist() == [row < 19 for length in lengths for row in range(length)]
    assert 0 < early.sum() < len(early)
