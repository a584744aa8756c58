"""The shapes of the study: each is a published or our own network with one thing changed.

    name                  changed                                                                     parameters
    column-threats        `pillar`, which is also told where a stone would complete four                 182,663
    column-looped         `pillar`, whose three blocks are gone through twice with the same weights      182,087
    column-deep           `pillar` with a fourth block, and a read-out half as wide                      189,831
    column-pooled         `pillar`, whose read-out sees the mean over the columns, and is wider          182,111
    column-shared         `pillar`, whose read-out is one small network asked about each column          182,057
    column-wide           `pillar`, twice as wide                                                        724,615
    flat                  a residual network with nothing tied to the mirror                             189,319
    transformer-columns   `transformer` with seven column tokens in place of CLS                         137,281
    cnn-absolute          `cnn`, whose planes are those of the first and the second player               192,505

`column` is what `pillar` was called when these runs were named.

All but the last three answer a mirrored board with mirrored logits, for any weights.

Dimensions: B batch, H = 6, W = 7, F features of one orientation, D features of a token.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import keras
from keras import layers, ops

from distill import networks
from distill.game.rules import CELLS, COLUMNS, ROWS
from distill.networks import heads, transformer
from distill.networks.pillar import BLOCKS, FEATURES, HIDDEN, line_kernels, mirrored, read_out, swap_halves, trunk
from experiments.study import CANDIDATES, SHAPES, candidates

POOLED_HIDDEN = 811
SHARED_HIDDEN = 884
"""Widths of hidden layers that make up for a read-out that sees fewer features, so that sizes are equal."""


def build(name: str, value_head: bool = False, **arguments: Any) -> keras.Model:
    """`networks.build` that knows the study's shapes and candidates as well."""
    if name in CANDIDATES:
        return candidates.build(name, value_head)
    if name not in SHAPES:
        return networks.build(name, value_head, **arguments)
    if name == "flat":
        return _flat(value_head)
    if name == "transformer-columns":
        return _transformer_columns(value_head)
    if name == "cnn-absolute":
        return _cnn_absolute(value_head)
    return _pillar(name, value_head)


def _pillar(shape: str, value_head: bool) -> keras.Model:
    planes = heads.planes_input()
    features = FEATURES * (2 if shape == "column-wide" else 1)
    seen = planes
    if shape == "column-threats":
        seen = layers.Concatenate(name="planes_and_threats")([planes, Threats(name="threats")(planes)])
    x = trunk(seen, features, BLOCKS + (shape == "column-deep"), repeats=1 + (shape == "column-looped"))
    hidden = HIDDEN // 2 if shape == "column-deep" else HIDDEN * features // FEATURES
    answer = {"column-pooled": _pooled, "column-shared": _shared}.get(shape, partial(_kept_apart, hidden))
    logits, seen = answer(x)
    return heads.network(shape, planes, logits, heads.value_head(seen) if value_head else None)


def _kept_apart(width: int, x: Any) -> tuple[Any, Any]:
    """As in `pillar`: all columns side by side."""
    flatten = layers.Flatten(name="flatten")
    hidden = layers.Dense(width, activation="relu", name="hidden")
    return read_out(hidden, flatten(x), flatten(mirrored(x)))


def _pooled(x: Any) -> tuple[Any, Any]:
    """The mean over the columns: which is which can be told only from what the trunk wrote into the features."""
    pool = layers.GlobalAveragePooling2D(name="pool")
    hidden = layers.Dense(POOLED_HIDDEN, activation="relu", name="hidden")
    return read_out(hidden, pool(x), pool(mirrored(x)))


def _shared(x: Any) -> tuple[Any, Any]:
    """One network for all columns, which sees the column's own features alone; its logit is one number."""
    hidden = layers.Dense(SHARED_HIDDEN, activation="relu", name="hidden")
    seen, seen_mirrored = hidden(x), hidden(swap_halves(x))
    last = layers.Dense(1, name="read_out")
    logits = layers.Add(name="logits_by_column")([last(seen), last(seen_mirrored)])
    pool = layers.GlobalAveragePooling2D(name="value_pool")
    return layers.Reshape((COLUMNS,), name="logits")(logits), pool(layers.Add(name="value_seen")([seen, seen_mirrored]))


