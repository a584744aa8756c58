"""All games of a player that moves first: its moves are fixed, and the opponent's replies are enumerated.

Positions that several move orders reach are merged. Two sets of replies:

    best    every best reply by the exact solver. A line ends where the player's move gives the win away.
    all     every legal reply, by the rules alone. If no such game is lost or drawn, the player weakly solves the game:
            it wins from the empty board against any opponent, and the enumeration is the proof.

Dimensions: B positions, R replies, A = 7 columns. A layer holds the distinct positions with the same number of stones
in which the player moves, as sorted uint64 keys (`rules.from_keys`). Stones are even there, since the player moves
first.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.common import DataError, Progress, UserError, cores, executors, write_atomically
from distill.game.rules import (
    CELLS,
    COLUMNS,
    EMPTY,
    FULL_BOARD,
    Position,
    after_moves,
    canonicalise,
    from_keys,
    legal_mask,
)
from distill.players.names import identity, make
from distill.players.player import Player, checked_choices, seeds_for
from distill.players.solver import score_boards

Keys: TypeAlias = NDArray[np.uint64]
Choose: TypeAlias = Callable[[Keys, Keys], NDArray[np.integer[Any]]]
"""(current, mask), uint64 (B,) → the player's columns (B,), a function of the position alone."""
Layer: TypeAlias = dict[str, int]
"""Counts for one number of `stones`: `positions`, `won` (by the move), `losing_replies` and `draws` (replies)."""

BATCH = 1024
"""Boards a network evaluates at once; the last batch is padded with the empty board."""
NEAR = 2e-3
"""Margin between two moves below which rounding may order them differently in a mirrored board: it moved small
margins by 2e-5 at most."""
CHECKED = 64
"""In one of so many pairs both boards are evaluated, which finds players that are not symmetric."""
CHUNK = 1 << 16
"""Positions between two writes of a layer's moves: a killed run loses some ten seconds."""
EXPAND = 1 << 18
"""Positions that a thread expands at a time: about 200 MB."""

# The player's moves ---------------------------------------------------------------------------------------------------


def chooser(name: str, workers: int, *, symmetric: bool = False) -> Choose:
    """The player of that name as a function of positions, spread over processes; the same for any number of them.

    With `symmetric`, a board and its mirror image are evaluated once: the move in one, mirrored, is the move in the
    other. Both are evaluated where the two best moves are nearly equal (NEAR), and in one of CHECKED pairs, where
    the function raises UserError if the moves do not mirror each other. Raises UserError for a player that cannot be
    loaded.
    """
    known = tuple(identity(name))
    _player(name, known)

    def ask(keys: Keys) -> list[NDArray[Any]]:
        """Moves (B,) and margins (B,)."""
        tasks = [(name, known, keys[start : start + BATCH]) for start in range(0, len(keys), BATCH)]
        results = executors.results(executors.shared(workers if len(tasks) > 1 else 1), _moves, tasks)
        return [np.concatenate(parts) for parts in zip(*results, strict=True)]

    def choose(current: Keys, mask: Keys) -> NDArray[np.integer[Any]]:
        if not symmetric:
            return ask(current + mask)[0]
        one_current, one_mask, mirrored = canonicalise(current, mask)
        keys, of_pair = np.unique(one_current + one_mask, return_inverse=True)
        moves, margins = (result[of_pair.reshape(-1)] for result in ask(keys))
        moves[mirrored] = COLUMNS - 1 - moves[mirrored]
        near = mirrored & (margins < NEAR)
        again = np.union1d(np.flatnonzero(near), np.flatnonzero(mirrored)[::CHECKED])
        if len(again):
            checked, _ = ask((current + mask)[again])
            if (checked != moves[again])[~near[again]].any():
                raise UserError(f"{name}: its move in a mirrored board is not the mirrored move; omit --symmetric")
            moves[again] = checked
        return moves

    return choose


@functools.cache
def _player(name: str, known: tuple[str, ...]) -> Player:
    """The player, one a process: a network takes longer to load than to evaluate a batch.

    Raises UserError in a worker process that starts after the player's files have changed.
    """
    if tuple(identity(name)) != known:
        raise UserError(f"{name}: its files changed after the walk began; start the command again")
    return make(name, fast=True)


