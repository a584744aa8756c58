"""Makes the opening book of the page: what finished games played on each of their first plies, and what it is worth.

    python -m distill.web.openings

In: a folder of games as `generate` makes it, and the solver package. Out: `page/openings.json`, whose bytes are a
function of the games. It takes some seconds.

The rows of a game begin after its random opening; its columns are drawn again here, from the run's seed, so that games
count from the empty board. Positions are merged up to mirror, however they were reached.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from distill.common import DataError, Progress, cli, cores
from distill.common.files import write_atomically
from distill.datasets.benchmark import FULL_COLUMN
from distill.game.rules import BITS_PER_COLUMN, COLUMNS, EMPTY, ROWS, Position, from_moves, mirror, play
from distill.games import games, schema, shards
from distill.players.solver import score_boards


@dataclass(frozen=True, kw_only=True)
class Config(cli.Settings):
    """Make the opening book of the page."""

    data: Path = cli.setting(Path("data/reference/games-20000"), "folder of finished games")
    out: Path = cli.setting(Path("distill/web/page/openings.json"), "file to write")
    plies: int = cli.setting(10, "moves from the empty board that are told of")
    least: int = cli.setting(20, "games that have passed a position for it to be kept")
    workers: int = cli.setting(cores(), "processes for the solver")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_least(self, plies=1, least=1, workers=1)


PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"data": cli.SMOKE_DATA / "games", "out": cli.SMOKE_DATA / "openings.json", "plies": 2, "least": 2}
}


@dataclass(frozen=True, kw_only=True)
class Game:
    """One game: columns played from the empty board, how many of them were random, the first player's result."""

    moves: list[int]
    random: int
    result: int


@dataclass(kw_only=True)
class Played:
    """Games that played a move, those in which a search chose it, and the first player's wins and draws."""

    games: int = 0
    chosen: int = 0
    won: int = 0
    drawn: int = 0


@dataclass(kw_only=True)
class Passed:
    """A position that games passed, in its canonical orientation, and its moves by column."""

    position: Position
    moves: dict[int, Played] = field(default_factory=dict)

    @property
    def games(self) -> int:
        """How many games passed it and went on."""
        return sum(played.games for played in self.moves.values())


def run(config: Config) -> str:
    """Read, count, score, write."""
    source = games.open_run(config.data)
    with Progress(source.games, "games") as progress:
        book = count(_told(read_games(source), progress), config.plies)
    kept = {key: passed for key, passed in book.items() if passed.games >= config.least}
    if not kept:
        raise DataError(f"{config.data}: no position that {config.least} games passed; ask for less with --least")
    write_atomically(config.out, as_bytes(kept, source.games, config.plies, config.least, config.workers))
    return f"{len(kept)} positions of {source.games:,} games · {config.out}"


def _told(played: Iterable[Game], progress: Progress) -> Iterator[Game]:
    for game in played:
        yield game
        progress.advance(1)


def read_games(run: games.Run) -> Iterator[Game]:
    """The games of a run of `generate`, openings included. Raises DataError for others, or where one does not fit."""
    games.verify([run])
    identity = schema.read_manifest(run.folder).get("identity", {})
    if not {"search_version", "seed", "opening_moves"} <= identity.keys():
        raise DataError(f"{run.folder}: these games were not made by generate; the openings of others cannot be told")
    settings = SimpleNamespace(seed=identity["seed"], opening_moves=identity["opening_moves"])
    for shard in run.shards:
        parts = list(games.read(shard, ("game_id", "ply", "current", "mask", "move", "outcome")))
        rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        starts = np.flatnonzero(np.diff(rows["game_id"], prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(rows["ply"])], strict=True):
            number, ply = int(rows["game_id"][start]), int(rows["ply"][start])
            opening = shards.opening_moves(settings, number)
            if from_moves(opening) != Position(int(rows["current"][start]), int(rows["mask"][start])):
                raise DataError(f"{shard.path}: game {number} does not begin with the opening that its seed draws")
            result = int(rows["outcome"][start]) * (-1 if ply % 2 else 1)
            yield Game(moves=[*opening, *rows["move"][start:end].tolist()], random=len(opening), result=result)


def count(played: Iterable[Game], plies: int) -> dict[str, Passed]:
    """The positions that games passed on their first plies, by `key`, those of fewer stones first."""
    book: dict[str, Passed] = {}
    for game in played:
        position = EMPTY
        for ply, column in enumerate(game.moves[:plies]):
            name, is_mirrored = key(position)
            passed = book.setdefault(name, Passed(position=mirror(position) if is_mirrored else position))
            turned = COLUMNS - 1 - column if is_mirrored else column
            if mirror(position) == position:  # a column and its mirror are one move
                turned = min(column, COLUMNS - 1 - column)
            move = passed.moves.setdefault(turned, Played())
            move.games += 1
            move.chosen += ply >= game.random
            move.won += game.result > 0
            move.drawn += game.result == 0
            position = play(position, column)
    return dict(sorted(book.items(), key=lambda entry: (entry[1].position.ply, entry[0])))


def key(position: Position) -> tuple[str, bool]:
    """A position's name, the same for its mirror, and whether it is the mirror's own.

    Columns from the left, a digit a stone from the bottom, 0 the first player's: "0,,,10,,," has three stones. Of the
    two orientations' the smaller text.
    """
    first = position.opponent if position.ply % 2 else position.current
    columns = []
    for column in range(COLUMNS):
        cells = (BITS_PER_COLUMN * column + row for row in range(ROWS))
        columns.append("".join("10"[first >> cell & 1] for cell in cells if position.mask >> cell & 1))
    own, mirrored = ",".join(columns), ",".join(reversed(columns))
    return min(own, mirrored), mirrored < own


def as_bytes(book: Mapping[str, Passed], games: int, plies: int, least: int, workers: int = 1) -> bytes:
    """The file: for each position the exact score of every column, and its moves, the most frequent first."""
    current = np.array([passed.position.current for passed in book.values()], np.uint64)
    mask = np.array([passed.position.mask for passed in book.values()], np.uint64)
    with Progress(len(book), "positions") as progress:
        scores = score_boards(current, mask, workers, progress.advance)
    lines = []
    for (name, passed), row in zip(book.items(), scores.tolist(), strict=True):
        ordered = sorted(passed.moves.items(), key=lambda entry: (-entry[1].games, entry[0]))
        moves = [[column + 1, move.games, move.chosen, move.won, move.drawn] for column, move in ordered]
        entry = [[None if score == FULL_COLUMN else score for score in row], moves]
        lines.append(f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}")
    head = f'"games": {games},\n"plies": {plies},\n"least": {least}'
    body = ",\n".join(lines)
    return f'{{{head},\n"positions": {{\n{body}\n}}}}\n'.encode()


main = cli.Command("web.openings", Config, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
