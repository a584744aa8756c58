"""Let a network play against itself and learn from it.

    python -m distill.selfplay --preset hour                       # a strong network in an hour
    KERAS_BACKEND=jax python -m distill.selfplay --preset minutes  # from scratch in five minutes of a GPU
    python -m distill.selfplay --minutes 150                       # from scratch: `pillar-plain`, Gumbel search
    python -m distill.selfplay --init models/pillar --preset improve
    python -m distill.selfplay --init models/pillar --games-only --games 5000 --out data/selfplay

In one iteration the champion plays `--games` games against itself, the network learns from the latest games of all
iterations, and becomes the champion if it scores `arena.gate` in the arena; if not, it still trains on. With
`--minutes`, as in the preset `hour`, each iteration has a share of the time: workers play until it is over, and
meanwhile the network learns from the games of earlier iterations. Networks are graded on the benchmark's dev half:
logged, never used to choose.

With Keras on JAX and an accelerator, a run with `--minutes` plays and learns there (`alphazero/on_device.py`), with
`machine.device_lanes` games in lock step.

Out, in `models/selfplay/`: a record, `best.keras` (the champion), `history.csv`, `curves.png`, `checkpoint.npz`, and
`iterations/0001/games/` (ordinary shards). The same command resumes an interrupted run;
`--repeat models/selfplay/_run.json` repeats a finished run with `--minutes`, without the clock. `--games-only` writes a
folder of games and trains nothing. `--cluster` plays on the workers of a Dask cluster (docs/scaling.md).
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("selfplay")

import os
from pathlib import Path

from distill import networks
from distill.alphazero import iterations, loop, run_files, workers
from distill.alphazero.presets import PRESETS
from distill.alphazero.settings import ON_DEVICE, SelfPlayConfig
from distill.common import UserError, cli, cores, executors, listed, say
from distill.common.settings import as_json, build, by_path
from distill.games import shards
from distill.mcts import compiling
from distill.networks import backend, finding
from distill.training import identity

DEVICE_LANES = 1 << 15
"""Games in lock step on an accelerator."""


def run(config: SelfPlayConfig) -> str:
    """Play and learn; the last line says where the result is and how it was graded."""
    if config.unread:
        raise UserError(f"no effect beside schedule.stages, which set it: {listed(config.unread)}")
    repeats, processes = config.schedule.repeat, config.machine.workers or 0
    if config.is_timed:  # this process trains while others play, and they have the other cores
        processes = processes or max(1, cores() - 1)
        # With a thread for each core that is left, weights would depend on the number of workers.
        os.environ[executors.THREADS] = "1"
    networks.trust(config.arch.name)
    config = identity.with_arch(config, "pillar-plain")
    if config.games_only:
        return _only_play(config)
    config = _with_device(config)
    with run_files.opened(config.out or Path("models/selfplay"), config) as folder:
        repeated = iterations.recorded(repeats, folder.ours.identity) if repeats else []
        # Workers start before anything is deleted; a device needs none.
        with workers.start(config, 0 if config.machine.device_lanes else processes) as pool:
            return loop.run(config, folder, pool, repeated)


def _with_device(config: SelfPlayConfig) -> SelfPlayConfig:
    """The config with `device_lanes`, and with what holds on a device. Raises UserError for one without JAX."""
    lanes, on_jax = config.machine.device_lanes, os.environ.get("KERAS_BACKEND") == "jax"
    if lanes and not on_jax:
        raise UserError("games on a device need Keras on JAX: set KERAS_BACKEND=jax in the environment")
    if lanes is None and on_jax and config.fits_device:
        networks.start_backend(aloud=True)
        lanes = DEVICE_LANES if backend.on_accelerator() else None
    if not lanes:
        return config
    on_device = build(SelfPlayConfig, as_json(config), ON_DEVICE, {"machine.device_lanes": lanes})
    asked, fixed = (by_path(as_json(settings)) for settings in (config, on_device))
    if changed := [f"{name} is {fixed[name]}" for name in ON_DEVICE if fixed[name] != asked[name]]:
        say(f"on a device: {listed(changed)}")
    return on_device


def _only_play(config: SelfPlayConfig) -> str:
    out, processes = config.out or Path("data/selfplay"), config.machine.workers or cores()
    assert config.init is not None  # by the config's own check
    machine = config.machine.replace(cluster=None)
    settings, number = config.replace(restart=False, machine=machine), config.schedule.games
    player = workers.network_player(settings, finding.network_file(config.init))
    with shards.opened(out, settings, number, player.identity, restart=config.restart) as folder:
        plan = shards.plan(folder, number)
        if folder.result and not plan.todo:
            return f"finished before: {plan.games:,} games in {out}"
        compiling.prepare("puct")
        with workers.start(config, processes) as pool:  # before anything is deleted
            say("playing games; each worker loads Keras first")
            played = workers.play(pool, player, iterations.End(games=number), folder)
    return f"{out}: {played['games']:,} games, {played['rows']:,} rows"


main = cli.Command("distill selfplay", SelfPlayConfig, run, PRESETS)
