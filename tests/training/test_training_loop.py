"""The training of one network (`training/loop.py`). Properties:

- a rule that can be seen on the board is learned; same seed, same weights to the last bit;
- a run killed at any point resumes from its last evaluation to the weights of an uninterrupted one; evaluations change
  no weight; the EMA of the weights or an interpolation with the initial ones is saved, also by a resumed run;
- a damaged checkpoint is named, half a file is never used; a loss that is no number ends the run before the next step.
"""

import dataclasses
import itertools
import signal

import keras
import numpy as np
import pytest
from keras.src.utils import python_utils

from distill import networks
from distill.common import UserError, boundary
from distill.common.settings import build
from distill.datasets import batching, preparation
from distill.game import rules
from distill.games import schema
from distill.networks import heads, saved
from distill.networks.finding import BEST
from distill.training import checkpoint, history, loop, losses, schedule, step
from distill.training.recipe import Recipe
from tests.helpers import make_games, write_games
from tests.network_helpers import killed_at, same
from tests.selfplay_helpers import tiny

pytestmark = pytest.mark.usefixtures("small_shapes")

TINY = build(Recipe, {"epochs": 2, "batch_size": 32, "seed": 7})


def stacked_lowest(examples: batching.Examples) -> batching.Examples:
    """The same boards, every search sure of the column with the fewest stones, the lower of several."""
    stones = np.stack(
        [np.bitwise_count(examples.mask & np.uint64(rules.column_bits(column))) for column in range(7)], axis=1
    )
    label = stones.argmin(axis=1).astype(np.int8)
    return dataclasses.replace(examples, visits=np.eye(7, dtype=np.int64)[label] * 100, label=label)


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    folder = tmp_path_factory.mktemp("games")
    write_games(folder, make_games(40, seed=1))
    return folder


@pytest.fixture(scope="module")
def splits(games, tmp_path_factory):
    """Training and validation tables of random games."""
    settings = preparation.TableSettings(data=[games], validation_fraction=0.3)
    folder = preparation.prepare(settings, tmp_path_factory.mktemp("prepared")).folder
    return preparation.load(folder, schema.TRAINING), preparation.load(folder, schema.VALIDATION)


def fitted(folder, splits, recipe=TINY, arch="cnn", callbacks=()):
    """The variables after training this arch (the CNN has dropout and batch norm), and the state of the run."""
    folder.mkdir(exist_ok=True)
    step.make_repeatable(recipe.seed)
    core = tiny(value_head=False) if arch == "tiny" else networks.build(arch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "write", lambda *_: None)  # drawing curves takes longer than a small epoch
        state = loop.train(core, *splits, recipe, folder, callbacks=callbacks)
    return [keras.ops.convert_to_numpy(v) for v in core.variables], state


