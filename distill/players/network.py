"""Players with a network: one forward pass a move, or a search that the network guides."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.common import UserError
from distill.game.encoding import boards
from distill.game.rules import COLUMNS, ROWS, Bitboards
from distill.mcts.settings import PuctSettings
from distill.networks import finding, pretrained
from distill.players.player import Choices, Player, Seeds, draw_by
from distill.players.search import choices

if TYPE_CHECKING:
    from distill.mcts.engine.puct_tree import KeptEvaluations
    from distill.mcts.evaluator import BitboardEvaluator
    from distill.networks.predict import Predict

LANES = 512
"""Searches in lock step, at most."""


def load(name: str, folder: Path, mode: str, simulations: int, *, fast: bool) -> Player:
    """The player that a network in a folder is in a mode of `names`; `fast` as `names.make` takes it.

    Raises DataError for a folder without a model, and UserError where a search lacks the value head that it needs.
    """
    file = file_of(folder, simulations, fast=fast)
    if file.suffix == ".onnx":
        return with_predict(name, pretrained.load(file, for_search=bool(simulations)), mode, simulations)
    networks.start_backend(aloud=True)
    from distill.networks import saved

    if not simulations:
        return with_predict(name, saved.load(file), mode, simulations)
    from distill.networks.evaluator import NetworkEvaluator  # the fast kernels

    evaluate = NetworkEvaluator(saved.load_core(file))
    return GuidedPlayer(name=name, predict=evaluate, settings=_settings(mode, simulations))


def file_of(path: Path, simulations: int, *, fast: bool) -> Path:
    """What `load` evaluates for the network at a path: an ONNX or `.keras` file, or the folder of a SavedModel."""
    onnx = pretrained.onnx_to_run(path) if fast else None
    return onnx or (finding.network_in(path) if simulations else finding.served_in(path))


def with_predict(name: str, predict: Predict, mode: str, simulations: int) -> Player:
    """The player that evaluates with this function. Raises UserError where a search lacks the value head."""
    if not simulations:
        return NetworkPlayer(name=name, predict=predict, mode=mode)
    # Evaluate one board, because a function does not say whether it gives a value.
    if "value" not in predict(np.zeros((1, ROWS, COLUMNS), np.int8)):
        raise UserError(f"{name}: this network has no value head, which a search needs")

    def evaluate(current: Bitboards, mask: Bitboards) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        outputs = predict(boards(current, mask))
        return outputs["logits"], outputs["value"]

    return GuidedPlayer(name=name, predict=evaluate, settings=_settings(mode, simulations))


def _settings(root: str, simulations: int) -> PuctSettings:
    return PuctSettings(simulations=simulations, root="gumbel" if root == "gumbel" else "puct")


@dataclass(frozen=True, kw_only=True)
class NetworkPlayer:
    """A network without search, `predict` as `networks.saved.load` returns it.

    Mode `policy` plays the most probable column and `sample` one drawn by the policy.
    """

    name: str
    predict: Predict = field(repr=False)
    mode: str = "policy"

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        outputs = self.predict(boards(current, mask))
        policy, value = outputs["policy"].astype(np.float64), outputs.get("value")
        return Choices(
            moves=draw_by(policy, seeds) if self.mode == "sample" else outputs["move"].astype(np.int64),
            policy=policy,
            value=None if value is None else value.astype(np.float64),
        )


@dataclass(frozen=True, kw_only=True)
class GuidedPlayer:
    """A PUCT search guided by a network, without randomness; its policy is the share of root visits."""

    name: str
    predict: BitboardEvaluator = field(repr=False)
    settings: PuctSettings

    @cached_property
    def kept(self) -> KeptEvaluations:
        """The evaluations of earlier moves, which the search of the next move meets again."""
        from distill.mcts.puct import new_kept

        return new_kept()

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        from distill.mcts.puct import play_games, quiet

        lanes = max(1, min(len(current), LANES))
        settings, numbers = quiet(self.settings), seeds.tolist()
        record = play_games(current, mask, settings, self.predict, seeds=numbers, lanes=lanes, steps=1, kept=self.kept)
        return choices(record.label[:, 0], record.visits[:, 0], record.value[:, 0])
