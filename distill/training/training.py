"""How a network learns from prepared tables: targets, loss, learning rate, and the loop over epochs.

In: a network, a training and a validation table. Out, in the run's folder: `best.keras` (smallest loss on validation
boards, none of which is in training), `last.keras`, `history.csv`, `curves.png`, and `checkpoint.npz`, from which an
interrupted run goes on to the weights it would have had without the interruption.

Dimensions: B batch, A = 7 columns, N rows of a table. Values are in [-1, 1] for the side to move.

    loss = weight(count) · ( cross-entropy(target, masked policy) + value_weight · (value - value target)² )
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import keras
import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.common import Progress, UserError, behind_links, say
from distill.datasets import batching
from distill.networks import finding, heads, matrix_form
from distill.training import checkpoint, history, run_folder
from distill.training.recipe import Recipe

WARM_UP = 0.05
"""Share of the steps in which a cosine schedule's learning rate first rises from zero."""
PLATEAU_EPOCHS, PLATEAU_FACTOR = 3, 0.5
"""The plateau schedule multiplies the learning rate by this after so many epochs without a better validation loss."""
STOP_EPOCHS = 8
"""The plateau schedule stops after so many epochs without a better validation loss."""
LEAST_CHANCE = 1 / 8
"""Chance of a board to be in a pass, however well it is known (`loss_sampling`)."""
TIMED_STEPS = 10
SHARE_OF_MINUTES = 0.85
"""Share of `minutes` planned for training steps; validation, saving and export need the rest."""
EVALUATION_BATCH = 1024
OUTPUT_LAYERS = ["logits", "read_out", "value_unit"]
"""Layers whose outputs are logits or the value: Muon, which makes all directions of a matrix alike, is not for them."""

Watch: TypeAlias = Callable[[keras.Model], dict[str, float]]
"""What is said of a network that learns, beside its losses."""
Quick: TypeAlias = Callable[[str, bool, Recipe], keras.Model]
"""Makes a network by its name, with a value head or without, in the form that steps go to: `quick_form`, or what an
experiment has in its place."""


@dataclass(kw_only=True)
class State:
    """Where a run is: with the model's and the optimizer's variables, all that the next epoch depends on.

    An epoch is what lies between two looks at the validation boards: a pass, or a part of one (`eval_every`).
    """

    planned_steps: int
    """Decided once, at the start, so that a resumed run follows the same schedule."""
    step: int = 0
    passes: int = 0
    place: int = 0
    """Where in its pass the next step begins."""
    off: NDArray[np.float16] | None = None
    """float16 (N,): how far the policy of each training board was from its target, in nats, when it was last learned
    from; None without `loss_sampling`."""
    epoch: int = 0
    lr_factor: float = 1.0
    lr_epoch: int = 0
    best_loss: float = math.inf
    best_epoch: int = 0
    stopped_early: bool = False
    history: list[dict[str, float]] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        return self.stopped_early or self.step >= self.planned_steps


def make_repeatable(seed: int) -> None:
    """Same seed, same processor, same number of threads: same weights. Call before the network is built."""
    keras.utils.set_random_seed(seed % 2**32)  # NumPy takes no larger one
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.config.experimental.enable_op_determinism()  # costs nothing measurable on a CPU


def targets(batch: batching.Batch, recipe: Recipe, with_value: bool) -> dict[str, NDArray[np.float32]]:
    """What the outputs should be: "logits" as probabilities (B, A), and "value" (B,) where there is that head."""
    vote = np.eye(7, dtype=np.float32)[batch.label]
    if recipe.target == "vote":
        policy = vote
    else:
        visits = batch.visits / batch.visits.sum(axis=1, keepdims=True)
        policy = visits if recipe.target == "visits" else (visits + vote) / 2
    if not with_value:
        return {"logits": policy}
    share = {"value": 1.0, "outcome": 0.0}.get(recipe.value_target, recipe.value_blend)
    return {"logits": policy, "value": np.float32(share) * batch.value + np.float32(1 - share) * batch.outcome}


def weights(count: NDArray[Any], recipe: Recipe) -> NDArray[np.float32]:
    """float32 (B,), not scaled: how much boards met `count` (B,) times matter."""
    return np.power(count, {"equal": 0.0, "root": 0.5, "count": 1.0}[recipe.count_weights], dtype=np.float32)


