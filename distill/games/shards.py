"""One shard of games as a pure function, and what a run of shards needs around it: plan, lock, manifest.

`make_shard(settings, index, ...)` plays games [index * S, (index + 1) * S) and writes one Parquet
file; the same settings and index give the same bytes anywhere. A run is that function mapped over
its indices (`games/executors.py`): whatever is missing or damaged is made, whatever is valid is kept, and the
manifest comes last.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill.common import DataError, canonical_json, cli, folders, json_bytes, provenance
from distill.common.cli import as_json, check, check_seed, setting
from distill.game.rules import CELLS, EMPTY, Position, from_moves, is_over, legal_columns, play
from distill.games import checks, inspection, schema
from distill.games.checkpoints import CHECKPOINTS, Checkpoint, joined
from distill.games.inspection import is_shard
from distill.games.reader import accept_advice
from distill.games.schema import Shard
from distill.games.storage import Folder, Storage, storage_of
from distill.mcts import guided_trees, teacher
from distill.mcts.teacher import SearchSettings, TeacherRecord

LIBRARIES = ("numba", "numpy", "pyarrow")
"""Whose versions a shard's bytes depend on."""

LONGEST_OPENING = 30
"""Most random moves before the search plays."""

OpeningMoves: TypeAlias = tuple[int, int] | tuple[tuple[int, int], ...]
"""Fewest and most random moves, or a table of such pairs, which the games of a run take in turn."""


@dataclass(frozen=True, kw_only=True)
class RunSettings(SearchSettings):
    """All that the games of a run depend on: with `SEARCH_VERSION`, the run's identity."""

    opening_moves: OpeningMoves = setting(
        (1, 8), "fewest and most random moves before the search plays; in JSON also a list of pairs, for games in turn"
    )
    seed: int = setting(0, "run seed; game g depends on it and on g alone")
    shard_games: int = setting(200, "games in one shard file")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_games(self)


def check_games(settings: Any) -> None:
    """Raise ValueError unless a run's `opening_moves`, `seed` and `shard_games` can be, whatever its search."""
    pairs = opening_pairs(settings.opening_moves)
    valid = len(pairs) > 0 and all(0 <= fewest <= most <= LONGEST_OPENING for fewest, most in pairs)
    shown = " and ".join(f"{fewest} {most}" for fewest, most in pairs)
    check(valid, "opening_moves", shown, f"two numbers, fewest and most, from 0 to {LONGEST_OPENING}")
    check_seed(settings.seed)
    check(1 <= settings.shard_games <= 100_000, "shard_games", settings.shard_games, "from 1 to 100,000")


def settings_of(config: RunSettings) -> RunSettings:
    """The settings alone of a config that may have more to it, such as a command's."""
    return RunSettings(**{field.name: getattr(config, field.name) for field in dataclasses.fields(RunSettings)})


def identity(settings: RunSettings) -> dict[str, Any]:
    """The settings that define a run, and the version of the search that plays it."""
    stored = as_json(settings_of(settings))
    if stored["noise_at"] == "label":  # as in runs that were made before there was a choice
        del stored["noise_at"]
    return {"search_version": teacher.SEARCH_VERSION, **stored}


def run_hash(run_identity: Mapping[str, Any]) -> str:
    """Name of a run: BLAKE2b-128 over the canonical JSON of its identity, in hex."""
    return hashlib.blake2b(canonical_json(run_identity).encode(), digest_size=16).hexdigest()


def shard_name(index: int) -> str:
    """File name of a shard."""
    return f"shard-{index:05d}.parquet"


def opening(settings: Any, game: int) -> Position:
    """The position a game's random opening leads to."""
    return from_moves(opening_moves(settings, game))


def opening_moves(settings: Any, game: int) -> list[int]:
    """The columns of a game's random opening; an opening that ends the game is redrawn."""
    pairs = opening_pairs(settings.opening_moves)
    fewest, most = pairs[game % len(pairs)]
    random = teacher.generator(settings.seed, game, 0)
    while True:
        position, moves = EMPTY, []
        for _ in range(random.integers(fewest, most + 1)):
            columns = legal_columns(position)
            moves.append(columns[random.integers(len(columns))])
            position = play(position, moves[-1])
            if is_over(position):
                break
        if not is_over(position):
            return moves


