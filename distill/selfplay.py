"""Let a network play against itself and learn from it.

    python -m distill.selfplay --preset hour                       # a strong network in an hour
    python -m distill.selfplay --minutes 150                       # from scratch: our own network, Gumbel search
    python -m distill.selfplay --init models/pillar --preset improve
    python -m distill.selfplay --init models/pillar --games-only --games 5000 --out data/selfplay

In one iteration the champion plays `--games` games against itself, the network learns from the latest games of all
iterations, and becomes the champion if it scores `--gate` in the arena; if not, it still trains on. Presets such as
`hour` follow a plan instead: workers play while the network learns, and the latest network always plays. Networks are
graded on the benchmark's dev half: logged, never used to choose.

Out, in `models/selfplay/`: a record, `best.keras` (the champion), `history.csv`, `curves.png`, with a plan `plan.json`,
and `iterations/0001/` with `games/` (ordinary shards) and, written last, `metrics.json`. The same command resumes an
interrupted run. `--games-only` writes a folder of games and trains nothing.
`--cluster` plays on the workers of a Dask cluster (docs/scaling.md).
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("selfplay")

import dataclasses
import os
from pathlib import Path

from distill import networks
from distill.alphazero import grades, loop, plan, run_files, workers
from distill.alphazero.presets import PRESETS
from distill.alphazero.schedule import Schedule
from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, cli, cores, executors, run_folder, say
from distill.mcts import compiling
from distill.networks import finding


def run(config: SelfPlayConfig) -> str:
    """Play and learn; the last line says where the result is and how it was graded."""
    if config.games_only:
        return _only_play(config)
    networks.trust(config.arch.name)
    out = config.out or Path("models/selfplay")
    if config.is_planned:
        # Workers have the other cores. With a thread for each of those left, weights would depend on their number.
        os.environ[executors.THREADS] = "1"
    with run_files.opened(out, config) as folder:
        begins = folder.starts or not run_files.has_begun(out)
        initial = None
        if begins:  # what is wrong shows before anything is written
            networks.start_backend(aloud=True)
            from distill.training import step

            initial = step.initial_network(config.arch, config.init, True, config.seed)
        boards = grades.boards(config.arena.eval_boards)
        schedule = Schedule(config=config, plan=_plan(config, folder))
        # A run with a plan trains in this process while others play.
        processes = config.machine.workers or (max(1, cores() - 1) if config.is_planned else 0)
        with workers.start(config, processes) as pool:  # before anything is deleted
            return loop.run(schedule, folder, initial, boards, pool)


def _plan(config: SelfPlayConfig, folder: run_folder.Run) -> plan.Plan | None:
    """The plan that a run follows: its own, or the given one; None: it is still to be made, or there is none.

    Raises UserError where the run has begun by another plan than the given one.
    """
    out, file = Path(str(folder.storage)), config.schedule.plan
    own = None if folder.starts or not (out / run_files.PLAN).is_file() else plan.read(out / run_files.PLAN)
    given = plan.read(file) if file and (own is None or file.is_file()) else None
    if own and given and own != given:
        raise UserError(f"{out}: follows another plan than {file}; name another --out, or --restart")
    return own or given


def _only_play(config: SelfPlayConfig) -> str:
    networks.start_backend(aloud=True)
    out, processes = config.out or Path("data/selfplay"), config.machine.workers or cores()
    assert config.init is not None  # by the config's own check
    settings = config.replace(restart=False, machine=config.machine.replace(cluster=None))
    games = workers.of_network(settings, config.schedule.games, out, finding.network_file(config.init))
    with games.opened(restart=config.restart) as folder:
        plan = games.plan(folder)
        if plan.finished:
            return f"finished before: {plan.games:,} games in {out}"
        compiling.prepare("puct")
        with workers.start(config, processes) as pool:  # before anything is deleted
            folder.begin()
            where = f"on {config.machine.cluster}" if config.machine.cluster else f"in worker processes ({processes})"
            say(f"playing games {where}; each loads Keras first")
            games = dataclasses.replace(games, number=plan.games)
            played = workers.finish(workers.begin(pool, games, plan.todo), games, folder)
    return f"{out}: {played['games']:,} games, {played['rows']:,} rows"


main = cli.Command("selfplay", SelfPlayConfig, run, PRESETS)