@pytest.fixture(scope="module")
def whole(small_shapes, splits, tmp_path_factory):
    """Folder, variables and state of an uninterrupted run of TINY."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, *fitted(folder, splits)


def test_a_rule_that_can_be_seen_on_the_board_is_learned(splits, tmp_path):
    tables_of_rule = tuple(stacked_lowest(examples) for examples in splits)
    _, state = fitted(tmp_path, tables_of_rule, build(Recipe, dict(TINY), {"epochs": 6, "lr": 0.02}), arch="tiny")
    first, last = state.history[0], state.history[-1]
    assert last["validation_top1"] > 0.5  # a constant column gets 0.2
    assert last["validation_loss"] < first["validation_loss"]
    assert last["training_loss"] < 1.2


def test_the_cosine_rises_falls_and_ends_at_zero():
    recipe, state = Recipe(lr=0.1), schedule.ValidatedState(planned_steps=1000)
    rates = [schedule.learning_rate(recipe, state, number) for number in range(1000)]
    assert rates[0] < 0.003
    assert 40 <= int(np.argmax(rates)) <= 60
    assert max(rates) == pytest.approx(0.1, rel=0.02)
    assert rates[500] == pytest.approx(0.05, rel=0.01)
    assert rates[-1] < 1e-5


def test_a_plateau_halves_the_rate_and_stops_at_last(splits, tmp_path, monkeypatch):
    validation_losses = iter([5.0, 4.0, *[4.5] * 20])
    monkeypatch.setattr(losses, "evaluate", lambda *_: {"loss": next(validation_losses), "top1": 0.0})
    recipe = build(Recipe, dict(TINY), {"schedule": "plateau", "epochs": 30, "batch_size": 256})
    _, state = fitted(tmp_path, splits, recipe, arch="tiny")
    assert state.stopped_early
    assert (len(state.history), state.best_evaluation) == (10, 2)
    rates = [epoch["learning_rate"] / recipe.lr for epoch in state.history]
    assert rates == [1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]


def test_one_seed_gives_the_same_weights_to_the_last_bit(splits, tmp_path, eagerly):
    recipe = build(Recipe, dict(TINY), {"steps": 2})
    first, _ = fitted(tmp_path / "a", splits, recipe)
    again, _ = fitted(tmp_path / "b", splits, recipe)
    other, _ = fitted(tmp_path / "c", splits, build(Recipe, dict(recipe), {"seed": 8}))
    assert same(first, again)
    assert not same(first, other)


def test_a_run_interrupted_twice_ends_with_the_weights_of_an_uninterrupted_one(splits, whole, tmp_path):
    """In the second epoch, and then at its end, before its checkpoint."""
    folder, expected, state = whole
    for module, name, on_call in ((step, "train_step", state.planned_steps // 2 + 2), (checkpoint, "save", 1)):
        with killed_at(module, name, on_call):
            fitted(tmp_path / "cut", splits)
        stored = checkpoint.load(tmp_path / "cut")
        assert stored is not None
        assert len(stored[1]["history"]) == 1

    again, state_after = fitted(tmp_path / "cut", splits)
    assert same(expected, again)
    histories = [[row["validation_loss"] for row in run.history] for run in (state, state_after)]
    assert histories[0] == histories[1]
    best = [saved.load_core(run / BEST).get_weights() for run in (folder, tmp_path / "cut")]
    assert same(*best)


def test_evaluations_within_an_epoch_change_no_weight_and_are_resumed_from(splits, whole, tmp_path):
    _, expected, undisturbed = whole
    steps, parts = len(splits[0]) // TINY.batch_size, build(Recipe, dict(TINY), {"eval_every": 5})
    with killed_at(step, "train_step", steps + 7):
        fitted(tmp_path / "cut", splits, parts)
    evaluated, state = fitted(tmp_path / "cut", splits, parts)
    assert same(expected, evaluated)
    assert [row["step"] for row in state.history] == [*range(5, 2 * steps, 5), 2 * steps]
    assert [row["epoch"] for row in undisturbed.history] == [1, 2]
    assert 0 < state.history[0]["epoch"] < 1 < state.history[-2]["epoch"] < state.history[-1]["epoch"] == 2
    assert state.history[-1]["validation_loss"] == undisturbed.history[-1]["validation_loss"]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_ema_of_the_weights_is_saved_also_by_a_resumed_run(precision, splits, tmp_path, eagerly):
    plain = build(Recipe, dict(TINY), {"precision": precision, "schedule": "plateau", "eval_every": 1, "steps": 3})
    steps: list[list[np.ndarray]] = []

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs):
            steps.append([keras.ops.convert_to_numpy(v) for v in self.model.variables])
            logs["watched"] = np.float32(1)

    _, state = fitted(tmp_path / "plain", splits, plain, "pillar", [Watch()])
    assert [row["watched"] for row in state.history] == [1, 1, 1]
    kept, _, last = resumed(tmp_path / "average", splits, build(Recipe, dict(plain), {"ema": 0.5}))
    for average, first, second, third in zip(kept, *steps, strict=True):
        np.testing.assert_allclose(average, first / 4 + second / 4 + third / 2, atol=1e-6)
    assert {layer.compute_dtype for layer in last.layers if layer.weights} == {"float32"}
    assert same([keras.ops.convert_to_numpy(v) for v in last.variables], kept)


@pytest.mark.parametrize("average", [0.0, 0.5])
def test_the_interpolation_with_the_initial_weights_is_saved_also_by_a_resumed_run(average, splits, tmp_path, eagerly):
    plain = build(Recipe, dict(TINY), {"eval_every": 1, "steps": 3, "ema": average})
    learned, _ = fitted(tmp_path / "learned", splits, plain, "pillar")
    recipe = build(Recipe, dict(plain), {"interpolate": 0.75})
    mixed, state, last = resumed(tmp_path / "mixed", splits, recipe)
    step.make_repeatable(TINY.seed)
    for old, new, kept in zip(networks.build("pillar").get_weights(), learned, mixed, strict=True):
        np.testing.assert_allclose(kept, 0.75 * old + 0.25 * new, atol=1e-6)
    measured = losses.evaluate(heads.played(last), splits[1], recipe)["loss"]
    assert state.history[-1]["validation_loss"] == pytest.approx(measured), "the interpolation is evaluated"


def resumed(folder, splits, recipe):
    """The variables and the state of a run killed in its third step and resumed, and its last network."""
    with killed_at(step, "train_step", 3):
        fitted(folder, splits, recipe, "pillar")
    variables, state = fitted(folder, splits, recipe, "pillar")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "compiled", None)
        assert fitted(folder, splits, recipe, "pillar")[1] == state, "a finished run is not set up again"
    return variables, state, saved.load_core(folder / "last.keras")


def test_half_a_checkpoint_is_never_used_and_a_damaged_one_is_named(splits, tmp_path):
    (tmp_path / f".{checkpoint.FILE}.killed").write_bytes(b"half")
    assert checkpoint.load(tmp_path) is None
    (tmp_path / checkpoint.FILE).write_bytes(b"PK half")
    with pytest.raises(UserError, match=r"checkpoint\.npz: damaged"):
        fitted(tmp_path, splits)
    model = step.compiled(tiny(value_head=False), TINY)
    for state, line in (({"window": []}, "damaged .*'window'"), ({"planned_steps": 9}, "of another model")):
        checkpoint.save(tmp_path, model, state)
        with pytest.raises(UserError, match=rf"checkpoint\.npz: {line}.*; --restart starts from scratch"):
            fitted(tmp_path, splits)


def test_each_loss_is_checked_and_reported_before_the_next_step(splits, monkeypatch):
    events, measured = list[object](), iter([1.0, np.nan])
    monkeypatch.setattr(step, "train_step", lambda *_: events.append("step") or {"loss": next(measured)})
    model, batches = step.compiled(tiny(), TINY), itertools.repeat(None)
    with pytest.raises(UserError, match="not a number after step 1;"):
        step.fit(model, batches, range(5), lambda _: 0.1, lambda *report: events.append(report))
    assert events == ["step", (0, 1.0), "step"]


def test_a_signal_that_keras_drops_while_it_waits_for_a_loss_ends_the_run(splits, tmp_path, monkeypatch):
    waited = []

    class Loss:
        def __float__(self):
            if not waited:
                signal.raise_signal(signal.SIGTERM)
            waited.append(1)
            return 1.0

    def pythonify_logs(logs):
        return python_utils.pythonify_logs({**logs, "loss": Loss()})

    monkeypatch.setattr("keras.src.backend.tensorflow.trainer.pythonify_logs", pythonify_logs)
    assert boundary.guarded(lambda: bool(fitted(tmp_path, splits, arch="tiny")), "distill train", []) == 143
    assert len(waited) == 1


def test_steps_replace_epochs_down_to_the_last_one(splits, tmp_path):
    _, state = fitted(tmp_path, splits, build(Recipe, dict(TINY), {"epochs": 1, "steps": 30}), arch="tiny")
    an_epoch = len(splits[0]) // TINY.batch_size
    assert state.step == state.planned_steps == 30
    assert len(state.history) == -(-30 // an_epoch) > 1, "more than --epochs, the last one cut short"
    expected = [schedule.learning_rate(TINY, state, row["step"] - 1) for row in state.history]
    assert [row["learning_rate"] for row in state.history] == expected
