"""Makes the graded boards of games in which no player of this project took part.

    python -m experiments.boards.heldout --out data/benchmark

In: the seed, the files `boards-*` in `--out`, whose boards are left out, and two packages, OpenSpiel (extra
`openspiel`) and the solver (extra `solver`). Out: `heldout-dev.parquet` and `heldout-test.parquet`, as
`datasets/benchmark.py` reads them.

The players are those of STYLES: OpenSpiel's Monte-Carlo tree search with random playouts at several strengths, a player
that wins if it can, blocks if it must and is random otherwise, and a random one. So a network that learned from this
project's searches and its own games is graded on boards that others chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field

from distill.common import Progress, cli, executors, run_folder
from distill.common.settings import Seed
from distill.datasets import benchmark
from distill.game.encoding import bitboards_of
from distill.game.rules import EMPTY, Bitboards, Position, canonical_keys, canonicalise, is_over, next_position
from distill.players import openspiel
from distill.players.player import RandomPlayer
from distill.players.solver import engine
from experiments.boards.mixed import BoardsConfig, random_opening, refuse_other_boards, write
from experiments.boards.strata import heldout_strata

STYLES: tuple[tuple[str, float], ...] = (
    ("random", 0.0),
    ("punisher", 0.1),
    ("openspiel:30", 0.0),
    ("openspiel:100", 0.1),
    ("openspiel:300", 0.0),
    ("openspiel:1000", 0.1),
    ("openspiel:3000", 0.0),
)
"""Players, equally probable for either side of a game, and the share of their moves that is random."""

ORIGIN = benchmark.ORIGINS[1]

CHUNK = 50
"""Games that a process plays at a time."""


class Config(BoardsConfig):
    """Make the graded boards of games in which no player of this project took part."""

    games: int = Field(3_000, ge=1, description="games that the boards are taken from")
    seed: Seed = Field(20_262, description="seed of the games and of the choice among their boards")


def run(config: Config) -> str:
    """Play, choose, score, write."""
    engine()
    openspiel.pyspiel()
    settings = {"styles": STYLES, "exploration": openspiel.EXPLORATION, **config.identity()}
    with run_folder.locked(config.out):
        refuse_other_boards(config.out, ORIGIN, settings)
        others = benchmark.read(config.out, origins=benchmark.ORIGINS[:1])
        chunks = [range(first, min(first + CHUNK, config.games)) for first in range(0, config.games, CHUNK)]
        positions, workers = [], executors.shared(config.workers)
        with Progress(config.games, "games") as progress:
            tasks = [(games, config.seed) for games in chunks]
            for number, played in executors.completed(workers, play_games, tasks):
                positions.append(played)
                progress.advance(len(chunks[number]))
        current, mask, _ = canonicalise(*np.concatenate(positions).T)
        distinct = np.unique(np.stack([current, mask], 1), axis=0)
        distinct = distinct[~np.isin(canonical_keys(*distinct.T), canonical_keys(others.current, others.mask))]
        current, mask = np.ascontiguousarray(np.random.default_rng(config.seed).permutation(distinct).T)
        chosen = write(ORIGIN, settings, config, current, mask, heldout_strata())
    return f"{len(chosen)} graded boards of {len(mask)} that the games reached · {config.out}"


def play_games(games: Sequence[int], seed: int) -> Bitboards:
    """uint64 (N, 2), current and mask of every position of these games in which a side was to move."""
    return np.concatenate([np.array(_play(game, seed), np.uint64).reshape(-1, 2) for game in games])


def _play(game: int, seed: int) -> list[tuple[int, int]]:
    """One game, a function of its number and the seed."""
    rng = np.random.default_rng([seed, game])
    styles = [STYLES[index] for index in rng.integers(len(STYLES), size=2)]
    searches = [_search(name, int(rng.integers(2**31))) for name, _ in styles]
    spiel, position = openspiel.pyspiel().load_game("connect_four").new_initial_state(), EMPTY
    for column in random_opening(rng):
        spiel.apply_action(column)
        position = next_position(position, column)
    reached: list[tuple[int, int]] = []
    while not is_over(position):
        reached.append((position.current, position.mask))
        (name, random_share), search = styles[position.ply % 2], searches[position.ply % 2]
        if rng.random() < random_share:
            column = _draw("random", position, rng)
        else:
            column = search.step(spiel) if search else _draw(name, position, rng)
        spiel.apply_action(column)
        position = next_position(position, column)
    return reached


def _draw(name: str, position: Position, rng: np.random.Generator) -> int:
    """The column of `random` or `punisher`."""
    player = RandomPlayer(name=name, tactical=name == "punisher")
    return int(player.choose(*bitboards_of([position]), rng.integers(2**63, size=1).astype(np.uint64)).moves[0])


def _search(name: str, seed: int) -> Any:
    """OpenSpiel's search with the name's number of simulations; None for the name of another player."""
    kind, _, simulations = name.partition(":")
    if kind != "openspiel":
        return None
    return openspiel.mcts(int(simulations), seed)


main = cli.Command("experiments boards.heldout", Config, run)

if __name__ == "__main__":
    raise SystemExit(main())
