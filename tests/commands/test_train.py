"""The command `train`: the files of a run, the rows on which its accuracy is measured, and its initial network."""

import shutil
from typing import ClassVar

import keras
import numpy as np
import pandas as pd
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import distill
from distill import networks, train
from distill.common import provenance, run_folder
from distill.datasets import validation
from distill.networks import predict, saved
from distill.networks.finding import BEST
from distill.training import history
from distill.training.identity import LAST
from tests.helpers import make_games, write_games

pytestmark = pytest.mark.usefixtures("small_shapes", "nothing_ships_here")  # accuracy: on the run's own games


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    folder = tmp_path_factory.mktemp("games")
    write_games(folder, make_games(40, seed=1))
    return folder


@pytest.fixture(scope="module")
def trained(small_shapes, nothing_ships_here, checked_here, games, tmp_path_factory):
    """A finished run of `distill train`."""
    out = tmp_path_factory.mktemp("models") / "cnn"
    assert train.main(arguments(games, out)) == 0
    return out


def arguments(games, out, *more: str) -> list[str]:
    words = ["--preset", "smoke", "--arch", "cnn", "--data", str(games), "--out", str(out)]
    return [*words, "--prepared", str(out.parent / "prepared"), "--value-target", "blend", "--exclude", *more]


def test_a_run_leaves_every_file_it_promises(trained):
    files = {".lock", "_run.json", "best.keras", "checkpoint.npz", "curves.png", "history.csv", "last.keras"}
    assert {path.name for path in trained.iterdir()} == files | {"saved_model"}
    assert (trained / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert (trained / "history.csv").read_text().count("\n") == 3
    outputs = predict.load(trained, fast=False)(np.zeros((1, 6, 7), np.int8))
    assert set(outputs) == {"logits", "policy", "move", "value"}


def test_the_metrics_the_card_and_the_last_line_name_the_rows(trained, games, capsys):
    metrics = run_folder.result_of(trained)
    assert metrics["validation_rows_from"] == f"the validation split of {games}"
    assert train.main(["--config", str(trained / "_run.json")]) == 0
    share, number = metrics["top1_all"], metrics["rows_all"]
    said = capsys.readouterr().out
    assert f"{share:.2%} on {number} rows of the validation split of {games}, " in said
    assert "finished before, nothing to do" in said
    assert 0 < metrics["rows_unseen"] <= metrics["rows_all"]
    card = (trained / "saved_model" / "README.md").read_text()
    assert f"{metrics['top1_all']:.1%} top-1 accuracy against the teacher's labels, on the validation" in card
    assert 0 < metrics["rows_first_19"] < metrics["rows_all"]
    assert f"{metrics['top1_first_19']:.1%} the same, on the first 19 rows of each game" in card


TEACHER = {"search_version": 1, "simulations": 10_000, "votes": 3, "exploration": 1.0, "noise_fraction": 0.25}
PLAYED = {"seed": 5, "shard_games": 10, "opening_moves": [0, 2]}


@pytest.mark.parametrize(
    "teachings",
    [
        [TEACHER | {"votes": 1}],
        [TEACHER | {"noise_at": "move"}],
        [TEACHER | {"relabelled": "abc"}],
        [{"puct_version": 3, "network": "abc", "simulations": 10_000}],
        [TEACHER | PLAYED, TEACHER | {"votes": 1}],
    ],
)
def test_the_shipped_rows_are_for_labels_of_their_teacher_alone(teachings, tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "shipped", lambda _name: shipped if shipped.exists() else None)
    shipped = tmp_path / "validation"
    others, teachers = [tmp_path / f"games-{number}" for number in range(len(teachings))], tmp_path / "teacher"
    for folder, identity in zip([*others, teachers], [*teachings, TEACHER | PLAYED], strict=True):
        write_games(folder, make_games(20, seed=1), identity=identity)
    assert validation.validation_rows([teachers], 0.5)[0] == f"the validation split of {teachers}", "nothing is shipped"
    few = make_games(3, seed=9)
    write_games(shipped, few, identity=TEACHER)
    source, rows = validation.validation_rows(others, 0.5)
    assert source == f"the validation split of {', '.join(map(str, others))}"
    assert len(rows) > len(few)
    source, rows = validation.validation_rows([teachers], 0.5)
    assert (source, len(rows)) == ("data/reference/validation", len(few))
    assert validation.validation_rows([shipped], 0.5)[0] == f"the validation split of {shipped}", "it was trained on"


def test_a_finished_run_says_so_without_loading_keras_and_misses_its_network(
    trained, games, tmp_path, monkeypatch, capsys, complaint
):
    monkeypatch.setattr(networks, "start_backend", pytest.fail)
    shutil.copytree(trained, out := tmp_path / "net")
    again = [*arguments(games, out), "--prepared", str(trained.parent / "prepared")]
    assert train.main(again) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.endswith(f": reused tables of {games}")
    assert last.endswith("--restart starts from scratch)")
    (out / BEST).unlink()
    assert f"{out / BEST}: missing" in complaint(train, *again)


def test_keras_callbacks_and_tensorboard_follow_a_training(trained, games, tmp_path, eagerly, undrawn, capsys):
    class Recorder(keras.callbacks.Callback):
        rows: ClassVar[list[dict[str, float]]] = []

        def on_epoch_end(self, epoch, logs):
            self.rows.append(logs)

    settings = {"data": games, "prepared": trained.parent / "prepared", "validation_fraction": 0.5, "exclude": ()}
    settings |= {"steps": 4, "eval_every": 2, "batch_size": 32, "export": False, "out": tmp_path, "log": "tensorboard"}
    for restart in (False, True):
        Recorder.rows.clear()
        distill.train_network("cnn", callbacks=[Recorder()], restart=restart, **settings)
    assert f"; python -m distill.export {tmp_path} exports it" in capsys.readouterr().out
    rows, stored = pd.DataFrame(Recorder.rows), pd.read_csv(tmp_path / "history.csv")
    assert [*stored["step"]] == [2, 4]
    pd.testing.assert_frame_equal(rows, stored, check_like=True, check_dtype=False)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    (_,) = (tmp_path / "tensorboard").iterdir()
    written = {event.step: float(event.tensor_proto.float_val[0]) for event in events.Tensors("validation_loss")}
    assert written == pytest.approx({row["step"]: row["validation_loss"] for row in Recorder.rows})


def test_init_gives_the_initial_weights_and_restart_starts_from_scratch(
    trained, games, tmp_path, complaint, monkeypatch, eagerly
):
    monkeypatch.setattr(history, "write", lambda *_: None)
    initial = saved.load_core(trained / BEST).trainable_variables
    out, tiny_steps = tmp_path / "same", ("--steps", "1", "--no-export", "--lr", "1e-12")
    assert train.main(arguments(games, out, *tiny_steps, "--init", str(trained))) == 0
    begun = saved.load_core(out / LAST).trainable_variables
    assert all(np.allclose(a, b, atol=1e-8) for a, b in zip(initial, begun, strict=True))
    assert "(init " in complaint(train, *arguments(games, out, *tiny_steps))
    assert train.main(arguments(games, out, *tiny_steps, "--restart")) == 0
    restarted = saved.load_core(out / LAST).trainable_variables
    assert not all(np.allclose(a, b, atol=1e-3) for a, b in zip(initial, restarted, strict=True))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--arch", "pillar"], "is a network cnn; --arch pillar asks for another"),
        (["--value-target", "none"], "it has a value head, and --value-target does not ask for it"),
    ],
)
def test_another_kind_of_network_to_begin_with_is_refused(flags, message, trained, games, tmp_path, complaint):
    words = ["--prepared", str(trained.parent / "prepared"), "--init", str(trained), *flags]
    assert message in complaint(train, *arguments(games, tmp_path / "net", *words))
    assert not (tmp_path / "net" / run_folder.RECORD).exists()
