"""The settings of a training run. Apart from the loop, so that a command lists its flags without starting Keras."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from distill.common.settings import Seed, Settings


class Length(Settings):
    """How long a network is trained, and how often it is evaluated."""

    epochs: int = Field(14, ge=1, description="passes over the training boards")
    steps: int | None = Field(None, ge=1, description="number of steps, instead of --epochs")
    minutes: float | None = Field(
        None, gt=0, description="time limit in minutes: fewer steps are planned if the measured speed is too low"
    )
    eval_every: int | None = Field(
        None, ge=1, description="steps between evaluations, each with a checkpoint to resume from; default: one epoch"
    )

    @model_validator(mode="after")
    def _is_one_length(self) -> Self:
        if self.steps is not None and self.minutes is not None:
            raise ValueError(f"--steps {self.steps} must be left out with minutes, from which the steps are planned")
        return self


class Targets(Settings):
    """What a network learns of a board, and how much a board counts."""

    target: Literal["visits", "vote", "blend"] = Field(
        "visits", description="policy target: visit shares, the majority vote, or half of each"
    )
    value_target: Literal["auto", "none", "value", "outcome", "blend"] = Field(
        "auto",
        description="value target: root value, game outcome or half of each; none: no value head; auto: blend for "
        "resnet only",
    )
    value_weight: float = Field(
        1.0, ge=0, description="weight of the value's squared error; the policy's cross-entropy has 1"
    )
    count_weights: Literal["equal", "root", "count"] = Field(
        "equal", description="loss weight of a board that occurs n times: 1, the square root of n, or n"
    )


class Recipe(Settings):
    """Everything that the weights depend on besides the network and the data."""

    length: Length = Length()
    targets: Targets = Targets()
    seed: Seed = Field(0, description="seed of initial weights, order, mirroring and dropout")
    batch_size: int = Field(256, ge=1, description="boards per step")
    lr: float = Field(2e-3, gt=0, description="peak learning rate")
    optimizer: Literal["adamw", "muon", "adam", "sgd"] = Field(
        "adamw",
        description="muon: hidden matrices by Muon, the rest by adamw; adam: no weight decay; sgd: gradient norm at "
        "most 1",
    )
    weight_decay: float = Field(
        0.01, ge=0, description="decoupled weight decay per step, multiplied by the learning rate"
    )
    schedule: Literal["cosine", "plateau"] = Field(
        "cosine",
        description="learning rate: cosine to zero, or halved when the validation loss stalls, with early stopping",
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="arithmetic of training steps; weights are float32"
    )
    ema: float = Field(
        0.0, ge=0, lt=1, description="decay of the weights' exponential moving average, which is saved; 0: off"
    )
    interpolate: float = Field(
        0.0, ge=0, lt=1, description="weight interpolation with --init (WiSE-FT): share of the initial weights"
    )
    mirror: bool = Field(True, description="mirror each board with probability 1/2")
