"""Starting Keras (`networks/backend.py`). Properties:

- none of TensorFlow's lines is printed, and settings of other work are not used;
- settings with which Keras does not start are named in one line;
- signals during the start take effect after it;
- TensorFlow's number of threads, on which weights depend, is not the one of the user's environment.
"""

import json
import os
import subprocess
import sys

import pytest

from distill.common import cores
from distill.common.boundary import SIGNALS
from distill.common.executors import ONE_THREAD

LEFT_OVER = {"floatx": "float16", "epsilon": 0.1, "image_data_format": "channels_first", "backend": "numpy"}
"""A keras.json of other work."""


def test_starting_keras_prints_nothing_and_ignores_settings_of_other_work(tmp_path):
    """In a user's process: no log level is set, and TensorFlow's C++ has an error to log about the graph."""
    (tmp_path / "keras.json").write_text(json.dumps(LEFT_OVER), encoding="utf-8")
    code = """
import sys
from distill import networks
networks.start_backend()
import keras, tensorflow as tf
tf.function(lambda full: tf.where(tf.reduce_any(full, axis=-1), 1.0, 0.0))(tf.ones((4, 7), bool))
for _ in range(8):  # as networks that replace one another
    tf.function(lambda board: board + 1)(tf.ones(7))
print("ours", file=sys.stderr)
config = keras.config
print(config.backend(), config.image_data_format(), config.floatx(), config.dtype_policy().name, config.epsilon())
"""
    ours = ("TF_CPP_MIN_LOG_LEVEL", "KERAS_BACKEND")  # which the package sets
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment |= {"KERAS_HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    settings = "tensorflow channels_last float32 float32 1e-07\n"
    assert (run.returncode, run.stdout, run.stderr) == (0, settings, "ours\n")


@pytest.mark.parametrize(
    ("backend", "stored", "named"), [("nope", {}, "nope"), ("tensorflow", {"epsilon": "x"}, "epsilon")]
)
def test_settings_with_which_keras_does_not_start_are_one_line(backend, stored, named, tmp_path):
    (tmp_path / "keras.json").write_text(json.dumps(stored), encoding="utf-8")
    code = "from distill import common, networks\ntry: networks.start_backend()\n"
    code += "except common.UserError as error: print(error)"
    environment = {**os.environ, "KERAS_BACKEND": backend, "KERAS_HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("Keras does not start: ")
    assert f"KERAS_BACKEND={backend}" in run.stdout
    assert named in run.stdout
    assert run.stdout.count("\n") == 1


@pytest.mark.parametrize("name", [number.name for number in SIGNALS])
def test_a_signal_while_keras_starts_takes_effect_after_it(name):
    """Python that ended with TensorFlow half loaded crashed with SIGSEGV, which the kill tests found."""
    code = f"""
import signal, sys
from distill import networks
class Importing:
    def find_spec(name, *_):
        if name == "tensorflow.python": signal.raise_signal(signal.{name})
sys.meta_path.insert(0, Importing)
signal.signal(signal.{name}, signal.default_int_handler)  # a shell lets commands in its background ignore it
try: networks.start_backend()
except KeyboardInterrupt: print("keras" in sys.modules and sys.modules["keras"].config.image_data_format())
"""
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "channels_last\n"), run.stderr


@pytest.mark.parametrize(("ours", "threads"), [({}, cores()), (ONE_THREAD, 1)])
def test_the_number_of_threads_is_not_the_one_of_the_users_environment(ours, threads):
    """Another number changes the weights of a training."""
    code = "import os\nfrom distill import networks\nnetworks.start_backend()\n"
    code += "print(os.environ['TF_NUM_INTRAOP_THREADS'])"
    environment = {**os.environ, "TF_NUM_INTRAOP_THREADS": "7", **ours}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, f"{threads}\n"), run.stderr
