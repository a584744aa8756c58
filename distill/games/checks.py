"""Checks of every row of a shard against the rules of the game and the settings of its run, with NumPy.

In: a table of `schema.ROW` or `schema.PACKED_ROW`, and what the shard's metadata say about it. Out: at most one fault
for each row, in words that name the values.

No code is shared with what plays the games: the rules come from `game/`, and the search is not imported.
Dimensions: B rows, A = 7 columns, K votes of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill.game import rules
from distill.game.rules import COLUMNS
from distill.games import schema
from distill.games.labeller import majority

Columns: TypeAlias = dict[str, NDArray[Any]]
"""Columns by name, each (B,), visits (B, A), votes (B, K)."""
Finding: TypeAlias = tuple[Any, Callable[[int], str]]
"""Which rows are wrong, bool (B,), and the words for one of them."""


class Fault(NamedTuple):
    """What is wrong with one row, or with the whole shard (game None)."""

    game: int | None
    what: str


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a shard's metadata say about its rows.

    Attributes:
      first_game, games: the games of the shard.
      source: who labelled: the built-in search, a user's labeller, or a network in self-play. Only the first has its
        votes and simulations checked. The label of the second need not be the majority of its votes.
      votes, simulations: searches of each position, and simulations of each search.
      plays_label: whether the move is always the label.
      opening_moves: fewest and most random moves, which the games take in turn.
    """

    first_game: int
    games: int
    source: Literal["search", "labeller", "network"] = "network"
    votes: int = 0
    simulations: int = 0
    plays_label: bool = False
    opening_moves: tuple[tuple[int, int], ...] = ()


def expected_of(metadata: Mapping[str, Any]) -> Expected:
    """What metadata say. Raises KeyError, TypeError or ValueError for metadata that are not those of a shard."""
    first_game, games = int(metadata["first_game"]), int(metadata["games"])
    if first_game < 0 or not 0 <= games <= schema.SHARD_ROWS:
        raise ValueError(f"{games:,} games from {first_game:,} on do not fit a shard")
    identity = metadata.get("identity", {})
    expected = Expected(first_game=first_game, games=games)
    if "votes" not in identity and "labeller" not in identity:
        return expected
    openings = tuple(map(tuple, np.reshape(identity["opening_moves"], (-1, 2)).astype(int).tolist()))
    if not openings:
        raise ValueError("opening_moves has no pair")
    return Expected(
        first_game=first_game,
        games=games,
        source="labeller" if "labeller" in identity else "search",
        votes=int(identity.get("votes", 0)),
        simulations=int(identity.get("simulations", 0)),
        plays_label=identity.get("noise_at") != "move" or not identity["noise_fraction"],
        opening_moves=openings,
    )


def faults(table: pa.Table, expected: Expected) -> Iterator[Fault]:
    """Everything wrong with the rows of a shard, at most one fault for each row."""
    rows = _columns(table)
    if isinstance(rows, str):
        yield Fault(None, rows)
        return
    games = rows["game_id"]
    wrong = np.zeros(len(games), np.bool_)
    yield from _new_faults(_of_rows(rows, expected), wrong, games)
    yield from _new_faults(_of_games(rows, expected, ~wrong), wrong, games)
    for game in np.setdiff1d(np.arange(expected.first_game, expected.first_game + expected.games), games):
        yield Fault(int(game), "the game has no rows")


def packed_faults(table: pa.Table, expected: Expected, after: int | None = None) -> Iterator[Fault]:
    """Everything wrong with packed boards, at most one fault for each row, which is a game of its own.

    `after` is the last key of the shard before: keys ascend through all shards.
    """
    rows = _columns(table)
    if isinstance(rows, str):
        yield Fault(None, rows)
        return
    numbers = expected.first_game + np.arange(len(table))
    yield from _new_faults(_of_packed_rows(rows, after), np.zeros(len(table), np.bool_), numbers)
    if len(table) != expected.games:
        yield Fault(None, f"{len(table):,} rows for {expected.games:,} games, but each board is one game")


def _columns(table: pa.Table) -> Columns | str:
    """The columns as arrays, or why they cannot be arrays: nulls, or lists of different lengths."""
    columns: Columns = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        values = column.flatten() if pa.types.is_nested(column.type) else column
        if column.null_count or values.null_count:
            return f"a value of {name} is missing (null)"
        columns[name] = schema.numbers(values)
        if pa.types.is_list(column.type):
            widths = np.unique(np.diff(schema.numbers(column.offsets)))
            if len(widths) > 1 or 0 in widths:
                return f"{name} of different lengths, or empty"
        if values is not column:
            columns[name] = columns[name].reshape(len(column), -1 if len(column) else COLUMNS)
    return columns


