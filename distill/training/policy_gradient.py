"""REINFORCE: one gradient step from games of a network against frozen copies of itself.

In: positions in which the network moved, the columns it played there and the results of those games. Out: one
gradient step. The games are played elsewhere.

The loss of one move, and of a batch its mean over the moves (Williams 1992, with an entropy bonus):

    −(return − baseline) · log π(move) − entropy_weight · H(π) + value_weight · (value − return)²

The last term is for networks with a value head. No gradient flows through the baseline.

The network computes as when it plays: no dropout, and batch norms use their moving statistics and leave them unchanged.
So the gradient is that of the policy that drew the moves, in a batch of any size.

Dimensions: N moves, A = 7 columns. Boards are int8 (N, 6, 7) from the side to move, as are returns and values.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from distill import networks
from distill.common import UserError
from distill.game.rules import COLUMNS, ROWS
from distill.networks import heads
from distill.networks.copies import copy
from distill.training import checkpoint

Baseline = Literal["none", "mean", "value"]


class WithOpponents(keras.Model):
    """A network that learns, and its opponents; calls give masked logits (N, A), and the value as column 7.

    The opponents are earlier copies of the network, which no gradient reaches. One model holds all of them, so that its
    variables and the optimizer's are all that the next step depends on.

    Args:
      core: the initial network of all copies; it stays as it is.
      opponents: number of opponents.
      precision: arithmetic of the network and its opponents.
    """

    def __init__(self, core: keras.Model, opponents: int, precision: networks.Precision) -> None:
        super().__init__(name="learner")
        self.core = copy(core, precision)
        self.played = heads.played(self.core)
        self.opponents = [copy(core, precision) for _ in range(opponents)]
        for opponent in self.opponents:
            opponent.trainable = False

    def call(self, boards: Any) -> Any:
        outputs = self.played(boards, training=False)
        if "value" not in outputs:
            return outputs["logits"]
        return ops.concatenate([outputs["logits"], outputs["value"][:, None]], axis=1)

    def replace_opponent(self, number: int) -> None:
        """Set one opponent to the network's current weights."""
        self.opponents[number].set_weights(self.core.get_weights())


def loss_of_moves(target: Any, outputs: Any, baseline: Baseline, value_weight: float) -> Any:
    """The loss in this module's docstring, (N,), for targets of `targets` and outputs of `WithOpponents`."""
    column, result, constant, entropy_weight = (target[:, index] for index in range(4))
    log_policy = ops.log_softmax(outputs[:, :COLUMNS])
    # The log probability of the move that was played.
    chosen = ops.sum(ops.one_hot(ops.cast(column, "int32"), COLUMNS, dtype=log_policy.dtype) * log_policy, axis=1)
    # A value baseline is taken as a constant too: the value learns from its own term.
    expected = ops.stop_gradient(outputs[:, COLUMNS]) if baseline == "value" else constant
    loss = -(result - expected) * chosen - entropy_weight * _entropy(log_policy)
    if outputs.shape[1] > COLUMNS:
        loss += value_weight * ops.square(outputs[:, COLUMNS] - result)
    return loss


def entropy(_target: Any, outputs: Any) -> Any:
    """H(π) in nats, (N,): log 7 if all columns are equally likely, 0 if one is certain."""
    return _entropy(ops.log_softmax(outputs[:, :COLUMNS]))


def _entropy(log_policy: Any) -> Any:
    return -ops.sum(ops.exp(log_policy) * log_policy, axis=1)


def learner(
    core: keras.Model,
    baseline: Baseline,
    value_weight: float,
    opponents: int = 1,
    precision: networks.Precision = "float32",
    ema: float = 0.0,
) -> WithOpponents:
    """The network with its opponents, ready for `step`; above 0, `ema` is the decay of an EMA of its weights.

    `training.step.copy_learned` gives the averaged weights. Raises UserError for a value baseline without a value head.
    """
    if baseline == "value":
        heads.require_value(core, core.name)
    model = WithOpponents(core, opponents, precision)
    model.compile(
        keras.optimizers.Adam(use_ema=ema > 0, ema_momentum=ema),  # its rate is set at every step
        partial(loss_of_moves, baseline=baseline, value_weight=value_weight),
        metrics=[entropy],
        jit_compile=keras.backend.backend() != "tensorflow",  # as in `training.step`
    )
    if keras.backend.backend() == "tensorflow":
        _trace_for_any_size(model)
    return model


def _trace_for_any_size(model: WithOpponents) -> None:
    """Let TensorFlow trace the graph of a step for any number of moves now, before the first step.

    By itself it traces a graph for the first batch's size, and a graph for any size at the second size. The two differ
    in the last bits, so a resumed run would take its first step with another graph than an uninterrupted run.
    """
    before = checkpoint.snapshot(model)
    for number in (1, 2):
        step(model, np.zeros((number, ROWS, COLUMNS), np.int8), np.zeros((number, 4), np.float32), 0.0)
    checkpoint.restore(model, before)


def targets(
    columns: NDArray[Any], returns: NDArray[Any], baseline: Baseline, entropy_weight: float
) -> NDArray[np.float32]:
    """float32 (N, 4): column, return, baseline, entropy weight; the loss itself takes a value baseline."""
    constant = float(np.mean(returns)) if baseline == "mean" else 0.0
    parts = np.broadcast_arrays(columns, returns, constant, entropy_weight)
    return np.stack(parts, axis=1).astype(np.float32)


def step(
    model: WithOpponents, boards: NDArray[np.int8], target: NDArray[np.float32], learning_rate: float
) -> dict[str, float]:
    """One step of Adam; returns the batch's mean `loss` and mean `entropy` before it.

    Raises UserError if the loss is NaN or infinite.
    """
    model.optimizer.learning_rate = learning_rate
    logs = model.train_on_batch(boards, target, return_dict=True)
    if not math.isfinite(logs["loss"]):
        raise UserError("the loss is not a number")
    return {name: float(logs[name]) for name in ("loss", "entropy")}


def stepwise(values: tuple[float, ...], done: float) -> float:
    """The value that applies when a share `done`, in [0, 1), of a run is over; each applies for an equal share."""
    return values[int(done * len(values))]


def linear(first: float, last: float, done: float) -> float:
    """The value between `first` and `last` when a share `done` of a run is over."""
    return first + (last - first) * done
