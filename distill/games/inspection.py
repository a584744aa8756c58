"""Checks of a whole run: the record against the files, and every row of every file.

In: the storage of a run of games or of packed boards. Out: every violation, in words. Nothing is changed.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from distill.common import DataError, run_folder
from distill.common.run_folder import RECORD
from distill.common.storage import Storage
from distill.games import checks, schema, shards
from distill.games.reader import KINDS
from distill.games.schema import Shard

SHARDS = "shard-*.parquet"
"""What files of rows are called."""


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """One file of a run: what is wrong with it, and what it holds.

    Attributes:
      metadata, shard, table: its metadata, its entry for a record, its rows; None for a file that cannot be read.
    """

    name: str
    violations: list[str]
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)
    shard: Shard | None = None
    table: pa.Table | None = field(default=None, repr=False)


def inspect(storage: Storage) -> Iterator[Inspected]:
    """Each shard that the record names or that exists, then the record.

    Raises DataError where there is neither a record nor a shard, and for a folder of another kind.
    """
    record, files = run_folder.read(storage), fnmatch.filter(storage.names(), SHARDS)
    if (record and record.kind not in KINDS) or not (record or files):
        holds = record.kind if record else "no games"
        raise DataError(f"{storage}: holds {holds}; inspect takes games and packed boards")
    result, wrong = record.result if record else None, [] if record and record.result else ["the run is not finished"]
    run, recorded, whole = None, dict[str, Any](), list[Shard]()
    if result:
        try:
            run = schema.run_of(storage, result).run
            recorded = {entry["name"]: entry for entry in result["shards"]}
        except DataError as error:
            wrong.append(_without_name(error))
    for name in sorted({*recorded, *files}):
        inspected = inspect_shard(storage, name, run)
        whole += [inspected.shard] if inspected.shard else []
        yield inspected
    if run and record:
        # What the record would say of these files.
        identity = {name: value for name, value in record.identity.items() if name != "shard_games"}
        expected = shards.result(run if record.kind != schema.GAMES else schema.run_name(identity), whole)
        expected["shards"] = {entry["name"]: entry for entry in expected["shards"]}
        known = (result or {}) | {"shards": recorded}
        names = expected.keys() & known.keys()
        different = run_folder.differences(*({name: side[name] for name in names} for side in (known, expected)))
        wrong += [f"does not describe the files: {what}" for what in different]
        starts = [0, *(shard.first_game + shard.games for shard in whole)]
        wrong += [
            f"{shard.name} begins with game {shard.first_game}, but game {start} comes next"
            for shard, start in zip(whole, starts, strict=False)
            if shard.first_game != start
        ]
    yield Inspected(name=RECORD, violations=[f"{RECORD}: {what}" for what in wrong])


def inspect_shard(storage: Storage, name: str, run: str | None = None) -> Inspected:
    """One shard: every page whole, every row true, and of the run of this name, if one is named."""
    wrong, table, metadata, shard = list[str](), None, dict[str, Any](), None
    try:
        content = storage.read(name)
    except FileNotFoundError:
        return Inspected(name=name, violations=[f"{name}: missing, though the record names it"])
    try:
        table, metadata = schema.read_table(f"{storage}/{name}", None, content)
        shard = schema.shard_of(name, table, metadata, content)
        if run is not None and metadata.get("run") != run:
            wrong.append(f"of the run {metadata.get('run')}, the record of {run}")
        if metadata.get("kind") == schema.GAMES and schema.run_name(metadata["identity"]) != metadata.get("run"):
            wrong.append("its identity is not that of its run")
        wrong += checks.faults(table, metadata)
    except DataError as error:
        wrong.append(_without_name(error))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        wrong.append(f"its metadata are not those of a shard of games ({type(error).__name__}: {error})")
    violations = [f"{name}{', ' if what.startswith('game ') else ': '}{what}" for what in wrong]
    return Inspected(name=name, violations=violations, metadata=metadata, shard=shard, table=table)


def _without_name(error: BaseException) -> str:
    """A DataError's message without the file, which the violation names itself."""
    return str(error).partition(": ")[2] or str(error)
