"""The training of one network. Properties:

- targets are visit shares or the vote, value targets the stated mixture; losses agree with Keras' own;
- a rule that can be seen on the board is learned; the legal mask is part of the loss;
- same seed, same weights to the last bit; another seed, other weights;
- what is kept is the average over the steps, or has its share of the network begun from;
- with `loss_sampling`, boards that are known are seldom gone over; how far off they were is what the loss says;
- a run killed at any point goes on from its last finished epoch to the weights of an uninterrupted one; a damaged
  checkpoint is named, half a file is never used; looks at the validation boards in between change no weight;
- `minutes` plans fewer steps and keeps the weights; the cosine ends at zero; a plateau halves the rate and stops;
- a loss that is no number ends the run with one line, and the last finished epoch stays.
"""

from __future__ import annotations

import dataclasses

import keras
import numpy as np
import pandas as pd
import pytest

from distill import networks
from distill.common import UserError
from distill.datasets import batching, preparation
from distill.game import rules
from distill.games import schema
from distill.networks import heads, matrix_form, saved
from distill.networks.finding import BEST
from distill.training import checkpoint, history, training
from distill.training.recipe import Recipe
from tests.helpers import make_games, write_games
from tests.network_helpers import killed_at, same
from tests.selfplay_helpers import tiny

pytestmark = pytest.mark.usefixtures("small_shapes")

TINY = Recipe(epochs=2, batch_size=32, seed=7)


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
    folder = preparation.prepare([games], tmp_path_factory.mktemp("prepared"), validation_fraction=0.3).folder
    return batching.load(folder, schema.TRAINING), batching.load(folder, schema.VALIDATION)


def fitted(folder, splits, recipe=TINY, arch="cnn", watch=None):
    """The variables after training this arch (the CNN has dropout and batch norm), and where the run got to."""
    folder.mkdir(exist_ok=True)
    training.make_repeatable(recipe.seed)
    core = tiny(value_head=False) if arch == "tiny" else networks.build(arch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "write", lambda *_: None)  # to draw the curves takes longer than a small epoch
        if arch == "tiny":  # it has a real one's name, and no other form
            patch.setattr(matrix_form, "FORMS", {})
        state = training.fit(core, *splits, recipe, folder, watch)
    return [keras.ops.convert_to_numpy(v) for v in core.variables], state


