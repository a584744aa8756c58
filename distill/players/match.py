"""Games between players: openings, the loop in which all games advance together, and the gate.

A player chooses its moves on all boards where it is to move as one batch. The record of the games is that of the series
“Connect-Zero”: states from the side to move, the moves played in them, and the game's final result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distill.common.progress import Advance, silent
from distill.game.encoding import bitboards_of, boards
from distill.game.rules import FULL_BOARD, Position, after_moves, from_moves, is_over, mirror
from distill.game.tactics import wins
from distill.players.player import Player, checked_choices, seeds_for

Opening = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """A game to be played: the indices of the players with the first and second stone, and the opening."""

    first: int
    second: int
    opening: Opening = ()


@dataclass(frozen=True, kw_only=True)
class Games:
    """Finished games and their N states after the openings, in the order played.

    Attributes:
      results: float32 (G,), +1, 0, −1 for the player with the first stone.
      lines: per game all its moves, the opening first.
      states: int8 (N, 6, 7), +1 the side to move, row 0 on top.
      moves: int64 (N,), the columns played there.
      game: int64 (N,), the game each state is from.
    """

    results: NDArray[np.float32]
    lines: tuple[tuple[int, ...], ...]
    states: NDArray[np.int8]
    moves: NDArray[np.int64]
    game: NDArray[np.int64]


def openings(count: int, plies: int, seed: int, patience: float = 2_000) -> list[Opening]:
    """`count` random openings of this many plies, no two reaching the same board up to mirror.

    After an opening neither side can win with its next stone. Raises ValueError where there are fewer: once more than
    `patience` draws in a row found no new opening. Near the largest number this depends on the seed.
    """
    rng = np.random.default_rng([seed, plies])
    distinct: dict[frozenset[Position], Opening] = {}  # by the board and its mirror image
    fruitless = 0
    # Draw moves until there are enough; most draws end early or repeat an opening.
    while len(distinct) < count:
        moves = tuple(rng.integers(0, 7, plies).tolist())
        position = _quiet(moves)
        if position and (both := frozenset({position, mirror(position)})) not in distinct:
            distinct[both] = moves
            fruitless = 0
        elif (fruitless := fruitless + 1) > patience:
            raise ValueError(f"there are only about {len(distinct)} openings of {plies} plies, {count} are needed")
    return list(distinct.values())


def _quiet(moves: Opening) -> Position | None:
    """The position after the moves, where all can be played, the game is not over and no side can win at once."""
    try:
        position = from_moves(moves)
    except ValueError:
        return None
    current, mask = bitboards_of([position])
    is_urgent = is_over(position) or any(wins(stones, mask).any() for stones in (current, current ^ mask))
    return None if is_urgent else position


def play_games(players: Sequence[Player], pairings: Sequence[Pairing], seed: int, advance: Advance = silent) -> Games:
    """Play every pairing, at least one, to its end; no opening ends the game.

    A player's seed is a function of (seed, game, ply), so a game does not depend on the others. `advance` is told the
    number of games that ended. Raises OutputError for an illegal move.
    """
    # Set up all games after their openings.
    current, mask = bitboards_of(from_moves(pairing.opening) for pairing in pairings)
    seats = np.array([(pairing.first, pairing.second) for pairing in pairings])
    results = np.zeros(len(pairings), np.float32)
    lines = [list(pairing.opening) for pairing in pairings]
    batches = []  # states, moves and games

    live = np.arange(len(pairings))
    while len(live):
        # The player that is to move in most games moves in them; the other games wait, so batches are large.
        plies = np.bitwise_count(mask).astype(np.int64)
        to_move = seats[live, plies[live] % 2]
        index = int(np.bincount(to_move).argmax())
        games = live[to_move == index]
        seeds = seeds_for(seed, games, plies[games])
        columns = checked_choices(players[index], current[games], mask[games], seeds).moves
        batches.append((boards(current[games], mask[games]), columns, games))
        for game, column in zip(games, columns, strict=True):
            lines[game].append(int(column))
        current[games], mask[games], won = after_moves(current[games], mask[games], columns)
        results[games] = np.where(won, 1 - 2 * (plies[games] % 2), 0)  # for the player with the first stone
        # Finished games leave the batch.
        over = (results[live] != 0) | (mask[live] == FULL_BOARD)
        advance(int(over.sum()))
        live = live[~over]

    states, moves, game = map(np.concatenate, zip(*batches, strict=True))
    return Games(results=results, lines=tuple(map(tuple, lines)), states=states, moves=moves, game=game)


def paired(first: int, second: int, starts: Sequence[Opening]) -> list[Pairing]:
    """Two games an opening, the second with the seats exchanged."""
    return [
        Pairing(first=a, second=b, opening=opening) for opening in starts for a, b in ((first, second), (second, first))
    ]


def results_of(games: Games, pairings: Sequence[Pairing], player: int = 0) -> NDArray[np.float32]:
    """float32 (G,), each game's result for a player that took part in all of them: +1, 0, −1."""
    sides = np.array([1 if pairing.first == player else -1 for pairing in pairings], np.float32)
    return sides * games.results


def pair_points(games: Games, pairings: Sequence[Pairing], players: int) -> NDArray[np.float64]:
    """(U, K, K), per opening the points, 0 to 2, of the row's player against the column's; NaN where they did not meet.

    `pairings` are `paired` lists, one after another, over the same U openings in the same order.
    """
    count = len(pairings) // len({(pairing.first, pairing.second) for pairing in pairings})
    points = np.full((count, players, players), np.nan)
    # Both games of an opening count for the same unit.
    for pairing, results in zip(pairings[:: 2 * count], games.results.reshape(-1, count, 2), strict=True):
        scored = 1 + (results[:, 0] - results[:, 1]) / 2  # by the player that begins the first game
        points[:, pairing.first, pairing.second], points[:, pairing.second, pairing.first] = scored, 2 - scored
    return points


# The arena of a candidate and the champion ----------------------------------------------------------------------------

BLOCK = 50
"""Arena games played side by side."""


def arena_block(players: Sequence[Player], games: int, plies: int, seed: int, first: int) -> list[float]:
    """The candidate's results, +1, 0 or −1, in at most BLOCK games of an arena, from number `first` on.

    Args:
      players: candidate and champion.
      games: of the whole arena, two from each opening of `plies` random stones that the seed gives; there must be as
        many.
      first: a multiple of BLOCK.
    """
    # All openings, so that the blocks of an arena share none. The settings have found as many with another seed, so the
    # draws end, but not always within the patience that says whether there are as many.
    starts = openings(games // 2, plies, seed % 2**32, math.inf)
    pairings = paired(0, 1, starts)[first : first + BLOCK]
    return results_of(play_games(players, pairings, int(seeds_for(seed, first)[0])), pairings).tolist()
