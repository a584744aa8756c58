"""Starting Keras (`networks/backend.py`): settings of other work are not used, and TensorFlow's number of threads, on
which weights depend, is not the one of the user's environment.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from distill.common import cores
from distill.common.executors import THREADS

LEFT_OVER = {"floatx": "float16", "epsilon": 0.1, "image_data_format": "channels_first", "backend": "numpy"}
"""A keras.json of other work."""


def run(code: str, folder: Path, stored: dict[str, Any], **environment: str) -> tuple[int, str, str]:
    """Exit code, output and errors of Python code in a process of its own, beside a keras.json."""
    (folder / "keras.json").write_text(json.dumps(stored), encoding="utf-8")
    ours = ("TF_CPP_MIN_LOG_LEVEL", "KERAS_BACKEND", THREADS)  # which the package sets
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    environment = {**kept, "KERAS_HOME": str(folder), "TF_NUM_INTRAOP_THREADS": "7", **environment}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_starting_keras_prints_nothing_ignores_settings_of_other_work_and_ends_before_a_signal(tmp_path):
    """In a user's process: no log level is set, and TensorFlow's C++ has an error to log about the graph.

    With TensorFlow half loaded, Python that ends crashes with SIGSEGV.
    """
    code = """
import os, signal, sys
from distill import networks
class Importing:
    def find_spec(name, *_):
        if name == "tensorflow.python": signal.raise_signal(signal.SIGTERM)
sys.meta_path.insert(0, Importing)
signal.signal(signal.SIGTERM, lambda *_: print("signal", sys.modules["keras"].config.image_data_format()))
networks.start_backend()
import keras, tensorflow as tf
tf.function(lambda full: tf.where(tf.reduce_any(full, axis=-1), 1.0, 0.0))(tf.ones((4, 7), bool))
for _ in range(8):  # as networks that replace one another
    tf.function(lambda board: board + 1)(tf.ones(7))
print("ours", file=sys.stderr)
config = keras.config
print(config.backend(), config.image_data_format(), config.floatx(), config.dtype_policy().name, config.epsilon())
print(os.environ["TF_NUM_INTRAOP_THREADS"])
os.environ["DISTILL_THREADS"] = "1"  # as in a worker
networks.start_backend()
print(os.environ["TF_NUM_INTRAOP_THREADS"])
"""
    settings = f"signal channels_last\ntensorflow channels_last float32 float32 1e-07\n{cores()}\n1\n"
    assert run(code, tmp_path, LEFT_OVER) == (0, settings, "ours\n")


def test_settings_with_which_keras_does_not_start_are_one_line(tmp_path):
    code = "from distill import common, networks\ntry: networks.start_backend()\n"
    code += "except common.UserError as error: print(error)"
    status, said, errors = run(code, tmp_path, {}, KERAS_BACKEND="nope")
    assert (status, errors, said.count("\n")) == (0, "", 1)
    assert said.startswith("Keras does not start: ")
    assert "KERAS_BACKEND=nope" in said
