"""Top-1 accuracy against the teacher. Properties:

- a column and its mirror image are one answer on a symmetric board, and on no other;
- raw rows are counted, each board is asked for once, and boards that training had, mirrored or not, are known
- the first 19 rows of a game are counted from its first, in one run and in several whose games have the same numbers.
"""

import dataclasses
import itertools

import numpy as np
from helpers import bits, make_games, write_games
from training_helpers import random_examples

from distill.game.rules import Position, from_moves, mirror
from distill.games import reader
from distill.training import top1

LOPSIDED, SYMMETRIC = from_moves("12"), from_moves("44")


def rows_of(*labelled: tuple[Position, int]) -> reader.RawRows:
    positions = [position for position, _ in labelled]
    current, mask = bits(*positions)
    return reader.RawRows(
        game=np.zeros(len(positions), np.int64),
        current=current,
        mask=mask,
        label=np.array([label for _, label in labelled], np.int8),
        ply=np.array([p.ply for p in positions], np.int8),
    )


def test_a_column_and_its_mirror_are_one_answer_on_a_symmetric_board_only():
    rows = rows_of((LOPSIDED, 2), (LOPSIDED, 4), (SYMMETRIC, 2), (SYMMETRIC, 4), (SYMMETRIC, 3))
    assert top1.agrees(rows, np.full(5, 2)).tolist() == [True, False, True, True, False]


def test_top1_counts_raw_rows_and_boards_that_training_never_had():
    rows = rows_of((LOPSIDED, 2), (LOPSIDED, 4), (SYMMETRIC, 3), (SYMMETRIC, 3))
    current, mask = bits(mirror(LOPSIDED))
    seen = dataclasses.replace(random_examples(1), current=current, mask=mask)
    asked = []

    def predict(boards):
        asked.append(len(boards))
        return {"move": np.where((boards[:, 5, 0] != 0), 2, 3)}

    measured = top1.measure(predict, rows, seen)
    assert asked == [2]  # each board once
    assert (measured["top1_all"], measured["rows_all"]) == (0.75, 4)
    assert (measured["top1_unseen"], measured["rows_unseen"]) == (1.0, 2)
    assert (measured["top1_first_19"], measured["rows_first_19"]) == (0.75, 4)


def test_the_first_rows_of_every_game_are_found_also_where_games_of_several_runs_have_one_number(tmp_path):
    folders = [tmp_path / str(seed) for seed in range(3)]
    for seed, folder in enumerate(folders):
        write_games(folder, make_games(4, seed), shard_games=3, identity={"seed": seed})
    rows = reader.raw_rows(folders, None, 0.0)
    lengths = [len(list(group)) for _, group in itertools.groupby(rows.game.tolist())]
    assert len(lengths) == 12
    assert top1.is_early(rows).tolist() == [row < 19 for length in lengths for row in range(length)]
