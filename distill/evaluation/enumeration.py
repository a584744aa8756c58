"""The tree of all games of a player that moves first against every legal reply, by the rules alone.

If no game in it is lost or drawn, the player weakly solves the game: it wins from the empty board against any opponent,
and the enumeration is the proof.

Dimensions: B positions, R replies, A = 7 columns. A layer holds the distinct positions with the same number of stones
in which the player moves, as sorted uint64 keys (`rules.from_keys`). Stones are even there, since the player moves
first.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from distill.common import Progress, cores, write_atomically
from distill.game.rules import CELLS, COLUMNS, FULL_BOARD, from_keys, has_four, landing, legal_mask

Keys: TypeAlias = NDArray[np.uint64]
Moves: TypeAlias = NDArray[np.int8]
Choose: TypeAlias = Callable[[Keys, Keys], NDArray[np.integer[Any]]]
"""(current, mask), uint64 (B,) → the player's columns (B,), a function of the position alone."""
Layer: TypeAlias = dict[str, int]
"""Counts for one number of `stones`: `positions`, `won` (by the move), `losing_replies` and `draws` (replies)."""
Result = TypeVar("Result")

CHUNK = 1 << 16
"""Positions between two writes of a layer's moves: a killed run loses some ten seconds."""
EXPAND = 1 << 18
"""Positions that a thread expands at a time: about 200 MB."""

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

    @property
    def open(self) -> NDArray[np.bool_]:
        """bool (R,), True where the game is not over."""
        return ~(self.lost | self.drawn)


def after(keys: Keys, moves: NDArray[np.integer[Any]]) -> tuple[Keys, Keys, NDArray[np.bool_]]:
    """`current` and `mask`, uint64 (B,), after a move in each position, and bool (B,), whether it wins."""
    current, mask = from_keys(keys)
    stone = landing(mask)[np.arange(len(keys)), moves]
    if not stone.all():
        raise ValueError(f"a move into a full column, in {int((stone == 0).sum())} of {len(keys)} positions")
    return current ^ mask, mask | stone, has_four(current | stone)


def replies(keys: Keys, moves: NDArray[np.integer[Any]], allowed: NDArray[np.bool_] | None = None) -> Replies:
    """The replies to the player's moves; `allowed`, bool (B, 7), restricts them, None takes every legal one."""
    current, mask, won = after(keys, moves)
    legal = legal_mask(mask) & ~won[:, None]
    parent, column = np.nonzero(legal if allowed is None else legal & allowed)
    stone = landing(mask[parent])[np.arange(len(parent)), column]
    filled = mask[parent] | stone
    lost = has_four(current[parent] | stone)
    return Replies(
        won=won,
        parent=parent,
        reply=column.astype(np.int8),
        key=(current[parent] ^ mask[parent]) + filled,
        lost=lost,
        drawn=~lost & (filled == FULL_BOARD),
    )


