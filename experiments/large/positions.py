"""Positions by the million on an accelerator: a network's answers, and its games against every reply.

A position is its key, `current + mask` (`rules.from_keys`), of a board or its mirror image, which count as one. Layers
hold those in which the first player moves, by their number of stones.

    answers = Answers(folder, evaluate)                       # what a network makes of positions; kept in the folder
    games = enumerate_games(answers, START, most_stones=40)   # its games against every legal reply

Dimensions: B positions of a batch, N positions of a layer, A = 7 columns, R = 7 replies.
"""

from __future__ import annotations

import io
import math
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from distill.common import write_atomically
from distill.game.rules import COLUMNS, FULL_BOARD, canonical_keys, from_keys, has_four, landing

Keys = NDArray[np.uint64]
Layers = dict[int, Keys]
"""Keys of positions, sorted, by their number of stones."""
Moves = dict[int, NDArray[np.uint8]]
"""A set of moves for each position of a layer, uint8 (N,): bit c for column c."""

NONE, DRAWN, LOST = (np.uint64(2**64 - number) for number in (1, 2, 3))
"""In place of the key of a position: no such reply; it fills the board; it wins, or the move is illegal."""
NOTHING: Keys = np.empty(0, np.uint64)
START: Layers = {0: np.zeros(1, np.uint64)}
"""The empty board."""

BATCH, CPU_BATCH = 1 << 15, 1 << 10
"""Positions that an accelerator or a CPU computes at once."""
AHEAD = 4
"""Batches that are computed while the results of others are copied."""
PART = 1 << 18
"""Positions whose answers one file holds: a killed run loses at most these."""


# Rules on the device --------------------------------------------------------------------------------------------------


def replies(keys: Any) -> Any:
    """uint64 (B, A, R): keys of the positions after each move and each reply, or NONE, DRAWN, LOST.

    All are NONE after a move that wins. All are LOST for a full column.
    """
    current, mask = from_keys(keys)
    stone = landing(mask)  # (B, A)
    wins = has_four(current[:, None] | stone)
    filled = mask[:, None] | stone
    opponent = (current ^ mask)[:, None, None]
    reply = landing(filled.reshape(-1)).reshape(-1, COLUMNS, COLUMNS)
    full = filled[:, :, None] | reply
    key = canonical_keys(opponent ^ filled[:, :, None], full, jnp)
    key = jnp.where(full == np.uint64(FULL_BOARD), DRAWN, key)
    key = jnp.where(has_four(opponent | reply), LOST, key)
    key = jnp.where((reply == 0) | wins[:, :, None], NONE, key)
    return jnp.where((stone == 0)[:, :, None], LOST, key)


@jax.jit  # type: ignore[untyped-decorator]
def replies_to(keys: Any, moves: Any) -> tuple[Any]:
    """uint64 (B, R): those after one move of each position."""
    return (jnp.take_along_axis(replies(keys), moves[:, None, None].astype(jnp.int32), 1)[:, 0],)


@jax.jit  # type: ignore[untyped-decorator]
def replies_to_all(keys: Any) -> tuple[Any]:
    return (replies(keys),)


