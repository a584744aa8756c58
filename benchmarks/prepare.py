"""How long `prepare` takes on more rows than fit in memory, and how much memory the whole process needs.

    python benchmarks/prepare.py --rows 50000000

Plays synthetic games from the rules until there are enough rows (openings repeat massively, late boards
are unique, as in real runs), prepares them in a subprocess and deletes everything. Prints a table and,
as its last line, one JSON object. 50 M rows need about 4 GB of disk for a while.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill.common import Progress, UserError, cli, file_hash
from distill.game import rules
from distill.games import schema

SHARD_GAMES = 40_000
"""Games played in lock step and written as one shard of about a million rows."""

FAVOURED = 0.5
"""Probability of the one column that a board favours: what makes games repeat each other for a while."""

MISSED = 0.8
"""Probability that a winning column is passed over for another: games get as long as the teacher's."""

VISITS = 30_000
"""Simulations a row claims."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkConfig(cli.Settings):
    """Time `prepare` on synthetic rows and measure its peak memory."""

    rows: int = cli.setting(50_000_000, "rows to make")
    seed: int = cli.setting(0, "seed of the synthetic games")
    folder: Path | None = cli.setting(None, "where the files go for a while; none means the system's temporary folder")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check(self.rows > 0, "rows", self.rows, "positive")


def play_games(first_game: int, games: int, seed: int) -> pa.Table:
    """Rows of `games` games in `schema.ROW`: 1 to 8 uniform plies, then every position labelled.

    The labelled side plays the column its board favours, a hash of the canonical board, with
    probability FAVOURED, and any legal one otherwise.
    """
    rng = np.random.default_rng((seed, first_game))
    current, mask = np.zeros(games, np.uint64), np.zeros(games, np.uint64)
    opening, going = rng.integers(1, 9, games), np.ones(games, np.bool_)
    last_ply, won = np.zeros(games, np.int64), np.zeros(games, np.bool_)
    rows: list[dict[str, NDArray[Any]]] = []
    for ply in range(rules.CELLS):
        legal = rules.legal_mask(mask)
        draws = np.where(legal, rng.random((games, rules.COLUMNS)), -1)
        column = draws.argmax(axis=1)
        favourite = favoured_column(current, mask)
        labelled = ply >= opening
        follows = labelled & (rng.random(games) < FAVOURED) & legal[np.arange(games), favourite]
        column = np.where(follows, favourite, column)
        draws[np.arange(games), column] = -1
        missed = has_won(current, mask, column) & (rng.random(games) < MISSED) & (draws.max(axis=1) >= 0)
        column = np.where(missed, draws.argmax(axis=1), column)
        chosen = np.flatnonzero(going & labelled)
        weights = np.where(legal[chosen], rng.random((len(chosen), rules.COLUMNS)) ** 4, 0)
        weights[np.arange(len(chosen)), column[chosen]] += 1
        visits = (VISITS * weights / weights.sum(axis=1, keepdims=True)).astype(np.int32)
        rows.append(
            {
                "game": chosen,
                "ply": np.full(len(chosen), ply, np.int8),
                "current": current[chosen],
                "mask": mask[chosen],
                "label": column[chosen].astype(np.int8),
                "visits": visits,
                "value": rng.uniform(-1, 1, len(chosen)).astype(np.float32),
            }
        )
        wins = going & has_won(current, mask, column)
        won |= wins
        current, mask = np.where(going, current ^ mask, current), np.where(going, mask | stones(mask, column), mask)
        last_ply[going] = ply
        going &= ~wins
    merged = {name: np.concatenate([part[name] for part in rows]) for name in rows[0]}
    order = np.argsort(merged["game"], kind="stable")
    merged = {name: values[order] for name, values in merged.items()}
    game = merged.pop("game")
    by_last_mover = (last_ply[game] - merged["ply"]) % 2 == 0
    total = len(game)
    visits = pa.FixedSizeListArray.from_arrays(pa.array(merged.pop("visits").ravel()), rules.COLUMNS)
    columns = merged | {
        "game_id": game + first_game,
        "votes": pa.ListArray.from_arrays(np.arange(total + 1, dtype=np.int32), pa.array(merged["label"])),
        "visits": visits,
        "simulations": np.full(total, VISITS, np.int32),
        "move": merged["label"],
        "outcome": np.where(won[game], np.where(by_last_mover, 1, -1), 0).astype(np.int8),
    }
    return pa.table([columns[name] for name in schema.ROW.names], schema=schema.ROW)


def stones(mask: NDArray[np.uint64], column: NDArray[np.int64]) -> NDArray[np.uint64]:
    """uint64 (B,): the cell that a stone falling into each column takes; 0 where the column is full."""
    bottoms = np.uint64(1) << (rules.BITS_PER_COLUMN * column).astype(np.uint64)
    return (mask + bottoms) & (bottoms * np.uint64(rules.COLUMN_0))


def has_won(current: NDArray[np.uint64], mask: NDArray[np.uint64], column: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool (B,): whether playing the column wins."""
    return rules.has_four(current | stones(mask, column))


