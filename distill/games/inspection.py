"""Checks of a whole run: the record against the files, and every row of every file.

In: the storage of a run of games or of packed boards. Out: every violation, with its file and game. Nothing is changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from distill.common import DataError, run_folder
from distill.common.run_folder import RECORD
from distill.common.storage import Storage
from distill.games import checks, schema
from distill.games.reader import KINDS
from distill.games.schema import Shard, is_shard


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One thing that is wrong with a file, or with one of its games."""

    file: str
    what: str
    game: int | None = None

    def __str__(self) -> str:
        return f"{self.file}{'' if self.game is None else f', game {self.game}'}: {self.what}"


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """One file of a run: what is wrong with it, and what it holds.

    Attributes:
      metadata, shard, table: its metadata, its entry for a record, its rows; None for a file that cannot be read.
      error: why there is no `shard`.
    """

    name: str
    violations: list[Violation]
    metadata: dict[str, Any] | None = field(default=None, repr=False)
    shard: Shard | None = None
    table: pa.Table | None = field(default=None, repr=False)
    error: DataError | None = None


def inspect(storage: Storage) -> Iterator[Inspected]:
    """The record, then each shard that it names or that exists.

    Raises DataError where there is neither a record nor a shard, and for a folder of another kind.
    """
    names, record = storage.names(), run_folder.read(storage)
    if record and record.kind not in KINDS:
        raise DataError(f"{storage}: holds {record.kind}; inspect takes games and packed boards")
    if record is None and not any(map(is_shard, names)):
        raise DataError(f"{storage}: holds no games; inspect takes games and packed boards")
    result = record.result if record else None
    listed, wrong = _record(storage, result)
    if record and result and record.kind == schema.GAMES:
        identity = {name: value for name, value in record.identity.items() if name != "shard_games"}
        if schema.run_name(identity) != result.get("run"):
            wrong.append("its identity is not that of the run")
    if result:
        wrong += [f"{name} is not in the record" for name in filter(is_shard, names) if name not in listed]
    yield Inspected(name=RECORD, violations=[Violation(file=RECORD, what=what) for what in wrong])
    for name in sorted({*listed, *filter(is_shard, names)}):
        yield inspect_shard(storage, name, listed.get(name), result["run"] if listed and result else None)


def _record(storage: Storage, result: Mapping[str, Any] | None) -> tuple[dict[str, Shard], list[str]]:
    """The shards in the result of a run by name, and what is wrong with it; none where it cannot be used."""
    if result is None:
        return {}, ["the run is not finished"]
    try:
        shards = schema.shards_of(storage, result)
    except DataError as error:
        return {}, [_without_name(error)]
    # Sums and order: together the shards hold games 0 to the last one, each once.
    wrong, end = [], 0
    for key in ("games", "rows", "simulations"):
        total = sum(getattr(shard, key) for shard in shards)
        if result.get(key, total) != total:
            wrong.append(f"{result[key]} {key}, but its shards have {total:,}")
    for shard in sorted(shards, key=lambda shard: shard.first_game):
        if shard.first_game != end:
            wrong.append(f"{shard.name} begins with game {shard.first_game}, but game {end} comes next")
        end = shard.first_game + shard.games
    return {shard.name: shard for shard in shards}, wrong


def inspect_shard(storage: Storage, name: str, listed: Shard | None = None, run: str | None = None) -> Inspected:
    """One shard: every page whole, every row true, and as the record says.

    `listed` is its entry in the record, and `run` the name of the run there, if any.
    """
    wrong: list[tuple[int | None, str]] = []
    table = metadata = shard = stopped = None
    try:
        content = storage.read(name)
    except FileNotFoundError:
        missing = Violation(file=name, what="missing, though the record names it")
        return Inspected(name=name, violations=[missing], error=schema.DamagedError(missing.what))
    try:
        sha256 = hashlib.sha256(content).hexdigest()
        if listed and sha256 != listed.sha256:
            wrong.append((None, "not the file that the record describes (SHA-256)"))
        table, metadata = schema.read_table(f"{storage}/{name}", None, content)
        if run is not None and metadata.get("run") != run:
            wrong.append((None, f"of the run {metadata.get('run')}, the record of {run}"))
        if metadata.get("kind") == schema.GAMES and schema.run_name(metadata["identity"]) != metadata.get("run"):
            wrong.append((None, "its identity is not that of its run"))
        shard = describe(name, table, metadata, sha256)
        for key in ("first_game", "games", "rows", "simulations", "content_hash") if listed else ():
            ours, theirs = getattr(shard, key), getattr(listed, key)
            if ours != theirs:
                wrong.append((None, f"{key} {ours}, but {theirs} in the record"))
        wrong += checks.faults(table, metadata)
    except DataError as error:
        wrong.append((None, _without_name(error)))
        stopped = error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        wrong.append((None, f"its metadata are not those of a shard of games ({type(error).__name__}: {error})"))
        stopped = schema.DamagedError(wrong[-1][1])
    violations = [Violation(file=name, what=what, game=game) for game, what in wrong]
    return Inspected(name=name, violations=violations, metadata=metadata, shard=shard, table=table, error=stopped)


def describe(name: str, table: pa.Table, metadata: Mapping[str, Any], sha256: str) -> Shard:
    """A shard's entry for a record; packed boards have no simulations."""
    simulations = 0
    if "simulations" in table.column_names:
        simulations = int(schema.numbers(table["simulations"].combine_chunks()).sum(dtype=np.int64))
    return Shard(
        name=name,
        first_game=int(metadata["first_game"]),
        games=int(metadata["games"]),
        rows=len(table),
        simulations=simulations,
        sha256=sha256,
        content_hash=schema.content_hash(table),
    )


def _without_name(error: BaseException) -> str:
    """A DataError's message without the file, which the violation names itself."""
    return str(error).partition(": ")[2] or str(error)