def in_batches(function: Callable[..., Any], *arrays: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Results of a function of arrays (BATCH,) for any number of rows; AHEAD batches are computed meanwhile."""
    batch = CPU_BATCH if jax.default_backend() == "cpu" else BATCH
    running: deque[tuple[int, Any]] = deque()

    def copied() -> tuple[NDArray[Any], ...]:
        rows, results = running.popleft()
        return tuple([np.asarray(result)[:rows] for result in results])

    for start in range(0, len(arrays[0]), batch):
        parts = [array[start : start + batch] for array in arrays]
        rows = len(parts[0])
        with jax.enable_x64(True):
            running.append((rows, function(*(np.pad(part, (0, batch - rows)) for part in parts))))
        if len(running) > AHEAD:
            yield copied()
    while running:
        yield copied()


# Sets of positions ----------------------------------------------------------------------------------------------------


def distinct(parts: Sequence[Keys]) -> Keys:
    """The keys sorted, each once."""
    keys = np.sort(np.concatenate([NOTHING, *parts]))
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def without(keys: Keys, others: Keys) -> Keys:
    """Those of the sorted keys that the sorted others lack."""
    if not len(others):
        return keys
    return keys[others[np.minimum(np.searchsorted(others, keys), len(others) - 1)] != keys]


def united(one: Layers, other: Layers) -> Layers:
    """The positions of both."""
    return {n: distinct([one.get(n, NOTHING), other.get(n, NOTHING)]) for n in sorted({*one, *other})}


def size(layers: Layers) -> int:
    """Positions in all layers."""
    return sum(map(len, layers.values()))


# The network's games --------------------------------------------------------------------------------------------------


class Answers:
    """A network's logits of positions, evaluated once and kept in a folder, which an interrupted round reads again.

    Args:
      evaluate: keys uint64 (BATCH,) → logits float32 (BATCH, A), hardly any for full columns, and values (BATCH,).
      quick: the answers of the network's file in 8 bits, which is asked first.
      trust: the network is not asked where the favourite of `quick` is so many logits ahead of any other move.
    """

    def __init__(
        self,
        folder: Path,
        evaluate: Callable[[Any], tuple[Any, Any]],
        quick: Answers | None = None,
        trust: float = math.inf,
    ) -> None:
        self.folder, self.evaluate, self.quick, self.trust = folder, evaluate, quick, trust
        folder.mkdir(parents=True, exist_ok=True)
        files = sorted(folder.glob("*.npz"))
        self.number, self.known = len(files), dict[int, tuple[Keys, NDArray[np.float32]]]()
        for stones in {int(file.name[:2]) for file in files}:
            stored = [np.load(file) for file in files if int(file.name[:2]) == stones]
            self._add(stones, [part["keys"] for part in stored], [part["logits"] for part in stored])

    def __call__(self, stones: int, keys: Keys) -> NDArray[np.float32]:
        """float32 (N, A) of a layer's sorted positions."""
        known, _ = self.known.get(stones, (NOTHING, None))
        missing = without(keys, known)
        parts = [missing[start : start + PART] for start in range(0, len(missing), PART)]
        if parts:
            self._add(stones, parts, [self._evaluated(stones, part) for part in parts])
        known, logits = self.known.get(stones, (NOTHING, np.empty((0, COLUMNS), np.float32)))
        return logits if len(known) == len(keys) else logits[np.searchsorted(known, keys)]

    def values(self, keys: Keys) -> NDArray[np.float32]:
        """float32 (N,) of positions, for the side to move; not kept."""
        parts = in_batches((self.quick or self).evaluate, keys)
        return np.concatenate([np.empty(0, np.float32), *(value for _, value in parts)])

    def hand_over(self, folder: Path, unsure: Keys, trust: float) -> None:
        """Write a new folder with the answers that count for the network of the next round, too.

        Their favourite is `trust` logits ahead of any other move, and their positions are none of `unsure` (sorted).
        """
        partial = folder.with_name(f".{folder.name}")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for stones, (keys, logits) in self.known.items():
            stays = is_ahead(logits, trust) & np.isin(keys, without(keys, unsure))
            np.savez(partial / f"{stones:02}-00000.npz", keys=keys[stays], logits=logits[stays])
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)

    def changed(self, most: int) -> tuple[int, int]:
        """The size of a random sample of the known positions, and in how many of them the favourite is another now."""
        random, different, sizes = np.random.default_rng(0), 0, {n: len(keys) for n, (keys, _) in self.known.items()}
        sample = random.permutation(sum(sizes.values()))[:most]
        starts = np.cumsum([0, *sizes.values()])
        for start, (keys, logits) in zip(starts, self.known.values(), strict=False):
            rows = sample[(sample >= start) & (sample < start + len(keys))] - start
            now = [part.argmax(1) for part, _ in in_batches(self.evaluate, keys[rows])]
            different += int((np.concatenate([np.empty(0, int), *now]) != logits[rows].argmax(1)).sum())
        return len(sample), different

    def _evaluated(self, stones: int, keys: Keys) -> NDArray[np.float32]:
        logits = np.empty((len(keys), COLUMNS), np.float32)
        asked = np.arange(len(keys))
        if self.quick:
            logits[:] = self.quick(stones, keys)
            asked = np.flatnonzero(~is_ahead(logits, self.trust))
        logits[asked] = np.concatenate([logits[:0], *(part for part, _ in in_batches(self.evaluate, keys[asked]))])
        content = io.BytesIO()
        np.savez(content, keys=keys, logits=logits)
        write_atomically(self.folder / f"{stones:02}-{self.number:05}.npz", content.getvalue())
        self.number += 1
        return logits

    def _add(self, stones: int, keys: Sequence[Keys], logits: Sequence[NDArray[np.float32]]) -> None:
        if stones in self.known:
            keys, logits = [self.known[stones][0], *keys], [self.known[stones][1], *logits]
        joined, values = np.concatenate(keys), np.concatenate(logits)
        if (joined[1:] < joined[:-1]).any():
            order = np.argsort(joined)
            joined, values = joined[order], values[order]
        self.known[stones] = joined, values


SAFE = 0.002
"""Logits by which moves differ safely: some sixty times what the order of sums changes between runtimes."""


class Games(NamedTuple):
    """A network's games against every reply: the positions, the replies that win for the opponent, those that draw."""

    keys: Layers
    losing: int
    draws: int


def enumerate_games(
    answers: Answers,
    starts: Layers,
    most_stones: int,
    known: Layers | None = None,
    within: tuple[Layers, Moves] | None = None,
) -> Games:
    """All games of the network from these positions, with every move that is at most SAFE below its favourite.

    Args:
      known: positions from which the games are not followed.
      within: layers and sets of moves, to which the network's choice is restricted.
    """
    keys: Layers = {}
    pending: list[Keys] = []
    losing = draws = 0
    for stones in range(0, most_stones + 1, 2):
        layer = without(distinct([*pending, starts.get(stones, NOTHING)]), (known or {}).get(stones, NOTHING))
        logits = answers(stones, layer)
        if within:
            allowed = within[1][stones][np.searchsorted(within[0][stones], layer)]
            logits = np.where(is_in(allowed), logits, -np.inf)
        pending = []
        rows, moves = np.nonzero(logits >= logits.max(1, keepdims=True) - SAFE)
        for (after,) in in_batches(replies_to, layer[rows], moves.astype(np.uint8)):
            losing += int((after == LOST).sum())
            draws += int((after == DRAWN).sum())
            pending.append(distinct([after[after < LOST]]))
        keys[stones] = layer
    return Games(keys, losing, draws)


def is_ahead(logits: NDArray[np.float32], by: float) -> NDArray[np.bool_]:
    """bool (N,): whether the highest logit is so far above any other; also where one move is legal."""
    second, first = np.partition(logits, COLUMNS - 2, axis=1)[:, -2:].T
    ahead: NDArray[np.bool_] = first - second >= by
    return ahead


def is_in(moves: Any) -> Any:
    """bool (N, A) of sets of columns as bits, uint8 (N,)."""
    return (moves[:, None] >> np.arange(COLUMNS, dtype=np.uint8)) & 1 == 1