def opening_pairs(moves: OpeningMoves) -> list[list[int]]:
    """Fewest and most random moves, pair by pair; game g takes pair g modulo their number."""
    pairs: list[list[int]] = np.reshape(moves, (-1, 2)).tolist()
    return pairs


def play_games(settings: RunSettings, first: int, count: int, kept: Checkpoint | None = None) -> pa.Table:
    """The rows of games [first, first + count), in `schema.ROW`, sorted by (game_id, ply).

    With `kept`, games in that file are not played again, and those that end meanwhile are added to it.
    """
    steps = CELLS - min(fewest for fewest, _ in opening_pairs(settings.opening_moves))
    none = np.empty(0, np.uint64)
    votes = np.empty((0, steps, settings.votes), np.int8)
    before = TeacherRecord(votes=votes, **teacher.blank_record(none, none, steps))
    there, games = np.empty(0, np.int64), np.arange(first, first + count)
    if kept:
        there, before = kept.load(before)
    left = np.setdiff1d(games, there)

    def ended(record: TeacherRecord, over: NDArray[np.int64]) -> None:
        if kept and len(over) < len(left) and kept.is_due():
            kept.save(np.concatenate([there, left[over]]), joined(before, record, over))

    starts = [opening(settings, game) for game in left.tolist()]
    played = teacher.play(
        np.array([start.current for start in starts], np.uint64),
        np.array([start.mask for start in starts], np.uint64),
        teacher.draw(settings.seed, left.tolist(), steps, settings),
        settings,
        ended=ended,
    )
    record, places = joined(before, played, np.arange(len(left))), np.argsort(np.concatenate([there, left]))
    return rows(record, places, games, votes=record.votes, move=record.move)


def rows(
    record: teacher.TeacherRecord | guided_trees.GuidedRecord,
    places: NDArray[np.int64],
    game_ids: NDArray[np.int64],
    *,
    votes: NDArray[np.int8],
    move: NDArray[np.int8],
) -> pa.Table:
    """The rows of finished games in `schema.ROW`, by game and ply.

    Args:
      places: int64 (G,), where in the record they are.
      game_ids: int64 (G,).
      votes: (games, S, K), of the whole record.
      move: (games, S), the columns played.
    """
    game, step = np.nonzero(np.arange(record.label.shape[1]) < record.length[places][:, None])
    place = places[game]
    plies_to_end = record.length[place] - 1 - step
    mask = record.mask[place, step]
    columns = {
        "game_id": game_ids[game],
        "ply": np.bitwise_count(mask),
        "current": record.current[place, step],
        "mask": mask,
        "votes": votes[place, step],
        "label": record.label[place, step],
        "visits": record.visits[place, step],
        "simulations": record.simulations[place, step],
        "value": record.value[place, step],
        "move": move[place, step],
        "outcome": record.result[place] * (1 - 2 * (plies_to_end % 2)),
    }
    return pa.table([_column(columns[field.name], field.type) for field in schema.ROW], schema=schema.ROW)


