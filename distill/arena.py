"""Players meet over distinct paired openings: points, Elo and a cross table.

    python -m distill.arena models/cnn random uct:100 --games 200
    python -m distill.arena models/cnn uct:1000 --opening-plies 0 --solver-games 100

In: players by name (`players/players.py`). Out: the tables, and `arena.json` where `--out` names a folder. Every pair
plays `--games` games: each opening twice, once from either side. Random openings leave some games decided, so that even
perfect play does not win them all; from the empty board (`--opening-plies 0`) games differ by the players' chance
alone. With `--solver-games` every player also has the first stone against the solver from the empty board, where
perfect play wins; the solver's replies are drawn among the best, and the moves that give wins away are printed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.base import cli
from distill.base.files import write_atomically
from distill.base.progress import Progress, cores
from distill.players import players as roster
from distill.players.intervals import Estimate, elo_with_intervals, share
from distill.players.match import Games, Pairing, given_away, openings, pair_points, paired, play_games

MOST_LINES = 5
"""Moves by which wins are given away that are printed; `arena.json` has them all."""


@dataclass(frozen=True, kw_only=True)
class ArenaConfig:
    """Let players meet from paired openings and rate them."""

    players: tuple[str, ...] = cli.setting((), f"who meets: {roster.NAMES}", positional=True)
    games: int = cli.setting(200, "games a pair, half of them from either side")
    opening_plies: int = cli.setting(
        6, "random stones before the players take over; 0: the empty board, where players without chance repeat a game"
    )
    solver_games: int = cli.setting(0, "games of each player, with the first stone, against the solver")
    workers: int = cli.setting(cores(), "processes for searches and the solver")
    seed: int = cli.setting(0, "of openings, searches and random moves")
    out: Path | None = cli.setting(None, "folder for arena.json; none writes nothing")

    def __post_init__(self) -> None:
        cli.check(self.games >= 2 and self.games % 2 == 0, "games", self.games, "an even number from 2")
        cli.check(0 <= self.opening_plies <= 20, "opening_plies", self.opening_plies, "from 0 to 20")
        cli.check(self.solver_games >= 0, "solver_games", self.solver_games, "0 or more")
        cli.check(self.workers >= 1, "workers", self.workers, "at least 1")
        if len(self.players) < (1 if self.solver_games else 2):
            raise ValueError(f"name at least two players: {roster.NAMES}")
        if len(set(self.players)) < len(self.players):
            raise ValueError("a player is named twice; it cannot meet itself")
        for word in self.players:
            roster.check(word)
        if len(self.players) > 1:
            self.openings()

    def openings(self) -> list[tuple[int, ...]]:
        """The openings every pair plays. Raises ValueError where so many plies have too few."""
        if self.opening_plies == 0:
            return [()] * (self.games // 2)
        return openings(self.games // 2, self.opening_plies, self.seed)


PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"players": (str(cli.SMOKE_MODELS / "cnn"), "random"), "games": 4, "out": cli.SMOKE_MODELS / "arena"},
}


def run(config: ArenaConfig) -> str:
    """Play, print the tables, write `arena.json`; the last line says who is ahead."""
    players = [roster.make(word, config.workers) for word in config.players]
    report: dict[str, Any] = {"config": cli.as_json(config)}
    last = ""
    if len(players) > 1:
        report["tournament"], last = _tournament(config, players)
    if config.solver_games:
        report["against_solver"], line = _against_solver(config, players)
        last = last or line
    if config.out:
        write_atomically(config.out / "arena.json", (json.dumps(report, indent=1) + "\n").encode())
        last += f" · {config.out / 'arena.json'}"
    return last


def _tournament(config: ArenaConfig, players: list[roster.Player]) -> tuple[dict[str, Any], str]:
    starts = config.openings()
    pairings = [pairing for a, b in combinations(range(len(players)), 2) for pairing in paired(a, b, starts)]
    with Progress(len(pairings), "games") as progress:
        games = play_games(players, pairings, config.seed, progress.advance)
    points = pair_points(games, pairings, len(players))
    ratings = elo_with_intervals(points, config.seed)
    trials = 2 * (len(players) - 1)  # games of a player from one opening
    scores = [share(np.nanmean(points[:, index], axis=1) / 2, trials) for index in range(len(players))]
    order = sorted(range(len(players)), key=lambda index: -ratings[index].mean)
    rows = [_standing(players[index].name, index, games, pairings, scores[index], ratings[index]) for index in order]
    print(_standings_table(rows))
    print(_cross_table([players[index].name for index in order], points[:, order][:, :, order]))
    origin = f"{len(starts)} openings" if config.opening_plies else "the empty board"
    print(f"{len(pairings)} games, {games.distinct} of them distinct, from {origin}")
    if 10 * games.distinct < 9 * len(pairings):
        print("many games are the same: the intervals, which take them for independent, are too narrow")
    best = rows[0]
    report = {
        "standings": rows,
        "players": [player.name for player in players],
        "points": np.where(np.isnan(points), 0, points).sum(0).tolist(),
        "games": len(pairings),
        "distinct_games": games.distinct,
        "openings": len(set(starts)),
    }
    return report, f"{best['player']} is first with {_percent(scores[order[0]])} of the points"


def _standing(
    name: str, index: int, games: Games, pairings: Sequence[Pairing], score: Estimate, rating: Estimate
) -> dict[str, Any]:
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


def _standings_table(rows: Sequence[dict[str, Any]]) -> str:
    width = max(len("player"), *(len(row["player"]) for row in rows))
    lines = [f"{'player':{width}}  games  won  drawn  lost  score (95 %)           Elo (95 %)"]
    for row in rows:
        rating = "{mean:+5.0f} ({low:+.0f} to {high:+.0f})".format(**row["elo"])
        lines.append(
            f"{row['player']:{width}} {row['games']:6} {row['wins']:4} {row['draws']:6} {row['losses']:5}  "
            f"{_percent(Estimate(**row['score'])):22} {rating}"
        )
    return "\n".join(lines)


def _cross_table(names: Sequence[str], points: NDArray[np.float64]) -> str:
    """Score of the row's player against the column's, in percent, with its 95 % interval."""
    width = max(map(len, names))
    lines = ["", f"{'score in %':{width}}  " + "  ".join(f"{number:>16}" for number in range(1, len(names) + 1))]
    for row, name in enumerate(names):
        cells = [
            f"{'·':>16}" if row == column else f"{_percent(share(points[:, row, column] / 2), unit=''):>16}"
            for column in range(len(names))
        ]
        lines.append(f"{name:{width}}  " + "  ".join(cells) + f"   {row + 1}")
    return "\n".join([*lines, ""])


def _against_solver(config: ArenaConfig, players: list[roster.Player]) -> tuple[list[dict[str, Any]], str]:
    seats = [*players, roster.make("solver", config.workers)]
    rows: list[dict[str, Any]] = []
    for index, player in enumerate(players):
        pairings = [Pairing(first=index, second=len(players))] * config.solver_games
        with Progress(len(pairings), "games") as progress:
            games = play_games(seats, pairings, config.seed, progress.advance)
        won = share(games.results > 0, trials=1)
        rows.append(
            {
                "player": player.name,
                "games": len(pairings),
                "distinct_games": games.distinct,
                "won": asdict(won),
                "drawn": float((games.results == 0).mean()),
                "given_away": given_away(games, config.workers),
            }
        )
        print(
            f"{player.name}, first stone against the solver: won {_percent(won)}, drawn {rows[-1]['drawn']:.1%} "
            f"of {len(pairings)} games, {games.distinct} of them distinct"
        )
        for line, count in list(rows[-1]["given_away"].items())[:MOST_LINES]:
            print(f"  the win is given away by the last move of {line} in {count}")
    best = max(rows, key=lambda row: row["won"]["mean"])
    return rows, f"{best['player']} wins {best['won']['mean']:.1%} of its games against the solver"


def _percent(estimate: Estimate, unit: str = " %") -> str:
    return f"{100 * estimate.mean:.1f}{unit} ({100 * estimate.low:.1f}–{100 * estimate.high:.1f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the return value is the exit code."""
    return cli.main("arena", ArenaConfig, run, PRESETS, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