# The tree ----------------------------------------------------------------------------------------------------


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
        return np.load(path) if path.exists() else np.empty(0, np.uint64)

    def moves(self, stones: int) -> Any:
        """The player's moves in a layer, as a file in memory: −1 where not yet chosen."""
        path = self.folder / f"moves-{stones:02}.npy"
        if not path.exists():
            _save(path, np.full(len(self.keys(stones)), -1, np.int8))
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

    def _choose_moves(self, stones: int, keys: Keys) -> None:
        """Let the player choose where the layer's file lacks moves."""
        moves = self.moves(stones)
        chunks = [slice(start, start + CHUNK) for start in range(0, len(keys), CHUNK)]
        todo = [chunk for chunk in chunks if (moves[chunk] < 0).any()]
        done = len(keys) - sum(len(keys[chunk]) for chunk in todo)
        with Progress(len(keys), "positions", done) as progress:
            for chunk in todo:
                moves[chunk] = self.choose(*from_keys(keys[chunk]))
                moves.flush()  # a killed run keeps it
                progress.advance(len(keys[chunk]), f"{stones} stones")

    def _expand(self, stones: int, keys: Keys) -> Layer:
        """Write the next layer and count what ended in this one."""
        moves = self.moves(stones)

        def expand(part: slice) -> tuple[Keys, NDArray[np.int64]]:
            found = replies(keys[part], moves[part])
            return _distinct(found.key[found.open]), np.array([found.won.sum(), found.lost.sum(), found.drawn.sum()])

        # Two positions may lead to the same one: each layer holds it once.
        parts = list(_in_parts(len(keys), expand))
        following = _distinct(np.concatenate([part for part, _ in parts]))
        if len(following):
            _save(self.folder / f"keys-{stones + 2:02}.npy", following)
        won, lost, drawn = np.sum([counts for _, counts in parts], axis=0).tolist()
        ended = {"won": won, "losing_replies": lost, "draws": drawn}
        return {"stones": stones, "positions": len(keys)} | ended

    # Backing up -------------------------------------------------------------------------------------------------------

    def back_up(self, last: int) -> Iterator[tuple[int, Keys, Keys]]:
        """Back up results through the finished layers, from `last` stones to none.

        Yields for each layer its stones; the keys of positions that are not won, where some reply leads to a loss or a
        draw; and those of them that are blunders: another move has every reply won inside the tree. In an
        enumeration that was cut off, positions beyond its last layer count as won.
        """
        won_keys: Keys | None = None  # None: beyond the last layer
        for stones in range(last, -1, -2):
            keys, moves = self.keys(stones), self.moves(stones)

            def result(part: slice, keys: Keys = keys, moves: Moves = moves, known: Keys | None = won_keys) -> Any:
                return _all_won(keys[part], moves[part], known)

            won = np.concatenate(list(_in_parts(len(keys), result)))
            failed = keys[~won]
            yield stones, failed, failed[self._another_wins(failed, moves[~won], won_keys)]
            won_keys = keys[won]

    def _another_wins(self, keys: Keys, moves: Moves, won_keys: Keys | None) -> NDArray[np.bool_]:
        """bool (B,): whether a move that the player did not choose has every reply won."""
        legal = legal_mask(from_keys(keys)[1])
        found = np.zeros(len(keys), np.bool_)
        for column in range(COLUMNS):
            here = np.flatnonzero(legal[:, column] & (moves != column))
            found[here] |= _all_won(keys[here], np.full(len(here), column), won_keys)
        return found


def _all_won(keys: Keys, moves: NDArray[np.integer[Any]], won_keys: Keys | None) -> NDArray[np.bool_]:
    """bool (B,): whether the move wins, or every reply leads to a position in `won_keys`, sorted; None holds all."""
    found = replies(keys, moves)
    fine = found.open if won_keys is None else found.open & _contains(won_keys, found.key)
    result = np.ones(len(keys), np.bool_)
    result[found.parent[~fine]] = False
    return result


def _contains(keys: Keys, wanted: Keys) -> NDArray[np.bool_]:
    """bool (B,): which of the wanted keys are among `keys`, sorted."""
    if not len(keys):
        return np.zeros(len(wanted), np.bool_)
    return keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted


def _in_parts(count: int, function: Callable[[slice], Result]) -> Iterator[Result]:
    """The function of each part of `count` positions, in order, on all cores: NumPy releases the interpreter lock."""
    parts = [slice(start, start + EXPAND) for start in range(0, count, EXPAND)]
    with ThreadPoolExecutor(cores()) as threads:
        yield from threads.map(function, parts)


def _distinct(keys: Keys) -> Keys:
    """The keys sorted, each once; several times as fast as np.unique on tens of millions."""
    ordered = np.sort(keys)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _save(path: Path, array: NDArray[Any]) -> None:
    content = io.BytesIO()
    np.save(content, array)
    write_atomically(path, content.getvalue())
