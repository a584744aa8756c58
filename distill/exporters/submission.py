"""A network of distill in NumPy alone: an agent for Kaggle's ConnectX, and inference for closed machines and browsers.

    from submission import predict
    predict(boards)  # int8 (B, 6, 7): row 0 on top, 1 the side to move, -1 the opponent, 0 empty

returns "logits" (B, 7) with -1e9 on full columns, "policy" (B, 7), "move" (B,) with -1 on a full board, and, where the
network has that head, "value" (B,) in [-1, 1] for the side to move. `agent` is what Kaggle calls; TACTICS is yours to
set.

`distill.export --formats kaggle` copies these lines and puts the network below them.

Dimensions: B batch, H = 6, W = 7, C channels in, F channels out, T tokens, D features.
"""

from __future__ import annotations

import base64
import functools
import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

TACTICS = False
"""Whether `agent` wins in one move, or else blocks, before it evaluates the network."""
CENTRE_FIRST = np.array([3, 2, 4, 1, 5, 0, 6])
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


@functools.cache
def weights() -> Mapping[str, Any]:
    """Name → float32 array. The bytes are stored by significance, which compresses better."""
    stored = np.frombuffer(zlib.decompress(base64.b64decode(WEIGHTS)), np.uint8)
    values = stored.reshape(4, -1).T.copy().view("<f4")[:, 0]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in SHAPES.values()])
    arrays = np.split(values, ends[:-1])
    return {name: array.reshape(SHAPES[name]) for name, array in zip(SHAPES, arrays, strict=True)}


def layers(stem: str) -> int:
    """How many numbered parts with this name the network has, such as block1 and block2."""
    return len({re.split("[_/]", name)[0] for name in weights() if name.startswith(stem)})


# Layers ---------------------------------------------------------------------------------------------------------------


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def dense(x: Any, name: str) -> Any:
    return x @ weights()[f"{name}/kernel"] + weights()[f"{name}/bias"]


