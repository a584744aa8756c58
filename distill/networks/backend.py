"""Start Keras and its backend with this project's settings, and say which arithmetic is fast on this machine."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from distill.common import UserError, cores, executors, first_line, say
from distill.common.boundary import SIGNALS

# TensorFlow reads this when it starts. Its C++ log holds nothing a user can act on: failures arrive as exceptions.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# On a GPU, take memory as needed: worker processes share it.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

Precision = Literal["float32", "bfloat16"]
"""The arithmetic that a network's layers use."""
PROCESSOR = Path("/proc/cpuinfo")
BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}
"""Flags of processors that multiply bfloat16; the last one is ARM's."""

_STARTING = threading.Lock()
"""Two threads that redirect file descriptor 2 at once could leave it redirected."""
_started_in: int | None = None
"""Process id in which the backend started; a forked child has another one."""


def backend_name() -> str:
    """Keras' backend: the one that KERAS_BACKEND names, or else TensorFlow."""
    return os.environ.get("KERAS_BACKEND") or "tensorflow"


def start_backend(*, aloud: bool = False) -> None:
    """Import Keras and its backend, which takes seconds, and drop what they print meanwhile.

    With `aloud` a progress line says so first: commands do this, workers and the library do not.

    The settings in `~/.keras/keras.json` may be of other work, so those that networks depend on are set here. The
    backend is TensorFlow unless KERAS_BACKEND names another. TensorFlow gets one thread in a worker process, and
    elsewhere as many as this process may use processors, also under a container's quota.

    Raises UserError if Keras does not start, and as `refuse_fork` does.
    """
    global _started_in
    refuse_fork()
    _started_in = os.getpid()
    if aloud and "keras" not in sys.modules:
        say("loading Keras and its backend")
    os.environ["KERAS_BACKEND"] = backend_name()
    os.environ["TF_NUM_INTRAOP_THREADS"] = os.environ.get(executors.THREADS) or str(cores())  # weights depend on it
    with _STARTING, _signals_later(), _without_log():
        try:
            import keras

            keras.ops.convert_to_tensor(0)  # looks for devices, once
        except Exception as error:  # a missing package, or a keras.json that Keras refuses
            settings = f"KERAS_BACKEND={os.environ['KERAS_BACKEND']}, and keras.json in KERAS_HOME or ~/.keras"
            raise UserError(f"Keras does not start: {first_line(error)} (its settings: {settings})") from error
        # TensorFlow warns of functions that are traced again, as networks that replace one another are.
        logging.getLogger("tensorflow").setLevel(logging.ERROR)
        keras.config.set_image_data_format("channels_last")
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")
        keras.config.set_epsilon(1e-7)


def refuse_fork() -> None:
    """Raise UserError in a process that was forked after the backend had started: without its threads it would hang."""
    if _started_in not in (None, os.getpid()):
        raise UserError(
            "this process was forked after Keras had started, whose backend hangs here; start processes with "
            'multiprocessing.get_context("spawn")'
        )


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Deliver signals after the block: Python that ends while TensorFlow is half loaded crashes."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    came: list[int] = []
    handlers = {number: signal.signal(number, lambda number, _frame: came.append(number)) for number in SIGNALS}
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
    print(end="", file=sys.stderr, flush=True)
    kept = os.dup(2)
    try:
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def fast_precision() -> Precision:
    """bfloat16 where the processor multiplies it; float32 elsewhere, and where the processor is unknown.

    With such a processor, convolutions in bfloat16 take at most half the time; without, fourteen times as long.
    """
    flags = PROCESSOR.read_text(encoding="utf-8").split() if PROCESSOR.exists() else []  # on Linux
    return "float32" if BFLOAT16.isdisjoint(flags) else "bfloat16"


def on_cpu() -> bool:
    """Whether TensorFlow computes on the CPU, as the fast kernels need; accelerators round float32 products (TF32)."""
    import keras

    return keras.backend.backend() == "tensorflow" and not on_accelerator()


def on_accelerator() -> bool:
    """Whether the backend computes on anything but the CPU."""
    import keras

    return not all(device.startswith("cpu") for device in keras.distribution.list_devices())


def dtype_policy(precision: Precision) -> str:
    """Keras' name for this arithmetic with weights in float32."""
    return "mixed_bfloat16" if precision == "bfloat16" else "float32"
