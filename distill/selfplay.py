"""Let a network play against itself and learn from it: self-play, replay, training, arena, again and again.

    python -m distill.selfplay --minutes 150                       # from nothing: a column net, Gumbel search
    python -m distill.selfplay --init models/column --preset improve
    python -m distill.selfplay --init models/column --games-only --games 5000 --out data/selfplay

One iteration: the champion plays `--games` games against itself, the trainee learns from the latest of all games, and
takes the champion's place where it scores `--gate` in the arena; rejected, it trains on all the same. Both are graded
by the judge on the benchmark's dev half: logged, never used to choose.

Out, in `models/selfplay/`: `best.keras` (the champion), `config.json`, `history.csv`, `curves.png`, `metrics.json`, and
`iterations/0001/` with `games/` (ordinary shards), `arena.json` and, written last, `metrics.json`. A killed run goes on
where it was with the same command: from the last shard, the last trained iteration, the last block of arena games.
`--games-only` plays with the network as it is into a folder of games.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from distill import cli, nets
from distill.data import benchmark, parts, replay, selfplay, shards
from distill.data.selfplay import SelfPlaySettings
from distill.judge import gate, grading, match
from distill.judge.players import GuidedPlayer, NetworkPlayer, seeds_for
from distill.nets.recipe import Recipe
from distill.search import puct

if TYPE_CHECKING:
    import keras

    from distill.nets.evaluator import Evaluator
    from distill.nets.trainee import Trainee

CONFIG, METRICS, BEST, CANDIDATE = "config.json", "metrics.json", "best.keras", "candidate.keras"
INITIAL, ARENA, GAMES = "initial.keras", "arena.json", "games"
OWN_FILES = (CONFIG, METRICS, BEST, INITIAL, "run.json", "iterations", "history.csv", "curves.png", "events")
FREE = ("init", "out", "restart", "iterations", "minutes", "lanes", "games_only")
"""Settings that may change when a run goes on."""

SELF_PLAY, SAMPLE, TRAINING, OPENINGS = range(4)
"""What a seed of an iteration is for."""

BLOCKED_SETS = ("block-vertical", "block-horizontal", "block-rising", "block-falling")
"""Sets of the benchmark where one column alone keeps the class: the block of a threat."""

PANELS = {
    "loss": ["training_loss", "policy_loss", "value_error"],
    "arena score of the trainee": ["score"],
    "judge, without search": ["exact", "class", "blocked"],
}

PRESETS: dict[str, dict[str, Any]] = {
    "gumbel": {},
    "improve": {"simulations": 64, "opening_moves": (0, 8), "lr": 3e-4, "games": 1000},
    "d": {
        "arch": "resnet",
        "root": "puct",
        "simulations": 600,
        "first_play": None,
        "mcts_solver": False,
        "sampling_plies": 10,
        "opening_moves": (0, 0),
        "count_weights": "count",
        "value_target": "outcome",
        "replay_rows": 200_000,
        "train_boards": None,
    },
    "e1": {
        "arch": "resnet",
        "root": "puct",
        "rule": "growing",
        "exploration": 2.5,
        "first_play": None,
        "mcts_solver": False,
        "simulations": 200,
        "games": 4,
        "shard_games": 4,
        "iterations": 1080,
        "sampling_plies": 12,
        "dirichlet_alpha": 0.4,
        "noise_fraction": 0.2,
        "opening_moves": (0, 0),
        "optimizer": "sgd",
        "lr": 0.2,
        "weight_decay": 1e-4,
        "epochs": 3,
        "batch_size": 32,
        "train_boards": 256,
        "replay_rows": None,
        "replay_games": 16,
        "count_weights": "count",
        "value_target": "outcome",
        "gate": None,
    },
    "smoke": {
        "iterations": 2,
        "games": 6,
        "shard_games": 3,
        "simulations": 8,
        "arena_games": 4,
        "train_boards": 64,
        "batch_size": 16,
        "judge_boards": 20,
        "opening_moves": (1, 2),
        "lanes": 8,
    },
}
PRESETS["e2"] = PRESETS["e1"] | {
    "simulations": 110,
    "games": 16,
    "shard_games": 16,
    "iterations": 2000,
    "sampling_plies": 10,
    "dirichlet_alpha": 0.3,
    "noise_fraction": 0.25,
    "extra_noise": 100,
    "epochs": 20,
    "train_boards": 480,
    "replay_games": 48,
    "lr_drops": ("50:2e-2", "150:2e-3", "250:2e-4"),
}
"""d, e1, e2: SOURCES.md, where they give a number. improve: from a network that plays well already."""


@dataclass(frozen=True, kw_only=True)
class SelfPlayConfig(SelfPlaySettings):
    """Let a network play against itself and learn from it."""

    simulations: int = cli.setting(32, "simulations of each search")
    root: Literal["puct", "gumbel"] = cli.setting(
        "gumbel", "how the root spends them: by score and noise, or Gumbel draws with sequential halving"
    )
    arch: nets.Arch = cli.setting("column", "the network, where it starts from nothing")
    init: Path | None = cli.setting(None, "the network to start from: a run's folder or a .keras file; none: nothing")
    iterations: int = cli.setting(10_000, "rounds of self-play, training and arena")
    games: int = cli.setting(400, "games of an iteration, or with --games-only in all")
    games_only: bool = cli.setting(False, "play with --init as it is, and train nothing")
    minutes: float | None = cli.setting(None, "begin no iteration later than so many minutes after the start")
    lanes: int = cli.setting(512, "games side by side, and so the network's batch; no influence on the games")
    precision: nets.Precision = cli.setting("float32", "arithmetic of the network, in self-play and training")
    extra_noise: int = cli.setting(0, "first iterations, in which the root's noise is doubled")
    replay_rows: int | None = cli.setting(200_000, "latest rows kept to learn from; none: no limit")
    replay_games: int | None = cli.setting(None, "latest games kept to learn from; none: no limit")
    train_boards: int | None = cli.setting(40_960, "boards drawn from these an iteration; none: all")
    epochs: int = cli.setting(1, "passes over the boards drawn")
    batch_size: int = cli.setting(256, "boards a step")
    optimizer: Literal["adamw", "adam", "sgd"] = cli.setting("adamw", "as for train")
    lr: float = cli.setting(1e-3, "learning rate")
    lr_drops: tuple[str, ...] = cli.setting((), "ITERATION:RATE, the learning rate from that iteration on")
    weight_decay: float = cli.setting(0.01, "share of a weight taken off a step, times the learning rate")
    value_target: Literal["value", "outcome", "blend"] = cli.setting(
        "blend", "what the value head learns, as for train"
    )
    value_weight: float = cli.setting(1.0, "weight of the value's squared error beside the policy's cross-entropy")
    count_weights: Literal["equal", "root", "count"] = cli.setting(
        "root", "weight of a board met n times, as for train"
    )
    mirror: bool = cli.setting(True, "mirror each board at random")
    gate: float | None = cli.setting(0.55, "score at which the trainee takes the champion's place; none: always")
    arena_games: int = cli.setting(100, "games of the arena, from both sides of distinct openings")
    arena_plies: int = cli.setting(4, "random stones of these openings")
    judge_boards: int = cli.setting(1000, "benchmark boards of each set graded an iteration, dev half")
    out: Path | None = cli.setting(None, "folder of the run; none: models/selfplay, or data/selfplay with --games-only")
    restart: bool = cli.setting(False, "begin anew, in place of what the folder holds")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("iterations", "games", "lanes", "judge_boards"):
            cli.check(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        for name in ("replay_rows", "replay_games", "train_boards"):
            value = getattr(self, name)
            cli.check(value is None or value >= 1, name, value, "at least 1, or none")
        cli.check(self.extra_noise >= 0, "extra_noise", self.extra_noise, "0 or more")
        cli.check(self.gate is None or 0 < self.gate < 1, "gate", self.gate, "between 0 and 1, or none")
        even = self.arena_games >= 2 and self.arena_games % 2 == 0
        cli.check(even, "arena_games", self.arena_games, "an even number from 2")
        cli.check(0 <= self.arena_plies <= 20, "arena_plies", self.arena_plies, "from 0 to 20")
        if self.gate is not None and not self.games_only:
            match.openings(self.arena_games // 2, self.arena_plies, 0)
        if self.games_only and self.init is None:
            raise ValueError("--games-only needs --init, the network that plays")
        self.recipe()
        self.rates()

    def recipe(self) -> Recipe:
        """How the trainee learns."""
        shared = {field.name for field in dataclasses.fields(Recipe)} & {
            field.name for field in dataclasses.fields(self)
        }
        return Recipe(**{name: getattr(self, name) for name in shared - {"minutes"}})

    def rates(self) -> dict[int, float]:
        """Learning rates by the iteration from which they hold. Raises ValueError for a drop that is none."""
        found = {1: self.lr}
        for drop in self.lr_drops:
            first, _, rate = drop.partition(":")
            try:
                found[int(first)] = float(rate)
            except ValueError:
                raise ValueError(f"--lr-drops {drop} must be ITERATION:RATE, such as 50:2e-2") from None
        cli.check(min(found.values()) > 0, "lr_drops", " ".join(self.lr_drops), "positive rates")
        return found

    def rate(self, iteration: int) -> float:
        """The learning rate of an iteration, counted from 1."""
        rates = self.rates()
        return rates[max(first for first in rates if first <= iteration)]


@dataclass(frozen=True, kw_only=True)
class Loop:
    """What the iterations of one process share. Champion and candidate are asked through evaluators of their own."""

    config: SelfPlayConfig
    out: Path
    champion: keras.Model
    candidate: keras.Model
    champion_plays: Evaluator
    candidate_plays: Evaluator
    trainee: Trainee
    judge: NetworkPlayer
    boards: benchmark.GradedBoards
    excluded: NDArray[np.uint64]

    def seed(self, iteration: int, purpose: int) -> int:
        """Of one purpose in one iteration."""
        return int(seeds_for(self.config.seed, iteration, purpose)[0])


def run(config: SelfPlayConfig) -> str:
    """Play and learn; the last line says where the result is and what the judge thinks of it."""
    if config.games_only:
        return _only_play(config)
    out = config.out or Path("models/selfplay")
    with shards.locked(out):
        begins = config.restart or not (out / INITIAL).is_file()
        given = _given(config) if begins else None  # what is wrong with it shows before anything is written
        _claim(out, config)
        finished = _finished(out)
        if len(finished) >= config.iterations:
            return f"{_result(out, finished)} (finished before, nothing to do; --iterations goes on)"
        began = time.monotonic()
        loop = _start(config, out, finished, given)
        while len(finished) < config.iterations:
            if config.minutes is not None and finished and time.monotonic() - began > 60 * config.minutes:
                break
            finished.append(_iterate(loop, finished))
            _tidy_up(loop, finished)
        return _result(out, finished)


def _only_play(config: SelfPlayConfig) -> str:
    nets.start_backend()
    from distill.nets import run_folder, saved

    out = config.out or Path("data/selfplay")
    if config.restart and out.is_dir():
        shards.delete(out)
    core = saved.load_core(saved.network_file(config.init or Path()))
    run_folder.write_json(out / CONFIG, cli.as_json(config))
    manifest = _play(config, core, _evaluator(config, core), out)
    return f"{out}: {manifest['games']:,} games, {manifest['rows']:,} rows"


def _evaluator(config: SelfPlayConfig, core: keras.Model) -> Evaluator:
    from distill.nets.evaluator import BATCH, Evaluator

    return Evaluator(core, min(config.lanes, BATCH), config.precision)


def _play(config: SelfPlayConfig, core: keras.Model, plays: Evaluator, folder: Path) -> dict[str, Any]:
    """The games of a network, in a folder of their own; returns their manifest."""
    from distill.nets.evaluator import weights_hash

    rows = 0
    with cli.Progress(config.games, "games") as progress:

        def advance(games: int, more: int) -> None:
            nonlocal rows
            rows += more
            progress.advance(games, f"{rows:,} rows")

        name = f"{weights_hash(core)}-{config.precision}"
        return selfplay.make(config, name, plays, config.games, folder, lanes=config.lanes, advance=advance)


# The folder of a run --------------------------------------------------------------------------------------------------


def _claim(out: Path, config: SelfPlayConfig) -> None:
    """Write the run's settings into its folder, or check that they are the ones found there. Raises UserError."""
    from distill.nets import run_folder

    if config.restart:
        for path in (out / name for name in OWN_FILES):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    settings = cli.as_json(dataclasses.replace(config, restart=False))
    identity = {name: value for name, value in settings.items() if name not in FREE}
    run_folder.claim(out, settings, identity | {"puct_version": puct.PUCT_VERSION})