def learning_rate(recipe: Recipe, state: State) -> float:
    """The rate of the step that comes next."""
    if recipe.schedule == "plateau":
        return recipe.lr * state.lr_factor
    warm_up = max(1.0, WARM_UP * state.planned_steps)
    rising = min(1.0, (state.step + 1) / warm_up)
    return recipe.lr * rising * (1 + math.cos(math.pi * state.step / state.planned_steps)) / 2


class Off(keras.metrics.Metric):
    """How far each policy of the last batch was from its target, in nats: `boards`, float32 (B,)."""

    def __init__(self, batch_size: int) -> None:
        super().__init__(name="off")
        self.boards = self.add_variable((batch_size,), "zeros", name="boards")

    def update_state(self, wanted: Any, logits: Any, sample_weight: Any = None) -> None:
        """Kullback-Leibler divergence of probabilities and logits, both (B, 7)."""
        wanted, logits = keras.ops.cast(wanted, self.dtype), keras.ops.cast(logits, self.dtype)
        surprise = keras.ops.categorical_crossentropy(wanted, logits, from_logits=True)
        own = keras.ops.sum(wanted * keras.ops.log(keras.ops.maximum(wanted, 1e-9)), axis=-1)
        self.boards.assign(surprise + own)

    def result(self) -> Any:
        """The mean."""
        return keras.ops.mean(self.boards)


def compiled(core: keras.Model, recipe: Recipe, off: Off | None = None) -> keras.Model:
    """The network with mask, loss and optimizer, ready for `train_on_batch`, which also sets `off`."""
    model = heads.played(core)
    decay = recipe.weight_decay
    optimizer = {
        "adamw": lambda: keras.optimizers.AdamW(recipe.lr, weight_decay=decay),
        "muon": lambda: keras.optimizers.Muon(
            recipe.lr, weight_decay=decay, adam_weight_decay=decay, exclude_layers=OUTPUT_LAYERS
        ),
        "adam": lambda: keras.optimizers.Adam(recipe.lr),
        "sgd": lambda: keras.optimizers.SGD(recipe.lr, weight_decay=decay, global_clipnorm=1.0),
    }[recipe.optimizer]()
    if recipe.optimizer != "adam":
        optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    losses: dict[str, Any] = {"logits": keras.losses.CategoricalCrossentropy(from_logits=True)}
    if heads.has_value(core):
        losses["value"] = keras.losses.MeanSquaredError()
    model.compile(
        optimizer,
        losses,
        loss_weights={"logits": 1.0, "value": recipe.value_weight} if "value" in losses else None,
        metrics={"logits": [off]} if off else None,
        # XLA is seven times slower than TensorFlow's own kernels for these networks on a CPU.
        jit_compile=keras.backend.backend() != "tensorflow",
    )
    optimizer.use_ema, optimizer.ema_momentum = recipe.ema > 0, recipe.ema
    _make_variables(model)
    return model


def _make_variables(model: keras.Model) -> None:
    """Make the variables of the optimizer and the losses now. Left to the first step, it would be traced twice."""
    model.optimizer.build(model.trainable_variables)
    outputs = {name: keras.ops.zeros((1, *output.shape[1:])) for name, output in model.output.items()}
    model.compute_loss(y=outputs, y_pred=outputs)
    model.reset_metrics()


def give_learned(
    model: keras.Model,
    trained: keras.Model,
    network: keras.Model,
    begun: Sequence[NDArray[np.float32]] = (),
    share: float = 0,
) -> None:
    """Set a network to what `model` learned, the average over the steps where one is kept.

    `trained` is the network that `model` was made of, `network` the same one or its other form. The result has a
    `share` of the weights `begun` from (Wortsman and others: Robust fine-tuning of zero-shot models, CVPR 2022).
    """
    averages = model.optimizer._model_variables_moving_average if model.optimizer.use_ema else []
    means = dict(zip(map(id, trained.trainable_variables), averages, strict=False))
    matrix_form.give(network, [keras.ops.convert_to_numpy(means.get(id(each), each)) for each in trained.weights])
    if share:
        learned = zip(begun, network.get_weights(), strict=True)
        network.set_weights([np.float32(share) * old + np.float32(1 - share) * new for old, new in learned])


