"""The settings of both loops: what the games depend on, how the network learns from them, and when it takes over."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from distill import networks
from distill.common import cli
from distill.games.selfplay import SelfPlaySettings
from distill.players import match
from distill.players.gate import GateRule
from distill.training.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class LearningSettings(cli.Settings):
    """How the learner learns from the games."""

    precision: networks.Precision = cli.setting("float32", "arithmetic of the network, in self-play and training")
    replay_rows: int | None = cli.setting(200_000, "latest rows kept to learn from; none: no limit")
    replay_games: int | None = cli.setting(None, "latest games kept to learn from; none: no limit")
    train_boards: int | None = cli.setting(40_960, "boards drawn from these an iteration; none: all")
    epochs: int = cli.setting(1, "passes over the boards drawn")
    batch_size: int = cli.setting(256, "boards a step")
    optimizer: Literal["adamw", "muon", "adam", "sgd"] = cli.setting("adamw", "as for train")
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

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_least(self, replay_rows=1, replay_games=1, train_boards=1)
        self.recipe()
        self.rates()

    def recipe(self) -> Recipe:
        """The recipe of an iteration's steps."""
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
        are_rates = all(0 < rate < math.inf for rate in found.values())
        cli.check(are_rates, "lr_drops", " ".join(self.lr_drops), "positive rates")
        return found

    def rate(self, iteration: int) -> float:
        """The learning rate of an iteration, counted from 1."""
        rates = self.rates()
        return rates[max(first for first in rates if first <= iteration)]


@dataclass(frozen=True, kw_only=True)
class ArenaSettings(cli.Settings):
    """When the learner takes the champion's place."""

    gate: float | None = cli.setting(0.55, "score at which the learner takes the champion's place; none: always")
    arena_games: int = cli.setting(100, "games of the arena, from both sides of distinct openings")
    arena_plies: int = cli.setting(4, "random stones of these openings")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check(self.gate is None or 0 < self.gate < 1, "gate", self.gate, "between 0 and 1, or none")
        even = self.arena_games >= 2 and self.arena_games % 2 == 0
        cli.check(even, "arena_games", self.arena_games, "an even number from 2")
        cli.check(0 <= self.arena_plies <= 20, "arena_plies", self.arena_plies, "from 0 to 20")