def _folder(out: Path, iteration: int) -> Path:
    """Of an iteration, counted from 1."""
    return out / "iterations" / f"{iteration:04d}"


def _finished(out: Path) -> list[dict[str, Any]]:
    """The metrics of the finished iterations, in order."""
    found: list[dict[str, Any]] = []
    while (path := _folder(out, len(found) + 1) / METRICS).is_file():
        found.append(json.loads(path.read_text(encoding="utf-8")))
    return found


def _champion_file(out: Path, finished: Sequence[dict[str, Any]]) -> Path:
    """The network that was accepted last, or the initial one."""
    accepted = [each["iteration"] for each in finished if each["accepted"]]
    return _folder(out, accepted[-1]) / CANDIDATE if accepted else out / INITIAL


# One iteration --------------------------------------------------------------------------------------------------------


def _given(config: SelfPlayConfig) -> keras.Model:
    """The network to begin with. Raises UserError for one that cannot be trained and searched with."""
    nets.start_backend()
    from distill.nets import heads, saved, training

    training.make_repeatable(config.seed)
    if config.init is None:
        return nets.build(config.arch, True)
    core = saved.load_core(saved.network_file(config.init))
    if not heads.has_value(core):
        raise cli.UserError(f"{config.init}: this network has no value head; train one with --value-target blend")
    return core


