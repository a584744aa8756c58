"""The settings of a training run. Apart from the loop, so that a command lists its flags without starting Keras."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from distill.common.settings import Seed, Settings


class Length(Settings):
    """How long a network is trained, and how often it is evaluated."""

    epochs: int = Field(14, ge=1)
    """passes over the training boards"""
    steps: int | None = Field(None, ge=1)
    """number of steps, instead of --epochs"""
    eval_every: int | None = Field(None, ge=1)
    """steps between evaluations, each with a checkpoint to resume from; default: one epoch"""


class Targets(Settings):
    """What a network learns of a board, and how much a board counts."""

    target: Literal["visits", "vote", "blend"] = "visits"
    """policy target: visit shares, the majority vote, or half of each"""
    value_target: Literal["auto", "none", "value", "outcome", "blend"] = "auto"
    """value target: root value, game outcome or half of each; none: no value head; auto: blend for resnet only"""
    value_weight: float = Field(1.0, ge=0)
    """weight of the value's squared error; the policy's cross-entropy has 1"""
    count_weights: Literal["equal", "root", "count"] = "equal"
    """loss weight of a board that occurs n times: 1, the square root of n, or n"""


class Optimization(Settings):
    """The steps of any training on a table."""

    batch_size: int = Field(256, ge=1)
    """boards per step"""
    lr: float = Field(2e-3, gt=0)
    """peak learning rate"""
    optimizer: Literal["adamw", "muon", "sgd"] = "adamw"
    """muon: hidden matrices by Muon, the rest by adamw; sgd: gradient norm at most 1"""
    weight_decay: float = Field(0.01, ge=0)
    """decoupled weight decay per step, multiplied by the learning rate; 0 with adamw is plain Adam"""
    ema: float = Field(0.0, ge=0, lt=1)
    """decay of the weights' exponential moving average, which is saved; 0: off"""
    mirror: bool = True
    """mirror each board with probability 1/2"""


class Recipe(Optimization):
    """Everything that the weights depend on besides the network and the data."""

    length: Length = Length()
    targets: Targets = Targets()
    seed: Seed = 0
    """seed of initial weights, order, mirroring and dropout"""
    schedule: Literal["cosine", "plateau"] = "cosine"
    """learning rate: cosine to zero, or halved when the validation loss stalls, with early stopping"""
    precision: Literal["float32", "bfloat16"] = "float32"
    """arithmetic of training steps; weights are float32"""
    interpolate: float = Field(0.0, ge=0, lt=1)
    """weight interpolation with --init (WiSE-FT): share of the initial weights"""
