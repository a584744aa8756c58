"""Train a network of the study: `python -m distill.train`, which knows the study's shapes as well.

python -m experiments.study.train --arch column-threats --data data/games --out models/threats
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from distill import nets, train
from distill.base import cli
from distill.nets import Arch
from experiments.study import Shape


@dataclass(frozen=True, kw_only=True)
class StudyTrainConfig(train.TrainConfig):
    """Train a network or a shape of the study on finished games."""

    arch: Literal[Arch, Shape] = cli.setting("cnn", "the network", former=nets.FORMER)  # type: ignore[assignment]


def run(config: StudyTrainConfig) -> str:
    """Train one network; returns the line that says where it is and how often it agrees with the teacher."""
    nets.start_backend()
    from experiments.study import shapes

    return train.run(config, shapes.build)


main = cli.Command("study.train", StudyTrainConfig, run, train.PRESETS, package="experiments")

if __name__ == "__main__":
    raise SystemExit(main())