@dataclass(frozen=True, kw_only=True)
class PlanSettings(cli.Settings):
    """How a run that needs no hand begins with the teacher, and how its search grows."""

    teacher_share: float = cli.setting(
        0.0,
        "share of --minutes in which the teacher plays first; above 0 the run follows a plan, and the games of an "
        "iteration are played by processes of their own while the network learns from those before",
    )
    teacher_simulations: int = cli.setting(1000, "simulations of the teacher's searches, one a position")
    stages: tuple[str, ...] = cli.setting(
        (),
        "SHARE:ROOT:SIMULATIONS, the searches from that share of a plan on, such as 0.5:puct:100, a puct root then "
        "without noise; none: --root and --simulations",
    )
    ema: float = cli.setting(
        0.0, "share of the weights' average that a step leaves; above 0 the average plays and is kept"
    )
    replay_share: float | None = cli.setting(
        None, "share of the rows of a plan's own games so far that is kept to learn from, if more than --replay-rows"
    )
    keep_games: bool = cli.setting(True, "keep a plan's games once nothing learns from them any more")
    plan: Path | None = cli.setting(None, "the plan.json of another run, to follow in place of --minutes")
    workers: int | None = cli.setting(
        None,
        "processes that play whole shards; none: one a core but one for a plan, one a core for --games-only, else none",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check(0 <= self.teacher_share < 1, "teacher_share", self.teacher_share, "at least 0 and below 1")
        cli.check(0 <= self.ema < 1, "ema", self.ema, "at least 0 and below 1")
        share = self.replay_share
        cli.check(share is None or 0 < share <= 1, "replay_share", share, "above 0 and at most 1, or none")
        cli.check_least(self, teacher_simulations=1, workers=1)
        needs = "left out without --teacher-share, which makes a plan"
        cli.check(bool(self.teacher_share) or not self.stages, "stages", " ".join(self.stages), needs)
        cli.check(bool(self.teacher_share) or not self.plan, "plan", self.plan, needs)

    def searches(self) -> dict[float, dict[str, Any]]:
        """The settings of the stages' searches, by the share from which on they hold. Raises ValueError for none."""
        found: dict[float, dict[str, Any]] = {}
        for stage in self.stages:
            read = re.fullmatch(r"([0-9]*\.?[0-9]+):(puct|gumbel):([0-9]+)", stage)
            if not read:
                raise ValueError(f"--stages {stage} must be SHARE:ROOT:SIMULATIONS, such as 0.5:puct:100")
            share, root, simulations = float(read[1]), read[2], int(read[3])
            cli.check(share <= 1, "stages", stage, "of shares from 0 to 1")
            found[share] = {"root": root, "simulations": simulations}
            if root == "puct":
                found[share]["noise_fraction"] = 0.0
        return found


@dataclass(frozen=True, kw_only=True)
class SelfPlayConfig(SelfPlaySettings, LearningSettings, ArenaSettings, PlanSettings):
    """Let a network play against itself and learn from it."""

    simulations: int = cli.setting(32, "simulations of each search")
    root: Literal["puct", "gumbel"] = cli.setting(
        "gumbel", "how the root spends them: by score and noise, or Gumbel draws with sequential halving"
    )
    arch: networks.Arch = cli.setting("pillar", "the network, where it starts from nothing")
    init: str | None = cli.setting(
        None, "the network to start from: a run's folder, a .keras file or a name; none: nothing"
    )
    iterations: int = cli.setting(10_000, "rounds of self-play, training and arena")
    games: int = cli.setting(400, "games of an iteration, or with --games-only in all")
    games_only: bool = cli.setting(False, "play with --init as it is, and train nothing")
    minutes: float | None = cli.setting(
        None, "plan so many minutes, measured at the start; without a plan: begin no iteration later than that"
    )
    lanes: int = cli.setting(512, "games side by side; no influence on the games")
    double_noise_iterations: int = cli.setting(0, "first iterations, in which the root's noise is doubled")
    eval_boards: int = cli.setting(1000, "benchmark boards of each set graded an iteration, dev half")
    out: Path | None = cli.setting(None, "folder of the run; none: models/selfplay, or data/selfplay with --games-only")
    restart: bool = cli.setting(False, "begin anew, in place of what the folder holds")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_least(self, iterations=1, games=1, lanes=1, eval_boards=1, double_noise_iterations=0)
        cli.check(self.minutes is None or 0 < self.minutes < math.inf, "minutes", self.minutes, "positive")
        for search in self.searches().values():  # raises for what no search can have
            dataclasses.replace(self, stages=(), plan=None, teacher_share=0.0, **search)
        if self.gate is not None and not self.games_only:
            match.openings(self.arena_games // 2, self.arena_plies, 0)
        if self.teacher_share and not self.games_only and self.minutes is None and self.plan is None:
            raise ValueError("--teacher-share needs --minutes, or the --plan of another run")
        if self.teacher_share and self.gate is not None:
            raise ValueError("--teacher-share goes with --gate none: a plan has no arena")
        if self.games_only and self.init is None:
            raise ValueError("--games-only needs --init, the network that plays")

    def at(self, share: float) -> SelfPlayConfig:
        """These settings with the searches of when this share of a plan is done."""
        begun = {first: search for first, search in self.searches().items() if first <= share}
        return dataclasses.replace(self, **begun[max(begun)]) if begun else self


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig(cli.Settings):
    """Train a network on games against itself alone."""

    arch: networks.Arch | None = cli.setting(
        None, "the network to begin with from nothing; none: mk4, or that of --init"
    )
    init: str | None = cli.setting(None, "the network to begin from: the folder of a run, a .keras file or a name")
    steps: int = cli.setting(2000, "batches of games, each followed by one step of the gradient")
    games: int = cli.setting(256, "games of a batch, half of them from either side")
    lr: tuple[float, ...] = cli.setting((1e-3, 1e-4, 1e-5), "learning rates, each for an equal share of the steps")
    entropy: tuple[float, float] = cli.setting(
        (0.05, 0.03), "weight of the policy's entropy, in nats, at the start and at the end; linear between them"
    )
    baseline: Literal["none", "mean", "value"] = cli.setting(
        "none", "what is taken off a return: nothing, the batch's mean, or the network's own value of the position"
    )
    value_weight: float = cli.setting(0.5, "weight of the value's squared error, where the network has a value head")
    discount: float = cli.setting(1.0, "what a return is multiplied by for every ply between the move and the end")
    precision: networks.Precision = cli.setting("float32", "arithmetic of the network, in its games and its steps")
    ema: float = cli.setting(
        0.0, "share of the weights' average that a step leaves, below 1; the average is what is measured and kept"
    )
    opponents: int = cli.setting(1, "earlier copies that the learner plays in turn; a new one replaces the oldest")
    gate: float = cli.setting(0.52, "score against the opponents above which the learner takes a place among them")
    gate_games: int = cli.setting(2048, "training games, in whole batches, after which that is decided, by them alone")
    gate_rule: GateRule = cli.setting(
        "lower", "what must be above the gate: the lower bound of the score's 95 % interval, or the score, its mean"
    )
    eval_every: int = cli.setting(25, "steps between measurements; a killed run goes on from the last one")
    eval_games: int = cli.setting(400, "games against each rival in a measurement")
    final_games: int = cli.setting(4000, "games against each rival at the end")
    seed: int = cli.setting(0, "of initial weights and of every move drawn")
    out: Path | None = cli.setting(None, "folder of the run; none: models/<arch>-reinforce")
    restart: bool = cli.setting(False, "begin anew, in place of what the folder holds")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_least(self, steps=1, gate_games=1, eval_every=1, value_weight=0, seed=0)
        most = max(1, self.games // 2)  # pairs of games, each against one of them
        possible = 1 <= self.opponents <= most
        cli.check(possible, "opponents", self.opponents, f"from 1 to {most}, with --games {self.games}")
        cli.check(0 <= self.ema < 1, "ema", self.ema, "at least 0 and below 1")
        for name in ("games", "eval_games", "final_games"):
            number = getattr(self, name)
            cli.check(number >= 2 and number % 2 == 0, name, number, "an even number from 2")
        are_rates = len(self.lr) > 0 and all(0 < rate < math.inf for rate in self.lr)
        cli.check(are_rates, "lr", _words(self.lr), "one positive number or more")
        cli.check(all(0 <= weight < math.inf for weight in self.entropy), "entropy", _words(self.entropy), "0 or more")
        cli.check(0 < self.discount <= 1, "discount", self.discount, "above 0 and at most 1")
        cli.check(0 < self.gate <= 1, "gate", self.gate, "above 0 and at most 1")
        if self.arch and self.init:
            raise ValueError("--arch and --init exclude each other: the network of --init has its arch")


def _words(values: Sequence[float]) -> str:
    return " ".join(f"{value:g}" for value in values)