@pytest.fixture(scope="module")
def whole(small_shapes, splits, tmp_path_factory):
    """Folder, variables and state of an uninterrupted run of TINY."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, *fitted(folder, splits)


def a_batch(count=(1, 1)) -> batching.Batch:
    return batching.Batch(
        boards=np.zeros((2, 6, 7), np.int8),
        visits=np.array([[0, 0, 1, 3, 0, 0, 0], [5, 0, 0, 0, 0, 0, 5]], np.float32),
        label=np.array([2, 6], np.int32),
        value=np.array([0.5, -1], np.float32),
        outcome=np.array([1, 0], np.float32),
        count=np.array(count, np.float32),
        rows=np.arange(2),
        after=0,
    )


def test_the_policy_target_is_the_share_of_visits_or_the_vote():
    visits = training.targets(a_batch(), Recipe(target="visits"), with_value=False)
    assert visits["logits"].tolist() == [[0, 0, 0.25, 0.75, 0, 0, 0], [0.5, 0, 0, 0, 0, 0, 0.5]]
    vote = training.targets(a_batch(), Recipe(target="vote"), with_value=False)
    assert vote["logits"].tolist() == [[0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1]]
    blend = training.targets(a_batch(), Recipe(target="blend"), with_value=False)
    assert blend["logits"].tolist() == [[0, 0, 0.625, 0.375, 0, 0, 0], [0.25, 0, 0, 0, 0, 0, 0.75]]


@pytest.mark.parametrize(
    ("value_target", "expected"),
    [("value", [0.5, -1]), ("outcome", [1, 0]), ("blend", [0.875, -0.25]), ("auto", [0.875, -0.25])],
)
def test_the_value_target_is_the_root_value_the_outcome_or_their_blend(value_target, expected):
    recipe = Recipe(value_target=value_target, value_blend=0.25)
    assert training.targets(a_batch(), recipe, with_value=True)["value"].tolist() == expected


@pytest.mark.parametrize(("kind", "expected"), [("equal", [1, 1, 1]), ("root", [1, 2, 3]), ("count", [1, 4, 9])])
def test_a_board_met_often_weighs_as_much_as_asked_for(kind, expected):
    assert training.weights(np.array([1, 4, 9]), Recipe(count_weights=kind)).tolist() == expected


@pytest.mark.parametrize("arch", ["cnn", "resnet"])
def test_the_evaluated_loss_is_the_loss_keras_trains_on(arch, splits, eagerly):
    recipe = Recipe(value_weight=0.7)
    model = training.compiled(networks.build(arch), recipe)
    few = batching.Examples(**{f.name: getattr(splits[1], f.name)[:50] for f in dataclasses.fields(batching.Examples)})
    batch = next(batching.in_order(few, 50))
    with_value = arch == "resnet"
    expected = model.test_on_batch(batch.boards, training.targets(batch, recipe, with_value), return_dict=True)
    measured = training.evaluate(model, few, recipe)
    assert measured["loss"] == pytest.approx(float(expected["loss"]), rel=1e-5)
    assert ("value_error" in measured) == with_value


@pytest.mark.parametrize("value_head", [False, True])
def test_the_first_step_is_traced_once(value_head):
    """Twice, where a variable is made in it."""
    model = training.compiled(tiny(value_head), TINY)
    step, traced = model.train_step, []
    model.train_step = lambda data: traced.append(1) or step(data)
    training.train_step(model, a_batch(), TINY, 1.0)
    assert len(traced) == 1


def test_a_rule_that_can_be_seen_on_the_board_is_learned(splits, tmp_path):
    tables_of_rule = tuple(stacked_lowest(examples) for examples in splits)
    _, state = fitted(tmp_path, tables_of_rule, dataclasses.replace(TINY, epochs=6, lr=0.02), arch="tiny")
    first, last = state.history[0], state.history[-1]
    assert last["validation_top1"] > 0.5  # a constant column gets 0.2
    assert last["validation_loss"] < first["validation_loss"]
    assert last["training_loss"] < 1.2


def test_counts_weigh_in_the_training_loss(eagerly):
    model = training.compiled(networks.build("pillar"), TINY)
    losses = []
    for count in [(1, 1), (3, 1), (1, 3)]:
        batch = dataclasses.replace(a_batch(count), boards=np.stack([np.zeros((6, 7)), np.eye(6, 7)]).astype(np.int8))
        wanted = training.targets(batch, TINY, False)
        weight = training.weights(batch.count, Recipe(count_weights="count"))
        losses.append(float(model.test_on_batch(batch.boards, wanted, {"logits": weight}, return_dict=True)["loss"]))
    both, first_thrice, second_thrice = losses
    assert first_thrice + second_thrice == pytest.approx(4 * both, rel=1e-5)
    assert first_thrice != pytest.approx(second_thrice, rel=1e-3)


def test_the_cosine_rises_falls_and_ends_at_zero():
    recipe, state = Recipe(lr=0.1), training.State(planned_steps=1000)
    rates = []
    for state.step in range(1000):
        rates.append(training.learning_rate(recipe, state))
    assert rates[0] < 0.003
    assert 40 <= int(np.argmax(rates)) <= 60
    assert max(rates) == pytest.approx(0.1, rel=0.02)
    assert rates[500] == pytest.approx(0.05, rel=0.01)
    assert rates[-1] < 1e-5


def test_a_plateau_halves_the_rate_and_stops_at_last(splits, tmp_path, monkeypatch):
    losses = iter([5.0, 4.0, *[4.5] * 20])
    monkeypatch.setattr(training, "evaluate", lambda *_: {"loss": next(losses), "top1": 0.0})
    recipe = dataclasses.replace(TINY, schedule="plateau", epochs=30, batch_size=256)
    _, state = fitted(tmp_path, splits, recipe, arch="tiny")
    assert state.stopped_early
    assert (state.epoch, state.best_epoch) == (10, 2)
    rates = [epoch["learning_rate"] / recipe.lr for epoch in state.history]
    assert rates == [1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]


def test_one_seed_gives_the_same_weights_to_the_last_bit(splits, tmp_path, eagerly):
    recipe = dataclasses.replace(TINY, steps=2)
    first, _ = fitted(tmp_path / "a", splits, recipe)
    again, _ = fitted(tmp_path / "b", splits, recipe)
    other, _ = fitted(tmp_path / "c", splits, dataclasses.replace(recipe, seed=8))
    assert same(first, again)
    assert not same(first, other)


def test_a_run_interrupted_twice_ends_with_the_weights_of_an_uninterrupted_one(splits, whole, tmp_path):
    """In the second epoch, and then at its end, before its checkpoint."""
    folder, expected, state = whole
    for module, name, on_call in ((training, "train_step", state.planned_steps // 2 + 2), (checkpoint, "save", 1)):
        with killed_at(module, name, on_call):
            fitted(tmp_path / "cut", splits)
        stored = checkpoint.load(tmp_path / "cut")
        assert stored is not None
        assert stored[1]["epoch"] == 1

    resumed, resumed_state = fitted(tmp_path / "cut", splits)
    assert same(expected, resumed)
    losses = [[epoch["validation_loss"] for epoch in run.history] for run in (state, resumed_state)]
    assert losses[0] == losses[1]
    best = [saved.load_core(run / BEST).get_weights() for run in (folder, tmp_path / "cut")]
    assert same(*best)


def test_looks_in_the_middle_of_a_pass_change_no_weight_and_are_gone_on_from(splits, whole, tmp_path):
    _, expected, undisturbed = whole
    a_pass, parts = len(splits[0]) // TINY.batch_size, dataclasses.replace(TINY, eval_every=5 * TINY.batch_size)
    with killed_at(training, "train_step", a_pass + 7):
        fitted(tmp_path / "cut", splits, parts)
    looked, state = fitted(tmp_path / "cut", splits, parts)
    assert same(expected, looked)
    ends = [*range(5, a_pass, 5), a_pass]
    assert [row["step"] for row in state.history] == ends + [a_pass + end for end in ends]
    assert state.history[-1]["validation_loss"] == undisturbed.history[-1]["validation_loss"]


def test_a_checkpoint_of_before_places_were_kept_is_gone_on_from_as_it_would_have_been(
    splits, whole, tmp_path, monkeypatch
):
    parts = dataclasses.replace(TINY, eval_every=5 * TINY.batch_size)
    _, expected, _ = whole  # looks in between change no weight
    with killed_at(training, "train_step", len(splits[0]) // TINY.batch_size + 7):
        fitted(tmp_path / "cut", splits, parts)
    found = checkpoint.load(tmp_path / "cut")
    assert found is not None
    older = {name: each for name, each in found[1].items() if name not in ("passes", "place", "off")}
    monkeypatch.setattr(checkpoint, "load", lambda _: (found[0], older))
    assert same(expected, fitted(tmp_path / "cut", splits, parts)[0])


def test_boards_that_are_known_are_seldom_gone_over_also_by_a_run_gone_on_with(splits, tmp_path):
    rule = tuple(stacked_lowest(examples) for examples in splits)
    recipe = dataclasses.replace(TINY, loss_sampling=2.0, epochs=4, lr=0.02, eval_every=5 * TINY.batch_size)
    variables, state = fitted(tmp_path / "whole", rule, recipe, "tiny")
    assert state.off is not None
    assert np.isfinite(state.off).all()
    assert state.passes > recipe.epochs, "passes of a part of the boards are shorter"
    kept = training._keep(recipe, state)
    known = state.off < recipe.loss_sampling * training.LEAST_CHANCE
    assert 0 < kept[known].mean() < 3 * training.LEAST_CHANCE < kept[~known].mean()

    with killed_at(training, "train_step", state.step - 7):
        fitted(tmp_path / "cut", rule, recipe, "tiny")
    resumed, resumed_state = fitted(tmp_path / "cut", rule, recipe, "tiny")
    assert same(variables, resumed)
    np.testing.assert_array_equal(state.off, resumed_state.off)


def test_how_far_a_policy_was_from_its_target_is_what_the_loss_has_beyond_the_target_itself(splits, eagerly):
    few = splits[1][:40]
    off = training.Off(len(few))
    model = training.compiled(networks.build("pillar"), TINY, off)
    batch = next(batching.in_order(few, len(few)))
    wanted = training.targets(batch, TINY, False)["logits"]
    loss = model.test_on_batch(batch.boards, {"logits": wanted}, return_dict=True)["loss"]
    found = keras.ops.convert_to_numpy(off.boards)
    own = -np.where(wanted > 0, wanted * np.log(np.maximum(wanted, 1e-9)), 0).sum(1)
    assert (found > 0).all()
    assert found.mean() == pytest.approx(float(loss) - own.mean(), rel=1e-4)


def test_arithmetic_in_bfloat16_leaves_a_network_of_float32(splits, tmp_path, eagerly):
    recipe = dataclasses.replace(TINY, precision="bfloat16", steps=3)
    variables, state = fitted(tmp_path / "bfloat16", splits, recipe, "pillar")
    plain_recipe = dataclasses.replace(recipe, precision="float32")
    plain, plain_state = fitted(tmp_path / "float32", splits, plain_recipe, "pillar")
    assert {v.dtype for v in variables} == {np.dtype("float32")}
    assert not same(variables, plain), "the steps were calculated otherwise"
    assert state.best_loss == pytest.approx(plain_state.best_loss, abs=0.05), "8 bits of mantissa, few steps"
    best = saved.load_core(tmp_path / "bfloat16" / BEST)
    assert {layer.compute_dtype for layer in best.layers if layer.weights} == {"float32"}
    assert same([keras.ops.convert_to_numpy(v) for v in best.variables], variables)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_is_kept_is_the_average_over_the_steps_also_of_a_run_gone_on_with(precision, splits, tmp_path, eagerly):
    plain = dataclasses.replace(TINY, precision=precision, schedule="plateau", eval_every=TINY.batch_size)
    steps: list[list[np.ndarray]] = []

    def watch(core):
        steps.append([keras.ops.convert_to_numpy(v) for v in core.variables])
        return {}

    fitted(tmp_path / "plain", splits, dataclasses.replace(plain, steps=3), "pillar", watch)
    assert len(steps) == 3
    recipe = dataclasses.replace(plain, steps=3, ema=0.5)
    with killed_at(training, "train_step", 3):
        fitted(tmp_path / "average", splits, recipe, "pillar")
    kept, _ = fitted(tmp_path / "average", splits, recipe, "pillar")
    for average, first, second, third in zip(kept, *steps, strict=True):
        np.testing.assert_allclose(average, first / 4 + second / 4 + third / 2, atol=1e-6)


@pytest.mark.parametrize("average", [0.0, 0.5])
def test_what_is_kept_has_its_share_of_the_weights_begun_from_also_in_a_run_gone_on_with(
    average, splits, tmp_path, eagerly
):
    plain = dataclasses.replace(TINY, eval_every=TINY.batch_size, steps=3, ema=average)
    learned, _ = fitted(tmp_path / "learned", splits, plain, "pillar")
    recipe = dataclasses.replace(plain, interpolate=0.75)
    with killed_at(training, "train_step", 3):
        fitted(tmp_path / "mixed", splits, recipe, "pillar")
    mixed, state = fitted(tmp_path / "mixed", splits, recipe, "pillar")
    training.make_repeatable(TINY.seed)
    for old, new, kept in zip(networks.build("pillar").get_weights(), learned, mixed, strict=True):
        np.testing.assert_allclose(kept, 0.75 * old + 0.25 * new, atol=1e-6)
    core = saved.load_core(tmp_path / "mixed" / "last.keras")
    measured = training.evaluate(heads.played(core), splits[1], recipe)["loss"]
    assert state.history[-1]["validation_loss"] == pytest.approx(measured), "it is the mixture that is measured"
    assert same([keras.ops.convert_to_numpy(v) for v in core.variables], mixed)


def test_a_checkpoint_holds_the_random_state_of_dropout(eagerly):
    training.make_repeatable(1)
    model = training.compiled(networks.build("transformer"), TINY)
    batch = a_batch()
    before = checkpoint.snapshot(model)
    wanted = training.targets(batch, TINY, False)
    model.train_on_batch(batch.boards, wanted)
    once = checkpoint.snapshot(model)
    checkpoint.restore(model, before)
    assert same(before, checkpoint.snapshot(model))
    model.train_on_batch(batch.boards, wanted)
    assert same(once, checkpoint.snapshot(model))


def test_curves_that_cannot_be_drawn_leave_the_history(tmp_path, monkeypatch, capsys):
    def refuse(*_, **__):
        raise RuntimeError("latex could not be found")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", refuse)
    history.write(tmp_path, [{"epoch": 1, "loss": 2.0}], {"loss": ["loss"], "again": ["loss"]})
    assert (tmp_path / history.CSV).read_text(encoding="utf-8") == "epoch,loss\n1,2.0\n"
    assert not (tmp_path / history.CURVES).exists()
    said = capsys.readouterr().err
    assert said.startswith(f"{tmp_path / history.CURVES}: not drawn (RuntimeError: latex could not be found)")


def test_half_a_checkpoint_is_never_used_and_a_damaged_one_is_named(splits, tmp_path):
    (tmp_path / f".{checkpoint.FILE}.killed").write_bytes(b"half")
    assert checkpoint.load(tmp_path) is None
    (tmp_path / checkpoint.FILE).write_bytes(b"PK half")
    with pytest.raises(UserError, match=r"checkpoint\.npz: damaged"):
        fitted(tmp_path, splits)


def test_few_minutes_plan_few_steps_and_many_change_nothing(splits, tmp_path, monkeypatch, eagerly):
    monkeypatch.setattr(training, "TIMED_STEPS", 2)
    recipe = dataclasses.replace(TINY, epochs=1, batch_size=256)
    expected, _ = fitted(tmp_path / "all", splits, recipe)
    timed, state = fitted(tmp_path / "many", splits, dataclasses.replace(recipe, minutes=1e6))
    assert same(expected, timed), "the steps that were timed have left no trace"
    assert state.step == len(splits[0]) // 256
    _, state = fitted(tmp_path / "few", splits, dataclasses.replace(recipe, minutes=1e-6))
    assert (state.planned_steps, state.step, state.epoch) == (1, 1, 1)


def test_steps_rule_in_place_of_epochs_down_to_the_last_one(splits, tmp_path):
    _, state = fitted(tmp_path, splits, dataclasses.replace(TINY, epochs=1, steps=30), arch="tiny")
    a_pass = len(splits[0]) // TINY.batch_size
    assert state.step == state.planned_steps == 30
    assert state.epoch == -(-30 // a_pass) > 1, "more passes than epochs says, the last one cut short"
    last_steps = [training.State(planned_steps=30, step=row["step"] - 1) for row in state.history]
    assert [row["learning_rate"] for row in state.history] == [training.learning_rate(TINY, at) for at in last_steps]


def test_a_finished_training_is_not_set_up_again(splits, tmp_path, monkeypatch):
    recipe = dataclasses.replace(TINY, steps=3)
    _, state = fitted(tmp_path, splits, recipe, arch="tiny")
    monkeypatch.setattr(training, "compiled", None)
    _, again = fitted(tmp_path, splits, recipe, arch="tiny")
    assert again == state


def test_epochs_are_whole_numbers_on_the_curves():
    rows = [{"epoch": epoch, "training_loss": 2.0, "validation_loss": 2.0} for epoch in (1, 2)]
    figure = history.drawn(pd.DataFrame(rows), {"loss": ["training_loss", "validation_loss"]}, "epoch")
    ticks = figure.axes[0].get_xticks()
    assert [tick for tick in ticks if tick != round(tick)] == []


def test_a_loss_that_is_no_number_ends_the_run_with_one_line(splits, tmp_path, eagerly):
    with pytest.raises(UserError, match="not a number in epoch 1") as caught:
        fitted(tmp_path, splits, dataclasses.replace(TINY, lr=1e30), arch="tiny")
    assert "\n" not in str(caught.value)
    assert "--lr than 1e+30" in str(caught.value)
