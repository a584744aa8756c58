"""Train a network of the study: `python -m distill.train`, which knows the study's shapes and candidates as well.

At each evaluation its history also has the grades on boards of the dev half.

python -m experiments.study.train --arch column-threats --data data/games --out models/threats
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from distill import networks, train
from distill.common import cli, sources
from distill.training import identity
from experiments.study import CANDIDATES, SHAPES

if TYPE_CHECKING:
    import keras

WATCHED = 5000
"""Boards of a set, at most, on which a network is graded at such a look: `midgame` has as many in its dev half."""


class StudyTrainConfig(train.TrainConfig):
    """Train a network or a shape of the study on finished games."""

    archs: ClassVar[Sequence[str]] = (*networks.ARCHS, *SHAPES, *CANDIDATES)
    arch: networks.Architecture = Field(
        networks.Architecture(),
        title="NETWORK",
        description=f"{networks.ARCH_HELP}; or a shape or candidate of the study",
    )


def run(config: StudyTrainConfig) -> str:
    """Train one network; returns the line that says where it is and its top-1 accuracy against the teacher."""
    networks.start_backend()
    import keras

    from distill.alphazero import grades
    from distill.networks import saved
    from distill.players.network import NetworkPlayer

    boards = grades.boards(WATCHED)

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
            player = NetworkPlayer(name="network", predict=saved.predict_with(self.model))
            logs |= grades.grade(player, boards)

    return train.run(config, _build_of(config), callbacks=[Watch()])


def known_by(config: StudyTrainConfig) -> dict[str, Any]:
    """The identity of a run with this config, without its data; an initial network has to be there."""
    networks.start_backend()  # before the shapes import Keras
    networks.trust(config.arch.name)
    return identity.identity(config, train.PLACES, **{"build source": sources.source_hash(_build_of(config))})


def _build_of(config: StudyTrainConfig) -> Callable[..., keras.Model]:
    """The function that builds the run's network; the file that defines it is in the run's identity."""
    from experiments.study import candidates, shapes

    return candidates.build if config.arch.name in CANDIDATES else shapes.build


main = cli.Command("experiments study.train", StudyTrainConfig, run, train.PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
