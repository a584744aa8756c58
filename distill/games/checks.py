"""The truth of rows: what must hold in every row of every game, checked over whole shards with NumPy.

In: one shard as a table of `schema.ROW` or `schema.PACKED_ROW`, and what its metadata say of the run. Out: the rows
that are wrong, each with the first thing that is wrong with it, in words that name the values.

Nothing here is shared with the code that plays: the rules come from `game/`, the search is not imported.
Dimensions: B rows, A = 7 columns, K votes a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill.game import rules
from distill.game.rules import BITS_PER_COLUMN, COLUMNS, Position
from distill.games import schema
from distill.games.majority import majority

Columns = dict[str, NDArray[Any]]
"""The columns of `schema.ROW` by name, each (B,), visits (B, A), votes (B, K)."""

_COLUMN_BITS = np.array([rules.column_bits(column) for column in range(COLUMNS)], np.uint64)


@dataclass(frozen=True, kw_only=True)
class Law:
    """What a shard's metadata say that its rows must obey; None where they do not say it.

    teacher: games of `generate`, where visits sum to the simulations and, unless it `strays` (noise acts on the move),
    the label is played. In self-play chance may choose the move, and visits may be an improved policy in units of the
    simulations.
    relabelled: labels were changed after the games were played. Boards, moves and results must still be true; label,
    visits and value must be ones that can be learned from, but need not follow from votes and simulations.
    """

    first_game: int
    games: int
    votes: int | None = None
    simulations: int | None = None
    savings: bool = False
    teacher: bool = False
    strays: bool = False
    relabelled: bool = False
    opening_moves: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One row, by its place in the shard, and the first thing that is wrong with it; place None: of a whole game."""

    place: int | None
    game: int | None
    what: str


def law_of(metadata: Mapping[str, Any]) -> Law:
    """The law of a shard. Raises KeyError, TypeError or ValueError for metadata that are no shard's."""
    identity = metadata.get("identity", {})
    first_game, games = int(metadata["first_game"]), int(metadata["games"])
    if first_game < 0 or not 0 <= games <= schema.SHARD_ROWS:
        raise ValueError(f"{games:,} games from {first_game:,} on are no shard's")
    relabelled = schema.RELABELLED in identity
    if "search_version" not in identity or "votes" not in identity:
        return Law(first_game=first_game, games=games, relabelled=relabelled)
    openings = tuple(map(tuple, np.reshape(identity["opening_moves"], (-1, 2)).astype(int).tolist()))
    if not openings:
        raise ValueError("opening_moves has no pair")
    return Law(
        first_game=first_game,
        games=games,
        votes=int(identity["votes"]),
        simulations=int(identity["simulations"]),
        savings=identity["savings"] != "off",
        teacher=True,
        strays=identity.get("noise_at") == "move" and identity["noise_fraction"] > 0,
        relabelled=relabelled,
        opening_moves=openings,
    )


def faults(table: pa.Table, law: Law) -> Iterator[Fault]:
    """Everything wrong with the rows of a shard (a table of `schema.ROW`), at most one fault a row."""
    columns, wrong = _arrays(table, schema.ROW)
    games = columns["game_id"]
    seen = np.zeros(len(games), np.bool_)
    for rows, what in wrong:
        yield from _new(rows, seen, games, what)
    if not seen.any():  # lists of other lengths cannot be compared with anything
        for rows, what in _of_rows(columns, law):
            yield from _new(rows, seen, games, what)
        for rows, what in _of_games(columns, law, ~seen):
            yield from _new(rows, seen, games, what)
    present = np.unique(games[(games >= law.first_game) & (games < law.first_game + law.games)])
    if len(present) < law.games:
        for game in np.setdiff1d(np.arange(law.first_game, law.first_game + law.games), present):
            yield Fault(place=None, game=int(game), what="the game has no rows")


def packed_faults(table: pa.Table, law: Law, after: int | None = None) -> Iterator[Fault]:
    """Everything wrong with packed boards (a table of `schema.PACKED_ROW`), at most one fault a row.

    Each row is a game of its own. `after` is the last key of the shard before: keys ascend through all of them.
    """
    columns, wrong = _arrays(table, schema.PACKED_ROW)
    numbers = law.first_game + np.arange(len(table))
    seen = np.zeros(len(table), np.bool_)
    for rows, what in wrong or _of_packed_rows(columns, after):
        yield from _new(rows, seen, numbers, what)
    if len(table) != law.games:
        yield Fault(place=None, game=None, what=f"{len(table):,} rows, but {law.games:,} games: each board is one")


