"""Players meet over distinct paired openings: points, Elo and a cross table.

    python -m distill.arena models/cnn random uct:100 --games 200
    python -m distill.arena models/cnn uct:1000 --opening-plies 0 --solver-games 100

In: players by name (`players/names.py`). Out: the tables, and `arena.json` where `--out` names a folder. Every pair
plays `--games` games: each opening twice, once from either side. Random openings leave some games decided, so that even
perfect play does not win them all; from the empty board (`--opening-plies 0`) games differ by the players' chance
alone. With `--solver-games` every player also has the first stone against the solver from the empty board, where
perfect play wins; the solver's replies are drawn among the best, and the moves that give wins away are printed. With
`--grade-losses` the solver says how many lost games were lost by a mistake, and how many were lost from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distill.common import cli, cores, folders, write_json
from distill.players import names, tournament
from distill.players.intervals import Estimate
from distill.players.match import openings
from distill.players.names import make
from distill.players.player import Player
from distill.players.solver import check_installed

MOST_LINES = 5
"""Moves by which wins are given away that are printed; `arena.json` has them all."""


@dataclass(frozen=True, kw_only=True)
class ArenaConfig(cli.Settings):
    """Let players meet from paired openings and rate them."""

    players: tuple[str, ...] = cli.setting((), f"who meets: {names.NAMES}", positional=True)
    games: int = cli.setting(200, "games a pair, half of them from either side")
    opening_plies: int = cli.setting(
        6, "random stones before the players take over; 0: the empty board, where players without chance repeat a game"
    )
    solver_games: int = cli.setting(0, "games of each player, with the first stone, against the solver")
    grade_losses: bool = cli.setting(
        False, "let the solver say in how many of the games that it lost a player let go of a win or a draw"
    )
    workers: int = cli.setting(cores(), "processes for searches and the solver")
    seed: int = cli.setting(0, "of openings, searches and random moves")
    out: Path | None = cli.setting(None, "folder for arena.json; none writes nothing")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check(self.games >= 2 and self.games % 2 == 0, "games", self.games, "an even number from 2")
        cli.check(0 <= self.opening_plies <= 20, "opening_plies", self.opening_plies, "from 0 to 20")
        cli.check_least(self, solver_games=0, workers=1)
        cli.check_seed(self.seed)
        if len(self.players) < (1 if self.solver_games else 2):
            raise ValueError(f"name at least two players: {names.NAMES}")
        if self.grade_losses and len(self.players) < 2:
            raise ValueError("--grade-losses looks at games between players: name at least two")
        if len(set(self.players)) < len(self.players):
            raise ValueError("a player is named twice; it cannot meet itself")
        for word in self.players:
            names.check(word)
        if len(self.players) > 1:
            self.openings()

    def openings(self) -> list[tuple[int, ...]]:
        """The openings every pair plays. Raises ValueError where so many plies have too few."""
        if self.opening_plies == 0:
            return [()] * (self.games // 2)
        return openings(self.games // 2, self.opening_plies, self.seed)


PRESETS: cli.Presets = {
    "smoke": cli.smoke(players=(str(cli.SMOKE_MODELS / "cnn"), "random"), games=4, out=cli.SMOKE_MODELS / "arena")
}


def run(config: ArenaConfig) -> str:
    """Play, print the tables, write `arena.json`; the last line says who is ahead."""
    if config.grade_losses or config.solver_games:
        check_installed()  # not after the games
    if config.out:
        folders.refuse_file(config.out)
    players = [make(word, config.workers) for word in config.players]
    report: dict[str, Any] = {"config": cli.as_json(config)}
    last = ""
    if len(players) > 1:
        report["tournament"], last = _meet(config, players)
    if config.solver_games:
        report["against_solver"], line = _against_solver(config, players)
        last = last or line
    if config.out:
        write_json(config.out / "arena.json", report)
        last += f" · {config.out / 'arena.json'}"
    return last


def _meet(config: ArenaConfig, players: list[Player]) -> tuple[dict[str, Any], str]:
    starts = config.openings()
    met = tournament.meet(players, starts, config.seed, judges=config.workers if config.grade_losses else 0)
    games, distinct = met.report["games"], met.report["distinct_games"]
    print(met.text())
    origin = f"{len(starts)} openings" if config.opening_plies else "the empty board"
    print(f"{games} games, {distinct} of them distinct, from {origin}")
    if 10 * distinct < 9 * games:
        print("many games are the same: the intervals, which take them for independent, are too narrow")
    for row in met.report.get("losses", []):
        print(
            f"{row['player']}, {row['stone']} stone: lost {row['lost']} of {row['games']} games, "
            f"{row['let_go']} of them after a move that let go of a win or a draw"
        )
    return met.report, met.last()


def _against_solver(config: ArenaConfig, players: list[Player]) -> tuple[list[tournament.Row], str]:
    solver = make("solver", config.workers)
    rows = []
    for player in players:
        row = tournament.against_solver(player, solver, config.solver_games, config.workers, config.seed)
        rows.append(row)
        print(
            f"{player.name}, first stone against the solver: won {tournament.percent(Estimate(**row['won']))}, "
            f"drawn {row['drawn']:.1%} of {row['games']} games, {row['distinct_games']} of them distinct"
        )
        for line, count in list(row["given_away"].items())[:MOST_LINES]:
            print(f"  the win is given away by the last move of {line} in {count}")
    best = max(rows, key=lambda row: row["won"]["mean"])
    return rows, f"{best['player']} wins {best['won']['mean']:.1%} of its games against the solver"


main = cli.Command("arena", ArenaConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
