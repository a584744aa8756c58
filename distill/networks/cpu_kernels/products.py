"""A matrix product that several kernels share."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


def transposed_product(x: Any, y: Any) -> Any:
    """(C, N), (C, F) → (N, F). TensorFlow's own flag spares its gradient a transposed copy."""
    if keras.backend.backend() != "tensorflow":
        return ops.matmul(ops.transpose(x), y)
    import tensorflow as tf

    return tf.matmul(x, tf.cast(y, x.dtype), transpose_a=True)
