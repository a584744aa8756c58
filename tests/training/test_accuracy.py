"""Accuracy against the teacher, by definition: raw rows, each board asked for once, the first 19 rows of every game."""

import dataclasses
import itertools

import numpy as np
import pytest
from helpers import bits, make_games, write_games
from training_helpers import random_examples

from distill.game.rules import Position, from_moves, mirror
from distill.games import reader
from distill.training import accuracy

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
        outcome=np.array([1, 0, -1, 1, -1][: len(positions)], np.int8),
    )


def network(**values):
    """A network with the likeliest column 2 where column 0 has a stone, else 3; and what it was asked."""
    asked = []

    def predict(boards):
        asked.append(len(boards))
        move = np.where(boards[:, 5, 0] != 0, 2, 3)
        policy = np.full((len(boards), 7), 0.05, np.float32)
        policy[np.arange(len(boards)), move] = 0.7
        return {"move": move, "policy": policy, **{name: np.full(len(boards), value) for name, value in values.items()}}

    return predict, asked


def test_a_column_and_its_mirror_are_one_answer_on_a_symmetric_board_only():
    rows = rows_of((LOPSIDED, 2), (LOPSIDED, 4), (SYMMETRIC, 2), (SYMMETRIC, 4), (SYMMETRIC, 3))
    always_4 = {"move": np.full(2, 4), "policy": np.tile([0.05, 0, 0.1, 0.4, 0.35, 0.1, 0], (2, 1))}
    answer = accuracy.answers(lambda boards: always_4, rows)
    assert (answer.label == answer.move).tolist() == [False, True, True, True, False]
    assert (answer.label.tolist(), answer.move.tolist()) == ([2, 4, 2, 2, 3], [4, 4, 2, 2, 2])
    np.testing.assert_allclose(answer.policy[[0, 2]], [always_4["policy"][0], [0.05, 0.1, 0.45, 0.4, 0, 0, 0]])
    compared = accuracy.compare(answer, rows)
    assert compared["log_loss"] == pytest.approx(-np.log([0.1, 0.35, 0.45, 0.45, 0.4]).mean())
    assert compared["top2"] == 4 / 5


def test_top1_counts_raw_rows_and_boards_that_training_never_had():
    rows = rows_of((LOPSIDED, 2), (LOPSIDED, 4), (SYMMETRIC, 3), (SYMMETRIC, 3))
    current, mask = bits(mirror(LOPSIDED))
    seen = dataclasses.replace(random_examples(1), current=current, mask=mask)
    predict, asked = network()
    measured = accuracy.measure(predict, rows, seen)
    assert asked == [2]  # each board once
    assert (measured["top1_all"], measured["rows_all"]) == (0.75, 4)
    assert (measured["top1_unseen"], measured["rows_unseen"]) == (1.0, 2)
    assert (measured["top1_first_19"], measured["rows_first_19"]) == (0.75, 4)


def test_the_comparison_with_the_teacher_is_the_one_that_plain_python_finds():
    rows = rows_of((LOPSIDED, 2), (LOPSIDED, 4), (SYMMETRIC, 3), (SYMMETRIC, 0), (SYMMETRIC, 3))
    predict, _ = network(value=0.5)
    compared = accuracy.compare(accuracy.answers(predict, rows), rows)
    assert compared["log_loss"] == pytest.approx(-np.log([0.7, 0.05, 0.7, 0.1, 0.7]).mean())
    confusion = np.zeros((7, 7), int)
    for label, column in ((2, 2), (4, 2), (3, 3), (0, 3), (3, 3)):
        confusion[label, column] += 1
    assert compared["confusion"] == confusion.tolist()
    observed, by_chance = 3 / 5, (1 * 2 + 2 * 3) / 25  # shares of columns 2 and 3 among labels and moves
    assert compared["kappa"] == pytest.approx((observed - by_chance) / (1 - by_chance))
    assert compared["calibration"]["policy"] == [[pytest.approx(0.7), pytest.approx(3 / 5)]]
    # Outcomes 1, 0, -1, 1, -1: two wins and a draw in five games.
    assert compared["calibration"]["value"] == [[pytest.approx(0.75), pytest.approx(2.5 / 5)]]
    assert compared["top2"] <= compared["top3"] <= 1
    one = rows[np.array([2, 4])]  # a single column
    assert accuracy.compare(accuracy.answers(predict, one), one)["kappa"] is None


def test_shares_of_a_column_and_its_mirror_that_add_up_to_more_than_1_count_as_1():
    policy = np.zeros((1, 7), np.float32)
    policy[0, [2, 4]] = 1 - 2**-24, 3 * 2**-24  # rounded, as a softmax may be
    assert policy.sum() > 1
    rows = rows_of((SYMMETRIC, 2))
    answer = accuracy.answers(lambda _: {"move": np.array([2], np.int32), "policy": policy}, rows)
    assert accuracy.compare(answer, rows)["calibration"]["policy"] == [[1, 1]]


def test_the_first_rows_of_every_game_are_found_also_where_games_of_several_runs_have_one_number(tmp_path):
    folders = [tmp_path / str(seed) for seed in range(3)]
    for seed, folder in enumerate(folders):
        write_games(folder, make_games(4, seed), shard_games=3, identity={"seed": seed})
    rows = reader.raw_rows(folders, None, 0.0)
    lengths = [len(list(group)) for _, group in itertools.groupby(rows.game.tolist())]
    assert len(lengths) == 12
    assert accuracy.is_early(rows).tolist() == [row < 19 for length in lengths for row in range(length)]
