"""Let a network play against itself and learn from it: self-play, replay, training, arena, again and again.

    python -m distill.selfplay --preset hour                       # a strong network in an hour
    python -m distill.selfplay --minutes 150                       # from nothing: our own shape, Gumbel search
    python -m distill.selfplay --init models/pillar --preset improve
    python -m distill.selfplay --init models/pillar --games-only --games 5000 --out data/selfplay

One iteration: the champion plays `--games` games against itself, the learner learns from the latest of all games, and
takes the champion's place where it scores `--gate` in the arena; rejected, it trains on all the same. Both are graded
by the judge on the benchmark's dev half: logged, never used to choose.

Out, in `models/selfplay/`: `best.keras` (the champion), `config.json`, `history.csv`, `curves.png`, `metrics.json`, and
`iterations/0001/` with `games/` (ordinary shards), `arena.json` and, written last, `metrics.json`. A killed run goes on
where it was with the same command: from the finished games, the last trained iteration, the last block of arena games.
`--games-only` plays with the network as it is into a folder of games.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from distill import networks
from distill.alphazero import ahead, files, iteration, plan, unattended
from distill.alphazero.files import Metrics
from distill.alphazero.presets import PRESETS
from distill.alphazero.settings import SelfPlayConfig
from distill.common import DataError, Progress, UserError, cli, cores, folders, say
from distill.common.workers import check as check_workers
from distill.games import checkpoints, schema, shards
from distill.games import selfplay as rows
from distill.mcts import cache


def run(config: SelfPlayConfig) -> str:
    """Play and learn; the last line says where the result is and what the judge thinks of it."""
    if config.games_only:
        return _only_play(config)
    out = config.out or Path("models/selfplay")
    if config.teacher_share:
        unattended.learn_in_one_thread()
    with shards.locked(out):
        claim = files.claim(out, config)
        claim.check()
        if not config.restart and (kept := files.kept_result(out)):
            return _kept(config, out, kept)
        begins = config.restart or not files.has_begun(out)
        given = iteration.given_network(config) if begins else None  # what is wrong shows before anything is written
        boards = iteration.judged_boards(config.eval_boards)
        has_plan = not config.restart and (out / files.PLAN).is_file()
        planned = plan.read(config.plan) if config.plan and (not has_plan or config.plan.is_file()) else None
        if has_plan and planned not in (None, plan.read(out / files.PLAN)):
            raise UserError(f"{out}: follows another plan than {config.plan}; name another --out, or --restart")
        if config.workers or config.teacher_share:
            check_workers()
        claim.begin()
        if config.teacher_share:
            return unattended.run(config, out, given, boards, planned)
        finished = files.finished_iterations(out)
        files.settle(out, finished)
        if len(finished) >= config.iterations:
            return f"{_result(out, finished)} (finished before, nothing to do; --iterations goes on)"
        iteration.require_games(config, out, finished)
        cache.prepare("puct")
        began = time.monotonic()
        with ahead.Players(config.workers or 0) as players:
            loop = iteration.start(config, out, finished, given, boards, players)
            while len(finished) < config.iterations:
                if config.minutes is not None and finished and time.monotonic() - began > 60 * config.minutes:
                    break
                finished.append(iteration.iterate(loop, finished))
                say(_line(finished[-1]))
                if finished[-1]["accepted"]:
                    iteration.take_over(loop)
                files.settle(out, finished)
        return _result(out, finished)


def _kept(config: SelfPlayConfig, out: Path, last: Metrics) -> str:
    """The line of a run of which the result alone was kept. Raises UserError where it should go on."""
    wanted = len(plan.read(out / files.PLAN).iterations) if config.teacher_share else config.iterations
    if last["iteration"] < wanted:
        has = f"only the result of iteration {last['iteration']} of {wanted} was kept"
        raise UserError(f"{out}: {has}, so it cannot go on; name another --out, or --restart begins anew")
    line = unattended.line(last) if config.teacher_share else _line(last)
    return f"{out}: {line} (finished before, nothing to do; --restart begins anew)"


def _only_play(config: SelfPlayConfig) -> str:
    networks.start_backend(aloud=True)
    from distill.common import write_json
    from distill.networks import finding

    out = config.out or Path("data/selfplay")
    assert config.init is not None  # by the config's own check
    network = finding.network_file(config.init)
    run = rows.identity(config, ahead.asked(config, network)[1])  # a network that cannot be asked shows here
    with shards.locked(out):
        shards.require(out, folders.NETWORK_GAMES)
        if config.restart:
            check_workers()
            shards.delete(out)
        games = max(config.games, shards.games_there(run, out))  # fewer never take any away
        looked = shards.plan(config, games, out, run=run)
        manifest = _manifest(out)
        if not looked.todo and manifest.get("games") == games:  # older versions left that of before an extension
            return f"finished before: {manifest['games']:,} games, {manifest['rows']:,} rows in {out}"
        kept = checkpoints.counts(rows.checkpoints_of(config, run, looked.todo, out))
        done = sum(shard.games for shard in looked.done) + kept.games
        (out / schema.MANIFEST).unlink(missing_ok=True)  # an extension makes a part of a shard anew
        write_json(out / files.CONFIG, folders.stored(folders.NETWORK_GAMES, dataclasses.replace(config, games=games)))
        workers = config.workers or cores()
        cache.prepare("puct")
        processes = f"{workers} processes, each of which" if workers > 1 else "1 process, which"
        say(f"playing {games - done:,} games in {processes} loads Keras first")
        with ahead.Players(workers) as players, Progress(games, "games", done) as progress:
            players.play(config, network, games, out, progress, run)
        manifest = shards.declare(run, shards.plan(config, games, out, run=run).done, out)
    return f"{out}: {manifest['games']:,} games, {manifest['rows']:,} rows"


def _manifest(out: Path) -> dict[str, Any]:
    """That of a folder of games; empty where there is none that can be read."""
    try:
        return schema.read_manifest(out)
    except (DataError, FileNotFoundError):
        return {}


def _line(metrics: Metrics) -> str:
    arena = "" if metrics["score"] is None else f" · arena {metrics['score']:.1%}"
    judged = "".join(f" · {name} {metrics[name]:.1%}" for name in ("optimal", "outcome", "blocked") if name in metrics)
    return (
        f"iteration {metrics['iteration']}: {metrics['rows']:,} rows · loss {metrics['training_loss']:.3f}{arena}"
        f"{' accepted' if metrics['accepted'] else ' rejected'}{judged}"
    )


def _result(out: Path, finished: Sequence[Metrics]) -> str:
    accepted = [each for each in finished if each["accepted"]]
    return f"{out}: {_line((accepted or finished)[-1])} ({len(accepted)} of {len(finished)} accepted)"


main = cli.Command("selfplay", SelfPlayConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
