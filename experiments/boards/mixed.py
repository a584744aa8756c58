"""Makes the shipped benchmark: boards of mixed play, sorted into sets, every move scored exactly.

    python -m experiments.boards.mixed --out data/benchmark --network models/pillar

In: the seed and a trained network. Out: `boards-dev.parquet` and `boards-test.parquet`, as `datasets/benchmark.py`
reads them. Needs the solver package and some minutes of one core. `strata.py` defines the sets, and `heldout.py` makes
those of other players' games.

Mixed play: the player of each side of a game is drawn from STYLES, and a game begins with 0 to 8 random stones, so
boards are neither all absurd nor all expert. Every board is kept in its canonical orientation and belongs to one set.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, field_validator

from distill.common import Progress, UserError, canonical_json, cli, cores, file_hash, run_folder
from distill.common.progress import Advance, silent
from distill.common.settings import CommandLine, Seed, Settings
from distill.datasets.benchmark import GRADED_BOARD, HALVES, ORIGINS, GradedBoards, file_name
from distill.datasets.grades import best_scores
from distill.game.encoding import bitboards
from distill.game.mixing import splitmix64
from distill.game.rules import EMPTY, Bitboards, canonicalise, is_over, legal_columns, next_position
from distill.games.schema import SCHEMA_VERSION, read_table, write_table
from distill.networks import finding
from distill.players.match import Opening, Pairing, play_games
from distill.players.names import make
from distill.players.player import Choices, Player, RandomPlayer, Seeds, checked_choices
from distill.players.solver import engine, score_boards
from experiments.boards.plies import moves_to_end
from experiments.boards.strata import Stratum, all_strata

STYLES: tuple[tuple[str, float], ...] = (
    ("random", 0.0),
    ("punisher", 0.0),
    ("uct:30", 0.0),
    ("uct:100", 0.2),
    ("teacher:100", 0.05),
    ("teacher:300", 0.1),
    ("uct:1000", 0.05),
)
"""Players, and the share of their moves that is replaced by a random one."""

NETWORK_SHARES = (0.0, 0.1)
"""The same shares for the network, which repeats a game unless the opening or a random move differs."""

LONGEST_OPENING = 8
CHUNK = 512
"""Boards scored at a time."""


class BoardsConfig(Settings):
    """Settings of both makers of graded boards."""

    command_line: ClassVar[CommandLine] = CommandLine(flags=("out", "games", "share", "workers", "seed"))
    out: Path = Field(description="folder to write to; the shipped one is data/benchmark")
    games: int = Field(1, ge=1, description="games that the boards are taken from")
    share: float = Field(1.0, gt=0, le=1, description="fraction of every set's size, for a quick trial")
    workers: int = Field(cores(), ge=1, description="processes for games and the solver; does not change the boards")
    seed: Seed = Field(0, description="seed of the games and of the choice among their boards")

    def identity(self) -> dict[str, Any]:
        """The settings that decide the boards."""
        return {"seed": self.seed, "games": self.games, "share": self.share}


class Config(BoardsConfig):
    """Make the graded benchmark boards."""

    command_line: ClassVar[CommandLine] = CommandLine(flags=("out", "games", "share", "workers", "seed", "network"))
    network: str | None = Field(None, description="a network that plays too, by name or folder; none: no network")
    games: int = Field(80_000, ge=1, description="games that the boards are taken from")
    seed: Seed = Field(20_261, description="seed of the games and of the choice among their boards")

    @field_validator("network")
    @classmethod
    def _is_known(cls, network: str | None) -> str | None:
        if network is not None and not finding.find(network):
            raise ValueError("must be an existing folder, or the name of a network")
        return network


def run(config: Config) -> str:
    """Play, choose, score, write."""
    engine()
    network = () if config.network is None else tuple((config.network, share) for share in NETWORK_SHARES)
    styles = STYLES + network
    settings = {"styles": styles, **config.identity()}
    if config.network is not None:
        settings["network"] = file_hash(finding.network_file(config.network))
    with run_folder.locked(config.out):
        refuse_other_boards(config.out, ORIGINS[0], settings)
        with Progress(config.games, "games") as progress:
            current, mask = mixed_play(config.games, config.seed, config.workers, progress.advance, styles)
        boards = write(ORIGINS[0], settings, config, current, mask, all_strata())
    return f"{len(boards)} graded boards of {len(mask)} that the games reached · {config.out}"


def refuse_other_boards(folder: Path, origin: str, settings: Mapping[str, Any]) -> None:
    """Raise UserError for existing files of other settings, which would be replaced."""
    known = json.loads(canonical_json(settings))
    for file in (folder / file_name(origin, half) for half in HALVES):
        if file.exists() and read_table(file, GRADED_BOARD)[1].get("settings") != known:
            raise UserError(f"{file}: boards made with other settings, or no boards; delete it, or name another --out")


def write(
    origin: str,
    settings: Mapping[str, Any],
    config: BoardsConfig,
    current: Bitboards,
    mask: Bitboards,
    strata: list[Stratum],
) -> GradedBoards:
    """Choose boards for the strata among distinct canonical ones in random order, and write them."""
    with Progress(sum(_wanted(stratum, config.share) for stratum in strata), "boards") as progress:
        boards = choose(current, mask, strata, config.share, config.workers, progress.advance)
    metadata = {"schema_version": SCHEMA_VERSION, "kind": "benchmark", "settings": dict(settings)}
    for half in HALVES:
        write_table(config.out / file_name(origin, half), to_table(boards[boards.half == half]), metadata)
    return boards


def to_table(boards: GradedBoards) -> pa.Table:
    """The boards as the table that `datasets/benchmark.py` reads."""
    columns = {name: pa.array(values) for name, values in vars(boards).items() if name != "scores"}
    columns["scores"] = pa.FixedSizeListArray.from_arrays(pa.array(boards.scores.reshape(-1)), 7)
    return pa.table({name: columns[name] for name in GRADED_BOARD.names}).cast(GRADED_BOARD)


# Where boards come from -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Careless:
    """A player that replaces a share of its moves by random ones."""

    player: Player
    share: float

    @property
    def name(self) -> str:
        return f"{self.player.name}, {self.share:.0%} random"

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        careless = splitmix64(seeds ^ np.uint64(1)) < np.uint64(self.share * 2**64)
        other = RandomPlayer().choose(current, mask, seeds ^ np.uint64(2)).moves
        return Choices(moves=np.where(careless, other, checked_choices(self.player, current, mask, seeds).moves))


def mixed_play(
    games: int, seed: int, workers: int = 1, advance: Advance = silent, styles: Sequence[tuple[str, float]] = STYLES
) -> tuple[Bitboards, Bitboards]:
    """The distinct canonical boards of games between the styles, in random order: current and mask, uint64 (B,)."""
    rng = np.random.default_rng(seed)
    players = [Careless(player=make(name, workers), share=share) for name, share in styles]
    pairings = [
        Pairing(first=int(first), second=int(second), opening=random_opening(rng))
        for first, second in rng.integers(0, len(styles), (games, 2))
    ]
    current, mask, _ = canonicalise(*bitboards(play_games(players, pairings, seed, advance).states))
    current, mask = rng.permutation(np.unique(np.stack([current, mask], 1), axis=0)).T
    return np.ascontiguousarray(current), np.ascontiguousarray(mask)


def random_opening(rng: np.random.Generator) -> Opening:
    """0 to 8 random moves after which the game is not over."""
    plies, position = int(rng.integers(LONGEST_OPENING + 1)), EMPTY
    moves: list[int] = []
    while len(moves) < plies:
        move = int(rng.choice(legal_columns(position)))
        after = next_position(position, move)
        if not is_over(after):
            position = after
            moves.append(move)
    return tuple(moves)


# Which boards are taken -----------------------------------------------------------------------------------------------


def choose(
    current: Bitboards,
    mask: Bitboards,
    strata: Sequence[Stratum],
    share: float = 1.0,
    workers: int = 1,
    advance: Advance = silent,
) -> GradedBoards:
    """Fill the strata one after another with boards that belong, first come first served; no board is taken twice.

    Each stratum starts reading at its own place, evenly spread over the boards, and wraps around: from one common
    place, `midgame` would leave the later strata no board of 10 to 16 stones.

    Args:
      current, mask: uint64 (B,), distinct up to mirror and in random order.
      share: fraction of each stratum's size.

    Returns boards sorted by set, half and ply. Raises UserError for a stratum with too few boards.
    """
    scores = np.zeros((len(mask), 7), np.int8)
    scored, free = np.zeros(len(mask), np.bool_), np.ones(len(mask), np.bool_)
    taken: dict[str, list[NDArray[np.int64]]] = {}
    for number, stratum in enumerate(strata):
        missing = _wanted(stratum, share)
        candidates = np.flatnonzero(free & stratum.seen(current, mask))
        candidates = np.roll(candidates, -int(np.searchsorted(candidates, len(mask) * number // len(strata))))
        while missing and len(candidates):
            chunk, candidates = np.split(candidates, [min(CHUNK, 4 * missing)])
            new = chunk[~scored[chunk]]
            scores[new], scored[new] = score_boards(current[new], mask[new], workers), True
            belonging = chunk[stratum.graded(current[chunk], mask[chunk], scores[chunk])][:missing]
            taken.setdefault(stratum.name, []).append(belonging)
            free[belonging] = False
            missing -= len(belonging)
            advance(len(belonging))
        if missing:
            raise UserError(f"set {stratum.name}: {missing} boards short; take them from more --games")

    ply = np.bitwise_count(mask).astype(np.int8)
    members = [np.concatenate(parts) for parts in taken.values()]
    members = [rows[np.argsort(ply[rows], kind="stable")] for rows in members]
    halves = [half for rows in members for half in (rows[::2], rows[1::2])]  # as many boards of each ply in both
    row, size = np.concatenate(halves), [len(half) for half in halves]
    return GradedBoards(
        set=np.repeat([name for name in taken for _ in range(2)], size),
        half=np.repeat(["dev", "test"] * len(taken), size),
        current=current[row],
        mask=mask[row],
        scores=scores[row],
        ply=ply[row],
        moves_to_end=moves_to_end(best_scores(scores[row]), ply[row]).astype(np.int8),
    )


def _wanted(stratum: Stratum, share: float) -> int:
    return max(1, round(stratum.size * share))


main = cli.Command("experiments boards.mixed", Config, run)

if __name__ == "__main__":
    raise SystemExit(main())