def padded(x: Any, height: int, width: int) -> Any:
    """(B, H, W, C) with zeros around each board, so that a kernel of this size gives (B, H, W, F)."""
    return np.pad(x, ((0, 0), (height // 2,) * 2, (width // 2,) * 2, (0, 0)))


def conv(x: Any, kernel: Any) -> Any:
    """(B, H, W, C) → (B, H', W', F) by a kernel (h, w, C, F): one product of all windows with the kernel."""
    height, width, channels, features = kernel.shape
    windows = np.lib.stride_tricks.sliding_window_view(x, (height, width), (1, 2))
    rows = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, height * width * channels)
    return (rows @ kernel.reshape(-1, features)).reshape(*windows.shape[:3], features)


def layer_norm(x: Any, name: str) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-3)
    return scaled * weights()[f"{name}/gamma"] + weights()[f"{name}/beta"]


# Networks: boards → logits (B, 7), and the features that the value head reads ----------------------------------------


def cnn(boards: Any) -> Any:
    """Depthwise-separable convolutions with batch norm, then the mean over the board."""
    w, x = weights(), planes(boards)
    for stage in range(1, layers("conv") + 1):
        depthwise = w[f"conv{stage}/depthwise_kernel"]  # (h, w, C, 1)
        height, width = depthwise.shape[:2]
        around = padded(x, height, width)
        offsets = [(down, right) for down in range(height) for right in range(width)]
        x = sum(around[:, d : d + 6, r : r + 7] * depthwise[d, r, :, 0] for d, r in offsets)
        x = x @ w[f"conv{stage}/pointwise_kernel"][0, 0]
        scale = w[f"norm{stage}/gamma"] / np.sqrt(w[f"norm{stage}/moving_variance"] + 1e-3)
        x = relu((x - w[f"norm{stage}/moving_mean"]) * scale + w[f"norm{stage}/beta"])
    features = x.mean((1, 2))
    return dense(relu(dense(features, "hidden")), "logits"), features


def transformer(boards: Any) -> Any:
    """A token a cell after CLS, pre-norm layers, the logits from CLS."""
    w = weights()
    cells = w["embedding/cells"][np.where(boards < 0, 2, boards).reshape(-1, 42)]
    cls = np.broadcast_to(w["embedding/cls"], (len(boards), 1, cells.shape[-1]))
    x = np.concatenate([cls, cells], 1) + w["embedding/positions"]
    for number in range(1, layers("layer") + 1):
        x = x + attention(layer_norm(x, f"layer{number}_attention_norm"), f"layer{number}_attention")
        y = relu(dense(layer_norm(x, f"layer{number}_norm"), f"layer{number}_expand"))
        x = x + dense(y, f"layer{number}_contract")
    return dense(x[:, 0], "logits"), x[:, 0]


def attention(x: Any, name: str) -> Any:
    """(B, T, D) → (B, T, D), by heads of K features each."""
    w = weights()
    query, key, value = (
        np.einsum("btd,dhk->bhtk", x, w[f"{name}/{part}/kernel"], optimize=True) + w[f"{name}/{part}/bias"][:, None]
        for part in ("query", "key", "value")
    )
    scores = softmax(query @ key.swapaxes(2, 3) / np.float32(np.sqrt(query.shape[-1])))
    read = (scores @ value).swapaxes(1, 2)  # (B, T, heads, K)
    out = w[f"{name}/attention_output/kernel"]
    return read.reshape(*x.shape[:2], -1) @ out.reshape(-1, out.shape[-1]) + w[f"{name}/attention_output/bias"]


def pillar(boards: Any) -> Any:
    """Residual blocks of mirrored convolutions, one vector per column, and a read-out of the board and its mirror."""
    x = planes(boards) if ARCH == "pillar-plain" else lines(planes(boards))
    x = relu(mirror_conv(padded(x, 3, 3), "stem", (3, 3), paired=False))
    for block in range(1, layers("block") + 1):
        y = relu(mirror_conv(padded(x, 3, 3), f"block{block}_conv1", (3, 3)))
        x = relu(x + mirror_conv(padded(y, 3, 3), f"block{block}_conv2", (3, 3)))
    x = relu(mirror_conv(x, "columns", (6, 1)))
    straight, turned = (relu(dense(board.reshape(len(x), -1), "hidden")) for board in (x, swap_halves(x[:, :, ::-1])))
    return dense(straight, "read_out") + dense(turned, "read_out")[:, ::-1], straight + turned


def mirror_conv(x: Any, name: str, size: tuple[int, int], paired: bool = True) -> Any:
    """A convolution whose second half of features are those of the first, looking the other way."""
    kernel, bias = weights()[f"{name}/kernel"], weights()[f"{name}/bias"]
    kernel = kernel.reshape(*size, x.shape[-1], -1)
    mirrored = kernel[:, ::-1]
    if paired:
        mirrored = swap_halves(mirrored.swapaxes(2, 3)).swapaxes(2, 3)
    return conv(x, np.concatenate([kernel, mirrored], -1)) + np.concatenate([bias, bias])


def swap_halves(x: Any) -> Any:
    """The two halves of the last axis in the other order."""
    return np.roll(x, x.shape[-1] // 2, -1)


def lines(planes: Any) -> Any:
    """planes (B, H, W, 2) → (B, H, W, 9): seven more that follow from the rules (`networks/pillar.py`)."""
    stones = planes.sum(-1, keepdims=True)
    empty = 1 - stones
    playable = empty * np.concatenate([stones[:, 1:], np.ones_like(stones[:, :1])], 1)
    second = stones.sum((1, 2), keepdims=True) % 2
    followed = (np.arange(6, 0, -1, dtype=np.float32)[:, None, None] + second) % 2
    sums = conv(padded(planes, 7, 7), weights()["lines/kernels"]) + weights()["lines/off_board"]
    sums = sums.reshape(*planes.shape, -1)
    three = relu(sums - 2).max(-1) * empty
    two = np.clip(sums - 1, 0, 1).sum(-1) * empty / 4
    everywhere = np.ones_like(stones)
    return np.concatenate([planes, playable, followed * everywhere, second * everywhere, three, two], -1)


def planes(boards: Any) -> Any:
    """float32 (B, H, W, 2): the stones of the side to move, and those of the opponent."""
    return np.stack([boards == 1, boards == -1], -1).astype(np.float32)


NETWORKS = {"cnn": cnn, "transformer": transformer, "pillar-plain": pillar, "pillar": pillar, "pillar-large": pillar}


# Playing --------------------------------------------------------------------------------------------------------------


def predict(boards: Any) -> dict[str, Any]:
    """The network's outputs on boards (B, 6, 7), by name."""
    boards = np.asarray(boards, np.int8)
    logits, features = NETWORKS[ARCH](boards)
    legal = boards[:, 0] == 0
    logits = np.where(legal, logits, np.float32(-1e9))
    best = CENTRE_FIRST[logits[:, CENTRE_FIRST].argmax(1)]
    move = np.where(legal.any(1), best, -1).astype(np.int32)
    outputs = {"logits": logits, "policy": softmax(logits) * legal, "move": move}
    if "value_unit/kernel" in weights():
        outputs["value"] = np.tanh(dense(relu(dense(features, "value_hidden")), "value_unit"))[:, 0]
    return outputs


def win_or_block(board: Any) -> int | None:
    """The column that wins at once, or else one that the opponent would win in; None if there is neither."""
    for side in (1, -1):
        for column in CENTRE_FIRST[board[0, CENTRE_FIRST] == 0]:
            stones = board == side
            stones[np.flatnonzero(board[:, column] == 0)[-1], column] = True
            if has_four(stones):
                return int(column)
    return None


def has_four(stones: Any) -> bool:
    """Whether four stones of bool (6, 7) are in a row."""
    apart = np.pad(stones, 3)  # so that no line goes on at the other edge
    shifted = [[np.roll(apart, (n * down, n * right), (0, 1)) for n in range(4)] for down, right in DIRECTIONS]
    return bool(np.all(shifted, axis=1).any())


def agent(observation: Any, configuration: Any = None) -> int:
    """The column for an observation of Kaggle's ConnectX. Kaggle calls the last function in the file: this one."""
    marks = np.array(observation["board"]).reshape(6, 7)
    board = np.where(marks == 0, 0, np.where(marks == observation["mark"], 1, -1))
    column = win_or_block(board) if TACTICS else None
    return int(predict(board[None])["move"][0]) if column is None else column


# The network ----------------------------------------------------------------------------------------------------------
ARCH, WEIGHTS = "", ""
SHAPES: dict[str, tuple[int, ...]] = {}
