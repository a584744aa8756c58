"""Players with a network, a search or both: one forward pass a move, PUCT guided by a network, UCT with rollouts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.common import UserError, executors
from distill.common.executors import Workers
from distill.game.encoding import boards
from distill.game.rules import COLUMNS, ROWS, Bitboards
from distill.mcts.settings import PuctSettings, UctSettings
from distill.networks import finding, predict
from distill.networks.predict import Predict
from distill.players.player import Choices, Player, Seeds, draw_by

if TYPE_CHECKING:
    from distill.mcts.engine.puct_tree import KeptEvaluations
    from distill.mcts.evaluator import BitboardEvaluator

LANES = 512
"""Searches in lock step, at most."""


def load(name: str, path: Path, mode: str, simulations: int, *, fast: bool, int8: bool = False) -> Player:
    """The player that the network at a path is in a mode of `names`.

    `fast` and `int8` are as `finding.evaluated_in` takes them. Raises UserError for a path without a model, and where a
    search lacks the value head that it needs.
    """
    file = finding.evaluated_in(path, fast=fast, int8=int8)
    if file.suffix != ".onnx":
        networks.start_backend(aloud=True)
    if not simulations:
        return NetworkPlayer(name=name, predict=predict.load(file), mode=mode)
    settings = PuctSettings().replace(simulations=simulations, root=mode)
    return GuidedPlayer(name=name, evaluate=_evaluator(name, file), settings=settings)


def _evaluator(name: str, file: Path) -> BitboardEvaluator:
    """What a search evaluates with. Raises UserError where the network has no value head."""
    if file.suffix == ".keras":
        from distill.networks import saved
        from distill.networks.evaluator import NetworkEvaluator  # the fast kernels

        return NetworkEvaluator(saved.load_core(file))
    network = predict.load(file)
    # Evaluate one board, because a function does not say whether it gives a value.
    if "value" not in network(np.zeros((1, ROWS, COLUMNS), np.int8)):
        raise UserError(f"{name}: this network has no value head, which a search needs")

    def evaluate(current: Bitboards, mask: Bitboards) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        outputs = network(boards(current, mask))
        return outputs["logits"], outputs["value"]

    return evaluate


@dataclass(frozen=True, kw_only=True)
class NetworkPlayer:
    """A network without search, `predict` as `networks.predict.load` returns it.

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
    evaluate: BitboardEvaluator = field(repr=False)
    settings: PuctSettings

    @cached_property
    def kept(self) -> KeptEvaluations:
        """The evaluations of earlier moves, which the search of the next move meets again."""
        from distill.mcts.puct import new_kept

        return new_kept()

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        from distill.mcts import puct

        lanes = max(1, min(len(current), LANES))
        settings, numbers = puct.quiet(self.settings), seeds.tolist()
        record = puct.play(current, mask, self.evaluate, settings, seeds=numbers, lanes=lanes, steps=1, kept=self.kept)
        return choices(record.label[:, 0], record.visits[:, 0], record.value[:, 0])


# Searches without a network -------------------------------------------------------------------------------------------

SHARED_SIMULATIONS = 20_000_000
"""Simulations from which a batch is shared between processes: some seconds of one core, against their start."""
Searched: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Labels (B,), visits (B, 7) and values (B,) of searches of B positions."""


@dataclass(frozen=True, kw_only=True)
class SearchPlayer:
    """A UCT search; its policy is the share of root visits. Workers share long searches."""

    name: str
    settings: UctSettings
    workers: Workers

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        return choices(*self.search(current, mask, seeds))

    def search(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Searched:
        """Search each position; bitboards and seeds are uint64 (B,)."""
        simulations = len(mask) * self.settings.simulations * self.settings.votes
        if simulations < SHARED_SIMULATIONS or self.workers.number == 1:  # this process computes
            return _search(self.settings, current, mask, seeds)
        size = -(-len(mask) // (4 * self.workers.number))  # several parts a worker: searches end at different times
        parts = [slice(start, start + size) for start in range(0, len(mask), size)]
        tasks = [(self.settings, current[part], mask[part], seeds[part]) for part in parts]
        label, visits, value = zip(*executors.results(self.workers, _search, tasks), strict=True)
        return np.concatenate(label), np.concatenate(visits), np.concatenate(value)


def _search(settings: UctSettings, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Searched:
    from distill.mcts import uct  # which loads Numba

    record = uct.play(current, mask, settings, seeds=seeds.tolist(), steps=1)
    return record.label[:, 0], record.visits[:, 0], record.value[:, 0]


def choices(label: NDArray[Any], visits: NDArray[Any], value: NDArray[Any]) -> Choices:
    """The choices of a player that searches: its policy is the share of the visits."""
    policy = visits / visits.sum(1, keepdims=True, dtype=np.float64)
    return Choices(moves=label.astype(np.int64), policy=policy, value=value)