def _start(config: SelfPlayConfig, out: Path, finished: Sequence[dict[str, Any]], given: keras.Model | None) -> Loop:
    """Load the networks as the finished iterations left them, or begin with the one given."""
    nets.start_backend()
    from distill.nets import saved, trainee, training

    if given is not None:
        training.save_network(given, out / INITIAL)
    champion, candidate = saved.load_core(_champion_file(out, finished)), saved.load_core(out / INITIAL)
    learner = trainee.begin(candidate, config.recipe())
    if finished:
        trainee.resume(learner, _folder(out, len(finished)))
    training.save_network(champion, out / BEST)
    sets = ("midgame", *BLOCKED_SETS)
    excluded = parts.excluded_keys("benchmark")
    return Loop(
        config=config,
        out=out,
        champion=champion,
        candidate=candidate,
        champion_plays=_evaluator(config, champion),
        candidate_plays=_evaluator(config, candidate),
        trainee=learner,
        judge=NetworkPlayer(name="candidate", predict=saved.predict_with(candidate)),
        boards=grading.sample(benchmark.read(half="dev", sets=sets), config.judge_boards, 0),
        excluded=np.zeros(0, np.uint64) if excluded is None else excluded,
    )


def _iterate(loop: Loop, finished: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One iteration, or what a killed process has left of it; returns its metrics, written last."""
    from distill.nets import run_folder

    config, number = loop.config, len(finished) + 1
    folder, clock, seconds = _folder(loop.out, number), time.monotonic(), dict[str, float]()

    def took(what: str) -> None:
        nonlocal clock
        seconds[what], clock = round(time.monotonic() - clock, 1), time.monotonic()

    noise = min(1.0, 2 * config.noise_fraction) if number <= config.extra_noise else config.noise_fraction
    settings = dataclasses.replace(config, seed=loop.seed(number, SELF_PLAY), noise_fraction=noise)
    manifest = _play(settings, loop.champion, loop.champion_plays, folder / GAMES)
    took("self_play")
    learned = _train(loop, number)
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
        **_judged(loop),
    }
    took("judge")
    metrics["seconds"] = seconds
    run_folder.write_json(folder / METRICS, metrics)
    cli.say(_line(metrics))
    return metrics


def _train(loop: Loop, number: int) -> dict[str, Any]:
    """Let the trainee learn from the latest games, unless it has; the candidate becomes what it is now."""
    from distill.nets import trainee, training

    config, folder = loop.config, _folder(loop.out, number)
    state = trainee.saved_state(folder)
    if state is None:
        folders = [_folder(loop.out, each) / GAMES for each in range(1, number + 1)]
        table = replay.table(replay.latest(folders, config.replay_rows, config.replay_games), loop.excluded)
        drawn = replay.sample(table, config.train_boards, loop.seed(number, SAMPLE))
        learned = trainee.learn(loop.trainee, drawn, config.rate(number), loop.seed(number, TRAINING))
        state = {"replay_boards": len(table), **learned}
        trainee.save(loop.trainee, folder, state)
    else:
        trainee.resume(loop.trainee, folder)
    loop.candidate.set_weights(loop.trainee.core.get_weights())
    loop.candidate_plays.take_weights(loop.candidate)
    training.save_network(loop.candidate, folder / CANDIDATE)
    return state


def _arena(loop: Loop, number: int) -> dict[str, Any]:
    """The candidate against the champion, both with the search of self-play but without chance."""
    config = loop.config
    players = [
        GuidedPlayer(name="candidate", predict=loop.candidate_plays, settings=config),
        GuidedPlayer(name="champion", predict=loop.champion_plays, settings=config),
    ]
    with cli.Progress(config.arena_games, "arena games") as progress:
        return gate.meet(
            players[0],
            players[1],
            games=config.arena_games,
            plies=config.arena_plies,
            seed=loop.seed(number, OPENINGS),
            path=_folder(loop.out, number) / ARENA,
            advance=progress.advance,
        )


def _judged(loop: Loop) -> dict[str, float]:
    """What the judge says of the candidate without search: on `midgame`, and the share of forced blocks it plays."""
    graded = grading.grade(loop.judge, loop.boards, 0)
    by_set = grading.by_set(loop.boards, graded)
    midgame = by_set.get("midgame", {})
    blocked = [by_set[name]["class"].mean for name in BLOCKED_SETS if name in by_set]
    return {metric: midgame[metric].mean for metric in grading.METRICS if metric in midgame} | (
        {"blocked": float(np.mean(blocked))} if blocked else {}
    )


def _tidy_up(loop: Loop, finished: Sequence[dict[str, Any]]) -> None:
    """After an iteration: a new champion takes over, curves are drawn, what no resumed run will ask for is deleted."""
    from distill.nets import history, run_folder, training

    if finished[-1]["accepted"]:
        loop.champion.set_weights(loop.candidate.get_weights())
        loop.champion_plays.take_weights(loop.champion)
        training.save_network(loop.champion, loop.out / BEST)
    kept = _champion_file(loop.out, finished)
    for number in range(1, len(finished) + 1):
        network = _folder(loop.out, number) / CANDIDATE
        if network != kept:
            network.unlink(missing_ok=True)
        if number < len(finished):
            (_folder(loop.out, number) / "checkpoint.npz").unlink(missing_ok=True)
    rows = [
        {name: math.nan if value is None else float(value) for name, value in each.items() if name != "seconds"}
        for each in finished
    ]
    panels = {title: [name for name in names if name in rows[-1]] for title, names in PANELS.items()}
    history.write(loop.out, rows, {title: names for title, names in panels.items() if names}, "iteration")
    run_folder.write_json(loop.out / METRICS, {"iterations": len(finished), **finished[-1]})


def _line(metrics: dict[str, Any]) -> str:
    arena = "" if metrics["score"] is None else f" · arena {metrics['score']:.1%}"
    judged = "".join(f" · {name} {metrics[name]:.1%}" for name in ("exact", "class", "blocked") if name in metrics)
    return (
        f"iteration {metrics['iteration']}: {metrics['rows']:,} rows · loss {metrics['training_loss']:.3f}{arena}"
        f"{' accepted' if metrics['accepted'] else ' rejected'}{judged}"
    )


def _result(out: Path, finished: Sequence[dict[str, Any]]) -> str:
    accepted = [each for each in finished if each["accepted"]]
    return f"{out}: {_line((accepted or finished)[-1])} ({len(accepted)} of {len(finished)} accepted)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the return value is the exit code."""
    return cli.main("selfplay", SelfPlayConfig, run, PRESETS, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
