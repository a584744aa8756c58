"""What is won among enumerated positions, and a winning strategy close to a network's games.

    proof = prove(games.keys, most_stones=40)    # the moves that win against every reply

Dimensions: B positions of a batch, N positions of a layer, A = 7 columns, R = 7 replies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from distill.game.rules import COLUMNS
from experiments.large.positions import (
    DRAWN,
    LOST,
    NONE,
    NOTHING,
    START,
    Answers,
    Games,
    Keys,
    Layers,
    Moves,
    distinct,
    enumerate_games,
    in_batches,
    is_in,
    replies,
    replies_to,
    replies_to_all,
    size,
    united,
    without,
)

PROMISE, WINDOW = 0.5, 4
"""The lowest value after any reply to a move that promises a win; how many stones apart moves are tried together."""


@jax.jit  # type: ignore[untyped-decorator]
def proven_moves(won: Any | None, keys: Any) -> tuple[Any]:
    """uint8 (B,): bit c is set where the move in column c wins, or each reply leads to a position in `won`.

    `won` is uint64, sorted, filled up with NONE. None: the last layer of a cut-off enumeration, where every reply that
    goes on counts as won.
    """
    after = replies(keys)
    if won is None:
        fine = (after < LOST) | (after == NONE)
    else:
        place = jnp.searchsorted(won, after.reshape(-1))
        fine = (won[jnp.minimum(place, len(won) - 1)] == after.reshape(-1)).reshape(after.shape)
    bits = np.array([1 << column for column in range(COLUMNS)], np.uint8)
    return ((fine.all(2) * bits).sum(1).astype(jnp.uint8),)


def prove(layers: Layers, most_stones: int, before: tuple[Layers, Moves] = ({}, {})) -> Moves:
    """Find all proven moves, from the last layer to the first.

    Args:
      before: some of the positions and their proven moves; of these, only positions without any are looked at again.
    """
    width = 1 << max(len(keys) for keys in layers.values()).bit_length()
    width = max(width, 1 << 22) if width > 1 << 18 else width  # one compilation for all rounds of a whole tree
    proven: Moves = {}
    won: Any = None
    for stones in range(most_stones, -1, -2):
        keys = layers[stones]
        moves = np.zeros(len(keys), np.uint8)
        if stones in before[0]:
            moves[np.searchsorted(keys, before[0][stones])] = before[1][stones]
        missing = np.flatnonzero(moves == 0)
        parts = in_batches(functools.partial(proven_moves, won), keys[missing])
        moves[missing] = np.concatenate([np.empty(0, np.uint8), *(part for (part,) in parts)])
        proven[stones] = moves
        with jax.enable_x64(True):
            kept = keys[proven[stones] != 0]
            won = jax.device_put(np.pad(kept, (0, width - len(kept)), constant_values=NONE))
    return proven


def prove_start(
    layers: Layers, games: Games, most_stones: int, answers: Answers, most: int, say: Callable[..., None]
) -> tuple[Layers, Moves]:
    """The positions, with those added that a proof of the empty board needs, and their proven moves.

    Where no move is proven, the games after the other moves that promise a win are enumerated: first late in the game,
    where few positions follow, and then earlier, until the empty board is won, nothing is left, or there are `most`
    positions.
    """
    proof = prove(layers, most_stones)
    tried: Layers = {}
    lost = {n: keys[proof[n][np.searchsorted(layers[n], keys)] == 0] for n, keys in games.keys.items()}
    while True:
        left = {n: without(keys, tried.get(n, NOTHING)) for n, keys in lost.items() if n < most_stones - 1}
        latest = max((n for n, keys in left.items() if len(keys)), default=None)
        say("proved", positions=size(layers), start_is_won=bool(proof[0][0]), not_won=size(lost), tried=size(tried),
            next=latest)  # fmt: skip
        if proof[0][0] or latest is None or size(layers) > most:
            return layers, proof
        late = {n: keys for n, keys in left.items() if n > latest - WINDOW}
        starts = {n + 2: promising(keys, answers) for n, keys in late.items()}
        more = united(layers, enumerate_games(answers, starts, most_stones, layers).keys)
        tried = united(tried, late)
        layers, proof = more, prove(more, most_stones, (layers, proof))
        lost = {n: keys[proof[n] == 0] for n, keys in layers.items()}


def promising(keys: Keys, answers: Answers) -> Keys:
    """Positions after every move that promises a win, and every reply: none wins or draws at once, none looks bad."""
    reached = []
    for (after,) in in_batches(replies_to_all, keys):
        goes_on = after < LOST
        positions = distinct([after[goes_on]])
        values = np.where(after == NONE, 1, -1).astype(np.float32)
        values[goes_on] = answers.values(positions)[np.searchsorted(positions, after[goes_on])]
        promises = values.min(2) > PROMISE
        reached.append(distinct([after[goes_on & promises[:, :, None]]]))
    return distinct(reached)


def strategy(
    layers: Layers, proof: Moves, games: Games, answers: Answers, most_stones: int
) -> tuple[Layers, Layers, Moves]:
    """A winning strategy close to the network's games.

    It always takes the network's favourite among the proven moves. Where the favourite is not proven, the games after
    it are enumerated, because it may win as well, and the proof is sought again.

    Returns all positions; those of the network's games and of the strategy, which is none without a proof of the empty
    board; and the moves that are proven inside the latter.
    """
    while True:
        inside = games.keys
        if proof[0][0]:
            own = enumerate_games(answers, START, most_stones, within=(layers, proof))
            inside = united(inside, own.keys)
        proven = prove(inside, most_stones)
        favourites = {n: answers(n, keys).argmax(1).astype(np.uint8) for n, keys in inside.items()}
        wrong = {n: (proven[n] != 0) & ((proven[n] >> favourites[n]) & 1 == 0) for n in inside}
        starts = {n + 2: after_moves(keys[wrong[n]], favourites[n][wrong[n]]) for n, keys in inside.items()}
        more = enumerate_games(answers, starts, most_stones, layers)
        if not proof[0][0] or not size(more.keys):
            return layers, inside, proven
        again = {n: np.where(np.isin(keys, inside[n][wrong[n]]), 0, proof[n]) for n, keys in layers.items()}
        before, layers = layers, united(layers, more.keys)
        proof = prove(layers, most_stones, (before, again))


def after_moves(keys: Keys, moves: NDArray[np.uint8]) -> Keys:
    """Positions after one move of each and every reply, without the moves to which a reply wins or draws at once."""
    parts = [after for (after,) in in_batches(replies_to, keys, moves)]
    after = np.concatenate([np.empty((0, COLUMNS), np.uint64), *parts])
    after = after[~np.isin(after, (LOST, DRAWN)).any(1)]
    return distinct([after[after < LOST]])


def margins(logits: NDArray[np.float32], moves: NDArray[np.uint8]) -> NDArray[np.float32]:
    """float32 (N,): the logit of the best of these moves less that of the best other one; above 0, it is played."""
    included = is_in(moves)
    best, other = (np.where(mask, logits, -1e9).max(1) for mask in (included, ~included))
    result: NDArray[np.float32] = best - other
    return result