def _of_packed_rows(rows: Columns, after: int | None) -> Iterator[Finding]:
    """What is wrong with packed boards whose columns are whole."""
    key, visits, value, outcome = (rows[name] for name in ("key", "visits", "value", "outcome"))
    current, mask = rules.from_keys(key)
    own, stones = np.bitwise_count(current), np.bitwise_count(mask)
    no_board = ((mask & ~np.uint64(rules.FULL_BOARD)) != 0) | (current + mask != key) | (own != stones // 2)
    yield no_board, lambda i: f"key {key[i]} is no position's"
    over = rules.has_four(current) | rules.has_four(current ^ mask) | (mask == np.uint64(rules.FULL_BOARD))
    yield over, lambda _: "the game is over in this position"
    smaller_current, smaller_mask, _ = rules.canonicalise(current, mask)
    mirrored = smaller_current + smaller_mask != key
    yield mirrored, lambda i: f"key {key[i]} is not canonical: its mirror image is the smaller board"
    before = np.concatenate([[np.uint64(after or 0)], key[:-1]])
    disorder = key <= before
    disorder[:1] &= after is not None
    yield disorder, lambda i: f"key {key[i]} after {before[i]}: keys must ascend, each board once"
    stray = ((visits != 0) & ~rules.legal_mask(mask)).any(axis=1)
    yield stray, lambda i: f"visits {_text(visits[i])} on a full column"
    yield ~visits.any(axis=1), lambda _: "no visits"
    steps = schema.VALUE_STEPS
    yield np.abs(value.astype(np.int16)) > steps, lambda i: f"value {value[i]} outside [-{steps}, {steps}]"
    yield np.abs(outcome.astype(np.int16)) > 1, lambda i: f"outcome {outcome[i]} is none of 1, 0, -1"


Finding = tuple[Any, Callable[[int], str]]
"""Which rows are wrong (B,), and what to say of one of them."""


def _new(
    rows: NDArray[np.bool_], seen: NDArray[np.bool_], games: NDArray[np.int64], what: Callable[[int], str]
) -> Iterator[Fault]:
    """The faults of rows that have none yet."""
    fresh = np.flatnonzero(rows & ~seen)
    seen |= rows
    for place in fresh:
        yield Fault(place=int(place), game=int(games[place]), what=what(int(place)))


def _arrays(table: pa.Table, row: pa.Schema) -> tuple[Columns, list[Finding]]:
    """The columns as arrays, and the rows that cannot be given as such: nulls, and lists of odd lengths."""
    columns: Columns = {}
    wrong: list[Finding] = []

    def fault(rows: NDArray[np.bool_], text: str) -> None:
        if rows.any():
            wrong.append((rows, lambda _: text))

    for field in row:
        column = table[field.name].combine_chunks()
        missing = _nulls(column)
        fault(missing, f"{field.name} is missing (null)")
        if not pa.types.is_nested(field.type):
            columns[field.name] = schema.numbers(column)
            continue
        lengths = np.full(len(column), COLUMNS, np.int32)
        if pa.types.is_list(field.type):
            lengths = np.diff(schema.numbers(column.offsets))
        width = int(np.bincount(lengths).argmax()) if len(lengths) else COLUMNS
        fault(~missing & (lengths == 0), f"{field.name} is empty")
        fault(~missing & (lengths != width), f"{field.name} has another length than in most rows")
        values = column.flatten()
        of_row = np.repeat(np.arange(len(column)), np.where(missing, 0, lengths))
        holes = np.bincount(of_row[_nulls(values)], minlength=len(column)) > 0
        fault(holes, f"a number in {field.name} is missing (null)")
        if not wrong:
            columns[field.name] = schema.numbers(values).reshape(-1, width)
    return columns, wrong


def _nulls(array: pa.Array) -> NDArray[np.bool_]:
    """bool (B,): which values are missing, from the bitmap. (`is_null` and `to_numpy` would import pandas.)"""
    bitmap = array.buffers()[0]
    if bitmap is None:
        return np.zeros(len(array), np.bool_)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)] == 0