@keras.saving.register_keras_serializable(package="distill")
class Threats(layers.Layer):
    """planes (B, 6, 7, 2) → (B, 6, 7, 2): 1 on an empty cell where a stone of that side would complete four.

    The first step to `pillar`; no weights.
    """

    def call(self, planes: Any) -> Any:
        stones = ops.conv(planes, ops.cast(line_kernels(), planes.dtype), padding="same")
        complete = ops.relu(ops.reshape(stones, (-1, ROWS, COLUMNS, 2, stones.shape[-1] // 2)) - 2)
        return ops.max(complete, axis=-1) * (1 - ops.sum(planes, axis=-1, keepdims=True))


def _flat(value_head: bool) -> keras.Model:
    planes = heads.planes_input()
    x = layers.ReLU(name="stem_relu")(_normed(planes, (3, 3), "same", "stem"))
    for number in (1, 2):
        name = f"block{number}"
        y = layers.ReLU(name=f"{name}_relu1")(_normed(x, (3, 3), "same", f"{name}_conv1"))
        y = _normed(y, (3, 3), "same", f"{name}_conv2")
        x = layers.ReLU(name=f"{name}_relu2")(layers.Add(name=f"{name}_add")([x, y]))
    x = layers.ReLU(name="columns_relu")(_normed(x, (ROWS, 1), "valid", "columns"))
    hidden = layers.Dense(32, activation="relu", name="hidden")(layers.Flatten(name="flatten")(x))
    value = heads.value_head(hidden) if value_head else None
    return heads.network("flat", planes, layers.Dense(COLUMNS, name="logits")(hidden), value)


def _normed(x: Any, kernel: tuple[int, int], padding: str, name: str) -> Any:
    x = layers.Conv2D(64, kernel, padding=padding, use_bias=False, name=name)(x)
    return layers.BatchNormalization(momentum=heads.NORM_MOMENTUM, name=f"{name}_norm")(x)


@keras.saving.register_keras_serializable(package="distill")
class ColumnsEmbedding(layers.Layer):
    """tokens int32 (B, 42) → float32 (B, 7 + 42, D): a learned token a column, then the cells at their positions."""

    def build(self, _shape: Any) -> None:
        size = transformer.FEATURES

        def weight(name: str, rows: int) -> Any:
            start = keras.initializers.RandomNormal(stddev=0.02)
            return self.add_weight(name=name, shape=(rows, size), initializer=start)

        self.cells, self.positions = weight("cells", transformer.TOKENS), weight("positions", CELLS)
        self.columns = weight("columns", COLUMNS)

    def call(self, tokens: Any) -> Any:
        one_hot = ops.one_hot(tokens, transformer.TOKENS, dtype=self.compute_dtype)
        cells = ops.matmul(one_hot, self.cells) + self.positions
        columns = ops.broadcast_to(self.columns, (ops.shape(tokens)[0], COLUMNS, transformer.FEATURES))
        return ops.concatenate([columns, cells], axis=1)


def _transformer_columns(value_head: bool) -> keras.Model:
    tokens = heads.tokens_input()
    x = ColumnsEmbedding(name="embedding")(tokens)
    sizes = transformer.ATTENTION_HEADS, transformer.FEED_FORWARD, transformer.DROPOUT
    for number in range(1, transformer.LAYERS + 1):
        x = transformer.encoder_layer(x, f"layer{number}", *sizes)
    columns = x[:, :COLUMNS, :]
    logits = layers.Reshape((COLUMNS,), name="logits")(layers.Dense(1, name="read_out")(columns))
    value = heads.value_head(layers.GlobalAveragePooling1D(name="value_pool")(columns)) if value_head else None
    return heads.network("transformer-columns", tokens, logits, value)


@keras.saving.register_keras_serializable(package="distill")
class AbsoluteColours(layers.Layer):
    """planes (B, 6, 7, 2) of the side to move and the opponent → those of the first and the second player.

    The second player is to move where the number of stones is odd, so each board keeps one form. No weights.
    """

    def call(self, planes: Any) -> Any:
        second = ops.mod(ops.sum(planes, axis=(1, 2, 3), keepdims=True), 2) > 0
        return ops.where(second, planes[..., ::-1], planes)


def _cnn_absolute(value_head: bool) -> keras.Model:
    colours = AbsoluteColours(name="colours")

    def wired(layer: Any, *inputs: Any, **options: Any) -> Any:
        return layer(*map(colours, inputs) if layer.name == "conv1" else inputs, **options)

    def copied(layer: Any) -> Any:
        return layer.__class__.from_config(layer.get_config())

    core = keras.models.clone_model(networks.build("cnn", value_head), clone_function=copied, call_function=wired)
    return heads.network("cnn-absolute", core.inputs[0], core.output["logits"], core.output.get("value"))