def favoured_column(current: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.int64]:
    """int64 (B,): an arbitrary column of each board, mirrored with it."""
    canonical_current, canonical_mask, mirrored = rules.canonicalise(current, mask)
    scrambled = ((canonical_current + canonical_mask) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    column = (scrambled % np.uint64(rules.COLUMNS)).astype(np.int64)
    return np.where(mirrored, rules.COLUMNS - 1 - column, column)


def make_run(folder: Path, rows: int, seed: int) -> dict[str, Any]:
    """A finished folder of synthetic games with at least `rows` rows; returns its manifest."""
    metadata = {"schema_version": schema.SCHEMA_VERSION, "identity": {"seed": seed}, "run": f"{seed:032x}"}
    shards: list[dict[str, Any]] = []
    made = 0
    with Progress(rows, "rows") as progress:
        while made < rows:
            first = len(shards) * SHARD_GAMES
            table = play_games(first, SHARD_GAMES, seed)
            path = folder / f"shard-{len(shards):05d}.parquet"
            schema.write_table(path, table, metadata)
            shard = {"name": path.name, "first_game": first, "games": SHARD_GAMES, "rows": len(table)}
            shards.append(shard | {"sha256": file_hash(path), "content_hash": schema.content_hash(table)})
            progress.advance(min(len(table), rows - made), "synthetic")
            made += len(table)
    manifest = metadata | {"games": len(shards) * SHARD_GAMES, "rows": made, "shards": shards}
    schema.write_manifest(folder, manifest)
    return manifest


def size(folder: Path) -> int:
    """Bytes of the files below a folder that is being worked in."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # removed meanwhile
            continue
    return total


def largest_size(folder: Path, stop: threading.Event) -> list[int]:
    """A list whose one entry is the largest size seen so far, kept up by a thread until `stop`."""
    largest = [0]

    def watch() -> None:
        while not stop.wait(0.5):
            largest[0] = max(largest[0], size(folder))

    threading.Thread(target=watch, daemon=True).start()
    return largest


def run(config: BenchmarkConfig) -> str:
    """Make, prepare, measure, delete; the JSON object as text."""
    with tempfile.TemporaryDirectory(prefix="distill-prepare-", dir=config.folder) as place:
        games, out = Path(place) / "games", Path(place) / "prepared"
        manifest = make_run(games, config.rows, config.seed)
        command = [sys.executable, "-m", "distill.prepare", "--data", str(games), "--out", str(out), "--exclude"]
        out.mkdir()
        stop = threading.Event()
        disk = largest_size(out, stop)
        began = time.perf_counter()
        finished = subprocess.run(command)
        seconds = time.perf_counter() - began
        stop.set()
        if finished.returncode:
            raise UserError(f"prepare failed with exit code {finished.returncode}")
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        (folder,) = (path for path in out.iterdir() if not path.name.startswith("."))
        counts = schema.read_manifest(folder)["counts"]
        figures = {
            "rows": manifest["rows"],
            "games": manifest["games"],
            "boards": sum(counts["boards"].values()),
            "seconds": round(seconds, 1),
            "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
            "rows_per_second": round(manifest["rows"] / seconds),
            "peak_memory_gib": round(peak / 2**30, 3),
            "input_gb": round(size(games) / 1e9, 2),
            "largest_working_gb": round(disk[0] / 1e9, 2),
            "output_gb": round(size(out) / 1e9, 2),
        }
    print("\n".join(f"{name:20}{value:>16,}" for name, value in figures.items()))
    return json.dumps(figures)


main = cli.Command("benchmarks.prepare", BenchmarkConfig, run)

if __name__ == "__main__":
    raise SystemExit(main())