def _new_faults(findings: Iterator[Finding], wrong: NDArray[np.bool_], games: NDArray[np.int64]) -> Iterator[Fault]:
    """The faults of rows that have none yet; `wrong`, bool (B,), is updated."""
    for rows, what in findings:
        new = np.flatnonzero(rows & ~wrong)
        wrong |= rows
        for row in new.tolist():
            yield Fault(int(games[row]), what(row))


def _of_packed_rows(rows: Columns, after: int | None) -> Iterator[Finding]:
    key, visits, value, outcome = (rows[name] for name in ("key", "visits", "value", "outcome"))
    current, mask = rules.from_keys(key)
    stones = np.bitwise_count(mask)
    outside = (mask & ~np.uint64(rules.FULL_BOARD)) != 0
    no_board = outside | (current + mask != key) | (np.bitwise_count(current) != stones // 2)
    yield no_board, lambda i: f"key {key[i]} is not that of a position"
    yield _is_over(current, mask), lambda _: "the game is over in this position"
    smaller_current, smaller_mask, _ = rules.canonicalise(current, mask)
    mirrored = smaller_current + smaller_mask != key
    yield mirrored, lambda i: f"key {key[i]} is not canonical: its mirror image is the smaller board"
    before = np.concatenate([[np.uint64(after or 0)], key[:-1]])
    disorder = key <= before
    disorder[:1] &= after is not None
    yield disorder, lambda i: f"key {key[i]} after {before[i]}: keys must ascend, each board once"
    on_full = ((visits != 0) & ~rules.legal_mask(mask)).any(axis=1)
    yield on_full, lambda i: f"visits {_text(visits[i])} on a full column"
    yield ~visits.any(axis=1), lambda _: "no visits"
    steps = schema.VALUE_STEPS
    yield np.abs(value.astype(np.int16)) > steps, lambda i: f"value {value[i]} outside [-{steps}, {steps}]"
    yield np.abs(outcome.astype(np.int16)) > 1, lambda i: f"outcome {outcome[i]} is not 1, 0 or -1"


def _of_rows(rows: Columns, expected: Expected) -> Iterator[Finding]:
    """What a row alone shows."""
    current, mask, ply, votes, visits = (rows[name] for name in ("current", "mask", "ply", "votes", "visits"))
    label, move, simulations, value, outcome = (
        rows[name] for name in ("label", "move", "simulations", "value", "outcome")
    )
    legal, stones = rules.legal_mask(mask), np.bitwise_count(mask)

    def is_legal(columns: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether columns, (B, n), may be played."""
        inside = (columns >= 0) & (columns < COLUMNS)
        return inside & np.take_along_axis(legal, np.where(inside, columns, 0).astype(np.intp), axis=1)

    # The position.
    yield (mask & ~np.uint64(rules.FULL_BOARD)) != 0, lambda _: "stones outside the 42 cells"
    yield (current & ~mask) != 0, lambda _: "stones of the side to move on empty cells"
    yield ((mask + np.uint64(rules.BOTTOM_ROW)) & mask) != 0, lambda _: "a stone floats above an empty cell"
    counts = np.bitwise_count(current) != stones // 2
    yield counts, lambda i: f"{current[i].bit_count()} of {stones[i]} stones belong to the side to move"
    yield _is_over(current, mask), lambda _: "the game is over in this position"
    yield ply != stones, lambda i: f"ply {ply[i]}, but {stones[i]} stones on the board"

    # What the labeller found.
    yield ~(is_legal(votes) | (votes == -1)).all(axis=1), lambda i: f"votes {_text(votes[i])} for no legal column"
    yield (visits < 0).any(axis=1), lambda i: f"visits {_text(visits[i])} below zero"
    yield ((visits != 0) & ~legal).any(axis=1), lambda i: f"visits {_text(visits[i])} on a full column"
    yield ~is_legal(label[:, None])[:, 0], lambda i: f"label {label[i]} is no legal column"
    yield ~is_legal(move[:, None])[:, 0], lambda i: f"move {move[i]} is no legal column"
    if expected.source != "network":  # a network's visits may be an improved policy, in parts of the simulations
        total = visits.sum(axis=1, dtype=np.int64)
        yield total != simulations, lambda i: f"visits sum to {total[i]}, simulations to {simulations[i]}"
    if expected.source == "search":
        each, number = expected.simulations, expected.votes
        wrong_number = np.full(len(label), votes.shape[1] != number)
        yield wrong_number, lambda _: f"{votes.shape[1]} votes, where the run has {number}"
        differs = simulations != number * each
        yield differs, lambda i: f"{simulations[i]} simulations, where the run has {number} x {each}"
    if expected.source != "labeller":
        yield (votes < 0).any(axis=1), lambda i: f"votes {_text(votes[i])} with one that was skipped"
        best = majority((votes[:, :, None] == np.arange(COLUMNS)).sum(axis=1), visits)
        what = "label {} is not the majority of votes {}, which is {}"
        yield label != best, lambda i: what.format(label[i], _text(votes[i]), best[i])
    if expected.plays_label:
        yield move != label, lambda i: f"move {move[i]} is not the label {label[i]}, which the run plays"
    yield ~(np.abs(value) <= 1), lambda i: f"value {value[i]} outside [-1, 1]"
    yield np.abs(outcome) > 1, lambda i: f"outcome {outcome[i]} is not 1, 0 or -1"


def _of_games(rows: Columns, expected: Expected, sound: NDArray[np.bool_]) -> Iterator[Finding]:
    """What rows show together; `sound` rows, bool (B,), have no fault of their own."""
    game, ply, outcome = rows["game_id"], rows["ply"].astype(np.int64), rows["outcome"]
    last_game = expected.first_game + expected.games - 1
    outside = (game < expected.first_game) | (game > last_game)
    yield outside, lambda _: f"a game outside {expected.first_game} to {last_game}, the games of the shard"
    if not len(game):
        return

    def compared(with_row_before: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.concatenate([[False], with_row_before])

    # The order of the rows.
    same = compared(game[1:] == game[:-1])
    disorder = compared(game[1:] < game[:-1]) | (same & compared(ply[1:] < ply[:-1]))
    yield disorder, lambda _: "out of order: rows are sorted by game and ply"
    yield same & compared(ply[1:] == ply[:-1]), lambda _: "the same game and ply as the row before"

    # Each move leads to the next position.
    column = np.clip(rows["move"], 0, COLUMNS - 1).astype(np.intp)
    stone = rules.landing(rows["mask"])[np.arange(len(game)), column]
    current, mask = rows["current"] ^ rows["mask"], rows["mask"] | stone
    won = rules.has_four(rows["current"] | stone)
    follows = compared((current[:-1] == rows["current"][1:]) & (mask[:-1] == rows["mask"][1:]))
    both = compared(sound[:-1]) & sound
    yield same & both & ~follows, lambda _: "not the position that the move before leads to"

    # The first position of a game.
    first, unreachable = ~same, np.zeros(len(game), np.bool_)
    for row in np.flatnonzero(first & sound).tolist():
        unreachable[row] = not is_reachable(int(rows["current"][row]), int(rows["mask"][row]))
    yield unreachable, lambda _: "no order of moves leads to this position"
    if expected.opening_moves:
        fewest, most = np.array(expected.opening_moves)[game % len(expected.opening_moves)].T
        differs = first & ((ply < fewest) | (ply > most))
        yield differs, lambda i: f"the game starts at ply {ply[i]}, its opening has {fewest[i]} to {most[i]} moves"

    # The last move and the result of a game.
    last = np.append(first[1:], True)
    over = won | (mask == np.uint64(rules.FULL_BOARD))
    yield last & sound & ~over, lambda _: "the game's last row, but the move does not end the game"
    end = np.flatnonzero(last)[np.cumsum(first) - 1]  # the last row of each row's game
    result = won[end].astype(np.int64) * (1 - 2 * ((end - np.arange(len(game))) % 2))
    differs = sound & sound[end] & (outcome != result)
    yield differs, lambda i: f"outcome {outcome[i]}, but the moves lead to {result[i]}"


def _is_over(current: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.bool_]:
    won = rules.has_four(current) | rules.has_four(current ^ mask)
    return won | (mask == np.uint64(rules.FULL_BOARD))


def is_reachable(current: int, mask: int) -> bool:
    """Whether alternating moves can lead to a position without four in a line.

    Takes stones off the tops of columns, those of the player who moved last first, until the board is empty. No line
    can have stood before where none stands now.
    """

    @cache
    def takes_back(last: int, stones: int) -> bool:
        """Whether all stones can be taken off; `last` are those of the player who moved last."""
        tops = last & ~(stones >> 1)
        while tops:
            stone = tops & -tops
            if takes_back(stones ^ last, stones ^ stone):
                return True
            tops ^= stone
        return not stones

    return takes_back(current ^ mask, mask)


def _text(values: NDArray[Any]) -> str:
    return " ".join(map(str, values.tolist()))
