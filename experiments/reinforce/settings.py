"""The settings of REINFORCE."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from distill import networks
from distill.common.settings import CommandLine, NameOrPath, Seed, Settings, build
from distill.training.identity import AUTO
from distill.training.recipe import Recipe


class OpponentSettings(Settings):
    """The opponents, which are earlier copies of the learner, and when the learner becomes one of them."""

    number: int = Field(1, ge=1)
    """earlier copies that the learner plays in turn; a new one replaces the oldest"""
    gate: float = Field(0.52, gt=0, le=1)
    """score against its opponents above which the learner becomes one (0–1)"""
    gate_games: int = Field(2048, ge=1)
    """training games, in whole batches, whose score decides at the gate"""
    gate_rule: Literal["lower", "mean"] = "lower"
    """pass the gate by the score's lower 95 % bound, or its mean"""


class PolicyGradientSettings(Settings):
    """How the learner trains on a batch of games."""

    lr: tuple[Annotated[float, Field(gt=0)], ...] = Field((1e-3, 1e-4, 1e-5), min_length=1, title="X")
    """learning rates, each for an equal share of the steps"""
    entropy: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]] = Field((0.05, 0.03), title="X")
    """weight of the policy's entropy (nats): first, last"""
    baseline: Literal["none", "mean", "value"] = "none"
    """baseline subtracted from each return: none, the mean, or the value head"""
    value_weight: float = Field(0.5, ge=0)
    """weight of the value's squared error, where the network has a value head"""
    discount: float = Field(1.0, gt=0, le=1)
    """return multiplier per ply between a move and the end of its game (0–1)"""
    ema: float = Field(0.0, ge=0, lt=1)
    """decay of the weights' exponential moving average, which is saved; 0: off"""


class GradingSettings(Settings):
    """How often the learner plays the built-in rivals."""

    eval_every: int = Field(25, ge=1)
    """steps between evaluations; an interrupted run resumes from the last one"""
    eval_games: int = Field(400, ge=2, multiple_of=2)
    """games against each rival in an evaluation"""
    final_games: int = Field(4000, ge=2, multiple_of=2)
    """games against each rival at the end"""


class ReinforceConfig(Settings):
    """Train a network by REINFORCE: policy gradient on games against copies of itself."""

    command_line: ClassVar[CommandLine] = CommandLine(
        flags=(
            *("arch", "init", "out", "restart", "seed", "steps", "games"),
            *("learning.lr", "learning.entropy", "learning.baseline", "opponents.gate_games"),
            *("evaluation.eval_every", "evaluation.eval_games", "evaluation.final_games"),
        ),
        examples=("--preset steady", "--init models/pillar --steps 100 --lr 1e-4"),
        page="docs/reinforce.md",
    )
    arch: networks.Architecture = Field(
        networks.Architecture(name=AUTO), title="NETWORK", description=f"{networks.ARCH_HELP}; auto: mk4, or --init's"
    )
    init: NameOrPath | None = Field(None, title="NETWORK")
    """network to start from: a run's folder, a .keras file or a name"""
    out: Path | None = None
    """folder of the run; default: models/<arch>-reinforce"""
    restart: bool = False
    """delete the run in the folder and start from scratch"""
    seed: Seed = 0
    """seed of the initial weights and of every move"""
    steps: int = Field(2000, ge=1)
    """training steps, one after each batch of games"""
    games: int = Field(256, ge=2, multiple_of=2)
    """games per batch, half of them from either side"""
    precision: networks.Precision = "float32"
    """arithmetic of the network, in games and training"""
    learning: PolicyGradientSettings = PolicyGradientSettings()
    opponents: OpponentSettings = OpponentSettings()
    evaluation: GradingSettings = GradingSettings()

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if not (self.init or self.arch.name == AUTO or networks.is_arch(self.arch.name)):
            raise ValueError(f"--arch {self.arch.name} must be {networks.ARCH_RULE}")
        if self.opponents.number > self.games // 2:
            raise ValueError(f"opponents.number {self.opponents.number} must be at most half of --games {self.games}")
        return self

    def recipe(self) -> Recipe:
        """How the learner trains; the learning rate is set at every step."""
        shared = {"precision": self.precision, "ema": self.learning.ema, "seed": self.seed, "lr": self.learning.lr[0]}
        return build(Recipe, {"weight_decay": 0.0}, shared)
