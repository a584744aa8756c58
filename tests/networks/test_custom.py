"""A user's own network, `train --arch module:function`: it is trained, exported, loaded and taught by self-play like a
built-in one, and what gives no usable network is one line before anything is prepared.
"""

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import make_games, write_games

import distill
from distill import networks, selfplay
from distill.common import UserError, run_folder
from distill.mcts.settings import PuctSettings
from distill.networks import saved
from distill.networks.device_labeller import DeviceLabeller
from distill.networks.evaluator import NetworkEvaluator
from distill.players import names

MODULE = """
import keras
from keras import layers

@keras.saving.register_keras_serializable(package="mine")
class Scale(layers.Layer):
    def call(self, x):
        return 2 * x

class Named(keras.Model):
    def __init__(self, planes, outputs):
        super().__init__(planes, outputs)

def build(value_head, own_layer=False):
    planes = keras.Input((6, 7, 2))
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(planes)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    x = Scale()(x) if own_layer else layers.Dropout(0.1)(x)
    x = layers.Flatten()(x)
    outputs = {"logits": layers.Dense(7)(x)}
    if value_head:
        outputs["value"] = layers.Reshape(())(layers.Dense(1, activation="tanh")(x))
    return Named(planes, outputs)

def with_layer(value_head):
    return build(value_head, own_layer=True)

def fails(value_head):
    raise RuntimeError("no such trick")

def wrong_shape(value_head):
    planes = keras.Input((6, 7, 2))
    return keras.Model(planes, {"logits": layers.Dense(6)(layers.Flatten()(planes))})

class Unregistered(layers.Layer):
    def call(self, x):
        return 2 * x

def head(value_head, x=lambda planes: planes, initializer="glorot_uniform"):
    planes = keras.Input((6, 7, 2))
    features = layers.Flatten()(x(planes))
    outputs = {"logits": layers.Dense(7, kernel_initializer=initializer)(features)}
    if value_head:
        outputs["value"] = layers.Reshape(())(layers.Dense(1, "tanh")(features))
    return keras.Model(planes, outputs)

def unregistered(value_head):
    return head(value_head, Unregistered())

def with_lambda(value_head):
    return head(value_head, layers.Lambda(lambda x: 2 * x))

def regularized(value_head):
    return head(value_head, layers.Conv2D(4, 3, kernel_regularizer="l2"))

def squared(targets, outputs):
    policy = keras.ops.square(targets["logits"] - keras.ops.softmax(outputs["logits"]))
    return keras.ops.sum(policy, axis=1) + keras.ops.square(targets["value"] - outputs["value"])

def doubled(targets, outputs):
    return 2 * squared(targets, outputs)

def not_a_number(value_head):
    return head(value_head, initializer=keras.initializers.Constant(float("nan")))
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The working directory, with a user's module in it."""
    (tmp_path / "my_nets.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("DISTILL_IMPORT", "")
    return tmp_path


def test_it_is_trained_exported_and_loaded_like_a_built_in_one(here, checked_here):
    write_games(here / "games", make_games(20, seed=1))
    settings = {
        "ema": 0.5,
        "value_target": "blend",
        "exclude": (),
        "validation_fraction": 0.4,
        "steps": 3,
        "batch_size": 32,
    }
    networks.trust("my_nets:build")
    mine = sys.modules["my_nets"]
    settings["loss"] = mine.squared
    folder = distill.train_network("my_nets:build", data=["games"], out="models/mine", **settings)
    for loss, line in (
        (mine.doubled, "my_nets:squared there, my_nets:doubled here"),
        (functools.partial(mine.squared), "must be a function at the top of a module"),
        (lambda targets, outputs: mine.squared(targets, outputs), "must be a function at the top of a module"),
    ):
        with pytest.raises(UserError, match=line):
            distill.train_network("my_nets:build", data=["games"], out="models/mine", **settings | {"loss": loss})
    assert run_folder.result_of(folder)["arch"] == "my_nets:build"
    assert len(run_folder.read(folder).identity["arch source"]) == 64
    card = (folder / "saved_model" / "README.md").read_text()
    assert "license: unknown\n" in card
    assert "without a solver" not in card, "the card does not know whose labels it had"
    board = np.zeros((6, 7), np.int8)
    answer = distill.load_pretrained(folder)(board)
    core = saved.load_core(folder / "best.keras")
    assert networks.arch_of(core) == "my_nets:build"
    np.testing.assert_allclose(saved.predict_with(core)(board[None])["policy"][0], answer["policy"], atol=1e-5)
    positions = np.zeros(3, np.uint64), np.zeros(3, np.uint64)
    assert NetworkEvaluator(core)(*positions)[1] == pytest.approx(float(answer["value"]), abs=1e-4)
    (here / "my_nets.py").write_text(MODULE + "\n")
    with pytest.raises(UserError, match=r"my_nets\.py: changed after this process imported it"):
        distill.train_network("my_nets:build", data=["games"], out="models/other", **settings)
    del sys.modules["my_nets"]  # as in a new process
    with pytest.raises(UserError, match=r"holds training run with other settings \(arch source "):
        distill.train_network("my_nets:build", data=["games"], out="models/mine", **settings)


@pytest.mark.usefixtures("eagerly")
def test_it_learns_from_games_against_itself_and_its_code_counts(here, monkeypatch, capsys):
    flags = ["--arch", "my_nets:with_layer", "--iterations", "1", "--set", "gate=none", "--workers", "1"]
    assert selfplay.main(["--preset", "smoke", *flags, "--out", "run"]) == 0
    assert networks.arch_of(saved.load_core(here / "run" / "best.keras")) == "my_nets:with_layer"
    assert os.environ["DISTILL_IMPORT"].startswith("my_nets:with_layer@"), "for its workers, which import this version"
    assert len(run_folder.read(here / "run").identity["arch source"]) == 64

    labels = DeviceLabeller("./run", PuctSettings())
    assert labels.source_files[-2:] == [Path("run/best.keras"), here / "my_nets.py"]
    before, built_in = names.identity("./run"), names.identity("pillar-large")
    assert before[-1].startswith("my_nets:with_layer@")
    capsys.readouterr()
    saved.load_core(here / "run" / "best.keras")
    assert "has changed" not in capsys.readouterr().err
    (here / "my_nets.py").write_text(MODULE + "\n")
    del sys.modules["my_nets"]  # as in a new process
    monkeypatch.setenv("DISTILL_IMPORT", "my_nets:build")  # another function of the module has the layers, too
    saved.load_core(here / "run" / "best.keras")
    assert "run/best.keras: the code of its layers has changed since the training" in capsys.readouterr().err
    after = names.identity("./run")
    assert after[:-1] == before[:-1]
    assert after[-1] != before[-1], "a walk with the old code is not resumed with the new"
    assert names.identity("pillar-large") == built_in, "it has no layers of a user's own"


LOADED = """
import os, sys
sys.modules["tensorflow"] = None
from distill import networks
networks.start_backend()
from distill.networks import saved
for os.environ["DISTILL_IMPORT"] in sys.argv[1:]:
    try:
        print(networks.arch_of(saved.load_core("own.keras")))
    except Exception as error:
        print(error)
"""


def test_layers_of_its_own_need_its_module(here):
    """In another process, with JAX, which starts faster: this one has imported the module."""
    networks.build("my_nets:with_layer").save(here / "own.keras")
    networks.trust("my_nets:with_layer")  # from here on, processes that are started load this version only
    (here / "my_nets.py").write_text(MODULE + "\n")
    command = [sys.executable, "-c", LOADED, "", os.environ["DISTILL_IMPORT"], "my_nets:with_layer"]
    environment = os.environ | {"PYTHONPATH": str(Path(distill.__file__).parents[1]), "KERAS_BACKEND": "jax"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    untold, other, arch = done.stdout.splitlines()
    assert untold.startswith("own.keras: has layers of its own; DISTILL_IMPORT=module:function, ")
    assert "a worker has another version of its source" in other
    assert arch == "my_nets:with_layer"
    assert networks.arch_of(saved.load_core(here / "own.keras")) == "my_nets:with_layer", "this process goes on"


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("my_nets:fails", r"RuntimeError: no such trick \(.*my_nets.py:29\)"),
        ("my_nets:wrong_shape", r"not a network of distill .*'logits': \(6,\)"),
        ("my_nets:unregistered", "cannot be saved and loaded again .*register_keras_serializable"),
        ("my_nets:with_lambda", "cannot be saved and loaded again .* use no Lambda layer"),
        ("my_nets:regularized", "training would ignore its regularizers or own losses"),
        ("my_nets:not_a_number", "returned a logit that is NaN or infinite on 2 of 2 boards"),
    ],
)
def test_what_would_fail_in_training_or_after_it_is_one_line_before_a_run_begins(here, spec, line):
    write_games(here / "games", make_games(20, seed=1))
    with pytest.raises(UserError, match=f"^--arch {spec}: .*{line}") as caught:
        distill.train_network(spec, data=["games"], prepared="tables", out="run", value_target="blend")
    assert "\n" not in str(caught.value)
    assert not (here / "run" / run_folder.RECORD).exists()
