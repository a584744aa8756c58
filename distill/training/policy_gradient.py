"""REINFORCE: a network plays against frozen copies of itself and is pushed along the gradient of what came of it.

In: positions in which the network moved, the columns it played there and the results of those games. Out: one
gradient step. Who plays the games is not this module's business.

The loss of one move, and of a batch its mean over the moves (Williams 1992, with an entropy bonus):

    −(return − baseline) · log π(move) − entropy_weight · H(π) + value_weight · (value − return)²

The last term stands where the network has a value head. No gradient flows through the baseline.

The network runs as it does when it plays: no dropout, and batch norms use their moving statistics and leave them as
they are. So the policy whose gradient is taken is the policy that drew the moves, in a batch of any size.

Dimensions: N moves, A = 7 columns. Boards are int8 (N, 6, 7) from the side to move, as are returns and values.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from distill import networks
from distill.common import UserError
from distill.game.rules import COLUMNS, ROWS
from distill.networks import heads
from distill.training import checkpoint

Baseline = Literal["none", "mean", "value"]


class WithOpponents(keras.Model):
    """A copy of a network that learns, its opponents, and its average; calls give (N, A) masked logits.

    The opponents are earlier copies of the network, and `average` is the mean of its weights over the steps, the latest
    counting most, in float32; no gradient reaches either. Where the network has a value head its values are an eighth
    column. One model holds all of them, so that its variables, with the optimizer's, are all that the next step depends
    on.

    Args:
      core: what all begin as; it is left alone.
      opponents: how many.
      precision: of the arithmetic in which the network and its opponents play and learn.
      decay: what a step leaves of the average before it; 0: the average is the network as it is.
    """

    def __init__(self, core: keras.Model, opponents: int, precision: networks.Precision, decay: float) -> None:
        super().__init__(name="learner")
        self.core = _copy(core, precision)
        self.played = heads.played(self.core)
        self.opponents = [_copy(core, precision) for _ in range(opponents)]
        self.average, self.decay = _copy(core, "float32"), decay
        for network in (*self.opponents, self.average):
            network.trainable = False

    def call(self, boards: Any) -> Any:
        outputs = self.played(boards, training=False)
        if "value" not in outputs:
            return outputs["logits"]
        return ops.concatenate([outputs["logits"], outputs["value"][:, None]], axis=1)

    def replace_opponent(self, number: int) -> None:
        """Make one of the opponents a copy of what the network is now."""
        self.opponents[number].set_weights(self.core.get_weights())

    def move_average(self) -> None:
        """Let the average follow the network."""
        pairs = zip(self.average.get_weights(), self.core.get_weights(), strict=True)
        decay = np.float32(self.decay)
        self.average.set_weights([decay * average + (1 - decay) * weights for average, weights in pairs])


def _copy(core: keras.Model, precision: networks.Precision) -> keras.Model:
    if precision == "float32":
        copy = keras.models.clone_model(core)
    else:
        copy = networks.build(networks.arch_of(core), heads.has_value(core), precision)
    copy.set_weights(core.get_weights())
    return copy


class PolicyGradient(keras.losses.Loss):
    """The loss of the module's docstring; `target` as `targets` makes it, `outputs` as `WithOpponents` gives them."""

    def __init__(self, baseline: Baseline, value_weight: float) -> None:
        super().__init__(name="policy_gradient")
        self.baseline, self.value_weight = baseline, value_weight

    def call(self, target: Any, outputs: Any) -> Any:
        column, result, baseline, entropy_weight = (target[:, index] for index in range(4))
        log_policy = ops.log_softmax(outputs[:, :COLUMNS])
        chosen = ops.sum(ops.one_hot(ops.cast(column, "int32"), COLUMNS, dtype=log_policy.dtype) * log_policy, axis=1)
        if self.baseline == "value":
            baseline = ops.stop_gradient(outputs[:, COLUMNS])
        loss = -(result - baseline) * chosen - entropy_weight * _entropy(log_policy)
        if outputs.shape[1] > COLUMNS:
            loss += self.value_weight * ops.square(outputs[:, COLUMNS] - result)
        return loss


def entropy(_target: Any, outputs: Any) -> Any:
    """(N,), H(π) in nats: log 7 where all columns are equally likely, 0 where one is certain."""
    return _entropy(ops.log_softmax(outputs[:, :COLUMNS]))


def _entropy(log_policy: Any) -> Any:
    return -ops.sum(ops.exp(log_policy) * log_policy, axis=1)


def learner(
    core: keras.Model,
    baseline: Baseline,
    value_weight: float,
    opponents: int = 1,
    precision: networks.Precision = "float32",
    decay: float = 0.0,
) -> WithOpponents:
    """The network with its opponents, ready for `step`. Raises ValueError for a baseline it cannot give."""
    if baseline == "value" and not heads.has_value(core):
        raise ValueError("this network has no value head")
    model = WithOpponents(core, opponents, precision, decay)
    model.compile(
        keras.optimizers.Adam(),  # its rate is set at every step
        PolicyGradient(baseline, value_weight),
        metrics=[entropy],
        jit_compile=keras.backend.backend() != "tensorflow",  # as in `training`
    )
    if keras.backend.backend() == "tensorflow":
        _trace_for_any_size(model)
    return model


def _trace_for_any_size(model: WithOpponents) -> None:
    """Have TensorFlow make the graph of a step on any number of moves now, before the first step.

    Left to itself it makes a graph for the first batch's size, and one for any size when another comes. The two differ
    in the last bits, and a resumed run would take its first step with another one than the run without interruption.
    """
    before = checkpoint.snapshot(model)
    for number in (1, 2):
        step(model, np.zeros((number, ROWS, COLUMNS), np.int8), np.zeros((number, 4), np.float32), 0.0)
    checkpoint.restore(model, before)


def targets(
    columns: NDArray[Any], returns: NDArray[Any], baseline: Baseline, entropy_weight: float
) -> NDArray[np.float32]:
    """float32 (N, 4): column, return, baseline, weight of the entropy; a value baseline is put in by the loss."""
    constant = float(np.mean(returns)) if baseline == "mean" else 0.0
    parts = np.broadcast_arrays(columns, returns, constant, entropy_weight)
    return np.stack(parts, axis=1).astype(np.float32)


def step(
    model: WithOpponents, boards: NDArray[np.int8], target: NDArray[np.float32], learning_rate: float
) -> dict[str, float]:
    """One step of Adam, and of the average after it; returns the batch's mean `loss` and mean `entropy` before it.

    Raises UserError where the loss is not a number.
    """
    model.optimizer.learning_rate = learning_rate
    logs = model.train_on_batch(boards, target, return_dict=True)
    if not math.isfinite(logs["loss"]):
        raise UserError("the loss is not a number")
    model.move_average()
    return {name: float(logs[name]) for name in ("loss", "entropy")}


def stepwise(values: tuple[float, ...], done: float) -> float:
    """The value in force when a share `done`, in [0, 1), of a run is over: each holds for an equal share of it."""
    return values[int(done * len(values))]


def linear(first: float, last: float, done: float) -> float:
    """The value on the way from `first` to `last` when a share `done` of a run is over."""
    return first + (last - first) * done