def _of_rows(rows: Columns, law: Law) -> Iterator[Finding]:
    """What can be seen in a row alone."""
    current, mask, ply, votes, visits = (rows[name] for name in ("current", "mask", "ply", "votes", "visits"))
    label, move = rows["label"], rows["move"]
    legal = rules.legal_mask(mask)
    opponent: Any = current ^ mask
    stones = np.bitwise_count(mask)

    def is_legal(column: NDArray[Any]) -> NDArray[np.bool_]:
        inside = (column >= 0) & (column < COLUMNS)
        return inside & legal[np.arange(len(legal)), np.where(inside, column, 0)]

    yield (mask & ~np.uint64(rules.FULL_BOARD)) != 0, lambda _: "stones outside the 42 cells"
    yield (current & ~mask) != 0, lambda _: "stones of the side to move on empty cells"
    yield ((mask + np.uint64(rules.BOTTOM_ROW)) & mask) != 0, lambda _: "a stone floats above an empty cell"
    counts = np.bitwise_count(current) != stones // 2
    yield counts, lambda i: f"{current[i].bit_count()} of {stones[i]} stones belong to the side to move"
    over = rules.has_four(current) | rules.has_four(opponent) | (mask == np.uint64(rules.FULL_BOARD))
    yield over, lambda _: "the game is over in this position"
    yield ply != stones, lambda i: f"ply {ply[i]}, but {stones[i]} stones on the board"

    cast = votes >= 0
    places = np.where(cast & (votes < COLUMNS), votes, 0)
    fine = np.where(cast, (votes < COLUMNS) & np.take_along_axis(legal, places.astype(np.intp), axis=1), votes == -1)
    yield ~fine.all(axis=1), lambda i: f"votes {_text(votes[i])} with one for no legal column"
    yield (visits < 0).any(axis=1), lambda i: f"visits {_text(visits[i])} below zero"
    yield ((visits != 0) & ~legal).any(axis=1), lambda i: f"visits {_text(visits[i])} on a full column"
    yield ~is_legal(label), lambda i: f"label {label[i]} is no legal column"
    yield ~is_legal(move), lambda i: f"move {move[i]} is no legal column"
    if law.relabelled:
        yield ~visits.any(axis=1), lambda _: "no visits"
    else:
        yield from _of_search(rows, law)
    value, outcome = rows["value"], rows["outcome"]
    yield ~(np.abs(value) <= 1), lambda i: f"value {value[i]} outside [-1, 1]"
    yield np.abs(outcome) > 1, lambda i: f"outcome {outcome[i]} is none of 1, 0, -1"


def _of_search(rows: Columns, law: Law) -> Iterator[Finding]:
    """How label, move, visits and votes of a row follow from the searches that made it."""
    votes, visits, label, move, simulations = (
        rows[name] for name in ("votes", "visits", "label", "move", "simulations")
    )
    needed = 1 if law.savings else votes.shape[1]
    yield (votes >= 0).sum(axis=1) < needed, lambda i: f"votes {_text(votes[i])} with one that was skipped"
    if law.votes is not None:
        wrong_number = np.full(len(label), votes.shape[1] != law.votes)
        yield wrong_number, lambda _: f"{votes.shape[1]} votes, where the run has {law.votes}"
    total = visits.sum(axis=1, dtype=np.int64)
    if law.teacher:
        yield total != simulations, lambda i: f"visits sum to {total[i]}, simulations to {simulations[i]}"
    if law.votes is not None and law.simulations is not None:
        most = law.votes * law.simulations
        unlike = simulations > most if law.savings else simulations != most
        yield unlike, lambda i: f"{simulations[i]} simulations, where the run has {law.votes} x {law.simulations}"
    tally = (votes[:, :, None] == np.arange(COLUMNS)).sum(axis=1)
    best = majority(tally, visits)
    unlike = label != best
    yield unlike, lambda i: f"label {label[i]} is not the majority of votes {_text(votes[i])}, which is {best[i]}"
    if law.teacher and not law.strays:
        yield move != label, lambda i: f"move {move[i]} is not the label {label[i]}, which the teacher plays"


