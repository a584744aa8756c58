"""The settings of self-play and of REINFORCE: what the games depend on, and how the network learns from them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from distill import networks
from distill.common import cli
from distill.games.selfplay import SelfPlaySettings
from distill.players import match
from distill.training.recipe import Recipe

SEARCH = ("root", "simulations", "noise_fraction")
"""What the searches of an iteration have of their own in a planned run."""


@dataclass(frozen=True, kw_only=True)
class Stage(cli.Settings):
    """The searches of a planned run from a share of the plan on."""

    start: float
    root: Literal["puct", "gumbel"]
    simulations: int
    noise_fraction: float

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_within(self, "[0, 1]", "start")


@dataclass(frozen=True, kw_only=True)
class LearningRate(cli.Settings):
    """The learning rate from an iteration on."""

    start: int
    lr: float

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_within(self, "(0, inf)", "lr")


@dataclass(frozen=True, kw_only=True)
class LearningSettings(cli.Settings, group="learning", shown=("lr",)):
    """How the network learns from the games."""

    lr: float = cli.setting(1e-3, "learning rate; in a planned run, the highest")
    lr_schedule: tuple[LearningRate, ...] = cli.table((), "learning rates from an iteration on; not in a planned run")
    replay_rows: int | None = cli.setting(200_000, "latest rows to learn from; `none`: no limit")
    replay_share: float | None = cli.setting(None, "or this share of the run's own rows so far (0–1), if that is more")
    replay_games: int | None = cli.setting(None, "latest games to learn from; default: no limit")
    keep_games: bool = cli.setting(True, "keep games that are no longer used")
    train_boards: int | None = cli.setting(40_960, "boards drawn from these per iteration; `none`: all")
    epochs: int = cli.setting(1, "epochs over the boards drawn; a planned run has its own steps")
    batch_size: int = cli.setting(256, "boards per training step")
    optimizer: Literal["adamw", "muon", "adam", "sgd"] = cli.setting("adamw", "optimizer, as for train")
    weight_decay: float = cli.setting(0.01, "decoupled weight decay per step, multiplied by the learning rate")
    ema: float = cli.setting(
        0.0, "decay (0–1) of the weights' exponential moving average, which plays and is saved; 0: off"
    )
    value_target: Literal["value", "outcome", "blend"] = cli.setting("blend", "target of the value head, as for train")
    value_weight: float = cli.setting(1.0, "weight of the value's squared error; the policy's cross-entropy has 1")
    count_weights: Literal["equal", "root", "count"] = cli.setting(
        "root", "loss weight of a board that occurs n times: 1, the square root of n, or n"
    )
    mirror: bool = cli.setting(True, "mirror each board with probability 1/2")


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings(cli.Settings, group="evaluation", shown=("gate",)):
    """When a candidate becomes champion, and how the networks are graded."""

    gate: float | None = cli.setting(
        0.55, "arena score at which the candidate becomes champion (0–1); `none`: it always does"
    )
    arena_games: int = cli.setting(100, "arena games, an even number; each opening is played from both sides")
    arena_plies: int = cli.setting(4, "random moves of an arena opening (0–20)")
    eval_boards: int = cli.setting(1000, "benchmark boards of each set graded per iteration, dev half")


@dataclass(frozen=True, kw_only=True)
class PlanSettings(cli.Settings, group="schedule", shown=()):
    """How an unattended run starts with the teacher, and how its searches grow."""

    plan: Path | None = cli.setting(None, "plan.json of another run to follow in place of --minutes")
    teacher_share: float = cli.setting(
        0.0, "share of the plan in which the teacher plays first; above 0 makes this a planned run"
    )
    teacher_simulations: int = cli.setting(1000, "simulations of the teacher's searches, one search per position")
    stages: tuple[Stage, ...] = cli.table((), "searches from a share of the plan on; default: --root")
    double_noise_iterations: int = cli.setting(0, "first iterations with twice the root noise; not in a planned run")


@dataclass(frozen=True, kw_only=True)
class MachineSettings(cli.Settings, group="machine", shown=("workers", "precision")):
    """How the machine is used."""

    workers: int | None = cli.setting(
        None, "worker processes; default: one per core with --games-only, one fewer in a planned run, else 0"
    )
    cluster: str | None = cli.setting(None, "address of a Dask scheduler whose workers play, such as tcp://head:8786")
    precision: networks.Precision = cli.setting("float32", "arithmetic of the network, in self-play and training")
    lanes: int = cli.setting(512, "games played side by side; no influence on the games")


@dataclass(frozen=True, kw_only=True)
class SelfPlayConfig(SelfPlaySettings, LearningSettings, EvaluationSettings, PlanSettings, MachineSettings):
    """Let a network play against itself and learn from it."""

    arch: str = cli.setting("pillar", networks.ARCH_HELP)
    init: str | None = cli.setting(
        None, "network to start from: a run's folder, a .keras file or a name; default: --arch"
    )
    out: Path | None = cli.setting(
        None, "folder of the run; default: models/selfplay, or data/selfplay with --games-only"
    )
    restart: bool = cli.setting(False, "delete the run in the folder and start from scratch")
    minutes: float | None = cli.setting(
        None, "length of a planned run (preset hour or night); otherwise minutes after which no iteration starts"
    )
    iterations: int = cli.setting(10_000, "iterations of self-play, training and arena; a planned run has its own")
    games: int = cli.setting(400, "games per iteration; with --games-only, in all")
    games_only: bool = cli.setting(False, "only play games with the network of --init")
    simulations: int = cli.setting(32, "simulations of each search")
    root: Literal["puct", "gumbel"] = cli.setting("gumbel", "selection at the root: PUCT, or Gumbel with halving")

    def __post_init__(self) -> None:
        super().__post_init__()
        # Ranges first, then settings that exclude each other.
        at_least_1 = ("replay_rows", "replay_games", "train_boards", "teacher_simulations", "workers", "iterations")
        cli.check_within(self, "[1, inf)", *at_least_1, "games", "lanes", "eval_boards")
        cli.check_within(self, "[0, inf)", "double_noise_iterations")
        cli.check_within(self, "(0, inf)", "minutes")
        cli.check_within(self, "(0, 1)", "gate")
        cli.check_within(self, "[0, 1)", "teacher_share")
        cli.check_within(self, "(0, 1]", "replay_share")
        cli.check_within(self, "[0, 20]", "arena_plies")
        cli.check(networks.is_arch(self.arch), "arch", self.arch, networks.ARCH_RULE)
        self.recipe()
        # Each opening is played from both sides.
        even = self.arena_games >= 2 and self.arena_games % 2 == 0
        cli.check(even, "arena_games", self.arena_games, "an even number from 2")
        for stage in self.stages:  # raises for a search that is impossible
            dataclasses.replace(self, stages=(), **{name: getattr(stage, name) for name in SEARCH})
        if self.gate is not None and not self.games_only:
            match.openings(self.arena_games // 2, self.arena_plies, 0)
        if self.games_only and self.init is None:
            raise ValueError("--games-only needs --init, the network that plays")
        if self.is_planned and not self.games_only and self.minutes is None and self.plan is None:
            raise ValueError("--teacher-share needs --minutes, or the --plan of another run")
        if self.is_planned and self.gate is not None:
            raise ValueError("--teacher-share goes with --gate none: a plan has no arena")
        if not self.is_planned and (self.stages or self.plan):
            raise ValueError("--plan and stages need --teacher-share, which makes a plan")

    @property
    def is_planned(self) -> bool:
        """Whether a plan determines games and steps, and playing overlaps with learning."""
        return self.teacher_share > 0

    def recipe(self) -> Recipe:
        """How the learner trains."""
        # The settings that both have; `minutes` means something else here.
        names = {field.name for field in dataclasses.fields(Recipe)} & {each.name for each in dataclasses.fields(self)}
        return Recipe(**{name: getattr(self, name) for name in names - {"minutes"}})

    def learning_rate(self, iteration: int) -> float:
        """The learning rate of an iteration, counted from 1, without a plan."""
        rates = {1: self.lr} | {row.start: row.lr for row in self.lr_schedule}
        return rates[max(start for start in rates if start <= iteration)]

    def search_at(self, share: float) -> dict[str, Any]:
        """SEARCH of a planned run when this share of it is done."""
        begun = [stage for stage in self.stages if stage.start <= share]
        chosen = max(begun, key=lambda stage: stage.start, default=self)
        return {name: getattr(chosen, name) for name in SEARCH}


SHOWN = ("arch", "init", "out", "restart", "steps", "games", "seed", "lr", "entropy", "baseline", "eval_every")
"""Settings of `reinforce` that `--help` lists; `--help-all` lists all."""


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig(cli.Settings, shown=SHOWN):
    """Train a network by REINFORCE: policy gradient on games against copies of itself."""

    arch: str | None = cli.setting(None, f"{networks.ARCH_HELP}; default: mk4, or --init's")
    init: str | None = cli.setting(None, "network to start from: a run's folder, a .keras file or a name")
    out: Path | None = cli.setting(None, "folder of the run; default: models/<arch>-reinforce")
    restart: bool = cli.setting(False, "delete the run in the folder and start from scratch")
    steps: int = cli.setting(2000, "training steps, one after each batch of games")
    games: int = cli.setting(256, "games per batch, an even number, half of them from either side")
    seed: int = cli.setting(0, "seed of the initial weights and of every move")

    lr: tuple[float, ...] = cli.setting((1e-3, 1e-4, 1e-5), "learning rates, each for an equal share of the steps")
    entropy: tuple[float, float] = cli.setting((0.05, 0.03), "weight of the policy's entropy (nats): first, last")
    baseline: Literal["none", "mean", "value"] = cli.setting(
        "none", "baseline subtracted from each return: none, the mean, or the value head"
    )
    eval_every: int = cli.setting(25, "steps between evaluations; an interrupted run resumes from the last one")
    precision: networks.Precision = cli.setting("float32", "arithmetic of the network, in games and training")
    value_weight: float = cli.setting(0.5, "weight of the value's squared error, where the network has a value head")
    discount: float = cli.setting(1.0, "return multiplier per ply between a move and the end of its game (0–1)")
    ema: float = cli.setting(
        0.0, "decay (0–1) of the weights' exponential moving average, which is evaluated and saved; 0: off"
    )
    opponents: int = cli.setting(1, "earlier copies that the learner plays in turn; a new one replaces the oldest")
    gate: float = cli.setting(0.52, "score against its opponents above which the learner becomes one (0–1)")
    gate_games: int = cli.setting(2048, "training games, in whole batches, from which that score is taken")
    gate_rule: Literal["lower", "mean"] = cli.setting(
        "lower", "pass the gate by the score's lower 95 % bound, or its mean"
    )
    eval_games: int = cli.setting(400, "games against each rival in an evaluation, an even number")
    final_games: int = cli.setting(4000, "games against each rival at the end, an even number")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_within(self, "[1, inf)", "steps", "gate_games", "eval_every")
        cli.check_within(self, "[0, inf)", "value_weight", "entropy")
        cli.check_seed(self.seed)
        cli.check_within(self, "(0, inf)", "lr")
        cli.check_within(self, "[0, 1)", "ema")
        cli.check_within(self, "(0, 1]", "discount", "gate")
        cli.check(self.arch is None or networks.is_arch(self.arch), "arch", self.arch, networks.ARCH_RULE)
        most = max(1, self.games // 2)  # pairs of games, each against one of them
        possible = 1 <= self.opponents <= most
        cli.check(possible, "opponents", self.opponents, f"from 1 to {most}, with --games {self.games}")
        # Half of the games are played from either side.
        for name in ("games", "eval_games", "final_games"):
            number = getattr(self, name)
            cli.check(number >= 2 and number % 2 == 0, name, number, "an even number from 2")
        cli.check(len(self.lr) > 0, "lr", "", "one number or more")
        if self.arch and self.init:
            raise ValueError("--arch and --init exclude each other: the network of --init has its arch")
