"""The rules of the game.

* The number of distinct positions after 0 to 8 plies, as they are and up to mirror, is the known one.
* The bitboard test for four in a line agrees with a scan of all 69 lines, for integers and for arrays.
* The mirror is its own inverse, commutes with playing and keeps wins; `canonicalise` picks one of the two boards.
* Drawings and move strings round-trip, and bad ones are refused with a reason.
"""

import random
from itertools import pairwise

import numpy as np
import pytest
from helpers import DRAWN, bits, low, random_game
from hypothesis import given
from hypothesis import strategies as st

from distill.game import rules
from distill.game.rules import EMPTY, Position

DISTINCT = [1, 7, 49, 238, 1120, 4263, 16422, 54859, 184275]
DISTINCT_UP_TO_MIRROR = [1, 4, 25, 121, 568, 2144, 8231, 27473, 92244]


def bit(row: int, column: int) -> int:
    """The bit of a cell, from the drawing in rules.py: bottom-up in a column, 7 bits a column."""
    return 1 << (7 * column + 5 - row)


LINES = [
    [(row + step * down, column + step * right) for step in range(4)]
    for down, right in ((1, 0), (0, 1), (1, 1), (-1, 1))
    for row in range(6)
    for column in range(7)
    if 0 <= row + 3 * down < 6 and column + 3 * right < 7
]


def naive_has_four(stones: int) -> bool:
    return any(all(stones & bit(row, column) for row, column in line) for line in LINES)


games = st.integers(0, 2**32).map(random_game)
positions = st.builds(lambda game, index: game[index % len(game)], games, st.integers(0, 41))


def test_the_positions_of_each_ply_are_as_many_as_known():
    level, counts, counts_up_to_mirror = {EMPTY}, [], []
    for ply in range(len(DISTINCT)):
        if ply:
            level = {
                rules.next_position(position, column)
                for position in level
                if not rules.is_over(position)
                for column in rules.legal_columns(position)
            }
        counts.append(len(level))
        canonical_current, canonical_mask, _mirrored = rules.canonicalise(*bits(*level))
        counts_up_to_mirror.append(len(set(zip(canonical_current.tolist(), canonical_mask.tolist(), strict=True))))
    assert counts == DISTINCT
    assert counts_up_to_mirror == DISTINCT_UP_TO_MIRROR


def test_the_win_test_equals_a_scan_of_all_69_lines():
    """Also on each line alone, on three of its four stones, and on random stones."""
    lines = [sum(bit(row, column) for row, column in line) for line in LINES]
    assert len(lines) == 69
    assert rules.has_four(lines[0]) is True
    rng = random.Random(1)
    stones = [rng.getrandbits(49) & rng.getrandbits(49) & rules.FULL_BOARD for _ in range(3000)]
    stones += [rng.getrandbits(49) & rules.FULL_BOARD for _ in range(1000)]
    stones += lines + [line ^ bit(*cells[gap]) for line, cells in zip(lines, LINES, strict=True) for gap in range(4)]
    expected = [naive_has_four(cells) for cells in stones]
    assert 0.1 < np.mean(expected) < 0.9
    assert [rules.has_four(cells) for cells in stones] == expected
    assert rules.has_four(np.array(stones, np.uint64)).tolist() == expected


@given(games)
def test_a_random_game_ends_exactly_at_the_first_four_or_at_the_full_board(game):
    for position in game[:-1]:
        assert not naive_has_four(position.current)
        assert not naive_has_four(position.opponent)
    for position in game:
        assert rules.problem_with(position) is None
        assert rules.parse_board(rules.draw(position)) == position
    last = game[-1]
    assert not naive_has_four(last.current)
    assert rules.is_won(last) == naive_has_four(last.opponent)
    assert rules.is_won(last) or last.ply == 42


WON_WITH_THE_LAST_STONE = "527321255352474421577234343376616576661114"


