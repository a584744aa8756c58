"""Makes the set of boards that none of the project's own players had a part in.

    python -m distill.evaluation.heldout --out data/benchmark

In: the seed, the graded boards that lie in `--out` already, whose boards are left out, and two packages, OpenSpiel
(extra `bench`) and the solver (extra `solver`). Out: `heldout.parquet` beside them, as `datasets/benchmark.py` reads
it.

Who plays stands in STYLES: OpenSpiel's Monte-Carlo tree search with random playouts at several strengths, a player that
wins if it can, blocks if it must and is random otherwise, and a random one. A network that learned from this project's
searches and from games of its own is graded here on boards that others chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from distill.common import Progress, UserError, cli, cores, folders, provenance
from distill.common.workers import spread
from distill.datasets import benchmark
from distill.datasets.canonical import board_keys
from distill.evaluation.benchmark import choose, random_opening, refuse_other_boards
from distill.evaluation.strata import heldout_strata
from distill.game.rules import EMPTY, Position, canonicalise, is_over, play
from distill.game.tactics import Boards
from distill.games.schema import SCHEMA_VERSION, write_table
from distill.players.simple import RandomPlayer
from distill.players.solver import check_installed

STYLES: tuple[tuple[str, float], ...] = (
    ("random", 0.0),
    ("punisher", 0.1),
    ("openspiel:30", 0.0),
    ("openspiel:100", 0.1),
    ("openspiel:300", 0.0),
    ("openspiel:1000", 0.1),
    ("openspiel:3000", 0.0),
)
"""Players, each as likely as another for either side of a game, and the share of their moves that is random."""

EXPLORATION = 2.0
"""OpenSpiel's constant in UCT, with one playout a simulation: what its own examples take."""

CHUNK = 50
"""Games a process plays at a time."""


@dataclass(frozen=True, kw_only=True)
class Config(cli.Settings):
    """Make the graded boards of games in which no player of this project took part."""

    out: Path = field(metadata={"help": "folder to write to; the shipped one is data/benchmark"})
    games: int = cli.setting(3_000, "games the boards are taken from")
    share: float = cli.setting(1.0, "share of every set's size, for a quick trial")
    workers: int = cli.setting(cores(), "processes for games and the solver; the boards do not depend on it")
    seed: int = cli.setting(20_262, "of the games and of the choice among their boards")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_least(self, games=1, workers=1)
        cli.check_seed(self.seed)
        cli.check(0 < self.share <= 1, "share", self.share, "above 0 and at most 1")


PRESETS: dict[str, dict[str, Any]] = {"smoke": {"out": cli.SMOKE_DATA / "benchmark", "games": 60, "share": 0.01}}


def run(config: Config) -> str:
    """Play, choose, score, write."""
    check_installed()
    _openspiel()
    with folders.locked(config.out):
        return _run(config)


def _run(config: Config) -> str:
    file = config.out / benchmark.FILES[1]
    settings = {"styles": STYLES, "exploration": EXPLORATION, "seed": config.seed, "games": config.games}
    settings |= {"share": config.share}
    refuse_other_boards(file, settings)
    others = benchmark.read(config.out, files=(benchmark.FILES[0],))
    passed = []
    with Progress(config.games, "games") as progress:
        for positions in _games(config):
            passed.append(positions)
            progress.advance(min(CHUNK, config.games - progress.done))
    current, mask, _ = canonicalise(*np.concatenate(passed).T)
    unlike = np.unique(np.stack([current, mask], 1), axis=0)
    unlike = unlike[~np.isin(board_keys(*unlike.T), board_keys(others.current, others.mask))]
    current, mask = np.ascontiguousarray(np.random.default_rng(config.seed).permutation(unlike).T)
    with Progress(round(10_000 * config.share), "boards") as progress:
        chosen = choose(current, mask, heldout_strata(), config.share, config.workers, progress.advance)
    metadata = {"schema_version": SCHEMA_VERSION, "kind": "benchmark", "settings": settings}
    write_table(file, benchmark.to_table(chosen), metadata)
    return f"{len(chosen)} graded boards, of {len(mask)} that play reached · {file}"


def _games(config: Config) -> Iterator[Boards]:
    """The positions of all games, uint64 (N, 2) a piece: current, mask."""
    pieces = (range(first, min(first + CHUNK, config.games)) for first in range(0, config.games, CHUNK))
    yield from spread(play_games, ((games, config.seed) for games in pieces), config.workers)


def play_games(games: Sequence[int], seed: int) -> Boards:
    """uint64 (N, 2), current and mask of every position of these games in which somebody was to move."""
    return np.concatenate([np.array(_play(game, seed), np.uint64).reshape(-1, 2) for game in games])


def _play(game: int, seed: int) -> list[tuple[int, int]]:
    """One game, a function of its number and the seed."""
    rng = np.random.default_rng([seed, game])
    styles = [STYLES[index] for index in rng.integers(len(STYLES), size=2)]
    searches = [_search(word, int(rng.integers(2**31))) for word, _ in styles]
    spiel, position = _openspiel().load_game("connect_four").new_initial_state(), EMPTY
    for column in random_opening(rng):
        spiel.apply_action(column)
        position = play(position, column)
    passed: list[tuple[int, int]] = []
    while not is_over(position):
        passed.append((position.current, position.mask))
        (word, careless), search = styles[position.ply % 2], searches[position.ply % 2]
        if rng.random() < careless:
            column = _draw("random", position, rng)
        elif search is None:
            column = _draw(word, position, rng)
        else:
            column = search.step(spiel)
        spiel.apply_action(column)
        position = play(position, column)
    return passed


def _draw(word: str, position: Position, rng: np.random.Generator) -> int:
    """The column of `random` or `punisher`."""
    current, mask = np.array([[position.current], [position.mask]], np.uint64)
    player = RandomPlayer(name=word, tactical=word == "punisher")
    return int(player.play(current, mask, rng.integers(2**63, size=1).astype(np.uint64)).moves[0])


def _search(word: str, seed: int) -> Any:
    """OpenSpiel's search of the word's number of simulations; None for a word that names none."""
    name, _, simulations = word.partition(":")
    if name != "openspiel":
        return None
    spiel = _openspiel()
    evaluator = spiel.RandomRolloutEvaluator(1, seed)
    game = spiel.load_game("connect_four")
    return spiel.MCTSBot(game, evaluator, EXPLORATION, int(simulations), 1000, False, seed, False)


def _openspiel() -> Any:
    try:
        import pyspiel
    except ImportError:
        raise UserError(f"this needs OpenSpiel: {provenance.install_line('bench')}") from None
    return pyspiel


main = cli.Command("evaluation.heldout", Config, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
