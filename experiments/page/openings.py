"""Build the page's opening book: the moves of each early position with their exact scores, how much strong players like
them, and how the games that played them ended.

    python -m distill.generate --games 20000 --out data/reference/games-20000    # 24 minutes on 2 cores
    python -m experiments.page.openings                                          # a minute

In: a folder of games made by `generate`, the solver package, and the players of STRONG. Out:
`distill/web/page/openings.json`, whose bytes are a function of these.

The rows of a game start after its random opening. This opening is drawn again from the run's seed, so that games count
from the empty board. Transpositions and mirror images are merged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from distill.common import DataError, Progress, cli, cores
from distill.common.files import write_atomically
from distill.common.settings import CommandLine, Settings
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import (
    BITS_PER_COLUMN,
    COLUMNS,
    EMPTY,
    ROWS,
    Bitboards,
    Position,
    from_moves,
    mirror,
    mirror_bits,
    next_position,
)
from distill.games import playing, reader
from distill.players.names import make
from distill.players.player import Player, checked_choices, seeds_for
from distill.players.solver import score_boards

GAMES = Path("data/reference/games-20000")
"""Games that do not ship, from which the shipped book was made; `data/README.md` says how they are made."""
STRONG = ("reference/pillar@puct:200", "uct:10000")
"""Searches with and without a network; the book has the mean of their shares of visits."""


class Config(Settings):
    """Build the page's opening book."""

    command_line: ClassVar[CommandLine] = CommandLine(flags=("data", "out", "plies", "least", "workers"))
    data: Path = Field(GAMES, description="folder of finished games")
    out: Path = Field(Path("distill/web/page/openings.json"), description="file to write")
    plies: int = Field(10, ge=1, description="number of moves from the empty board in the book (at least 1)")
    least: int = Field(20, ge=1, description="drop positions that fewer games reached (at least 1)")
    workers: int = Field(cores(), ge=1, description="processes for the solver (at least 1)")


@dataclass(frozen=True, kw_only=True)
class Game:
    """One game: columns played from the empty board, how many of them were random, the first player's result."""

    moves: list[int]
    random: int
    result: int


@dataclass(kw_only=True)
class Played:
    """Games that played a move, games in which a search chose it, and the first player's wins and draws."""

    games: int = 0
    chosen: int = 0
    won: int = 0
    drawn: int = 0


@dataclass(kw_only=True)
class Passed:
    """A position in its canonical orientation, and the moves played from it by column."""

    position: Position
    moves: dict[int, Played] = field(default_factory=dict)


def run(config: Config) -> str:
    """Read games, count moves, score positions, write the file."""
    if config.data == GAMES and not GAMES.exists():
        raise DataError(
            f"{GAMES}: no games here; make them with: python -m distill.generate --games 20000 --out {GAMES}"
        )
    source = reader.open_run(config.data)
    book = count(read_games(source), config.plies)
    kept = {key: passed for key, passed in book.items() if sum(m.games for m in passed.moves.values()) >= config.least}
    if not kept:
        raise DataError(f"{config.data}: {config.least} games reached no position; try a smaller --least")
    players = [make(word, config.workers) for word in STRONG]
    write_atomically(config.out, as_bytes(kept, players, source.games, config.plies, config.least, config.workers))
    return f"{len(kept)} positions of {source.games:,} games · {config.out}"


def read_games(run: reader.GamesRun) -> Iterator[Game]:
    """The games of a run of `generate` with their openings. Raises DataError for games of another command."""
    reader.verify([run])
    identity = run.identity
    if not {"search_version", "seed", "opening_moves"} <= identity.keys():
        raise DataError(f"{run.folder}: not made by generate, so the random openings are unknown")
    for shard in run.shards:
        rows = reader.read(shard, ("game_id", "ply", "current", "mask", "move", "outcome"))
        starts = np.flatnonzero(np.diff(rows["game_id"], prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(rows["ply"])], strict=True):
            number, ply = int(rows["game_id"][start]), int(rows["ply"][start])
            opening = playing.random_opening(identity["opening_moves"], identity["seed"], number)
            if from_moves(opening) != Position(int(rows["current"][start]), int(rows["mask"][start])):
                raise DataError(f"{shard.path}: game {number} does not start with the opening drawn from its seed")
            result = int(rows["outcome"][start]) * (-1 if ply % 2 else 1)
            yield Game(moves=[*opening, *rows["move"][start:end].tolist()], random=len(opening), result=result)


