"""A round robin of all players: standings with Elo, a cross table, and the moves that give wins away.

In: players, and the openings that every pair plays from both sides. Out: the figures as JSON values, and as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import Progress, say
from distill.players.intervals import Estimate, elo_with_intervals, share
from distill.players.match import Games, Opening, Pairing, given_away, lines_to, pair_points, paired, play_games
from distill.players.player import Player

Row = dict[str, Any]
"""One player's line of a table."""


@dataclass(frozen=True, kw_only=True)
class Tournament:
    """The result.

    Attributes:
      rows: the standings, the best player first.
      points: (U, K, K), per opening the points of the row's player against the column's, in the order of `rows`.
      report: everything as JSON values; players and points in the order given.
    """

    rows: list[Row]
    points: NDArray[np.float64]
    report: dict[str, Any]

    def text(self) -> str:
        """Standings and cross table, for the screen."""
        return f"{_standings_table(self.rows)}\n{_cross_table([row['player'] for row in self.rows], self.points)}"

    def last(self) -> str:
        """The line that names the first player."""
        return f"{self.rows[0]['player']} is first with {percent(Estimate(**self.rows[0]['score']))} of the points"


def meet(players: Sequence[Player], starts: Sequence[Opening], seed: int, solvers: int = 0) -> Tournament:
    """Each pair plays each opening twice, once from either side.

    With `solvers`, a number of solver processes, the report also has each player's `losses`.
    """
    pairings = [pairing for a, b in combinations(range(len(players)), 2) for pairing in paired(a, b, starts)]
    say(f"playing {len(pairings):,} games side by side")
    with Progress(len(pairings), "games") as progress:
        games = play_games(players, pairings, seed, progress.advance)
    points = pair_points(games, pairings, len(players))
    ratings = elo_with_intervals(points, seed)
    trials = 2 * (len(players) - 1)  # games of a player from one opening
    scores = [share(np.nanmean(points[:, index], axis=1) / 2, trials) for index in range(len(players))]
    order = sorted(range(len(players)), key=lambda index: -ratings[index].mean)
    rows = [_standing(players[index].name, index, games, pairings, scores[index], ratings[index]) for index in order]
    report = {
        "standings": rows,
        "players": [player.name for player in players],
        "points": np.where(np.isnan(points), 0, points).sum(0).tolist(),
        "games": len(pairings),
        "distinct_games": games.distinct,
        "openings": len(set(starts)),
    }
    if solvers:
        say("solving the positions of the lost games")
        seats = [(index, seat) for index in range(len(players)) for seat in (0, 1)]
        report["losses"] = [
            {"player": players[index].name} | _losses(index, seat, games, pairings, solvers) for index, seat in seats
        ]
    return Tournament(rows=rows, points=points[:, order][:, :, order], report=report)


def against_solver(player: Player, solver: Player, count: int, workers: int, seed: int) -> Row:
    """`count` games from the empty board against the solver, the player moving first."""
    pairings = [Pairing(first=0, second=1)] * count
    say(f"{player.name} plays {count:,} games against the solver")
    with Progress(count, "games") as progress:
        games = play_games([player, solver], pairings, seed, progress.advance)
    return {
        "player": player.name,
        "games": count,
        "distinct_games": games.distinct,
        "won": asdict(share(games.results > 0, trials=1)),
        "drawn": float((games.results == 0).mean()),
        "given_away": lines_to(games, given_away(games, np.where(games.results > 0, -1, 0), workers)),
    }


def _losses(index: int, seat: int, games: Games, pairings: Sequence[Pairing], workers: int) -> Row:
    """A player's games with the first or second stone: lost, and lost after a move that gave a win or draw away."""
    own = np.array([(pairing.first, pairing.second)[seat] == index for pairing in pairings])
    lost = own & (games.results * (1 - 2 * seat) < 0)
    let_go = given_away(games, np.where(lost, seat, -1), workers)
    return {"stone": ("first", "second")[seat], "games": int(own.sum()), "lost": int(lost.sum()), "let_go": len(let_go)}


def _standing(
    name: str, index: int, games: Games, pairings: Sequence[Pairing], score: Estimate, rating: Estimate
) -> Row:
    first = np.array([pairing.first == index for pairing in pairings])
    second = np.array([pairing.second == index for pairing in pairings])
    own = np.concatenate([games.results[first], -games.results[second]])
    return {
        "player": name,
        "games": len(own),
        "wins": int((own > 0).sum()),
        "draws": int((own == 0).sum()),
        "losses": int((own < 0).sum()),
        "score": asdict(score),
        "elo": asdict(rating),
    }


def _standings_table(rows: Sequence[Row]) -> str:
    width = max(len("player"), *(len(row["player"]) for row in rows))
    lines = [f"{'player':{width}}  games  won  drawn  lost  score (95 %)           Elo (95 %)"]
    for row in rows:
        rating = "{mean:+5.0f} ({low:+.0f} to {high:+.0f})".format(**row["elo"])
        lines.append(
            f"{row['player']:{width}} {row['games']:6} {row['wins']:4} {row['draws']:6} {row['losses']:5}  "
            f"{percent(Estimate(**row['score'])):22} {rating}"
        )
    return "\n".join(lines)


def _cross_table(names: Sequence[str], points: NDArray[np.float64]) -> str:
    """Score of the row's player against the column's, in percent, with its 95 % interval."""
    width = max(map(len, names))
    lines = ["", f"{'score in %':{width}}  " + "  ".join(f"{number:>16}" for number in range(1, len(names) + 1))]
    for row, name in enumerate(names):
        cells = [
            f"{'·':>16}" if row == column else f"{percent(share(points[:, row, column] / 2), unit=''):>16}"
            for column in range(len(names))
        ]
        lines.append(f"{name:{width}}  " + "  ".join(cells) + f"   {row + 1}")
    return "\n".join([*lines, ""])


def percent(estimate: Estimate, unit: str = " %") -> str:
    """A share with its 95 % interval."""
    return f"{100 * estimate.mean:.1f}{unit} ({100 * estimate.low:.1f}–{100 * estimate.high:.1f})"