def _moves(name: str, known: tuple[str, ...], keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The moves in at most BATCH positions, always evaluated in batches of this size, and their margins.

    A margin is log(p1 / p2) of the two most probable moves; 0 for a player without a policy.
    """
    current, mask = from_keys(np.pad(keys, (0, BATCH - len(keys))))
    choices = checked_choices(_player(name, known), current, mask, seeds_for(0, current + mask))
    if choices.policy is None:
        return choices.moves[: len(keys)], np.zeros(len(keys))
    second, first = np.sort(choices.policy, axis=1)[: len(keys), -2:].T
    with np.errstate(divide="ignore"):  # one legal move
        return choices.moves[: len(keys)], np.log(first / second)


# One move and its replies ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Replies:
    """The positions after the player's moves in B positions.

    Attributes:
      won: bool (B,), the move wins the game.
      parent: int64 (R,), the position each reply belongs to.
      reply: int8 (R,), the opponent's column.
      key: uint64 (R,), the position after the reply, where the player moves again.
      lost: bool (R,), the reply wins for the opponent.
      drawn: bool (R,), the reply fills the board without a line of four.
    """

    won: NDArray[np.bool_]
    parent: NDArray[np.int64]
    reply: NDArray[np.int8]
    key: Keys
    lost: NDArray[np.bool_]
    drawn: NDArray[np.bool_]


def replies(keys: Keys, moves: NDArray[np.integer[Any]], allowed: NDArray[np.bool_] | None = None) -> Replies:
    """The replies to the player's moves; `allowed`, bool (B, 7), restricts them, None takes every legal one."""
    current, mask, won = after_moves(*from_keys(keys), moves)
    legal = legal_mask(mask) & ~won[:, None]
    parent, column = np.nonzero(legal if allowed is None else legal & allowed)
    current, mask, lost = after_moves(current[parent], mask[parent], column)
    return Replies(
        won=won,
        parent=parent,
        reply=column.astype(np.int8),
        key=current + mask,
        lost=lost,
        drawn=~lost & (mask == FULL_BOARD),
    )


# Best replies ---------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class BestWalk:
    """The walk against best replies.

    Attributes:
      positions: positions by stones: of the start, then two more each.
      given_away: moves that give the win away, each as a line that ends with it, in columns 1–7.
    """

    positions: list[int] = field(default_factory=list)
    given_away: list[str] = field(default_factory=list)


def best_replies(choose: Choose, workers: int, start: Position = EMPTY) -> Iterator[BestWalk]:
    """Walk every game against every best reply, from a position that the player to move can win.

    Yields the walk so far after every layer. Raises UserError where the solver is not installed.
    """
    walk = BestWalk()
    layer, lines = np.array([start.current + start.mask], np.uint64), [""]
    while len(layer):
        walk.positions.append(len(layer))
        moves = choose(*from_keys(layer))
        current, mask, won = after_moves(*from_keys(layer), moves)
        scores = np.full((len(layer), COLUMNS), -CELLS, np.int8)
        scores[~won] = score_boards(current[~won], mask[~won], workers)
        # The opponent's view: a score of 0 or more means that the win is gone.
        best = scores.max(1)
        given_away = ~won & (best >= 0)
        walk.given_away += [f"{lines[i]}{moves[i] + 1}" for i in np.flatnonzero(given_away)]
        expanded = replies(layer, moves, (scores == best[:, None]) & ~given_away[:, None])
        # Positions that several lines reach are walked once.
        layer, first = np.unique(expanded.key, return_index=True)
        steps = zip(expanded.parent[first].tolist(), expanded.reply[first].tolist(), strict=True)
        lines = [f"{lines[parent]}{moves[parent] + 1}{reply + 1}" for parent, reply in steps]
        yield walk


# All replies ----------------------------------------------------------------------------------------------------------


class Enumeration:
    """The tree of all legal replies in a folder, with a file of keys and a file of moves for each layer.

    Args:
      folder: receives `keys-SS.npy`, uint64 (B,), sorted, and `moves-SS.npy`, int8 (B,), −1 where not yet chosen,
        for SS stones. The caller holds its lock. A killed run resumes from the last chunk of moves.
      choose: the player.
    """

    def __init__(self, folder: Path, choose: Choose) -> None:
        self.folder, self.choose = folder, choose

    def keys(self, stones: int) -> Keys:
        """A layer's positions; empty for one that no game reaches."""
        path = self.folder / f"keys-{stones:02}.npy"
        return _load(path, np.uint64) if path.exists() else np.empty(0, np.uint64)

    def moves(self, stones: int, count: int) -> Any:
        """The player's moves in the `count` positions of a layer, as a file in memory: −1 where not yet chosen."""
        path = self.folder / f"moves-{stones:02}.npy"
        if not path.exists():
            _save(path, np.full(count, -1, np.int8))
        _load(path, np.int8, count)  # mapped for writing, a truncated file would be filled up
        return np.lib.format.open_memmap(path, mode="r+")

    def run(self, most_stones: int = CELLS) -> Iterator[Layer]:
        """Enumerate layer by layer, up to `most_stones`; yields each layer once its replies are known."""
        if not len(self.keys(0)):
            _save(self.folder / "keys-00.npy", np.zeros(1, np.uint64))
        for stones in range(0, most_stones + 1, 2):
            keys = self.keys(stones)
            if not len(keys):
                return
            self._choose_moves(stones, keys)
            yield self._expand(stones, keys)

    def lines(self, last: int) -> tuple[list[str], list[str]]:
        """The lines of moves, in columns 1–7, that are lost, and those that draw, up to the layer of `last` stones.

        Each reply that wins for the opponent or draws ends one line, also where several lines reach its position.
        """
        # From the last layer to the first: what follows each position of a line, and whether the line draws.
        ends: dict[int, list[tuple[str, bool]]] = {}
        for stones in range(last, -1, -2):
            keys = self.keys(stones)
            moves = self.moves(stones, len(keys))
            reached = np.array([*ends], np.uint64)
            before: dict[int, list[tuple[str, bool]]] = {}
            for start in range(0, len(keys), EXPAND):
                part = slice(start, start + EXPAND)
                expanded = replies(keys[part], moves[part])
                over = expanded.lost | expanded.drawn
                for i in np.flatnonzero(over | np.isin(expanded.key, reached)):
                    rest = [("", bool(expanded.drawn[i]))] if over[i] else ends.pop(int(expanded.key[i]), [])
                    parent = start + expanded.parent[i]
                    two = f"{moves[parent] + 1}{expanded.reply[i] + 1}"
                    before.setdefault(int(keys[parent]), []).extend((two + end, drawn) for end, drawn in rest)
            ends = before
        whole = sorted(ends.get(0, []))  # from the empty board
        return [line for line, drawn in whole if not drawn], [line for line, drawn in whole if drawn]

    def _choose_moves(self, stones: int, keys: Keys) -> None:
        """Let the player choose where the layer's file lacks moves."""
        moves = self.moves(stones, len(keys))
        # Boards next to their mirror images, for a player that evaluates one of the two.
        current, mask, _ = canonicalise(*from_keys(keys))
        order = np.argsort(current + mask)
        chunks = [order[start : start + CHUNK] for start in range(0, len(keys), CHUNK)]
        todo = [chunk for chunk in chunks if (moves[chunk] < 0).any()]
        done = len(keys) - sum(map(len, todo))
        with Progress(len(keys), "positions", done) as progress:
            for chunk in todo:
                moves[chunk] = self.choose(*from_keys(keys[chunk]))
                moves.flush()  # a killed run keeps it
                progress.advance(len(chunk), f"{stones} stones")

    def _expand(self, stones: int, keys: Keys) -> Layer:
        """Write the next layer and count what ended in this one."""
        moves = self.moves(stones, len(keys))

        def expand(part: slice) -> tuple[Keys, list[int]]:
            expanded = replies(keys[part], moves[part])
            open_keys = expanded.key[~(expanded.lost | expanded.drawn)]
            return _distinct(open_keys), [int(ended.sum()) for ended in (expanded.won, expanded.lost, expanded.drawn)]

        # On all cores: NumPy releases the interpreter lock.
        with ThreadPoolExecutor(cores()) as threads:
            parts = [*threads.map(expand, (slice(start, start + EXPAND) for start in range(0, len(keys), EXPAND)))]
        # Two positions may lead to the same one: each layer holds it once.
        following = _distinct(np.concatenate([part for part, _ in parts]))
        if len(following):
            _save(self.folder / f"keys-{stones + 2:02}.npy", following)
        won, lost, drawn = np.sum([counts for _, counts in parts], axis=0).tolist()
        return {"stones": stones, "positions": len(keys), "won": won, "losing_replies": lost, "draws": drawn}


def _distinct(keys: Keys) -> Keys:
    """The keys sorted, each once; several times as fast as np.unique on tens of millions."""
    ordered = np.sort(keys)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _load(path: Path, kind: type, count: int | None = None) -> Any:
    """The array in a layer's file. Raises DataError for another one than `_save` wrote."""
    with suppress(ValueError, EOFError):
        array = np.load(path)
        if array.dtype == kind and array.ndim == 1 and count in (None, len(array)):
            return array
    raise DataError(f"{path}: damaged; restore it from a copy, or start from scratch with --restart")


def _save(path: Path, array: NDArray[Any]) -> None:
    content = io.BytesIO()
    np.save(content, array)
    write_atomically(path, content.getvalue())
