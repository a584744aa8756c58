"""Checks of a whole run: the manifest against the files, and every row of every file.

In: the storage of a run of games or of packed boards. Out: every violation, with its file and game. Nothing is changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from distill.common import DataError, folders
from distill.games import checks, schema
from distill.games.reader import KINDS
from distill.games.schema import Shard, is_shard
from distill.games.storage import Storage


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
      metadata, shard: its metadata and its entry for a manifest; None for a file that cannot be read.
      error: why there is no `shard`.
    """

    name: str
    violations: list[Violation]
    metadata: dict[str, Any] | None = field(default=None, repr=False)
    shard: Shard | None = None
    error: DataError | None = None


def inspect(storage: Storage) -> Iterator[Inspected]:
    """The manifest, then each shard that it names or that exists.

    Raises DataError where there is neither a manifest nor a shard, and for a folder of another kind.
    """
    names = storage.names()
    kind = folders.kind_in(names, storage.read)
    if not (kind in KINDS if kind else any(name == schema.MANIFEST or is_shard(name) for name in names)):
        holds = kind.description if kind else "no games"
        raise DataError(f"{storage}: holds {holds}; validate takes games and packed boards")
    manifest, listed, wrong = _manifest(storage, names)
    if manifest:
        wrong += [f"{name} is not in the manifest" for name in filter(is_shard, names) if name not in listed]
    yield Inspected(name=schema.MANIFEST, violations=[Violation(file=schema.MANIFEST, what=what) for what in wrong])
    for name in sorted({*listed, *filter(is_shard, names)}):
        yield inspect_shard(storage, name, listed.get(name), manifest.get("run"))


def _manifest(storage: Storage, names: list[str]) -> tuple[dict[str, Any], dict[str, Shard], list[str]]:
    """The manifest, its shards by name, and what is wrong with it; empty where it cannot be used."""
    try:
        if schema.MANIFEST not in names:
            raise DataError(f"{schema.MANIFEST}: missing, so the run is not finished")
        manifest, shards = schema.parse_run(schema.MANIFEST, storage.read(schema.MANIFEST))
    except DataError as error:
        return {}, {}, [_without_name(error)]
    # Sums and order: together the shards hold games 0 to the last one, each once.
    wrong, end = [], 0
    for key in ("games", "rows", "simulations"):
        found = sum(getattr(shard, key) for shard in shards)
        if manifest.get(key, found) != found:
            wrong.append(f"{manifest[key]:,} {key}, but its shards have {found:,}")
    for shard in sorted(shards, key=lambda shard: shard.first_game):
        if shard.first_game != end:
            wrong.append(f"{shard.name} begins with game {shard.first_game}, but game {end} comes next")
        end = shard.first_game + shard.games
    return manifest, {shard.name: shard for shard in shards}, wrong


def inspect_shard(storage: Storage, name: str, listed: Shard | None = None, run: str | None = None) -> Inspected:
    """One shard: every page whole, every row true, and as the manifest says.

    `listed` is its entry in the manifest, and `run` the name of the run there, if any.
    """
    wrong: list[tuple[int | None, str]] = []
    metadata = shard = stopped = None
    try:
        content = storage.read(name)
    except FileNotFoundError:
        missing = Violation(file=name, what="missing, though the manifest names it")
        return Inspected(name=name, violations=[missing], error=schema.DamagedError(missing.what))
    try:
        sha256 = hashlib.sha256(content).hexdigest()
        if listed and sha256 != listed.sha256:
            wrong.append((None, "not the file the manifest describes (SHA-256)"))
        table, metadata = schema.read_table(f"{storage}/{name}", None, content)
        if run is not None and metadata.get("run") != run:
            wrong.append((None, f"of the run {metadata.get('run')}, the manifest of {run}"))
        # The rows by themselves, then what the manifest says of them.
        wrong += checks.faults(table, metadata)
        shard = describe(name, table, metadata, sha256)
        for key in ("first_game", "games", "rows", "simulations", "content_hash") if listed else ():
            ours, theirs = getattr(shard, key), getattr(listed, key)
            if ours != theirs:
                wrong.append((None, f"{key} {ours}, but {theirs} in the manifest"))
    except DataError as error:
        wrong.append((None, _without_name(error)))
        stopped = error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        wrong.append((None, f"its metadata are not those of a shard of games ({type(error).__name__}: {error})"))
        stopped = schema.DamagedError(wrong[-1][1])
    violations = [Violation(file=name, what=what, game=game) for game, what in wrong]
    return Inspected(name=name, violations=violations, metadata=metadata, shard=shard, error=stopped)


def describe(name: str, table: pa.Table, metadata: Mapping[str, Any], sha256: str) -> Shard:
    """A shard's entry for the manifest; packed boards have no simulations."""
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
