"""Makes the shipped benchmark: boards of mixed play, sorted into sets, every move scored exactly.

    python -m distill.evaluation.benchmark --out data/benchmark --network models/pillar

In: the seed and a trained network. Out: `boards.parquet`, as `datasets/benchmark.py` reads it. Needs the solver package
and some minutes of one core. `strata.py` says what the sets are.

Mixed play means that either side of a game is drawn from STYLES, and that a game begins with 0 to 8
random stones; so boards are neither all absurd nor all expert. Every board is kept in its canonical
orientation and belongs to one set only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import Progress, UserError, canonical_json, cli, cores, file_hash, folders
from distill.common.progress import Advance, silent
from distill.datasets.benchmark import FILES, GradedBoards, to_table
from distill.evaluation.strata import Stratum, all_strata, best_scores
from distill.game.encoding import bitboards
from distill.game.mixing import mix
from distill.game.rules import EMPTY, canonicalise, is_over, legal_columns, play
from distill.game.tactics import Boards
from distill.games.schema import SCHEMA_VERSION, read_metadata, write_table
from distill.networks import finding
from distill.players.match import Opening, Pairing, play_games
from distill.players.names import make
from distill.players.player import Choices, Player, checked_choices
from distill.players.simple import RandomPlayer
from distill.players.solver import check_installed, moves_to_end, score_boards

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

CARELESS_NETWORK = (0.0, 0.1)
"""The shares for the network, which plays the same game again and again unless the opening or a slip differs."""

LONGEST_OPENING = 8

CHUNK = 512
"""Candidates scored before looking at how many of them belong."""


@dataclass(frozen=True, kw_only=True)
class Config(cli.Settings):
    """Make the graded benchmark boards."""

    out: Path = field(metadata={"help": "folder to write to; the shipped one is data/benchmark"})
    network: str | None = cli.setting(
        None, "a network that plays, too, by folder or name; none: no network in the play"
    )
    games: int = cli.setting(80_000, "games of mixed play the boards are taken from")
    share: float = cli.setting(1.0, "share of every set's size, for a quick trial")
    workers: int = cli.setting(cores(), "processes for searches and the solver; the boards do not depend on it")
    seed: int = cli.setting(20_261, "of the games and of the choice among their boards")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_least(self, games=1, workers=1)
        cli.check_seed(self.seed)
        cli.check(0 < self.share <= 1, "share", self.share, "above 0 and at most 1")
        known = self.network is None or finding.find(self.network)
        cli.check(bool(known), "network", self.network, "a folder that is there, or the name of a network")


PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {
        "out": cli.SMOKE_DATA / "benchmark",
        "network": str(cli.SMOKE_MODELS / "cnn"),
        "games": 300,
        "share": 0.004,
    }
}


def run(config: Config) -> str:
    """Play, choose, score, write."""
    check_installed()
    with folders.locked(config.out):
        return _run(config)


def _run(config: Config) -> str:
    network = () if config.network is None else tuple((config.network, share) for share in CARELESS_NETWORK)
    styles = STYLES + network
    settings: dict[str, Any] = {"styles": styles, "seed": config.seed, "games": config.games, "share": config.share}
    if config.network is not None:
        settings["network"] = file_hash(finding.network_file(config.network))
    refuse_other_boards(config.out / FILES[0], settings)
    with Progress(config.games, "games") as progress:
        current, mask = mixed_play(config.games, config.seed, config.workers, progress.advance, styles)
    strata = all_strata()
    wanted = sum(_wanted(stratum, config.share) for stratum in strata)
    with Progress(wanted, "boards") as progress:
        boards = choose(current, mask, strata, config.share, config.workers, progress.advance)
    metadata = {"schema_version": SCHEMA_VERSION, "kind": "benchmark", "settings": settings}
    write_table(config.out / FILES[0], to_table(boards), metadata)
    for name, count in Counter(boards.set.tolist()).items():
        plies = boards.ply[boards.set == name]
        print(f"{name:18} {count:6} boards of {plies.min():2} to {plies.max():2} stones")
    return f"{len(boards)} graded boards, of {len(mask)} that play reached · {config.out / FILES[0]}"


def refuse_other_boards(file: Path, settings: Mapping[str, Any]) -> None:
    """Raise UserError where a file lies already that these settings did not make: it would be replaced."""
    if file.exists() and read_metadata(file).get("settings") != json.loads(canonical_json(settings)):
        raise UserError(f"{file}: boards made with other settings, or no boards; delete it, or name another --out")


# Where boards come from -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Careless:
    """A player that plays a random column now and then."""

    player: Player
    share: float

    @property
    def name(self) -> str:
        return f"{self.player.name}, {self.share:.0%} random"

    def play(self, current: Boards, mask: Boards, seeds: Boards) -> Choices:
        careless = mix(seeds ^ np.uint64(1)) < np.uint64(self.share * 2**64)
        other = RandomPlayer().play(current, mask, seeds ^ np.uint64(2)).moves
        return Choices(moves=np.where(careless, other, checked_choices(self.player, current, mask, seeds).moves))


def mixed_play(
    games: int, seed: int, workers: int = 1, advance: Advance = silent, styles: Sequence[tuple[str, float]] = STYLES
) -> tuple[Boards, Boards]:
    """Canonical boards of so many games, each board once, in random order: current and mask, uint64 (B,)."""
    rng = np.random.default_rng(seed)
    players = [Careless(player=make(word, workers), share=share) for word, share in styles]
    pairings = [
        Pairing(first=int(first), second=int(second), opening=random_opening(rng))
        for first, second in rng.integers(0, len(styles), (games, 2))
    ]
    current, mask, _ = canonicalise(*bitboards(play_games(players, pairings, seed, advance).states))
    unlike = np.unique(np.stack([current, mask], 1), axis=0)
    current, mask = rng.permutation(unlike).T
    return np.ascontiguousarray(current), np.ascontiguousarray(mask)


def random_opening(rng: np.random.Generator) -> Opening:
    """0 to 8 random moves that leave the game open."""
    plies, position = int(rng.integers(LONGEST_OPENING + 1)), EMPTY
    moves: list[int] = []
    while len(moves) < plies:
        move = int(rng.choice(legal_columns(position)))
        after = play(position, move)
        if not is_over(after):
            position = after
            moves.append(move)
    return tuple(moves)


# Which boards are taken -----------------------------------------------------------------------------------------------


def choose(
    current: Boards,
    mask: Boards,
    strata: Sequence[Stratum],
    share: float = 1.0,
    workers: int = 1,
    advance: Advance = silent,
) -> GradedBoards:
    """Fill the strata one after another with boards that belong, first come first served; no board is taken twice.

    Each stratum begins to read at its own place among the boards, evenly spread, and goes round: read from one place,
    `midgame` would leave the later ones no board of 10 to 16 stones. The boards must be unlike each other up to mirror
    and in random order. The result is sorted by set, half and ply. Raises UserError where a stratum finds too few.
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
    rows, sets, halves = [], [], []
    for name, parts in taken.items():
        members = np.concatenate(parts)
        members = members[np.argsort(ply[members], kind="stable")]
        for half, half_members in (("dev", members[::2]), ("test", members[1::2])):  # as many of each ply in both
            rows.append(half_members)
            sets += [name] * len(half_members)
            halves += [half] * len(half_members)
    row = np.concatenate(rows)
    return GradedBoards(
        set=np.array(sets, np.str_),
        half=np.array(halves, np.str_),
        current=current[row],
        mask=mask[row],
        scores=scores[row],
        ply=ply[row],
        moves_to_end=moves_to_end(best_scores(scores[row]), ply[row]).astype(np.int8),
    )


def _wanted(stratum: Stratum, share: float) -> int:
    return max(1, round(stratum.size * share))


main = cli.Command("evaluation.benchmark", Config, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
