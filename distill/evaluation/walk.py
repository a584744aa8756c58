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

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.common import DataError, Progress, UserError, executors, write_atomically
from distill.game import rules
from distill.game.rules import CELLS, COLUMNS, after_moves, canonical_keys, canonicalise, from_keys, legal_mask
from distill.players.names import identity, loaded
from distill.players.player import checked_choices, seeds_for
from distill.players.solver import score_boards

Keys: TypeAlias = NDArray[np.uint64]
Choose: TypeAlias = Callable[[Keys, Keys], NDArray[np.integer[Any]]]
"""(current, mask), uint64 (B,) → the player's columns (B,), a function of the position alone."""
Layer: TypeAlias = dict[str, int]
"""Counts for one number of `stones`: `positions`, `won` (by the move), `losing_replies` and `draws` (replies)."""

MOVES = {stones: f"moves-{stones:02}.npy" for stones in range(0, CELLS + 1, 2)}
"""The file with the player's moves in each layer of an enumeration, by number of stones."""
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
"""Positions that are expanded at a time: about 200 MB."""

# The player's moves ---------------------------------------------------------------------------------------------------


def chooser(name: str, workers: int, *, symmetric: bool = False) -> Choose:
    """The player of that name as a function of positions, spread over processes; the same for any number of them.

    With `symmetric`, a board and its mirror image are evaluated once: the move in one, mirrored, is the move in the
    other. Both are evaluated where the two best moves are nearly equal (NEAR), and in one of CHECKED pairs, where
    the function raises UserError if the moves do not mirror each other. Raises UserError for a player that cannot be
    loaded.
    """
    known = tuple(identity(name))
    loaded(name, known)

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


def _moves(name: str, known: tuple[str, ...], keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The moves in at most BATCH positions, always evaluated in batches of this size, and their margins.

    A margin is log(p1 / p2) of the two most probable moves; 0 for a player without a policy.
    """
    current, mask = from_keys(np.pad(keys, (0, BATCH - len(keys))))
    choices = checked_choices(loaded(name, known), current, mask, seeds_for(0, current + mask))
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
        drawn=~lost & (mask == rules.FULL_BOARD),
    )


# Best replies ---------------------------------------------------------------------------------------------------------


def best_replies(choose: Choose, workers: int, start: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Walk every game against every best reply, from a position, by its key, which the player to move can win.

    Yields for each layer its number of positions, and the moves in it that give the win away, each as a line that ends
    with the move, in columns 1–7. Raises UserError where the solver is not installed.
    """
    layer, lines = np.array([start], np.uint64), [""]
    while len(layer):
        moves = choose(*from_keys(layer))
        current, mask, won = after_moves(*from_keys(layer), moves)
        scores = np.full((len(layer), COLUMNS), -CELLS, np.int8)
        scores[~won] = score_boards(current[~won], mask[~won], workers)
        # The opponent's view: a score of 0 or more means that the win is gone.
        best = scores.max(1)
        given_away = ~won & (best >= 0)
        yield len(layer), [f"{lines[i]}{moves[i] + 1}" for i in np.flatnonzero(given_away)]
        expanded = replies(layer, moves, (scores == best[:, None]) & ~given_away[:, None])
        # Positions that several lines reach are walked once.
        layer, first = np.unique(expanded.key, return_index=True)
        steps = zip(expanded.parent[first].tolist(), expanded.reply[first].tolist(), strict=True)
        lines = [f"{lines[parent]}{moves[parent] + 1}{reply + 1}" for parent, reply in steps]


# All replies ----------------------------------------------------------------------------------------------------------


def all_replies(folder: Path, choose: Choose, most_stones: int = CELLS) -> Iterator[tuple[Layer, Keys]]:
    """Enumerate every game against every legal reply, up to `most_stones`.

    Yields each layer's counts, and the positions of the next layer: none after the last one.

    Args:
      folder: receives the files MOVES, int8 (B,): the moves in the layer's positions, −1 where not yet chosen. The
        caller holds its lock. A killed walk resumes from the last chunk of moves.
    """
    keys = np.zeros(1, np.uint64)
    for stones, file in MOVES.items():
        if not len(keys) or stones > most_stones:
            return
        count, moves = len(keys), _layer_moves(folder / file, keys, choose)
        keys, (won, lost, drawn) = _next_layer(keys, moves)
        yield {"stones": stones, "positions": count, "won": won, "losing_replies": lost, "draws": drawn}, keys


def _layer_moves(path: Path, keys: Keys, choose: Choose) -> NDArray[np.int8]:
    """The player's moves in a layer's positions: those in the file, and then those that it lacks."""
    try:
        moves = np.load(path) if path.exists() else np.full(len(keys), -1, np.int8)
        moves = moves.astype(np.int8, casting="no").reshape(keys.shape)
    except (ValueError, TypeError, EOFError) as error:
        damaged = f"{path}: damaged; restore it from a copy, or start from scratch with --restart"
        raise DataError(damaged) from error
    # Boards next to their mirror images, for a player that evaluates one of the two.
    order = np.argsort(canonical_keys(*from_keys(keys)))
    missing = order[moves[order] < 0]
    with Progress(len(keys), "positions", len(keys) - len(missing)) as progress:
        for start in range(0, len(missing), CHUNK):
            chunk = missing[start : start + CHUNK]
            moves[chunk] = choose(*from_keys(keys[chunk]))
            content = io.BytesIO()
            np.save(content, moves)
            write_atomically(path, content.getvalue())
            progress.advance(len(chunk), path.stem)
    return moves


def _next_layer(keys: Keys, moves: NDArray[np.int8]) -> tuple[Keys, list[int]]:
    """The distinct positions after all replies that do not end the game; how many moves won, replies won and drew."""
    following, ended = [], np.zeros(3, np.int64)
    for start in range(0, len(keys), EXPAND):
        part = slice(start, start + EXPAND)
        expanded = replies(keys[part], moves[part])
        following.append(np.unique(expanded.key[~(expanded.lost | expanded.drawn)]))
        ended += [expanded.won.sum(), expanded.lost.sum(), expanded.drawn.sum()]
    return np.unique(np.concatenate(following)), ended.tolist()


def not_won(folder: Path, layers: Mapping[int, Keys]) -> tuple[list[str], list[str]]:
    """The games that are lost and those that are drawn, as moves in columns 1–7.

    Each reply that wins for the opponent or draws ends one game, also where several lines reach its position.

    Args:
      folder, layers: of `all_replies`: the moves, and the positions by their number of stones.
    """
    # From the last layer to the first: what follows each position of a line, and whether the line draws.
    ends: dict[int, list[tuple[str, bool]]] = {}
    for stones, keys in sorted(layers.items(), reverse=True):
        moves, reached = np.load(folder / MOVES[stones]), np.array([*ends], np.uint64)
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
    games = sorted(ends.get(0, []))  # from the empty board
    return [line for line, drawn in games if not drawn], [line for line, drawn in games if drawn]
