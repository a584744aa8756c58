"""A REINFORCE run: steps of policy gradient on batches of games, and evaluations against built-in players.

The network computes as when it plays: no dropout, and batch norms use their moving statistics and leave them unchanged.
So the gradient is that of the policy that drew the moves, in a batch of any size.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from distill.common import Progress, UserError, say
from distill.game.rules import COLUMNS, ROWS
from distill.networks import finding, heads, saved
from distill.networks.copies import fast_copy
from distill.networks.predict import Predict
from distill.players.intervals import share
from distill.players.match import play_games, results_of
from distill.players.names import make
from distill.players.network import NetworkPlayer
from distill.training import checkpoint, history, step
from experiments.reinforce import RIVALS, games
from experiments.reinforce.games import LEARNER, GamesState, GamesStream
from experiments.reinforce.settings import ReinforceConfig

PANELS = {
    "games won": ["punisher_won", "random_won"],
    "score against the opponent": ["score"],
    "entropy of the policy, nats": ["entropy"],
}
"""Titles and columns of `curves.png`."""


def train(core: keras.Model, config: ReinforceConfig, folder: Path) -> GamesState:
    """Play and learn until all steps are done, or resume from the folder's checkpoint.

    `core` takes the averaged weights. Raises UserError where the loss or the policy stops being finite.
    """
    stored = checkpoint.load(folder, GamesState)
    if stored and stored[1].finished:  # interrupted after the last step: BEST is its result
        core.set_weights(saved.load_core(folder / finding.BEST).get_weights())
        return stored[1]
    say("compiling the training step")
    model, state = learner(core, config), stored[1] if stored else GamesState(planned_steps=config.steps)
    stream = GamesStream(model, core, config, state)
    if stored:
        checkpoint.restore(model, stored[0], folder, stream.opponents)
        step.copy_learned(model, core)
    predict, rates = saved.predict_with(core), config.learning.lr  # `predict` follows later changes of the weights

    def rate(number: int) -> float:
        return rates[int(number / config.steps * len(rates))]

    if not state.history:
        number = config.evaluation.eval_games
        say(f"evaluating the initial network: {number:,} games against each of {', '.join(RIVALS)}")
        state.history.append(evaluated(predict, config, state, {}))
    try:
        with Progress(config.steps * config.games, "games", done=state.step * config.games) as progress:

            def report(number: int, mean: float) -> None:
                stream.after_step()
                # Shown one step late, so that 100 % means that the evaluation is done too.
                progress.reach(number * config.games, f"loss {mean:.4f}")

            while not state.finished:
                began, steps = time.monotonic(), state.steps_to_evaluation(config.evaluation.eval_every)
                _, means = step.fit(model, stream, steps, rate, report)
                state.step = steps.stop
                step.copy_learned(model, core)
                state.seconds += time.monotonic() - began
                means |= {name: float(np.mean([row[name] for row in stream.scores])) for name in stream.scores[0]}
                stream.scores.clear()
                state.history.append(evaluated(predict, config, state, means))
                saved.save_network(core, folder / finding.BEST)
                history.write(folder, state.history, PANELS, over="games")
                # Last, because it completes the evaluation.
                checkpoint.save(folder, model, dataclasses.asdict(state), stream.opponents)
                progress.reach(state.step * config.games, f"loss {means['loss']:.4f}")
    except UserError as error:
        hint = "start from scratch with --restart and a smaller --lr"
        raise UserError(f"after {stream.step} steps: {error}; {hint}") from error
    return state


class Learner(step.TrainingModel):
    """The network as it trains: as it plays, with the mean entropy of its policy in the last steps."""

    entropy: keras.metrics.Mean

    def call(self, boards: Any, training: bool = False, mask: Any = None) -> Any:
        return super().call(boards, training=False, mask=mask)

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        self.entropy.update_state(entropy(ops.log_softmax(y_pred["logits"])))
        return super().compute_loss(x, y, y_pred, sample_weight, training)


def learner(core: keras.Model, config: ReinforceConfig) -> step.TrainingModel:
    """A copy of the network, ready for steps of policy gradient.

    Raises UserError for a value baseline without a value head.
    """
    learning = config.learning
    if learning.baseline == "value":
        heads.require_value(core, core.name)
    loss = partial(policy_gradient_loss, baseline=learning.baseline, value_weight=learning.value_weight)
    model = step.compiled(fast_copy(core, config.precision), config.recipe(), loss, Learner)
    assert isinstance(model, Learner)
    model.entropy = keras.metrics.Mean(name="entropy")
    if keras.backend.backend() == "tensorflow":
        _trace_for_any_size(model)
    return model


def policy_gradient_loss(
    targets: Mapping[str, Any], outputs: Mapping[str, Any], *, baseline: str, value_weight: float
) -> Any:
    """The loss of REINFORCE (Williams 1992) with an entropy bonus, (B,), of a move that was played on each board:

        −(return − baseline) · log π(move) − entropy_weight · H(π) + value_weight · (value − return)²

    The last term is for networks with a value head. No gradient flows through the baseline.

    Args:
      targets: `move` int32, `return`, `baseline` and `entropy_weight` float32, all (B,).
      baseline: "value" takes the network's value as the baseline; otherwise it is that of the targets.
    """
    log_policy = ops.log_softmax(outputs["logits"])
    # The log probability of the move that was played.
    chosen = ops.sum(ops.one_hot(targets["move"], COLUMNS, dtype=log_policy.dtype) * log_policy, axis=1)
    # A value baseline is a constant: the value learns from its own term.
    expected = ops.stop_gradient(outputs["value"]) if baseline == "value" else targets["baseline"]
    loss = -(targets["return"] - expected) * chosen - targets["entropy_weight"] * entropy(log_policy)
    if "value" in outputs:
        loss += value_weight * ops.square(outputs["value"] - targets["return"])
    return loss


def entropy(log_policy: Any) -> Any:
    """H(π) in nats, (B,): log 7 if all columns are equally likely, 0 if one is certain."""
    return -ops.sum(ops.exp(log_policy) * log_policy, axis=1)


def _trace_for_any_size(model: step.TrainingModel) -> None:
    """Let TensorFlow trace the graph of a step for any number of moves now, before the first step.

    By itself it traces a graph for the first batch's size, and a graph for any size at the second size. The two differ
    in the last bits, so a resumed run would take its first step with another graph than an uninterrupted run.
    """
    before = checkpoint.snapshot(model)
    for moves in (1, 2):
        zeros = np.zeros(moves, np.float32)
        targets = {"move": zeros.astype(np.int32), "return": zeros, "baseline": zeros, "entropy_weight": zeros}
        step.train_step(model, (np.zeros((moves, ROWS, COLUMNS), np.int8), targets, zeros))
    checkpoint.restore(model, before)


def evaluated(
    predict: Predict, config: ReinforceConfig, state: GamesState, means: dict[str, float]
) -> dict[str, float]:
    """A row of the history: the means of the latest steps, and the games won and drawn against each rival."""
    row: dict[str, float] = {"step": state.step, "games": state.step * config.games, "seconds": round(state.seconds, 1)}
    row |= {name: round(value, 5) for name, value in means.items()} | {"checkpoints": state.replaced}
    number, seed = config.evaluation.eval_games, games.match_seed(config, games.CURVE_GAMES, state.step)
    for rival in RIVALS:
        results = against(predict, rival, number, seed)
        row |= {f"{rival}_won": float((results > 0).mean()), f"{rival}_drawn": float((results == 0).mean())}
    return row


def against(predict: Predict, rival: str, number: int, seed: int, mode: str = "sample") -> NDArray[np.float32]:
    """float32 (number,), the network's results against a rival from the empty board, half of them from either side."""
    pairings = games.both_sides(number)
    network = NetworkPlayer(name="learner", predict=predict, mode=mode)
    return results_of(play_games([network, make(rival)], pairings, seed), pairings, LEARNER)


def final_evaluation(predict: Predict, config: ReinforceConfig) -> dict[str, Any]:
    """By rival, the games won of `final_games`, with a 95 % interval, and drawn; with sampled and with greedy moves."""
    modes = {"": "sample", "_greedy": "policy"}
    say(f"evaluating the result: {len(RIVALS) * len(modes)} matches of {config.evaluation.final_games:,} games")
    report: dict[str, Any] = {}
    for number, rival in enumerate(RIVALS):
        for suffix, mode in modes.items():
            seed = games.match_seed(config, games.FINAL_GAMES, number)
            results = against(predict, rival, config.evaluation.final_games, seed, mode)
            won = dataclasses.asdict(share(results > 0, trials=1))
            # The interval of the games won; a draw counts as not won.
            report[f"{rival}{suffix}"] = {"games": len(results), "won": won, "drawn": float((results == 0).mean())}
    return report
