"""The settings of a training run. Apart from the loop, so that a command lists its flags without starting Keras."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from distill.common import cli

SHOWN = ("target", "value_target", "epochs", "steps", "minutes", "batch_size", "lr", "optimizer", "precision", "seed")
"""Settings that `--help` lists; `--help-all` lists all."""


@dataclass(frozen=True, kw_only=True)
class Recipe(cli.Settings, group="learning", shown=SHOWN):
    """Everything that the weights depend on besides the network and the data."""

    target: Literal["visits", "vote", "blend"] = cli.setting(
        "visits", "policy target: visit shares, the majority vote, or half of each"
    )
    value_target: Literal["auto", "none", "value", "outcome", "blend"] = cli.setting(
        "auto",
        "value target: root value, game outcome or half of each; none: no value head; auto: blend for resnet only",
    )
    value_weight: float = cli.setting(1.0, "weight of the value's squared error; the policy's cross-entropy has 1")
    count_weights: Literal["equal", "root", "count"] = cli.setting(
        "equal", "loss weight of a board that occurs n times: 1, the square root of n, or n; scaled to a mean of 1"
    )
    epochs: int = cli.setting(14, "passes over the training boards")
    steps: int | None = cli.setting(None, "number of steps, instead of --epochs")
    minutes: float | None = cli.setting(
        None, "time limit in minutes: fewer steps are planned if the measured speed is too low"
    )
    eval_every: int | None = cli.setting(
        None, "steps between evaluations, each with a checkpoint to resume from; default: one epoch"
    )
    batch_size: int = cli.setting(256, "boards per step")
    lr: float = cli.setting(2e-3, "peak learning rate")
    optimizer: Literal["adamw", "muon", "adam", "sgd"] = cli.setting(
        "adamw", "muon: hidden matrices by Muon, the rest by adamw; adam: no weight decay; sgd: gradient norm at most 1"
    )
    weight_decay: float = cli.setting(0.01, "decoupled weight decay per step, multiplied by the learning rate")
    schedule: Literal["cosine", "plateau"] = cli.setting(
        "cosine", "learning rate: cosine to zero, or halved when the validation loss stalls, with early stopping"
    )
    precision: Literal["float32", "bfloat16"] = cli.setting(
        "float32", "arithmetic of training steps; weights are float32"
    )
    ema: float = cli.setting(
        0.0, "decay (0–1) of the weights' exponential moving average, which is evaluated and saved; 0: off"
    )
    interpolate: float = cli.setting(
        0.0, "weight interpolation with --init (WiSE-FT): share of the initial weights (0–1) in what is saved"
    )
    dropout: float | None = cli.setting(None, "dropout rate (0–1) of networks with dropout; default: their own")
    mirror: bool = cli.setting(True, "mirror each board with probability 1/2")
    seed: int = cli.setting(0, "seed of initial weights, order, mirroring and dropout")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_within(self, "[1, inf)", "epochs", "eval_every", "batch_size", "steps")
        cli.check_within(self, "[0, inf)", "value_weight", "weight_decay")
        cli.check_seed(self.seed)
        cli.check_within(self, "(0, inf)", "lr", "minutes")
        cli.check_within(self, "[0, 1)", "ema", "interpolate", "dropout")
        either = self.steps is None or self.minutes is None
        cli.check(either, "steps", self.steps, "left out with --minutes, which plans the steps itself")
