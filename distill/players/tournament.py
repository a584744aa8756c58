"""A round robin of all players: standings with Elo, and a cross table.

In: players, and the openings that every pair plays from both sides. Out: the figures, and as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from distill.common import Progress, say
from distill.common.tables import table
from distill.players.intervals import Estimate, elo_with_intervals, share
from distill.players.match import Opening, pair_points, paired, play_games
from distill.players.player import Player


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A player's games against all others; its score is wins and half the draws."""

    player: str
    games: int
    wins: int
    draws: int
    losses: int
    score: Estimate
    elo: Estimate


@dataclass(frozen=True, kw_only=True)
class Tournament:
    """A finished round robin.

    Attributes:
      standings: the best player first.
      players: in the order given; points: of the row's player against the column's, in this order.
      games, distinct_games, openings: how many.
    """

    standings: list[Standing]
    players: list[str]
    points: list[list[float]]
    games: int
    distinct_games: int
    openings: int


def meet(players: Sequence[Player], starts: Sequence[Opening], seed: int) -> tuple[Tournament, str]:
    """Each pair plays each opening twice, once from either side; returns the figures, and two tables as text."""
    pairings = [pairing for a, b in combinations(range(len(players)), 2) for pairing in paired(a, b, starts)]
    say(f"playing {len(pairings):,} games side by side")
    with Progress(len(pairings), "games") as progress:
        games = play_games(players, pairings, seed, progress.advance)
    # Points by opening, because both games of an opening depend on each other.
    points = pair_points(games, pairings, len(players))
    ratings = elo_with_intervals(points, seed)
    seats = np.array([(pairing.first, pairing.second) for pairing in pairings])
    standings = []
    order = sorted(range(len(players)), key=lambda index: -ratings[index].mean)
    for index in order:
        # Results are those of the player with the first stone.
        results = np.concatenate([games.results[seats[:, 0] == index], -games.results[seats[:, 1] == index]])
        trials = 2 * (len(players) - 1)  # games of a player from one opening
        standings.append(
            Standing(
                player=players[index].name,
                games=len(results),
                wins=int((results > 0).sum()),
                draws=int((results == 0).sum()),
                losses=int((results < 0).sum()),
                score=share(np.nanmean(points[:, index], axis=1) / 2, trials),
                elo=ratings[index],
            )
        )
    tournament = Tournament(
        standings=standings,
        players=[player.name for player in players],
        points=np.where(np.isnan(points), 0, points).sum(0).tolist(),
        games=len(pairings),
        distinct_games=len(set(games.lines)),  # with the same moves
        openings=len(set(starts)),
    )
    return tournament, f"{_standings_table(standings)}\n\n{_cross_table(standings, points[:, order][:, :, order])}\n"


def _standings_table(standings: Sequence[Standing]) -> str:
    rows = [
        [
            one.player,
            *map(str, (one.games, one.wins, one.draws, one.losses)),
            percent(one.score),
            f"{one.elo.mean:+.0f} ({one.elo.low:+.0f} to {one.elo.high:+.0f})",
        ]
        for one in standings
    ]
    return table(["player", "games", "won", "drawn", "lost", "score (95 %)", "Elo (95 %)"], rows)


def _cross_table(standings: Sequence[Standing], points: NDArray[np.float64]) -> str:
    """Score of the row's player against the column's, with its 95 % interval."""
    numbers = range(len(standings))
    rows = [
        [
            f"{one + 1} {standings[one].player}",
            *("·" if one == other else percent(share(points[:, one, other] / 2)) for other in numbers),
        ]
        for one in numbers
    ]
    return table(["score", *(str(number + 1) for number in numbers)], rows)


def percent(estimate: Estimate) -> str:
    """A share with its 95 % interval."""
    return f"{100 * estimate.mean:.1f} % ({100 * estimate.low:.1f}–{100 * estimate.high:.1f})"
