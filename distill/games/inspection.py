"""Checks of a whole run: the record against the files, and every row against the rules of the game and the settings.

In: the storage of a run of games or of packed boards. Out: every violation, in words; at most one for each row, which
names the game and its ply. Nothing is changed.

The search is not imported. Shared with the code that plays the games: the rules (`game/`) and the majority of votes
(`mcts/labeller.py`).
Dimensions: B rows, A = 7 columns, K votes of a row.
"""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import run_folder
from distill.common.storage import Storage
from distill.game import outputs, rules
from distill.game.rules import COLUMNS
from distill.games import reader, schema
from distill.games.reader import Columns
from distill.games.schema import Shard
from distill.mcts.labeller import majority


def inspect(storage: Storage) -> Iterator[tuple[str, list[str], Columns | None]]:
    """Each shard of a finished run that the record names or that exists: its name, what is wrong with it, its columns.

    There are no columns where the file is not the recorded one. Raises DataError for other folders.
    """
    run = reader.run_of(storage, run_folder.finished(storage, *reader.KINDS))
    recorded, names = {shard.name: shard for shard in run.shards}, storage.names()
    for name in sorted({*recorded, *fnmatch.filter(names, "shard-*.parquet")}):
        wrong, rows = ["not in the record"], None
        if name in recorded:
            content = storage.read(name) if name in names else b""
            wrong = ["not the file that the record describes (missing, damaged or changed)"]
            if hashlib.sha256(content).hexdigest() == recorded[name].sha256:
                rows = reader.columns_of(name, *schema.read_table(name, None, content))
                wrong = [*faults(rows, run.identity, recorded[name])]
        yield name, [f"{name}: {what}" for what in wrong], rows


# Rows -----------------------------------------------------------------------------------------------------------------


def faults(rows: Columns, identity: Mapping[str, Any], shard: Shard) -> Iterator[str]:
    """Everything wrong with the rows of a shard, at most one fault for each row; packed boards show none.

    By the `identity` of the run, only the built-in search has its votes and simulations checked. The label of a user's
    labeller need not be the majority of its votes.
    """
    game, ply = rows["game_id"], rows["ply"]
    expected = shard.first_game + np.arange(shard.games)
    wrong = np.zeros(len(game), np.bool_)
    # A row is reported once, with its first fault: the others may follow from it.
    for is_wrong, what in _checks(rows, identity, expected, wrong) if "move" in rows else ():
        yield from (f"game {game[row]}, ply {ply[row]}: {what}" for row in np.flatnonzero(is_wrong & ~wrong))
        wrong |= is_wrong
    yield from (f"game {missing}: the game has no rows" for missing in np.setdiff1d(expected, game))


def _checks(
    rows: Columns, identity: Mapping[str, Any], games: NDArray[np.int64], wrong: NDArray[np.bool_]
) -> Iterator[tuple[Any, str]]:
    """Which rows break each rule, bool (B,), and the words for it; `wrong`, bool (B,), have a fault already."""
    current, mask, ply, votes, visits = (rows[name] for name in ("current", "mask", "ply", "votes", "visits"))
    label, move, simulations, game = (rows[name] for name in ("label", "move", "simulations", "game_id"))
    legal = rules.legal_mask(mask)

    # The position.
    yield from rules.faults(current, mask)
    yield rules.are_over(current, mask), "the game is over in this position"
    yield ply != np.bitwise_count(mask), "ply is not the number of stones on the board"

    # Columns that are full.
    allowed = outputs.are_legal(votes, legal) | (votes == -1)
    yield ~allowed.all(axis=1), "a vote for an illegal column"
    yield (visits < 0).any(axis=1), "visits below 0"
    yield ((visits != 0) & ~legal).any(axis=1), "visits on a full column"
    for name in ("label", "move"):
        yield ~outputs.are_legal(rows[name][:, None], legal)[:, 0], f"{name} is an illegal column"

    # What the labeller returned.
    yield ~(np.abs(rows["value"]) <= 1), "value is not in [-1, 1]"  # NaN neither
    searched, by_user = "votes" in identity, "labeller" in identity
    if searched or by_user:  # a network's visits may be an improved policy, in parts of the simulations
        yield visits.sum(axis=1, dtype=np.int64) != simulations, "simulations is not the sum of visits"
    if searched:
        number, budget = int(identity["votes"]), int(identity["simulations"])
        different = (simulations != number * budget) | (votes.shape[1] != number)
        yield different, f"the run has {number} votes of {budget} simulations"
    if not by_user:
        yield (votes < 0).any(axis=1), "a vote that was skipped"
        best = majority((votes[:, :, None] == np.arange(COLUMNS)).sum(axis=1), visits)
        yield label != best, "label is not the majority of the votes"
    if (searched or by_user) and (identity.get("noise_at") != "move" or not identity["noise_fraction"]):
        yield move != label, "move is not the label, which the run plays"

    # The order of the rows, in which each move leads to the next position.
    if not len(game):
        return
    yield ~np.isin(game, games), f"a game outside {games[0]} to {games[-1]}, the games of the shard"
    before, same = slice(None, -1), np.diff(game) == 0
    first, last = np.append(True, ~same), np.append(~same, True)
    yield np.append(False, (np.diff(game) < 0) | (same & (np.diff(ply) <= 0))), "not sorted by game and ply"
    stone = rules.landing(mask)[np.arange(len(game)), move % COLUMNS]  # illegal moves are reported above
    follows = ((current ^ mask)[before] == current[1:]) & ((mask | stone)[before] == mask[1:])
    sound = ~wrong
    yield np.append(False, same & sound[before] & ~follows), "not the position that the move before leads to"
    if "opening_moves" in identity and "network" not in identity:
        pairs = np.reshape(identity["opening_moves"], (-1, 2)).astype(int)
        fewest, most = pairs[game % max(len(pairs), 1)].T  # IndexError for an empty table
        yield first & ((ply < fewest) | (ply > most)), "the game starts at a ply that its opening cannot reach"

    # The last move, and the result of a game, seen by turns from either side.
    won = rules.has_four(current | stone)
    over = won | (mask | stone == np.uint64(rules.FULL_BOARD))
    yield last & ~over, "the game's last row, but the move does not end the game"
    end = np.flatnonzero(last)[np.cumsum(first) - 1]  # the last row of each row's game
    result = won[end].astype(np.int64) * (1 - 2 * ((end - np.arange(len(game))) % 2))
    yield ~wrong[end] & (rows["outcome"] != result), "outcome is not the result that the moves lead to"
