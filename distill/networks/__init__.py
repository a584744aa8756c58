"""A network: the shapes, their heads and mask, the forms that train faster, loading and asking a saved one.

A network is a functional Keras 3 model of `keras.ops` alone, so any backend trains it:

    planes float32 (B, 6, 7, C) or tokens int32 (B, 42)  →  {"logits": (B, 7)[, "value": (B,)]}

The logits are raw; `heads.played` puts the encoding before a network and the legal mask after it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from distill.common import UserError, cores, first_line, machine, say

if TYPE_CHECKING:
    import keras

# Before TensorFlow starts. What its C++ logs, errors such as "oneDNN supports DT_BOOL only on ..." among it, is no news
# to the user: what it cannot do comes as an exception. Another level that is set already stays.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

Arch = Literal["cnn", "transformer", "pillar", "pillar-lines", "mk4", "resnet"]
ARCHS: tuple[Arch, ...] = get_args(Arch)
FORMER: Mapping[str, Arch] = {"column": "pillar"}
"""Names that networks had, and have now. Files keep the former one, identities of runs too: hashes depend on them."""
Precision = Literal["float32", "bfloat16"]
Builder: TypeAlias = "Callable[[str, bool, Precision], keras.Model]"
"""Makes a network by its name, with a value head or without: `build`, or what an experiment has in its place."""


def build(arch: str, value_head: bool = False, precision: Precision = "float32") -> keras.Model:
    """A fresh network of this shape; `resnet` has a value head in any case.

    Weights are float32 whatever the `precision` of the arithmetic, and are drawn from Keras' global seed
    (`keras.utils.set_random_seed`). Raises ValueError for an unknown arch.
    """
    arch = FORMER.get(arch, arch)
    if arch not in ARCHS:
        raise ValueError(f"arch {arch!r} is none of {', '.join(ARCHS)}")
    module, *variant = arch.split("-")
    with arithmetic(precision):
        built: keras.Model = importlib.import_module(f"distill.networks.{module}").build(value_head, *variant)
    return built


def arch_of(core: keras.Model) -> str:
    """The arch of a network."""
    return FORMER.get(core.name, core.name)


def in_identity(arch: str) -> str:
    """An arch as identities of runs name it."""
    return next((former for former, now in FORMER.items() if now == arch), arch)


PROCESSOR = Path("/proc/cpuinfo")
BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}
"""What processors that multiply bfloat16 say of themselves, the last one those of ARM."""


def quick_precision() -> Precision:
    """bfloat16 where the processor has it; elsewhere, and where that cannot be told, float32.

    Convolutions in bfloat16 take half the time or less on the one kind, and fourteen times as long on the other.
    """
    try:
        flags = PROCESSOR.read_text(encoding="utf-8").split()
    except OSError:  # not Linux
        return "float32"
    return "float32" if BFLOAT16.isdisjoint(flags) else "bfloat16"


def on_cpu() -> bool:
    """Whether Keras calculates on the processor: accelerators round the factors of products in float32 (TF32)."""
    import keras

    if keras.backend.backend() == "torch":  # which tells Keras no devices, and does not round them unasked
        return True
    return all(device.startswith("cpu") for device in keras.distribution.list_devices())


@contextlib.contextmanager
def arithmetic(precision: Precision) -> Iterator[None]:
    """Layers made inside calculate so; their weights are float32 in any case."""
    from keras import config

    before = config.dtype_policy()
    config.set_dtype_policy("mixed_bfloat16" if precision == "bfloat16" else "float32")
    try:
        yield
    finally:
        config.set_dtype_policy(before)


MALLOC = {-3: 1 << 25, -1: (1 << 31) - 1, -2: 1 << 26}
"""By their numbers in `malloc.h`, bytes: from which size on an array is fetched from the system by itself, how much
free memory is given back, and how much is fetched at once."""

ADDRESS_SPACE = 4 << 30
"""Bytes that a process with TensorFlow takes of its address space: with 3.5 GB a training of the `cnn` crashes."""

_STARTING = threading.Lock()
"""Two threads that swap file descriptor 2 side by side could leave it swapped."""
_started_in: int | None = None
"""The process that started the backend: this one, or one that was forked since."""


def start_backend(*, aloud: bool = False) -> None:
    """Import Keras and its backend, which takes seconds; what they print of themselves meanwhile is dropped.

    With `aloud` a line says so first: commands do, their workers and the library do not.

    Keras uses scikit-learn and Matplotlib for wrappers and pictures of its own, which nothing here asks for, and does
    without them where they are not installed; that they look so while it loads saves a third of the time.

    Networks depend on Keras' own settings, which `~/.keras/keras.json` may hold from other work: they are set here. The
    backend is TensorFlow unless KERAS_BACKEND names another. TensorFlow takes as many threads as there are processors
    for this process, also where a container's quota sets their number.

    Raises UserError where Keras does not start, and in a process that was forked after the start: the backend's threads
    are not in it, and it would hang.
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
    _keep_freed_memory()
    os.environ["KERAS_BACKEND"] = os.environ.get("KERAS_BACKEND") or "tensorflow"
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(cores()))
    if sys.warnoptions:  # PYTHONWARNINGS=error, or python -W, would end a run at the first warning of a library
        warnings.filterwarnings("ignore", module=r"(keras|tensorflow)\b")
    with _STARTING, _without_log():
        try:
            with machine.without("TF_XLA_FLAGS"):  # they change how TensorFlow calculates; an unknown one ends it
                with _as_if_not_installed("sklearn", "matplotlib"):
                    import keras

                keras.ops.convert_to_tensor(0)  # looks for devices, once
        except Exception as error:  # a missing package, a keras.json that Keras refuses, variables of TensorFlow
            if machine.lacks_memory(error):
                raise
            found = f"{machine.variables('KERAS_')}, and keras.json in KERAS_HOME or ~/.keras"
            raise UserError(f"Keras does not start: {first_line(error)} (its settings: {found})") from None
        keras.config.set_image_data_format("channels_last")
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")
        keras.config.set_epsilon(1e-7)


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
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _keep_freed_memory() -> None:
    """Where the C library is glibc: let what one training step frees serve the next.

    As it comes, glibc fetches large arrays from the system and gives them back each time, which costs a training on a
    CPU up to an eighth of its time (`benchmarks/memory.py`).
    """
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    for parameter, size in MALLOC.items():
        mallopt(parameter, size)


@contextlib.contextmanager
def _as_if_not_installed(*packages: str) -> Iterator[None]:
    """Importing one of these fails inside, unless it was imported before."""
    modules: dict[str, Any] = sys.modules
    hidden = [package for package in packages if package not in modules]
    modules.update(dict.fromkeys(hidden))  # None is Python's own sign for "not to be found"
    try:
        yield
    finally:
        for package in hidden:
            modules.pop(package, None)