@pytest.mark.parametrize(("moves", "is_won"), [(DRAWN, False), (WON_WITH_THE_LAST_STONE, True)])
def test_a_full_board_is_a_draw_unless_the_last_stone_won(moves, is_won):
    position = rules.from_moves(moves)
    assert position.mask == rules.FULL_BOARD
    assert (rules.is_over(position), rules.is_won(position)) == (True, is_won)
    assert rules.legal_columns(position) == []


@given(positions)
def test_a_stone_lands_on_top_of_its_column_and_nowhere_in_a_full_one(position):
    (row,) = rules.legal_mask(np.array([position.mask], np.uint64))
    assert np.flatnonzero(row).tolist() == rules.legal_columns(position)
    (cells,) = rules.landing(np.array([position.mask], np.uint64)).tolist()
    for column in range(rules.COLUMNS):
        if not rules.is_legal(position, column):
            assert cells[column] == 0
            continue
        after = rules.next_position(position, column)
        assert after == Position(position.opponent, position.mask | cells[column])
        assert after.ply == position.ply + 1
        assert cells[column] & rules.column_bits(column)
        assert cells[column] & rules.BOTTOM_ROW or (cells[column] >> 1) & position.mask


@given(positions)
def test_the_mirror_commutes_with_playing(position):
    mirrored = rules.mirror(position)
    assert rules.mirror(mirrored) == position
    assert rules.is_over(mirrored) == rules.is_over(position)
    assert rules.legal_columns(mirrored) == sorted(6 - column for column in rules.legal_columns(position))
    for column in rules.legal_columns(position):
        assert rules.mirror(rules.next_position(position, column)) == rules.next_position(mirrored, 6 - column)


@given(st.lists(positions, min_size=1, max_size=8))
def test_a_board_and_its_mirror_share_one_canonical_board(batch):
    current, mask = bits(*batch)
    first = rules.canonicalise(current, mask)
    second = rules.canonicalise(rules.mirror_bits(current), rules.mirror_bits(mask))
    for index, position in enumerate(batch):
        mirrored = rules.mirror(position)
        pair = {(position.current, position.mask), (mirrored.current, mirrored.mask)}
        canonical = (int(first[0][index]), int(first[1][index]))
        assert canonical == (int(second[0][index]), int(second[1][index])) == min(pair)
        assert first[2][index] == (canonical != (position.current, position.mask))


def test_the_worked_example_of_the_bit_layout():
    position = rules.from_moves("445")
    assert position == Position(0x00400000, 0x10600000)
    assert rules.draw(position).splitlines()[-2:] == [". . . O . . .", ". . . X X . ."]


@given(st.integers(0, 2**32))
def test_a_move_string_and_a_list_of_columns_lead_to_the_same_position(seed):
    game = random_game(seed)
    columns = [((after.mask ^ before.mask).bit_length() - 1) // 7 for before, after in pairwise(game)]
    assert rules.from_moves(columns) == rules.from_moves("".join(str(column + 1) for column in columns)) == game[-1]


A_LINE_OF_BOTH_SIDES = low("""
    O O O O . . .
    X X X X X . .
""")


@pytest.mark.parametrize(
    ("read", "text", "complaint"),
    [
        (rules.from_moves, "48", "move 2 is '8', not a column from 1 to 7"),
        (rules.from_moves, [11], "move 1 is '12', not a column from 1 to 7"),
        (rules.from_moves, "4444444", "move 7 falls into column 4, which is full"),
        (rules.from_moves, "41414142", "move 8 comes after the end of the game"),
        (rules.parse_board, "", "a board is 6 lines"),
        (rules.parse_board, "\n".join([". . . . . . ."] * 5 + [". . . A . . ."]), "a board is 6 lines"),
        (rules.parse_board, A_LINE_OF_BOTH_SIDES, "the side to move already has four in a line"),
    ],
)
def test_moves_and_drawings_of_no_position_are_refused_with_the_reason(read, text, complaint):
    with pytest.raises(ValueError, match=complaint):
        read(text)
