"""One iteration of self-play: the champion plays, the learner learns, the arena decides, the judge looks on.

Each step finds what a killed process has left of it and goes on from there: shards, the learner's checkpoint, blocks of
arena games. The metrics are written last.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.alphazero import ahead, files
from distill.alphazero.files import Metrics
from distill.alphazero.settings import SelfPlayConfig
from distill.common import Progress, UserError, say
from distill.datasets import benchmark, canonical, replay
from distill.evaluation import grading
from distill.game import outputs
from distill.games import reader, selfplay, shards
from distill.players import gate
from distill.players.network import GuidedPlayer, NetworkPlayer
from distill.players.player import Player, seeds_for

if TYPE_CHECKING:
    import keras

    from distill.networks.evaluator import Evaluator
    from distill.training.continual import Learner

SELF_PLAY, SAMPLE, TRAINING, OPENINGS = range(4)
"""What a seed of an iteration is for."""

JUDGED_SETS = {"midgame": "", "heldout": "heldout_"}
"""Sets on which a network is graded as a whole, and what the names of their grades begin with in the metrics."""

BLOCKED_SETS = ("block-vertical", "block-horizontal", "block-rising", "block-falling")
"""Sets of the benchmark where one column alone keeps the class: the block of a threat."""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """What the iterations of one process share. Champion and candidate are asked through evaluators of their own."""

    config: SelfPlayConfig
    out: Path
    champion: keras.Model
    candidate: keras.Model
    champion_plays: Evaluator
    candidate_plays: Evaluator
    players: ahead.Players
    learner: Learner
    judge: NetworkPlayer
    boards: benchmark.GradedBoards
    excluded: NDArray[np.uint64]

    def seed(self, iteration: int, purpose: int) -> int:
        """Of one purpose in one iteration."""
        return int(seeds_for(self.config.seed, iteration, purpose)[0])


def played_with(config: SelfPlayConfig, number: int) -> SelfPlayConfig:
    """The settings that an iteration's games are played with: its own seed, and in the first ones more noise."""
    noise = min(1.0, 2 * config.noise_fraction) if number <= config.double_noise_iterations else config.noise_fraction
    return dataclasses.replace(config, seed=int(seeds_for(config.seed, number, SELF_PLAY)[0]), noise_fraction=noise)


def require_games(config: SelfPlayConfig, out: Path, finished: Sequence[Metrics]) -> None:
    """Raise UserError unless the games that the next iteration may learn from are there, before it plays its own."""
    if files.still_learns(out, finished):
        _latest(config, out, len(finished), finished, ahead=config.games)


def _latest(
    config: SelfPlayConfig, out: Path, number: int, finished: Sequence[Metrics], ahead: int = 0
) -> list[reader.ShardFile]:
    """The shards of the latest games, up to those of this iteration."""

    def identity_of(iteration: int) -> dict[str, Any]:
        return selfplay.identity(played_with(config, iteration), "")

    opened = partial(files.verified_games, out, finished, identity_of)
    most = config.replay_rows, config.replay_games
    return replay.latest(range(1, number + 1), *most, open_run=opened, ahead=ahead)


def play(loop: Loop, config: SelfPlayConfig, folder: Path) -> dict[str, Any]:
    """The champion's games, in a folder of their own, which the caller holds; returns their manifest.

    `config` is the loop's with the iteration's seed and noise.
    """
    rows, games, name = 0, config.games, ahead.called(config, loop.champion)
    say(f"the champion plays {games:,} games")
    with Progress(games, "games") as progress:

        def advance(made: int, more: int) -> None:
            nonlocal rows
            rows += more
            progress.advance(made, f"{rows:,} rows")

        if loop.players.pools:
            run = selfplay.identity(config, name)
            loop.players.play(config, loop.out / files.BEST, games, folder, progress, run)
            return selfplay.make(config, name, loop.champion_plays, games, folder)
        with outputs.named(str(loop.out / files.BEST)):
            return selfplay.make(config, name, loop.champion_plays, games, folder, lanes=config.lanes, advance=advance)


def given_network(config: SelfPlayConfig) -> keras.Model:
    """The network to begin with. Raises UserError for one that cannot be trained and searched with."""
    networks.start_backend(aloud=True)
    from distill.networks import finding, heads, saved
    from distill.training import step

    step.make_repeatable(config.seed)
    if config.init is None:
        return networks.build(config.arch, True)
    core = saved.load_core(finding.network_file(config.init))
    if not heads.has_value(core):
        raise UserError(f"{config.init}: this network has no value head; train one with --value-target blend")
    return core


def judged_boards(number: int) -> benchmark.GradedBoards:
    """So many boards of each set that the judge grades an iteration on. Raises DataError where they cannot be read."""
    sets = (*JUDGED_SETS, *BLOCKED_SETS)
    return grading.sample(benchmark.read(half="dev", sets=sets), number, 0)