def _column(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array of (B,) or (B, width) values, cast to its type.

    From buffers, since `pa.array` imports pandas to look at a NumPy array: 40 MB in every worker.
    """
    if values.ndim == 2:
        items = _column(values.ravel(), kind.value_type)
        if pa.types.is_fixed_size_list(kind):
            return pa.FixedSizeListArray.from_arrays(items, kind.list_size)
        offsets = np.arange(len(values) + 1) * values.shape[1]
        return pa.ListArray.from_arrays(_column(offsets, pa.int32()), items)
    typed = np.ascontiguousarray(values, kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(typed), [None, pa.py_buffer(typed)])


def make_shard(settings: RunSettings, index: int, count: int, folder: Path | Storage) -> Shard:
    """Play the first `count` games of shard `index` and write them to their place, whole or not at all.

    In a folder, games that have ended meanwhile are kept in a hidden file, and those found there not played again.
    """
    kept = next(iter(checkpoints_of(settings, [Task(index=index, games=count)], folder)), None)
    table = play_games(settings, index * settings.shard_games, count, kept)
    shard = write(table, identity(settings), index, index * settings.shard_games, count, folder)
    if kept:
        kept.delete()
    return shard


def checkpoints_of(
    settings: Any,
    tasks: Iterable[Task],
    folder: Path | Storage,
    run: Mapping[str, Any] | None = None,
    libraries: Sequence[str] = LIBRARIES,
) -> list[Checkpoint]:
    """The hidden files of the shards that these tasks are to make; none in a place that is no folder.

    `run` is the identity of a run that a network plays; `libraries` are those whose versions its bytes depend on.
    """
    place, size = storage_of(folder), settings.shard_games
    if not isinstance(place, Folder):
        return []
    about = {"identity": run or identity(settings), "versions": provenance.versions(*libraries)}
    return [
        Checkpoint(
            folder=place.path,
            index=task.index,
            games=range(task.index * size, task.index * size + task.games),
            about=about,
        )
        for task in tasks
    ]


def _forget_unfinished(folder: Path | Storage) -> None:
    """Remove the hidden files of shards that were being made."""
    place = storage_of(folder)
    if isinstance(place, Folder):
        for path in place.path.glob(CHECKPOINTS):
            path.unlink(missing_ok=True)


def write(
    table: pa.Table,
    run: Mapping[str, Any],
    index: int,
    first_game: int,
    games: int,
    folder: Path | Storage,
    libraries: Sequence[str] = LIBRARIES,
) -> Shard:
    """Write the rows of a shard of the run with this identity to its place; what a manifest says of it.

    `libraries` are those whose versions its bytes depend on.
    """
    metadata = {
        "schema_version": schema.SCHEMA_VERSION,
        "kind": "games",
        "run": run_hash(run),
        "identity": run,
        "index": index,
        "first_game": first_game,
        "games": games,
        "versions": provenance.versions(*libraries),
    }
    content = schema.table_bytes(table, metadata)
    storage_of(folder).write(shard_name(index), content)
    return inspection.describe(shard_name(index), table, metadata, hashlib.sha256(content).hexdigest())


@dataclass(frozen=True, kw_only=True)
class Task:
    """One shard still to be made."""

    index: int
    games: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a folder holds of a run and what it lacks."""

    done: list[Shard]
    todo: list[Task]
    damaged: list[str]


def plan(
    settings: Any,
    games: int,
    folder: Path | Storage,
    indices: Iterable[int] | None = None,
    run: Mapping[str, Any] | None = None,
) -> Plan:
    """Look through a run's place; every shard found is read with its checksums, and every row of it checked.

    `indices` are the shards to look at; None means all of the run. `run` is its identity where a network played. Raises
    DataError where the place holds a run with other settings (naming the differences), files that are not a run's, or a
    shard whose rows were changed.
    """
    run, shard_games = run or identity(settings), settings.shard_games
    place = storage_of(folder)
    names = place.names()
    visible = folders.visible(names)
    if visible and not any(name in (schema.MANIFEST, "config.json") or is_shard(name) for name in visible):
        raise DataError(f"{place}: holds files that are no games ({visible[0]}, ...); choose another --out")
    listed = _listed(place) if schema.MANIFEST in names else {}
    done: list[Shard] = []
    todo: list[Task] = []
    damaged: list[str] = []
    ours = tasks(settings, games, indices)
    for task in ours:
        name = shard_name(task.index)
        if name in names:
            found = inspection.inspect_shard(place, name, listed.get(name))
            _refuse_other_run(run, place, found.metadata)
            _refuse_changed(place, found.shard, listed.get(name))
            if found.violations:
                more = f" and {len(found.violations) - 1} more violations" if len(found.violations) > 1 else ""
                damaged.append(f"{place}/{found.violations[0]}{more}")
            elif found.shard and (found.shard.first_game, found.shard.games) == (task.index * shard_games, task.games):
                done.append(found.shard)
                continue
        todo.append(task)
    if indices is None:
        for name in filter(is_shard, sorted({*names} - {shard_name(task.index) for task in ours})):
            _refuse_other_run(run, place, inspection.metadata_in(place, name))
    return Plan(done=done, todo=todo, damaged=damaged)


def games_there(run: Mapping[str, Any], folder: Path | Storage) -> int:
    """Games up to the last one of this run that lies in a place, in a shard whose metadata can be used."""
    place = storage_of(folder)
    for name in sorted(filter(is_shard, place.names()), reverse=True):
        metadata = inspection.metadata_in(place, name)
        if metadata is None or metadata["identity"] != run:
            continue
        with suppress(KeyError, TypeError, ValueError):
            law = checks.law_of(metadata)
            return law.first_game + law.games
    return 0


def shard_count(games: int, shard_games: int) -> int:
    """Shards of a run of so many games."""
    return -(-games // shard_games)


def tasks(settings: Any, games: int, indices: Iterable[int] | None = None) -> list[Task]:
    """The shards of a run of so many games, or those of them with these numbers."""
    size = settings.shard_games
    ours = range(shard_count(games, size)) if indices is None else indices
    return [Task(index=index, games=min(size, games - index * size)) for index in ours]


def _listed(place: Storage) -> dict[str, Shard]:
    """The shards in a manifest; none where it cannot be read, as it is written anew then."""
    content = place.read(schema.MANIFEST)
    try:
        manifest = schema.parse_manifest(f"{place}/{schema.MANIFEST}", content)
        return {entry["name"]: schema.shard_of(entry) for entry in manifest["shards"]}
    except (DataError, KeyError, TypeError, ValueError):
        return {}


def _refuse_other_run(ours: Mapping[str, Any], place: Storage, metadata: Mapping[str, Any] | None) -> None:
    """Raise DataError where a shard's metadata are those of another run; a damaged shard has none and is made again."""
    theirs = (metadata or {}).get("identity")
    if not isinstance(theirs, dict):
        return
    differences = [
        f"{name} {theirs.get(name)} there, {ours.get(name)} here"
        for name in sorted({*ours, *theirs})
        if ours.get(name) != theirs.get(name)
    ]
    if differences:
        raise DataError(
            f"{place}: holds a run with other settings ({'; '.join(differences)}); "
            "choose another --out, or --restart to delete it"
        )


def _refuse_changed(place: Storage, found: Shard | None, listed: Shard | None) -> None:
    """Raise DataError where a readable shard has other rows than the manifest says: they may be changed on purpose."""
    if found is None or listed is None or (found.first_game, found.games) != (listed.first_game, listed.games):
        return  # damaged, or of a run that was extended
    if found.sha256 != listed.sha256 and found.content_hash != listed.content_hash:
        raise DataError(
            f"{place}/{found.name}: its rows were changed after the manifest was written; {accept_advice(place)}; "
            "to make it again, which discards the changes, delete the file, or --restart to delete the run"
        )


def locked(folder: Path | Storage, shared: bool = False) -> AbstractContextManager[None]:
    """Hold a run's place for one writer, or for several that share it, as `folders.locked` does.

    A place that is no folder has no lock: of two writers with the same settings each writes the same bytes.
    """
    place = storage_of(folder)
    return folders.locked(place.path, shared=shared) if isinstance(place, Folder) else nullcontext()


def require(folder: Path | Storage, kind: folders.Kind) -> None:
    """Raise UserError where a place holds something else than games of this kind; as `folders.require` does."""
    place = storage_of(folder)
    names = place.names()
    folders.require_kind(place, kind, folders.kind_in(names, place.read), folders.visible(names))


def delete(folder: Path | Storage) -> None:
    """Remove a run's files, for --restart, and nothing else, from its place; config.json stays until it is replaced."""
    place = storage_of(folder)
    place.delete(schema.MANIFEST)  # first: what is half deleted is not complete
    for name in place.names():
        if is_shard(name):
            place.delete(name)
    _forget_unfinished(place)
    cli.omit_when_resuming("--restart")


def declare(run: Mapping[str, Any], shards: list[Shard], folder: Path | Storage) -> dict[str, Any]:
    """Write and return the manifest of a run with this identity."""
    ordered = sorted(shards, key=lambda shard: shard.first_game)
    manifest = {
        "schema_version": schema.SCHEMA_VERSION,
        "kind": (folders.NETWORK_GAMES if "network" in run else folders.GAMES).name,
        "run": run_hash(run),
        "identity": run,
        "commit": provenance.commit(),
        "versions": provenance.versions(*LIBRARIES),
        "games": sum(shard.games for shard in ordered),
        "rows": sum(shard.rows for shard in ordered),
        "simulations": sum(shard.simulations for shard in ordered),
        "shards": [dataclasses.asdict(shard) for shard in ordered],
    }
    storage_of(folder).write(schema.MANIFEST, json_bytes(manifest))
    _forget_unfinished(folder)
    return manifest
