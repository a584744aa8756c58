"""Changed labels become a run of their own.

Who replaces the labels in a copy of a run (`label`, `visits` or `value`, by another engine's for example) has files
that the manifest does not describe. `accept` checks every row and then writes shards and manifest again, under an
identity that holds a hash of the rows. That is another run: nothing that was made of the old labels is taken for it.
Boards, moves and results must still be those of real games.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from distill.common import DataError, canonical_json, first_line, json_bytes, provenance
from distill.games import checks, inspection, schema, shards
from distill.games.schema import RELABELLED, Shard
from distill.games.storage import Storage


def accept(place: Storage) -> dict[str, Any]:
    """Accept the rows that a place holds now, as a new run where they were changed; returns the manifest.

    The caller holds the place (`shards.locked`). Raises DataError where a row cannot be accepted; nothing is changed
    then. A process that is killed here leaves shards that the old manifest does not describe, and can start again.
    """
    names = place.names()
    inspection.require_run(place, names)
    manifest = _manifest(place, names)
    entries = [schema.shard_of(entry) for entry in manifest["shards"]]
    if unlisted := sorted({*filter(inspection.is_shard, names)} - {entry.name for entry in entries}):
        raise DataError(f"{place}/{unlisted[0]}: not in the manifest; move it elsewhere")
    identity, row = manifest["identity"], schema.row_of(manifest)
    hashes, last_key = [], None
    for entry in entries:
        table = _table(place, entry.name, row)
        _check(f"{place}/{entry.name}", table, entry, identity, last_key)
        last_key = table["key"][-1].as_py() if row is schema.PACKED_ROW and len(table) else None
        hashes.append(schema.content_hash(table))
    about = {name: manifest[name] for name in ("schema_version", "kind", "run", "identity")}
    if hashes != [entry.content_hash for entry in entries]:
        about["identity"] = identity | {RELABELLED: hashlib.sha256(canonical_json(hashes).encode()).hexdigest()}
        about["run"] = shards.run_hash(about["identity"])
    made = {"commit": provenance.commit(), "versions": provenance.versions("numpy", "pyarrow")}
    written = []
    for index, entry in enumerate(entries):
        table = _table(place, entry.name, row)
        own = {"index": index, "first_game": entry.first_game, "games": entry.games, "versions": made["versions"]}
        content = schema.table_bytes(table, about | own)
        place.write(entry.name, content)
        written.append(inspection.describe(entry.name, table, own, hashlib.sha256(content).hexdigest()))
    totals = {key: sum(getattr(shard, key) for shard in written) for key in ("games", "rows", "simulations")}
    manifest |= about | made | {key: total for key, total in totals.items() if key in manifest}
    manifest["shards"] = [dataclasses.asdict(shard) for shard in written]
    place.write(schema.MANIFEST, json_bytes(manifest))
    return manifest


def _manifest(place: Storage, names: list[str]) -> dict[str, Any]:
    """The manifest of a finished run. Raises DataError."""
    if schema.MANIFEST not in names:
        raise DataError(f"{place}: no {schema.MANIFEST}, so the run is not finished; finish it first")
    manifest = schema.parse_manifest(f"{place}/{schema.MANIFEST}", place.read(schema.MANIFEST))
    try:
        entries = [schema.shard_of(entry) for entry in manifest["shards"]]
        complete = bool(entries) and isinstance(manifest["identity"], dict) and isinstance(manifest["run"], str)
    except (KeyError, TypeError, ValueError):
        complete = False
    if not complete:
        raise DataError(f"{place}/{schema.MANIFEST}: not the manifest of a run")
    return manifest


def _table(place: Storage, name: str, row: pa.Schema) -> pa.Table:
    """A shard's rows, whatever wrote the file, in the types of a run. Raises DataError for other columns."""
    try:
        content = place.read(name)
    except FileNotFoundError:
        raise DataError(f"{place}/{name}: missing, though the manifest names it") from None
    with schema.opened(f"{place}/{name}", content) as file:
        if lacking := [column for column in row.names if column not in file.schema_arrow.names]:
            raise DataError(f"{place}/{name}: column {lacking[0]!r} is missing")
        try:
            return file.read(use_threads=False).select(row.names).cast(row)
        except pa.ArrowException as error:
            raise DataError(f"{place}/{name}: {first_line(error)}") from None


def _check(label: str, table: pa.Table, entry: Shard, identity: Mapping[str, Any], last_key: int | None) -> None:
    """Raise DataError unless the rows are true apart from what labelled them."""
    own = {"first_game": entry.first_game, "games": entry.games, "identity": {**identity, RELABELLED: ""}}
    law = checks.law_of(own)
    packed = "key" in table.column_names
    found = list(checks.packed_faults(table, law, last_key) if packed else checks.faults(table, law))
    if found:
        game = "" if found[0].game is None else f", game {found[0].game}"
        more = f" ({len(found) - 1:,} more rows like this or otherwise wrong)" if len(found) > 1 else ""
        raise DataError(f"{label}{game}: {found[0].what}{more}; nothing was accepted")