def start(
    config: SelfPlayConfig,
    out: Path,
    finished: Sequence[Metrics],
    given: keras.Model | None,
    boards: benchmark.GradedBoards,
    players: ahead.Players,
) -> Loop:
    """Load the networks as the finished iterations left them, or begin with the one given."""
    networks.start_backend(aloud=True)
    from distill.networks import saved
    from distill.training import continual

    if given is not None:
        saved.save_network(given, out / files.INITIAL)
    champion, candidate = (saved.load_core(files.champion_file(out, finished)) for _ in range(2))
    learner = continual.begin(candidate, config.recipe())
    if finished:
        continual.resume(learner, files.iteration_folder(out, len(finished)))
    saved.save_network(champion, out / files.BEST)
    return Loop(
        config=config,
        out=out,
        champion=champion,
        candidate=candidate,
        champion_plays=ahead.evaluator(config, champion),
        candidate_plays=ahead.evaluator(config, candidate),
        players=players,
        learner=learner,
        judge=NetworkPlayer(name="candidate", predict=saved.predict_with(candidate)),
        boards=boards,
        excluded=canonical.excluded_keys("benchmark"),
    )


def iterate(loop: Loop, finished: Sequence[Metrics]) -> Metrics:
    """One iteration, or what a killed process has left of it; returns its metrics, written last."""
    from distill.common import write_json

    config, number = loop.config, len(finished) + 1
    folder, clock, seconds = files.iteration_folder(loop.out, number), time.monotonic(), dict[str, float]()

    def took(what: str) -> None:
        nonlocal clock
        seconds[what], clock = round(time.monotonic() - clock, 1), time.monotonic()

    with shards.locked(folder / files.GAMES):
        manifest = play(loop, played_with(config, number), folder / files.GAMES)
    took("self_play")
    learned = _train(loop, number, finished)
    took("training")
    arena: dict[str, Any] = _arena(loop, number) if config.gate is not None else {"score": None, "distinct_games": None}
    accepted = config.gate is None or arena["score"] >= config.gate
    took("arena")
    metrics = {
        "iteration": number,
        "games": manifest["games"],
        "rows": manifest["rows"],
        "learning_rate": config.rate(number),
        **learned,
        **arena,
        "accepted": accepted,
        **judged(loop.judge, loop.boards),
    }
    took("judge")
    metrics["seconds"] = seconds
    write_json(folder / files.METRICS, metrics)
    return metrics


def _train(loop: Loop, number: int, finished: Sequence[Metrics]) -> dict[str, Any]:
    """Let the learner learn from the latest games, unless it has; the candidate becomes what it is now."""
    from distill.networks import saved
    from distill.training import checkpoint, continual

    config, folder = loop.config, files.iteration_folder(loop.out, number)
    found = checkpoint.load(folder)
    if found is None:
        table = replay.table(_latest(config, loop.out, number, finished), loop.excluded)
        drawn = replay.sample(table, config.train_boards, loop.seed(number, SAMPLE))
        say("training the network")
        learned = continual.learn(loop.learner, drawn, config.rate(number), loop.seed(number, TRAINING))
        state = {"replay_boards": len(table), **learned}
        checkpoint.save(folder, loop.learner.model, state)
    else:
        state = found[1]
        continual.resume(loop.learner, folder)
    loop.learner.give(loop.candidate)
    loop.candidate_plays.take_weights(loop.candidate)
    saved.save_network(loop.candidate, folder / files.CANDIDATE)
    return state


def _arena(loop: Loop, number: int) -> dict[str, Any]:
    """The candidate against the champion, both with the search of self-play but without chance."""
    config, folder = loop.config, files.iteration_folder(loop.out, number)
    arena = gate.Arena(games=config.arena_games, plies=config.arena_plies, seed=loop.seed(number, OPENINGS))
    candidate = GuidedPlayer(name="candidate", predict=loop.candidate_plays, settings=config)
    champion = GuidedPlayer(name="champion", predict=loop.champion_plays, settings=config)
    say("arena: candidate against champion")
    with Progress(config.arena_games, "arena games") as progress:

        def play(firsts: Sequence[int]) -> Iterable[gate.Block]:
            if not loop.players.pools:
                return [arena.block(candidate, champion, first, progress.advance) for first in firsts]
            files_of_both = folder / files.CANDIDATE, loop.out / files.BEST
            return loop.players.arena(config, files_of_both, arena, firsts)

        def played(games: int) -> None:
            if games > progress.done:  # found in the file, or played by a process
                progress.advance(games - progress.done)

        return gate.meet(arena, play, folder / files.ARENA, at_once=len(loop.players.pools) or 1, played=played)


def judged(player: Player, boards: benchmark.GradedBoards) -> dict[str, float]:
    """What the judge says of a network without search: on whole sets, and the share of forced blocks it plays."""
    by_set = grading.by_set(boards, grading.grade(player, boards, 0))
    found: dict[str, float] = {}
    for name, prefix in JUDGED_SETS.items():
        found |= {prefix + metric: grade.mean for metric, grade in by_set.get(name, {}).items()}
    blocked = [by_set[name]["outcome"].mean for name in BLOCKED_SETS if name in by_set]
    return found | ({"blocked": float(np.mean(blocked))} if blocked else {})


def take_over(loop: Loop) -> None:
    """The candidate, accepted, plays from now on; `files.settle` makes it the run's best."""
    loop.champion.set_weights(loop.candidate.get_weights())
    loop.champion_plays.take_weights(loop.champion)
