"""Tables of random legal games, in the schema of the real ones, for tests that need rows but no search."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from distill.base import canonical_json, file_hash
from distill.game import rules
from distill.rows import schema

REFERENCE = Path(__file__).parents[1] / "models" / "reference"
SHIPPED = sorted(file.parent.name for file in REFERENCE.glob("*/best.keras"))
"""The networks that ship, whichever they are: what leaves the house is tested with every one of them."""

VOTES = 3
SIMULATIONS = 30


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
            position = rules.play(position, int(rng.choice(legal)))
            continue
        votes = [int(vote) for vote in rng.choice(legal, VOTES)]
        visits = np.zeros(rules.COLUMNS, np.int64)
        visits[legal] = rng.multinomial(VOTES * SIMULATIONS, np.full(len(legal), 1 / len(legal)))
        label = max(rules.COLUMNS_FROM_CENTRE, key=lambda column: (votes.count(column), visits[column]))
        rows.append(
            {
                "game_id": game_id,
                "ply": position.ply,
                "current": position.current,
                "mask": position.mask,
                "votes": votes,
                "label": label,
                "visits": visits.tolist(),
                "simulations": VOTES * SIMULATIONS,
                "value": float(np.float32(rng.uniform(-1, 1))),
                "move": label,
            }
        )
        position = rules.play(position, label)
    last_mover = 1 if rules.is_won(position) else 0
    for row in rows:
        row["outcome"] = last_mover if (position.ply - row["ply"]) % 2 else -last_mover
    return rows


def write_games(
    folder: Path, table: pa.Table, shard_games: int = 10, identity: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A finished folder of games, as `generate` leaves it; returns the manifest."""
    identity = dict(identity or {"settings": {}, "search_version": 0, "seed": 0})
    run = hashlib.sha256(canonical_json(identity).encode()).hexdigest()
    about = {"schema_version": schema.SCHEMA_VERSION, "kind": "games", "identity": identity, "run": run}
    games = table["game_id"].to_numpy()
    count = int(games.max()) + 1 if len(games) else 0
    shards = []
    for index, first in enumerate(range(0, count, shard_games)):
        part = table.filter(pa.array((games >= first) & (games < first + shard_games)))
        path = folder / f"shard-{index:05d}.parquet"
        own = {"index": index, "first_game": first, "games": min(shard_games, count - first)}
        schema.write_table(path, part, about | own)
        shards.append(
            {
                "name": path.name,
                "first_game": own["first_game"],
                "games": own["games"],
                "rows": len(part),
                "simulations": int(np.sum(part["simulations"].to_numpy())),
                "sha256": file_hash(path),
                "content_hash": schema.content_hash(part),
            }
        )
    manifest = about | {"games": count, "rows": len(table), "shards": shards}
    schema.write_manifest(folder, manifest)
    return manifest


def same_manifest(one: Path, other: Path) -> bool:
    """Whether two folders declare the same run; the commit may have changed in between."""
    first, second = schema.read_manifest(one), schema.read_manifest(other)
    return first | {"commit": None} == second | {"commit": None}
