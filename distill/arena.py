"""A round robin over distinct paired openings: points, Elo and a cross table.

    python -m distill.arena models/cnn random uct:100 --games 200
    python -m distill.arena models/cnn my_players:centre             # your own function, in my_players.py
    python -m distill.arena models/cnn uct:1000 --opening-plies 0 --solver-games 100

In: players by name (`players/names.py`). Out: the tables, and `arena.json` in the folder `--out`. Every pair plays
`--games` games: each opening twice, once from either side. Random openings leave some games decided, so that even
perfect play does not win them all; from the empty board (`--opening-plies 0`) games differ only by the players'
randomness. With `--solver-games` every player also moves first against the solver from the empty board, where perfect
play wins; the solver draws its replies among the best ones. `distill walk` lists the moves that give the win away.
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


@dataclass(frozen=True, kw_only=True)
class ArenaConfig(cli.Settings):
    """Let players meet from paired openings, and rate them."""

    players: tuple[str, ...] = cli.setting((), f"at least two of: {names.NAMES}", positional=True)
    games: int = cli.setting(200, "games of each pair, half of them from either side")
    opening_plies: int = cli.setting(
        6, "random stones before the players move (0–20); 0: all games start from the empty board"
    )
    solver_games: int = cli.setting(0, "games of each player against the solver, the player moving first")
    workers: int = cli.setting(cores(), "processes for searches and the solver")
    seed: int = cli.setting(0, "seed of openings, searches and random moves")
    out: Path | None = cli.setting(None, "folder for arena.json; none: not written")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check(self.games >= 2 and self.games % 2 == 0, "games", self.games, "an even number from 2")
        cli.check(0 <= self.opening_plies <= 20, "opening_plies", self.opening_plies, "from 0 to 20")
        cli.check_least(self, solver_games=0, workers=1)
        cli.check_seed(self.seed)
        if len(self.players) < (1 if self.solver_games else 2):
            raise ValueError(f"name at least two players: {names.NAMES}")
        if len(set(self.players)) < len(self.players):
            raise ValueError("a player is named twice; it cannot meet itself")
        for name in self.players:
            names.check(name)
        if len(self.players) > 1:
            self.openings()

    def openings(self) -> list[tuple[int, ...]]:
        """The openings of every pair. Raises ValueError where there are too few of so many plies."""
        if self.opening_plies == 0:
            return [()] * (self.games // 2)
        return openings(self.games // 2, self.opening_plies, self.seed)


PRESETS: cli.Presets = {
    "smoke": cli.smoke(players=(str(cli.SMOKE_MODELS / "cnn"), "random"), games=4, out=cli.SMOKE_MODELS / "arena")
}


def run(config: ArenaConfig) -> str:
    """Play, print the tables, write `arena.json`; the last line names the best player."""
    if config.solver_games:
        check_installed()  # before the games
    if config.out:
        folders.refuse_file(config.out)
    players = [make(name, config.workers) for name in config.players]
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
    report, tables = tournament.meet(players, config.openings(), config.seed)
    games, distinct = report["games"], report["distinct_games"]
    origin = f"{config.games // 2} openings" if config.opening_plies else "the empty board"
    print(f"{tables}\n{games} games, {distinct} of them distinct, from {origin}")
    if 10 * distinct < 9 * games:
        print("many games are the same, so the intervals, which assume independent games, are too narrow")
    best = report["standings"][0]
    return report, f"{best['player']} is first with {tournament.percent(Estimate(**best['score']))} of the points"


def _against_solver(config: ArenaConfig, players: list[Player]) -> tuple[list[tournament.Row], str]:
    solver = make("solver", config.workers)
    rows = [tournament.against_solver(player, solver, config.solver_games, config.seed) for player in players]
    for row in rows:
        print(
            f"{row['player']}, first stone against the solver: won {tournament.percent(Estimate(**row['won']))}, "
            f"drawn {row['drawn']:.1%} of {row['games']} games, {row['distinct_games']} of them distinct"
        )
    best = max(rows, key=lambda row: row["won"]["mean"])
    return rows, f"{best['player']} wins {best['won']['mean']:.1%} of its games against the solver"


main = cli.Command("arena", ArenaConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
