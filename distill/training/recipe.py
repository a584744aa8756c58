"""The settings of a training run. Apart from `training`, so that a command lists its flags without starting Keras."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from distill.common import cli


@dataclass(frozen=True, kw_only=True)
class Recipe(cli.Settings):
    """What the weights of a run depend on, beside the network and the data."""

    target: Literal["visits", "vote", "blend"] = cli.setting(
        "visits",
        "what the policy learns: the searches' visit shares, or one column, the majority vote, or half of each",
    )
    value_target: Literal["auto", "none", "value", "outcome", "blend"] = cli.setting(
        "auto",
        "what a value head learns: the search's root value, the game's outcome, a blend of both, or none for no head; "
        "auto: blend where the network always has that head, else none",
    )
    value_blend: float = cli.setting(0.5, "share of the root value in the blend, from 0 to 1; the outcome has the rest")
    value_weight: float = cli.setting(1.0, "weight of the value's squared error beside the policy's cross-entropy")
    count_weights: Literal["equal", "root", "count"] = cli.setting(
        "equal", "weight of a board met n times in training games: 1, the root of n, or n; scaled to a mean of 1"
    )
    epochs: int = cli.setting(14, "passes over the training boards")
    steps: int | None = cli.setting(None, "steps of the run, in place of --epochs; none: as many as the epochs have")
    minutes: float | None = cli.setting(
        None, "minutes the run may take: where the speed measured at its start is too low, fewer steps are planned"
    )
    eval_every: int | None = cli.setting(
        None, "boards between two looks at the validation boards, each with a checkpoint; none: a pass"
    )
    batch_size: int = cli.setting(256, "boards a step")
    lr: float = cli.setting(2e-3, "learning rate at its highest")
    optimizer: Literal["adamw", "muon", "adam", "sgd"] = cli.setting(
        "adamw",
        "muon takes matrices, all but those that give outputs, and leaves the rest to adamw; adam has no weight decay; "
        "sgd has no momentum, and gradients clipped to length 1",
    )
    weight_decay: float = cli.setting(0.01, "share of a weight taken off a step, times the learning rate")
    schedule: Literal["cosine", "plateau"] = cli.setting(
        "cosine", "learning rate: down to zero over all steps, or halved when validation stalls, with early stopping"
    )
    precision: Literal["float32", "bfloat16"] = cli.setting(
        "float32",
        "arithmetic of the training steps; bfloat16 is faster where the processor has it; weights, validation and "
        "what is saved are float32",
    )
    ema: float = cli.setting(
        0.0, "share of the weights' average that a step leaves; above 0 the average is what is measured and kept"
    )
    interpolate: float = cli.setting(
        0.0,
        "share of the network of --init in the weights that are measured and kept; the rest of them is what was "
        "learned, so that a table of few kinds of boards costs less on others; tried on networks without batch norm",
    )
    dropout: float | None = cli.setting(
        None, "share of features dropped in a training step, of cnn and transformer; none: their own, 0.1"
    )
    mirror: bool = cli.setting(True, "mirror each board at random, anew each epoch")
    loss_sampling: float = cli.setting(
        0.0,
        "above 0, boards that are known are seldom gone over: one whose policy was off by a share of this, in nats, "
        "when it was last learned is in a pass with that share as its chance, or one in eight if that is more",
    )
    seed: int = cli.setting(0, "of initial weights, order, mirroring and dropout")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_least(
            self, epochs=1, eval_every=1, batch_size=1, steps=1, value_weight=0, weight_decay=0, loss_sampling=0, seed=0
        )
        cli.check(0 < self.lr < math.inf, "lr", self.lr, "positive")
        cli.check(0 <= self.value_blend <= 1, "value_blend", self.value_blend, "from 0 to 1")
        cli.check(0 <= self.ema < 1, "ema", self.ema, "at least 0 and below 1")
        cli.check(0 <= self.interpolate < 1, "interpolate", self.interpolate, "at least 0 and below 1")
        cli.check(self.minutes is None or 0 < self.minutes < math.inf, "minutes", self.minutes, "positive")
        cli.check(self.dropout is None or 0 <= self.dropout < 1, "dropout", self.dropout, "at least 0 and below 1")
        either = self.steps is None or self.minutes is None
        cli.check(either, "steps", self.steps, "left out with --minutes, which plans the steps itself")