def _of_games(rows: Columns, law: Law, sound: NDArray[np.bool_]) -> Iterator[Finding]:
    """What rows say together; `sound` rows (B,) are those without a fault of their own."""
    game, ply, outcome = rows["game_id"], rows["ply"].astype(np.int64), rows["outcome"]
    inside = (game >= law.first_game) & (game < law.first_game + law.games)
    last_game = law.first_game + law.games - 1
    yield ~inside, lambda _: f"a game outside {law.first_game} to {last_game}, the shard's own"
    if not len(game):
        return
    same = np.concatenate([[False], game[1:] == game[:-1]])  # as the row before
    disorder = np.concatenate([[False], game[1:] < game[:-1]]) | (same & np.concatenate([[False], ply[1:] < ply[:-1]]))
    yield disorder, lambda _: "out of order: rows are sorted by game and ply"
    yield same & np.concatenate([[False], ply[1:] == ply[:-1]]), lambda _: "the same game and ply as the row before"

    current, mask, over, won = _played(rows["current"], rows["mask"], rows["move"])
    both = np.concatenate([[False], sound[:-1]]) & sound
    follows = np.zeros(len(game), np.bool_)
    follows[1:] = (current[:-1] == rows["current"][1:]) & (mask[:-1] == rows["mask"][1:])
    yield same & both & ~follows, lambda i: "not the position that the move before leads to"

    first = ~same
    starts = np.flatnonzero(first & sound)
    follows[starts] = _are_reachable(rows["current"][starts], rows["mask"][starts])
    yield first & sound & ~follows, lambda _: "no order of moves leads to this position"
    if law.opening_moves:
        ranges = np.array(law.opening_moves)
        fewest, most = ranges[game % len(ranges)].T
        unlike = first & ((ply < fewest) | (ply > most))
        yield unlike, lambda i: f"the game's rows begin at ply {ply[i]}, its opening has {fewest[i]} to {most[i]} moves"

    last = np.append(~same[1:], True)
    yield last & sound & ~over, lambda _: "the game's last row, but the move does not end the game"
    ends = np.flatnonzero(last)
    end = ends[np.cumsum(first) - 1]  # the last row of each row's game
    result = won[end].astype(np.int64) * (1 - 2 * ((end - np.arange(len(game))) % 2))
    unlike = sound & sound[end] & (outcome != result)
    yield unlike, lambda i: f"outcome {outcome[i]}, but the moves lead to {result[i]}"


def _played(
    current: NDArray[np.uint64], mask: NDArray[np.uint64], move: NDArray[np.int8]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_], NDArray[np.bool_]]:
    """The positions after the moves, and whether each is over and won; nonsense where a move is none."""
    column = np.clip(move, 0, COLUMNS - 1).astype(np.uint64)
    bottom = np.uint64(1) << (np.uint64(BITS_PER_COLUMN) * column)
    stone = (mask + bottom) & _COLUMN_BITS[column.astype(np.intp)]
    after = mask | stone
    won = rules.has_four(current | stone)
    return current ^ mask, after, won | (after == np.uint64(rules.FULL_BOARD)), won


def _are_reachable(current: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """bool (B,): `is_reachable` of many positions; most need no search, as one plain way back leads to the start."""
    own, left, turn = current, mask, np.zeros(len(mask), np.bool_)
    stuck = turn
    for _ in range(int(np.bitwise_count(mask).max(initial=0))):
        tops = left & ~(left >> np.uint64(1)) & np.where(turn, own, left ^ own)
        stone = tops & (~tops + np.uint64(1))  # the lowest of them
        stuck = stuck | ((stone == 0) & (left != 0))
        own, left, turn = own & ~stone, left & ~stone, ~turn
    found = ~stuck
    for place in np.flatnonzero(~found):
        found[place] = is_reachable(Position(int(current[place]), int(mask[place])))
    return found


def is_reachable(position: Position) -> bool:
    """Whether alternating moves can lead to a position in which nobody has four in a line.

    Stones are taken off again, last mover's first, from the tops of columns; no line can have stood before where
    none stands now. Dead ends are remembered by the heights left: at most 7^7, in games a handful.
    """
    owners = [
        [
            bool(position.current >> (BITS_PER_COLUMN * column + row) & 1)
            for row in range((position.mask & rules.column_bits(column)).bit_count())
        ]
        for column in range(COLUMNS)
    ]
    dead: set[tuple[int, ...]] = set()

    def back(left: tuple[int, ...], own: bool) -> bool:
        """Whether the stones left can be taken off, next one of the side to move (own) or of the other."""
        if left in dead:  # whose turn it is follows from their number
            return False
        for column in range(COLUMNS):
            if left[column] and owners[column][left[column] - 1] == own:
                rest = (*left[:column], left[column] - 1, *left[column + 1 :])
                if back(rest, not own):
                    return True
        dead.add(left)
        return not any(left)

    return back(tuple(map(len, owners)), False)


def _text(values: NDArray[Any]) -> str:
    return " ".join(map(str, values.tolist()))
