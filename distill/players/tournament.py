"""A round robin of all players: standings with Elo, and a cross table.

In: players, and the openings that every pair plays from both sides. Out: the figures as JSON values, and as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import Progress, say
from distill.common.tables import table
from distill.players.intervals import Estimate, elo_with_intervals, share
from distill.players.match import Games, Opening, Pairing, pair_points, paired, play_games
from distill.players.player import Player

Row = dict[str, Any]
"""One player's line of a table."""


def meet(players: Sequence[Player], starts: Sequence[Opening], seed: int) -> tuple[dict[str, Any], str]:
    """Each pair plays each opening twice, once from either side.

    Returns a report as JSON values, its `standings` the best player first and its `points` in the order of `players`;
    and the standings and the cross table as text.
    """
    pairings = [pairing for a, b in combinations(range(len(players)), 2) for pairing in paired(a, b, starts)]
    games = _play(players, pairings, seed)
    points = pair_points(games, pairings, len(players))
    ratings = elo_with_intervals(points, seed)
    order = sorted(range(len(players)), key=lambda index: -ratings[index].mean)
    standings = [_standing(players[index].name, index, games, pairings, points, ratings[index]) for index in order]
    report = {
        "standings": standings,
        "players": [player.name for player in players],
        "points": np.where(np.isnan(points), 0, points).sum(0).tolist(),
        "games": len(pairings),
        "distinct_games": games.distinct,
        "openings": len(set(starts)),
    }
    return report, f"{_standings_table(standings)}\n\n{_cross_table(standings, points[:, order][:, :, order])}\n"


def against_solver(player: Player, solver: Player, count: int, seed: int) -> Row:
    """`count` games from the empty board against the solver, the player moving first."""
    games = _play([player, solver], [Pairing(first=0, second=1)] * count, seed)
    return {
        "player": player.name,
        "games": count,
        "distinct_games": games.distinct,
        "won": asdict(share(games.results > 0, trials=1)),
        "drawn": float((games.results == 0).mean()),
    }


def _play(players: Sequence[Player], pairings: Sequence[Pairing], seed: int) -> Games:
    say(f"playing {len(pairings):,} games side by side")
    with Progress(len(pairings), "games") as progress:
        return play_games(players, pairings, seed, progress.advance)


def _standing(
    name: str, index: int, games: Games, pairings: Sequence[Pairing], points: NDArray[np.float64], rating: Estimate
) -> Row:
    first = np.array([pairing.first == index for pairing in pairings])
    second = np.array([pairing.second == index for pairing in pairings])
    own = np.concatenate([games.results[first], -games.results[second]])
    trials = 2 * (points.shape[1] - 1)  # games of a player from one opening
    return {
        "player": name,
        "games": len(own),
        "wins": int((own > 0).sum()),
        "draws": int((own == 0).sum()),
        "losses": int((own < 0).sum()),
        "score": asdict(share(np.nanmean(points[:, index], axis=1) / 2, trials)),
        "elo": asdict(rating),
    }


def _standings_table(standings: Sequence[Row]) -> str:
    rows = [
        [
            *(str(row[name]) for name in ("player", "games", "wins", "draws", "losses")),
            percent(Estimate(**row["score"])),
            "{mean:+.0f} ({low:+.0f} to {high:+.0f})".format(**row["elo"]),
        ]
        for row in standings
    ]
    return table(["player", "games", "won", "drawn", "lost", "score (95 %)", "Elo (95 %)"], rows)


def _cross_table(standings: Sequence[Row], points: NDArray[np.float64]) -> str:
    """Score of the row's player against the column's, with its 95 % interval."""
    numbers = range(len(standings))
    rows = [
        [
            f"{one + 1} {standings[one]['player']}",
            *("·" if one == other else percent(share(points[:, one, other] / 2)) for other in numbers),
        ]
        for one in numbers
    ]
    return table(["score", *(str(number + 1) for number in numbers)], rows)


def percent(estimate: Estimate) -> str:
    """A share with its 95 % interval."""
    return f"{100 * estimate.mean:.1f} % ({100 * estimate.low:.1f}–{100 * estimate.high:.1f})"
