"""Start Keras and its backend with this project's settings; memory and threads are set first."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator

from distill.common import UserError, cores, executors, first_line, machine, say
from distill.common.boundary import SIGNALS

# TensorFlow reads this when it starts. Its C++ log holds nothing a user can act on: failures arrive as exceptions.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# On a GPU, take memory as needed: worker processes share it.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

ADDRESS_SPACE = 4 << 30
"""Bytes of address space that a process with TensorFlow needs: with 3.5 GB, training the `cnn` crashes."""

_STARTING = threading.Lock()
"""Two threads that redirect file descriptor 2 at once could leave it redirected."""
_started_in: int | None = None
"""Process id in which the backend started; a forked child has another one."""


def start_backend(*, aloud: bool = False) -> None:
    """Import Keras and its backend, which takes seconds, and drop what they print meanwhile.

    With `aloud` a progress line says so first: commands do this, workers and the library do not.

    The settings in `~/.keras/keras.json` may be of other work, so those that networks depend on are set here. The
    backend is TensorFlow unless KERAS_BACKEND names another. TensorFlow gets one thread in a worker process, and
    elsewhere as many as this process may use processors, also under a container's quota.

    Raises UserError if Keras does not start, and in a process that was forked after the start: the backend's threads
    are missing there, and it would hang.
    """
    global _started_in
    if _started_in not in (None, os.getpid()):
        raise UserError(
            "this process was forked after Keras had started, whose backend hangs here; start processes with "
            'multiprocessing.get_context("spawn")'
        )
    _started_in = os.getpid()
    machine.require_address_space(ADDRESS_SPACE, "TensorFlow")
    if aloud and "keras" not in sys.modules:
        say("loading Keras and its backend")
    os.environ["KERAS_BACKEND"] = os.environ.get("KERAS_BACKEND") or "tensorflow"
    os.environ["TF_NUM_INTRAOP_THREADS"] = os.environ.get(executors.THREADS) or str(cores())  # weights depend on it
    with _STARTING, _signals_later(), _without_log():
        try:
            import keras

            keras.ops.convert_to_tensor(0)  # looks for devices, once
        except Exception as error:  # a missing package, or a keras.json that Keras refuses
            if machine.lacks_memory(error):
                raise
            settings = f"KERAS_BACKEND={os.environ['KERAS_BACKEND']}, and keras.json in KERAS_HOME or ~/.keras"
            raise UserError(f"Keras does not start: {first_line(error)} (its settings: {settings})") from error
        # TensorFlow warns of functions that are traced again, as networks that replace one another are.
        logging.getLogger("tensorflow").setLevel(logging.ERROR)
        keras.config.set_image_data_format("channels_last")
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")
        keras.config.set_epsilon(1e-7)


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Deliver signals after the block: Python that ends while TensorFlow is half loaded crashes."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    # None: a handler of the program that Python is embedded in, which Python could not set again.
    handlers = {number: handler for number, handler in handlers.items() if handler is not None}
    for number in handlers:
        signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for first in came[:1]:
            signal.raise_signal(first)


@contextlib.contextmanager
def _without_log() -> Iterator[None]:
    """Drop what is written to file descriptor 2: TensorFlow's C++ logs there before it reads its level."""
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # closed: there is nothing to hide
        yield
        return
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.close(null)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
