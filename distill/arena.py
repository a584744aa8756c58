"""A round robin over distinct paired openings: points and Elo.

    python -m distill.arena models/cnn random uct:100 --games 200
    python -m distill.arena models/cnn my_players:centre             # your own function, in my_players.py
    python -m distill.arena models/cnn solver --opening-plies 0

In: players by name (`players/names.py`). Out: a table. Every pair plays `--games` games: each opening twice, once
from either side. Random openings leave some games decided, so that even perfect play does not win them all; from the
empty board (`--opening-plies 0`) games differ only by the players' randomness. There the solver, which draws among its
best moves, wins every game that it begins, so a player's wins against it are games that the player began. `distill
walk` lists the moves that give the win away.
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("arena")

from itertools import combinations
from typing import ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from distill.common import Progress, cli, cores, say
from distill.common.settings import CommandLine, NameOrPath, Seed, Settings
from distill.common.tables import table
from distill.players import names
from distill.players.intervals import elo_with_intervals, share
from distill.players.match import openings, pair_points, paired, play_games


class ArenaConfig(Settings):
    """Let players meet from paired openings, and rate them."""

    command_line: ClassVar[CommandLine] = CommandLine(
        words="players",
        flags=("games", "opening_plies", "workers", "seed"),
        examples=("models/cnn random uct:100 --games 200", "models/cnn solver --opening-plies 0"),
        page="docs/players.md",
    )
    players: tuple[NameOrPath, ...] = Field((), title="PLAYER", description=f"at least two of: {names.NAMES}")
    games: int = Field(200, ge=2, le=1_000_000, multiple_of=2)
    """games of each pair, half of them from either side"""
    opening_plies: int = Field(6, ge=0, le=20)
    """random stones before the players move (0–20); 0: all games start from the empty board"""
    workers: int = Field(cores(), ge=1)
    """processes for searches and the solver"""
    seed: Seed = 0
    """seed of openings, searches and random moves"""

    @model_validator(mode="after")
    def _check_players(self) -> Self:
        if len(self.players) < 2:
            raise ValueError(f"name at least two players: {names.NAMES}")
        if len(set(map(names.shown, self.players))) < len(self.players):
            raise ValueError("a player is named twice; it cannot meet itself")
        for name in self.players:
            names.check(name)
        self.openings()
        return self

    def openings(self) -> list[tuple[int, ...]]:
        """The openings of every pair. Raises ValueError where there are too few of so many plies."""
        if self.opening_plies == 0:
            return [()] * (self.games // 2)
        return openings(self.games // 2, self.opening_plies, self.seed)


PRESETS = cli.smoke(players=(str(cli.SMOKE_MODELS / "cnn"), "random"), games=4)


def run(config: ArenaConfig) -> str:
    """Play and print the table; the last line names the best player."""
    players, starts = [names.make(name, config.workers) for name in config.players], config.openings()
    pairings = [pairing for a, b in combinations(range(len(players)), 2) for pairing in paired(a, b, starts)]
    say(f"playing {len(pairings):,} games side by side")
    with Progress(len(pairings), "games") as progress:
        games = play_games(players, pairings, config.seed, progress.advance)
    # Points by opening, because both games of an opening depend on each other.
    points = pair_points(games, pairings, len(players))
    ratings = elo_with_intervals(points, config.seed)
    seats = np.array([(pairing.first, pairing.second) for pairing in pairings])
    rows = []
    for index in sorted(range(len(players)), key=lambda index: -ratings[index].mean):
        # Results are those of the player with the first stone.
        results = np.concatenate([games.results[seats[:, 0] == index], -games.results[seats[:, 1] == index]])
        counts = [len(results), *(int((results == result).sum()) for result in (1, 0, -1))]
        score = share(np.nanmean(points[:, index], axis=1) / 2, trials=2 * (len(players) - 1))
        percent = f"{100 * score.mean:.1f} % ({100 * score.low:.1f}–{100 * score.high:.1f})"
        elo = ratings[index]
        rating = f"{elo.mean:+.0f} ({elo.low:+.0f} to {elo.high:+.0f})"
        rows.append([players[index].name, *map(str, counts), percent, rating])
    print(table(["player", "games", "won", "drawn", "lost", "score (95 %)", "Elo (95 %)"], rows))
    number, distinct = len(games.lines), len(set(games.lines))
    origin = f"{len(starts)} openings" if config.opening_plies else "the empty board"
    print(f"\n{number} games, {distinct} of them distinct, from {origin}")
    # Deterministic players repeat games; an interval that counts each of them would look better than it is.
    if 10 * distinct < 9 * number:
        print("many games are the same, so the intervals, which take them as independent, are too narrow")
    best, *_, score_of_best, _ = rows[0]
    return f"{best} is first with {score_of_best} of the points"


main = cli.Command("distill arena", ArenaConfig, run, PRESETS)
