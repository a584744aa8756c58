"""The arithmetic that a network's layers use, and which kind this machine multiplies fastest."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

Precision = Literal["float32", "bfloat16"]

PROCESSOR = Path("/proc/cpuinfo")
BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}
"""Flags of processors that multiply bfloat16; the last one is ARM's."""


def fast_precision() -> Precision:
    """bfloat16 where the processor multiplies it; float32 elsewhere, and where the processor is unknown.

    With such a processor, convolutions in bfloat16 take at most half the time; without, fourteen times as long.
    """
    try:
        flags = PROCESSOR.read_text(encoding="utf-8").split()
    except OSError:  # not Linux
        return "float32"
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


@contextlib.contextmanager
def default_precision(precision: Precision) -> Iterator[None]:
    """Layers made inside compute in this precision; their weights are float32."""
    from keras import config

    before = config.dtype_policy()
    config.set_dtype_policy(dtype_policy(precision))
    try:
        yield
    finally:
        config.set_dtype_policy(before)
