"""Requests that TensorFlow Serving replays when it loads a SavedModel, so that the first real one is not the slow one.

Out: `assets.extra/tf_serving_warmup_requests` in the folder of the model's version, a TFRecord file of serialised
`tensorflow.serving.PredictionLog`. Those messages belong to the package tensorflow-serving-api; the few fields that
a prediction needs are all strings or messages, so they are written here by hand and the package is not needed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PLACE = Path("assets.extra") / "tf_serving_warmup_requests"
BATCHES = (1, 32)
"""Boards in each request: the kernels for one board are not those for many."""

# Field numbers of tensorflow_serving/apis: prediction_log.proto, predict.proto, model.proto.
_LOG_PREDICT, _PREDICT_REQUEST = 6, 1
_REQUEST_MODEL, _REQUEST_INPUTS = 1, 2
_MODEL_NAME, _MODEL_SIGNATURE = 1, 3
_ENTRY_KEY, _ENTRY_VALUE = 1, 2


def write(version: Path, name: str, signature: str, boards: NDArray[np.int8]) -> None:
    """Write the requests for a model.

    Args:
      version: the SavedModel's folder, such as `saved_model/1`.
      name: what the requests call the model; the server does not look at it.
      signature: the signature they call, whose one argument is `board`.
      boards: int8 (B, 6, 7), at least as many as the largest request has.
    """
    import tensorflow as tf

    file = version / PLACE
    file.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(file)) as records:
        for batch in BATCHES:
            tensor = tf.make_tensor_proto(boards[:batch]).SerializeToString()
            model = _field(_MODEL_NAME, name.encode()) + _field(_MODEL_SIGNATURE, signature.encode())
            inputs = _field(_ENTRY_KEY, b"board") + _field(_ENTRY_VALUE, tensor)
            request = _field(_REQUEST_MODEL, model) + _field(_REQUEST_INPUTS, inputs)
            records.write(_field(_LOG_PREDICT, _field(_PREDICT_REQUEST, request)))


def _field(number: int, content: bytes) -> bytes:
    """One field of a protocol buffer that holds text or a message: its number and wire type 2, a length, the bytes."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits a byte, lowest first, the eighth bit set where more follow."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