def evaluate(model: keras.Model, examples: batching.Examples, recipe: Recipe) -> dict[str, float]:
    """Means over a table, every board once and with weight 1.

    `loss` is the training loss without weights; `agreement` the share of boards whose label gets the largest logit;
    `value_error` the squared error of the value, where there is that head.
    """
    with_value = heads.has_value(model)
    policy_loss, agreed, value_error = 0.0, 0, 0.0
    for batch in batching.in_order(examples, EVALUATION_BATCH):
        wanted, found = targets(batch, recipe, with_value), model.predict_on_batch(batch.boards)
        logits = found["logits"].astype(np.float64)
        highest = logits.max(axis=1, keepdims=True)
        log_policy = logits - highest - np.log(np.exp(logits - highest).sum(axis=1, keepdims=True))
        policy_loss -= float((wanted["logits"] * log_policy).sum())
        agreed += int((logits.argmax(axis=1) == batch.label).sum())
        if with_value:
            value_error += float(np.square(found["value"].astype(np.float64) - wanted["value"]).sum())
    number = len(examples)
    result = {"loss": (policy_loss + recipe.value_weight * value_error) / number, "top1": agreed / number}
    return result | ({"value_error": value_error / number} if with_value else {})


def fit(
    core: keras.Model,
    training: batching.Examples,
    validation: batching.Examples,
    recipe: Recipe,
    folder: Path,
    watch: Watch | None = None,
    quick: Quick | None = None,
) -> State:
    """Train until the planned steps are done, going on from the folder's checkpoint where there is one.

    `watch` says more of a network after each epoch: it goes into the history, and nothing is chosen by it. `quick`
    makes such networks in the form that the steps go to; None is `quick_form`.
    With `interpolate` the network must have the weights it began with, also where the run goes on.
    Raises UserError where the loss stops being a number; the checkpoint of the last finished epoch stays.
    """
    boards_a_step = min(recipe.batch_size, len(training))
    if found := checkpoint.load(folder):
        number, batches = divmod(found[1]["step"], max(1, len(training) // boards_a_step))
        older = {"passes": number, "place": batches * boards_a_step}  # what a checkpoint of before does not say
        state = State(**older | found[1])
        if state.finished:  # killed after the last epoch: the network is written
            return state
    trained, begun = trained_form(core, recipe, quick), core.get_weights()
    off = Off(boards_a_step) if recipe.loss_sampling else None
    model, judged = compiled(trained, recipe, off), heads.played(core)
    say("compiling the training step")
    if found:
        checkpoint.restore(model, found[0])
    else:
        state = State(planned_steps=_plan(model, training, recipe))
        state.off = np.full(len(training), np.inf, np.float16) if off else None
    total, done = state.planned_steps * boards_a_step, state.step * boards_a_step
    with Progress(total, "boards", done=done, warm_up=True) as progress:
        while not state.finished:
            began = time.monotonic()
            loss, rate = _train_epoch(model, training, recipe, state, progress, off)
            give_learned(model, trained, core, begun, recipe.interpolate)
            measured = evaluate(judged, validation, recipe)
            _require_number(measured["loss"], recipe, state)
            state.epoch += 1
            state.history.append(
                {"epoch": state.epoch, "step": state.step, "learning_rate": rate, "training_loss": loss}
                | {f"validation_{name}": value for name, value in measured.items()}
                | (watch(core) if watch else {})
                | {"seconds": round(time.monotonic() - began, 2)}
            )
            if measured["loss"] < state.best_loss:
                state.best_loss, state.best_epoch = measured["loss"], state.epoch
                save_network(core, folder / finding.BEST)
            _follow_plateau(recipe, state)
            save_network(core, folder / run_folder.LAST)
            history.write(folder, state.history)
            checkpoint.save(folder, model, dataclasses.asdict(state))  # last: with it the epoch counts as finished
            progress.reach(state.step * boards_a_step, f"validation loss {measured['loss']:.4f}")
    if state.stopped_early:
        say(f"stopped early: {STOP_EPOCHS} epochs without a better validation loss")
    return state


def trained_form(core: keras.Model, recipe: Recipe, quick: Quick | None = None) -> keras.Model:
    """The network the steps go to: `core` itself, or one of the same function and weights that calculates otherwise.

    Where `core` becomes an average, or one with the weights begun from, it is another one.
    """
    arch, value_head = networks.arch_of(core), heads.has_value(core)
    changed = recipe.ema or recipe.interpolate
    if not (quick or changed or recipe.precision == "bfloat16" or matrix_form.pays(arch, "float32")):
        return core
    trained = (quick or quick_form)(arch, value_head, recipe)
    matrix_form.copy_weights(core, trained)
    return trained


def quick_form(arch: str, value_head: bool, recipe: Recipe) -> keras.Model:
    """A fresh network in the form whose steps take least time."""
    if matrix_form.pays(arch, recipe.precision):
        return matrix_form.build(arch, value_head, recipe.precision, recipe.dropout)
    return networks.build(arch, value_head, recipe.precision)


def save_network(core: keras.Model, path: Path) -> None:
    """Write a `.keras` file that is whole or not there; a link stays a link."""
    path = behind_links(path)
    temporary = path.with_name(f".{path.name}.tmp.keras")
    core.save(temporary)
    os.replace(temporary, path)


def _plan(model: keras.Model, training: batching.Examples, recipe: Recipe) -> int:
    """Steps the run will take: as asked for, or all epochs, or what fits into `minutes` at the speed measured now."""
    if recipe.steps is not None:
        return recipe.steps
    steps = recipe.epochs * max(1, len(training) // recipe.batch_size)
    if recipe.minutes is None:
        return steps
    before = checkpoint.snapshot(model)
    batch = next(batching.batches(training, recipe.batch_size, seed=recipe.seed, epoch=0, mirror=recipe.mirror))
    for _ in range(TIMED_STEPS):  # the first one compiles, the next ones fetch memory
        train_step(model, batch, recipe, 1.0)
    began = time.monotonic()
    for _ in range(TIMED_STEPS):
        train_step(model, batch, recipe, 1.0)
    seconds = (time.monotonic() - began) / TIMED_STEPS
    checkpoint.restore(model, before)
    return max(1, min(steps, int(recipe.minutes * 60 * SHARE_OF_MINUTES / seconds)))


def _train_epoch(
    model: keras.Model, training: batching.Examples, recipe: Recipe, state: State, progress: Progress, off: Off | None
) -> tuple[float, float]:
    """To the end of the pass, of `eval_every` boards or of the planned steps.

    Returns the mean loss over it, and the learning rate of its last step.
    """
    scale = 1 / float(weights(training.count, recipe).mean())
    size, number = recipe.batch_size, state.passes
    batches = batching.batches(
        training,
        size,
        seed=recipe.seed,
        epoch=number,
        mirror=recipe.mirror,
        first=state.place,
        keep=_keep(recipe, state),
    )
    most = state.planned_steps if recipe.eval_every is None else max(1, recipe.eval_every // size)
    total, first, rate = 0.0, state.step, 0.0
    for batch in itertools.islice(batches, min(most, state.planned_steps - first)):
        model.optimizer.learning_rate = rate = learning_rate(recipe, state)
        loss = train_step(model, batch, recipe, scale)
        _require_number(loss, recipe, state)
        if off and state.off is not None:
            state.off[batch.rows] = keras.ops.convert_to_numpy(off.boards)
        state.step += 1
        state.place = batch.after
        state.passes += state.place == 0
        total += loss
        # The latest step counts with the next one, or with the validation: all done means all done.
        progress.reach(
            (state.step - 1) * len(batch.boards), f"pass {number + 1} loss {total / (state.step - first):.4f}"
        )
    return total / (state.step - first), rate


def _keep(recipe: Recipe, state: State) -> NDArray[np.bool_] | None:
    """bool (N,): which boards this pass has, None for all. A board's `off` is set only once the pass has had it."""
    if state.off is None or len(state.off) * LEAST_CHANCE < 2 * recipe.batch_size:
        return None  # so few that a pass of the least of them might have no batch
    draws = np.random.default_rng((recipe.seed, state.passes, 1)).random(len(state.off))
    return np.asarray(draws < np.maximum(LEAST_CHANCE, state.off / np.float32(recipe.loss_sampling)))


def train_step(model: keras.Model, batch: batching.Batch, recipe: Recipe, scale: float) -> float:
    """One step; returns the batch's loss before it."""
    wanted = targets(batch, recipe, heads.has_value(model))
    weight = weights(batch.count, recipe) * np.float32(scale)
    logs = model.train_on_batch(batch.boards, wanted, dict.fromkeys(wanted, weight), return_dict=True)
    return float(logs["loss"])


def _require_number(loss: float, recipe: Recipe, state: State) -> None:
    if not math.isfinite(loss):
        raise UserError(
            f"the loss is not a number in epoch {state.epoch + 1}, step {state.step + 1}; "
            f"begin anew with --restart and a smaller --lr than {recipe.lr:g}"
        )


def _follow_plateau(recipe: Recipe, state: State) -> None:
    if recipe.schedule != "plateau":
        return
    if state.epoch - max(state.best_epoch, state.lr_epoch) >= PLATEAU_EPOCHS:
        state.lr_factor, state.lr_epoch = state.lr_factor * PLATEAU_FACTOR, state.epoch
    state.stopped_early = state.epoch - state.best_epoch >= STOP_EPOCHS
