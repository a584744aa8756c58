"""Random positions and games, folders of games, their contents and locks, imports of a file."""

import ast
import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import portalocker
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from distill.common import file_hash, run_folder
from distill.game import encoding, rules
from distill.games import reader, schema, shards
from distill.games.settings import RunSettings

REFERENCE = Path(__file__).parents[1] / "models" / "reference"
SHIPPED = sorted(file.parent.name for file in REFERENCE.glob("*/best.keras"))
"""The networks that ship: exports are tested with each of them."""
FORMATS_SHIPPED = {name: {"savedmodel", "onnx", "onnx-int8"} for name in SHIPPED} | {
    "pillar": {"savedmodel", "onnx", "onnx-int8", "litert", "litert-int8"},
    "pillar-large": {"savedmodel", "onnx-int8"},
}
"""The formats in which each network ships; `export` writes the others."""


def shipping(*formats: str) -> list[tuple[str, str]]:
    """Network and format of the files that ship in these formats."""
    return [(network, name) for network in SHIPPED for name in formats if name in FORMATS_SHIPPED[network]]


DRAWN = "121212212121343434434343565656656565777777"
"""The moves of a drawn game."""
VOTES = 3
SIMULATIONS = 30


def low(drawing: str) -> str:
    """The drawing of a board whose empty upper rows are left out."""
    rows = drawing.strip().splitlines()
    return "\n".join([". . . . . . ."] * (rules.ROWS - len(rows)) + rows)


