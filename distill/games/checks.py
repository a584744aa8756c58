"""Checks of every row of a shard against the rules of the game and the settings of its run, with NumPy.

In: a table of `schema.ROW` or `schema.PACKED_ROW`, and what the shard's metadata say about it. Out: at most one fault
for each row, in words that name the game and the values. Ranges of values are those of `schema.arrays`.

No code is shared with what plays the games: the rules come from `game/`, and the search is not imported.
Dimensions: B rows, A = 7 columns, K votes of a row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill.game import outputs, rules
from distill.game.rules import COLUMNS
from distill.games import schema
from distill.mcts.labeller import majority

Columns: TypeAlias = dict[str, NDArray[Any]]
"""Columns by name, each (B,), visits (B, A), votes (B, K)."""
Finding: TypeAlias = tuple[Any, Callable[[int], str]]
"""Which rows are wrong, bool (B,), and the words for one of them."""


def faults(table: pa.Table, metadata: Mapping[str, Any]) -> Iterator[str]:
    """Everything wrong with the rows of a shard, at most one fault for each row.

    `metadata` say which games the shard holds and, by the identity of the run, who labelled them. Only the built-in
    search has its votes and simulations checked. The label of a user's labeller need not be the majority of its votes.
    Raises DataError where columns cannot be arrays or have values out of range, and LookupError, TypeError, ValueError
    or ArithmeticError for metadata that are not those of a shard.
    """
    rows, first, games = schema.arrays("shard", table), metadata["first_game"], metadata["games"]
    if metadata.get("kind") == schema.PACKED:  # merged from many runs: there is nothing else to compare
        if len(table) != games:
            yield f"{len(table):,} boards, but its metadata say {games:,}"
        return
    identity, expected = metadata["identity"], np.arange(first, first + games)
    wrong = np.zeros(len(table), np.bool_)
    # A row is reported once, with its first fault: the others may follow from it.
    for fault, what in itertools.chain(_of_rows(rows, identity), _of_games(rows, expected, identity, wrong)):
        new = np.flatnonzero(fault & ~wrong)
        wrong |= fault
        for row in new.tolist():
            yield f"game {rows['game_id'][row]}: {what(row)}"
    for game in np.setdiff1d(expected, rows["game_id"]):
        yield f"game {game}: the game has no rows"


def _of_rows(rows: Columns, identity: Mapping[str, Any]) -> Iterator[Finding]:
    """What a row alone shows."""
    current, mask, ply, votes, visits = (rows[name] for name in ("current", "mask", "ply", "votes", "visits"))
    label, move, simulations = (rows[name] for name in ("label", "move", "simulations"))
    legal, stones = rules.legal_mask(mask), np.bitwise_count(mask)

    # The position.
    for wrong, what in rules.faults(current, mask):
        yield wrong, lambda _, what=what: what  # type: ignore[misc]
    yield rules.are_over(current, mask), lambda _: "the game is over in this position"
    yield ply != stones, lambda i: f"ply {ply[i]}, but {stones[i]} stones on the board"

    # Columns that are full.
    allowed = outputs.are_legal(votes, legal) | (votes == -1)
    yield ~allowed.all(axis=1), lambda i: f"votes {_text(votes[i])} for no legal column"
    yield ((visits != 0) & ~legal).any(axis=1), lambda i: f"visits {_text(visits[i])} on a full column"
    for name, columns in (("label", label), ("move", move)):
        illegal = ~outputs.are_legal(columns[:, None], legal)[:, 0]
        yield illegal, lambda i, name=name: f"{name} {rows[name][i]} is no legal column"  # type: ignore[misc]

    # What the labeller returned.
    searched, by_user = "votes" in identity, "labeller" in identity
    if searched or by_user:  # a network's visits may be an improved policy, in parts of the simulations
        total = visits.sum(axis=1, dtype=np.int64)
        yield total != simulations, lambda i: f"visits sum to {total[i]}, simulations to {simulations[i]}"
    if searched:
        budget, number = int(identity["simulations"]), int(identity["votes"])
        wrong_number = np.full(len(label), votes.shape[1] != number)
        yield wrong_number, lambda _: f"{votes.shape[1]} votes, where the run has {number}"
        differs = simulations != number * budget
        yield differs, lambda i: f"{simulations[i]} simulations, where the run has {number} x {budget}"
    if not by_user:
        yield (votes < 0).any(axis=1), lambda i: f"votes {_text(votes[i])} with one that was skipped"
        best = majority((votes[:, :, None] == np.arange(COLUMNS)).sum(axis=1), visits)
        what = "label {} is not the majority of votes {}, which is {}"
        yield label != best, lambda i: what.format(label[i], _text(votes[i]), best[i])
    if (searched or by_user) and (identity.get("noise_at") != "move" or not identity["noise_fraction"]):
        yield move != label, lambda i: f"move {move[i]} is not the label {label[i]}, which the run plays"


def _of_games(
    rows: Columns, expected: NDArray[np.int64], identity: Mapping[str, Any], wrong: NDArray[np.bool_]
) -> Iterator[Finding]:
    """What the rows of the `expected` games show together; rows that are `wrong`, bool (B,), have a fault already."""
    sound, game, ply, outcome = ~wrong, rows["game_id"], rows["ply"].astype(np.int64), rows["outcome"]
    if not len(game):
        return
    yield ~np.isin(game, expected), lambda _: f"a game outside {expected[0]} to {expected[-1]}, the games of the shard"

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
    first = ~same
    if "opening_moves" in identity and "network" not in identity:
        pairs = np.reshape(identity["opening_moves"], (-1, 2)).astype(int)
        fewest, most = pairs[game % max(len(pairs), 1)].T  # IndexError for an empty table
        differs = first & ((ply < fewest) | (ply > most))
        yield differs, lambda i: f"the game starts at ply {ply[i]}, its opening has {fewest[i]} to {most[i]} moves"

    # The last move and the result of a game, seen by turns from either side.
    last = np.append(first[1:], True)
    over = won | (mask == np.uint64(rules.FULL_BOARD))
    yield last & sound & ~over, lambda _: "the game's last row, but the move does not end the game"
    end = np.flatnonzero(last)[np.cumsum(first) - 1]  # the last row of each row's game
    result = won[end].astype(np.int64) * (1 - 2 * ((end - np.arange(len(game))) % 2))
    differs = sound & sound[end] & (outcome != result)
    yield differs, lambda i: f"outcome {outcome[i]}, but the moves lead to {result[i]}"


def _text(values: NDArray[Any]) -> str:
    return " ".join(map(str, values.tolist()))
