"""A tiny network and games of self-play, for tests."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
from puct_helpers import predict as any_network

from distill import networks
from distill.alphazero import run_files
from distill.alphazero.presets import PRESETS
from distill.alphazero.settings import SelfPlayConfig
from distill.common import cli, run_folder
from distill.games import inspection, reader, schema, shards
from distill.games.selfplay import play_in_lock_step
from distill.games.settings import SelfPlaySettings
from distill.mcts import puct
from distill.mcts.settings import PuctSettings
from distill.networks import heads
from distill.training import checkpoint
from distill.training import identity as training_identity

SETTINGS = SelfPlaySettings(
    search=PuctSettings(simulations=6, sampling_plies=6), shard_games=4, opening_moves=(0, 3), seed=2
)


def tiny(value_head: bool = True) -> keras.Model:
    """A network with one hidden layer and the usual heads; runs in a millisecond."""
    planes = heads.planes_input()
    x = keras.layers.Conv2D(4, 3, padding="same", activation="relu", name="conv")(planes)
    features = keras.layers.Flatten(name="flatten")(x)
    logits = keras.layers.Dense(7, name="logits")(features)
    return heads.network("pillar", planes, logits, heads.value_head(features) if value_head else None)


def build_tiny(change: Callable[[Any, str, Any], None] = setattr) -> None:
    """Make `networks.build` return the tiny network for each name, because its graphs are traced fast."""
    change(networks, "build", lambda arch, value_head=False, **_: tiny(value_head))


def read(folder: Path) -> Any:
    """All rows of a folder of games, after checking that its shards are valid."""
    found = []
    for path in sorted(folder.glob("shard-*.parquet")):
        table, metadata = schema.read_table(path)
        shard = schema.shard_of(path.name, table, metadata, b"")
        assert list(inspection.faults(reader.columns_of(path, table, metadata), metadata["identity"], shard)) == []
        found += table.to_pylist()
    return found


def play_into(
    folder: Path,
    number: int = 10,
    settings: SelfPlaySettings = SETTINGS,
    evaluate: Any = any_network,
    network: str = "some network",
    **more: Any,
) -> dict[str, Any]:
    """Play games as far as the folder lacks them; returns the result."""
    run = settings.games_identity(network)
    with shards.opened(folder, settings, number, run) as record:
        todo = shards.plan(record, number).todo
        record.begin()
        write = lambda encoded: record.storage.write(encoded[0].name, encoded[1])  # noqa: E731
        play_in_lock_step(settings, run, evaluate, todo, write, **{"lanes": 3, **more})
        record.finish(result := shards.result(schema.run_name(record.ours.identity), shards.plan(record, number).done))
        return result


def repeat_of(counts: list[dict[str, int]], file: Path, *words: str) -> list[str]:
    """The words of a repetition of these games and steps, of a run with the settings of the words."""
    config = cli.parse(SelfPlayConfig, words, PRESETS)
    known = training_identity.identity(config, run_files.FREE, puct_version=puct.PUCT_VERSION)
    file.write_text(json.dumps({"identity": known, "result": {"counts": counts}}))
    return ["--repeat", str(file), *words]


def metrics_of(out: Path) -> list[dict[str, Any]]:
    """The metrics of a run's finished iterations, without their times."""
    times = {"minutes", "seconds", "saving_seconds", "step_seconds"}
    finished = checkpoint.load(out)[1]["finished"]
    return [{name: value for name, value in metrics.items() if name not in times} for metrics in finished]


def forget_last(out: Path) -> None:
    """Make the checkpoint one that does not know of the last iteration."""
    with np.load(out / checkpoint.FILE) as stored:
        arrays = dict(stored)
    state = json.loads(str(arrays[checkpoint.STATE]))
    state["finished"].pop()
    np.savez(out / checkpoint.FILE, **arrays | {checkpoint.STATE: np.array(json.dumps(state))})


def games_of(out: Path) -> list[str]:
    """Content hashes of all shards of a run's finished games."""
    results = [run_folder.result_of(folder) for folder in sorted(out.glob("iterations/*/games"))]
    return [shard["content_hash"] for result in results for shard in result.get("shards", [])]