def bits(*positions: rules.Position) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Positions as the arrays `current` and `mask`."""
    return encoding.bitboards_of(positions)


def game_at_random(seed: int, most: int = rules.CELLS) -> str:
    """A game of two random players, or its first `most` moves."""
    rng, position, moves = random.Random(seed), rules.EMPTY, ""
    while len(moves) < most and not rules.is_over(position):
        column = rng.choice(rules.legal_columns(position))
        position, moves = rules.next_position(position, column), moves + str(column + 1)
    return moves


def random_game(seed: int) -> list[rules.Position]:
    """All positions of a game of two random players, the empty board first."""
    moves = game_at_random(seed)
    return [rules.from_moves(moves[:ply]) for ply in range(len(moves) + 1)]


def unfinished_games(count: int, least: int = 0, most: int = rules.CELLS - 1, seed: int = 0) -> list[str]:
    """Moves of random games, `least` to `most` of each, that are not over."""
    rng, found = random.Random(seed), list[str]()
    while len(found) < count:
        moves = game_at_random(rng.getrandbits(32), rng.randint(least, most))
        if not rules.is_over(rules.from_moves(moves)):
            found.append(moves)
    return found


def random_positions(count: int, least: int = 0, most: int = rules.CELLS - 1, seed: int = 0) -> list[rules.Position]:
    """Unfinished positions of random games with `least` to `most` stones."""
    return [rules.from_moves(moves) for moves in unfinished_games(count, least, most, seed)]


def make_games(games: int, seed: int, first_game: int = 0, first_plies: int = 2) -> pa.Table:
    """Rows of `games` random games: 1 to `first_plies` unlabelled plies, then every position labelled.

    Votes are random legal columns, the label is their majority (then visits, nearest the centre,
    lower column), the label is played, and the outcome is the one the moves lead to.
    """
    rows: list[dict[str, Any]] = []
    for game_id in range(first_game, first_game + games):
        rng = np.random.default_rng((seed, game_id))
        rows += _one_game(game_id, rng, int(rng.integers(1, first_plies + 1)))
    return pa.Table.from_pylist(rows, schema=schema.ROW)


def _one_game(game_id: int, rng: np.random.Generator, opening: int) -> list[dict[str, Any]]:
    position, rows = rules.EMPTY, []
    while not rules.is_over(position):
        legal = rules.legal_columns(position)
        if position.ply < opening:
            position = rules.next_position(position, int(rng.choice(legal)))
            continue
        votes = [int(vote) for vote in rng.choice(legal, VOTES)]
        visits = np.zeros(rules.COLUMNS, np.int64)
        visits[legal] = rng.multinomial(VOTES * SIMULATIONS, np.full(len(legal), 1 / len(legal)))
        label = max(rules.COLUMNS_FROM_CENTRE, key=lambda column: (votes.count(column), visits[column]))
        row = {"game_id": game_id, "ply": position.ply, "current": position.current, "mask": position.mask}
        row |= {"votes": votes, "label": label, "visits": visits.tolist(), "simulations": VOTES * SIMULATIONS}
        rows.append(row | {"value": float(np.float32(rng.uniform(-1, 1))), "move": label})
        position = rules.next_position(position, label)
    last_mover = 1 if rules.is_won(position) else 0
    for row in rows:
        row["outcome"] = last_mover if (position.ply - row["ply"]) % 2 else -last_mover
    return rows


def one_row_games(positions: list[rules.Position], labels: list[int], visits: list[int] | None = None) -> pa.Table:
    """Games of one row each: a board with its label, which is played, and the visits of that column."""
    rows, visits = [], visits or [SIMULATIONS] * len(labels)
    for game, (position, label, number) in enumerate(zip(positions, labels, visits, strict=True)):
        row = {"game_id": game, "ply": position.ply, "current": position.current, "mask": position.mask}
        of_columns = [number if column == label else 0 for column in range(rules.COLUMNS)]
        row |= {"votes": [label], "label": label, "visits": of_columns, "simulations": number, "move": label}
        rows.append(row | {"value": 0.0, "outcome": 0})
    return pa.Table.from_pylist(rows, schema=schema.ROW)


def write_games(
    folder: Path, table: pa.Table, shard_games: int = 10, identity: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Write a finished folder of games, as `generate` does, and return its result."""
    run = dict(identity or {"settings": {}, "search_version": 0, "seed": 0})
    games = table["game_id"].to_numpy()
    count = int(games.max()) + 1 if len(games) else 0
    firsts = range(0, count, shard_games)
    names = [schema.shard_name(index) for index in range(len(firsts))]
    known = run | {"shard_games": shard_games}
    with run_folder.opened(folder, schema.GAMES, known, settings={}, files=names, restart=True) as record:
        record.begin()
        written = []
        for index, first in enumerate(firsts):
            part = table.filter(pa.array((games >= first) & (games < first + shard_games)))
            task = shards.Task(index=index, games=min(shard_games, count - first))
            shard, content = shards.encode_shard(part, run, task, first, ())
            (folder / shard.name).write_bytes(content)
            written.append(shard)
        record.finish(result := shards.result(schema.run_name(record.ours.identity), written))
        return result


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` creates and fills, once also if several processes share the tests."""
    base = factory.getbasetemp()
    place = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = place / name, place / f"{name}.done"
    with portalocker.Lock(place / f"{name}.lock", timeout=900):
        if not done.exists():
            make(folder)
            done.touch()
    return folder


def change_record(folder: Path, change: Callable[[Any], object]) -> None:
    """Change the JSON object of a folder's record in place."""
    stored = json.loads((folder / run_folder.RECORD).read_text())
    change(stored)
    (folder / run_folder.RECORD).write_text(json.dumps(stored))


def shard_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of all finished shards under a folder, by their paths below it."""
    return {path.relative_to(folder).as_posix(): file_hash(path) for path in sorted(folder.rglob("shard-*.parquet"))}


def die_always(settings: RunSettings, identity: Any, tasks: Sequence[shards.Task]) -> Any:
    """Make shards, but kill each worker that tries shard 1."""
    if tasks[0].index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return shards.play_shards(settings, identity, tasks)


def same_record(one: Path, other: Path) -> bool:
    """Whether the records of two folders are equal but for the commit and the settings of the command."""
    first, second = (run_folder.finished(folder, *reader.KINDS) for folder in (one, other))
    return first.model_copy(update={"commit": second.commit, "settings": second.settings}) == second


@dataclass(frozen=True)
class Import:
    """One imported name, absolute, and whether loading the module runs it (not inside a function or TYPE_CHECKING)."""

    name: str
    at_load: bool


def imports_of(file: Path, package: str) -> Iterator[Import]:
    """All imports of a file; `package` is the dotted name of the package that relative imports start from."""

    def walk(node: ast.AST, at_load: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, at_load) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
            yield from (Import(f"{base}.{alias.name}", at_load) for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for child in node.body:
                yield from walk(child, False)
            for child in node.orelse:
                yield from walk(child, at_load)
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for child in ast.iter_child_nodes(node):
                yield from walk(child, at_load and not inside)

    yield from walk(ast.parse(file.read_text(encoding="utf-8")), True)


def state(folder: Path) -> dict[str, str]:
    """All files and folders below a folder, with the hash of each file."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in folder.rglob("*")
    }


HOLD = """
import sys, time
from pathlib import Path
from distill.common import run_folder
with run_folder.locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def held(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a folder's lock until it is killed."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """Acts like a full disk: writing fails, for this process and its children."""
    import resource  # which Windows has not

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