def count(played: Iterable[Game], plies: int) -> dict[str, Passed]:
    """The positions of the first plies by `key`, fewest stones first."""
    book: dict[str, Passed] = {}
    for game in played:
        position = EMPTY
        for ply, column in enumerate(game.moves[:plies]):
            name, is_mirrored = key(position)
            passed = book.setdefault(name, Passed(position=mirror(position) if is_mirrored else position))
            turned = COLUMNS - 1 - column if is_mirrored else column
            if mirror(position) == position:  # a column and its mirror are the same move
                turned = min(column, COLUMNS - 1 - column)
            move = passed.moves.setdefault(turned, Played())
            move.games += 1
            move.chosen += ply >= game.random
            move.won += game.result > 0
            move.drawn += game.result == 0
            position = next_position(position, column)
    return dict(sorted(book.items(), key=lambda entry: (entry[1].position.ply, entry[0])))


def key(position: Position) -> tuple[str, bool]:
    """A position's name, equal for its mirror image, and whether the mirror image gave it.

    Columns from the left, one digit per stone from the bottom, 0 for the first player: "0,,,10,,," has three stones.
    The smaller text of the two orientations.
    """
    first = position.opponent if position.ply % 2 else position.current
    columns = []
    for column in range(COLUMNS):
        cells = (BITS_PER_COLUMN * column + row for row in range(ROWS))
        columns.append("".join("10"[first >> cell & 1] for cell in cells if position.mask >> cell & 1))
    own, mirrored = ",".join(columns), ",".join(reversed(columns))
    return min(own, mirrored), mirrored < own


def as_bytes(
    book: Mapping[str, Passed], players: Sequence[Player], games: int, plies: int, least: int, workers: int = 1
) -> bytes:
    """The file: for each position two lists by column and one of its moves, most frequent first.

    The lists by column are exact scores, None for a full column, and the mean share of the players' visits in percent.
    """
    current = np.array([passed.position.current for passed in book.values()], np.uint64)
    mask = np.array([passed.position.mask for passed in book.values()], np.uint64)
    with Progress(len(book), "positions") as progress:
        scores = score_boards(current, mask, workers, progress.advance)
    shares = np.rint(100 * liked(current, mask, players)).astype(int)
    lines = []
    for (name, passed), row, share in zip(book.items(), scores.tolist(), shares.tolist(), strict=True):
        ordered = sorted(passed.moves.items(), key=lambda entry: (-entry[1].games, entry[0]))
        moves = [[column + 1, *astuple(move)] for column, move in ordered]
        entry = [[None if score == FULL_COLUMN else score for score in row], share, moves]
        lines.append(f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}")
    head = f'"games": {games},\n"plies": {plies},\n"least": {least}'
    body = ",\n".join(lines)
    return f'{{{head},\n"positions": {{\n{body}\n}}}}\n'.encode()


def liked(current: Bitboards, mask: Bitboards, players: Sequence[Player]) -> NDArray[np.float64]:
    """float64 (B, 7), the mean policy; equal for a column and its mirror on a board that is its own mirror."""
    seeds = seeds_for(0, np.arange(len(mask)))
    found = [checked_choices(player, current, mask, seeds).policy for player in players]
    mean = np.mean([policy for policy in found if policy is not None], axis=0)  # searches have one
    is_symmetric = (mirror_bits(current) == current) & (mirror_bits(mask) == mask)
    return np.where(is_symmetric[:, None], (mean + mean[:, ::-1]) / 2, mean)


main = cli.Command("experiments page.openings", Config, run)

if __name__ == "__main__":
    raise SystemExit(main())
