"""Games on an accelerator: each step searches all positions, writes the labels into a window, and plays a move.

Games are played in lock step by the search of `mcts/device.py`. Each step labels the roots of all searches and the
nodes of their trees with enough visits. The labels stay on the device, in a window of the newest.

Where a search proves who wins, all open labels of its game get that result, discounted by the plies to it, as half of
their value; the other half is the value of their search.

Dimensions: B lanes (games), N rows of the window, A = 7 columns, K steps whose labels are still open, L labelled nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from distill.game.rules import CELLS, COLUMNS, FULL_BOARD, canonical_keys, has_four, landing, winning_cells
from distill.games.settings import OpeningMoves, opening_pairs
from distill.mcts.device import DeviceSearch
from distill.mcts.device_tree import NodeLabels

# None of these is a setting. Whoever changes one, or a computation here, in `on_device.py`, `mcts/device.py` or
# `mcts/device_tree.py`, adds 1 to `run_files.DEVICE_VERSION`.

VALUE_STEPS = 127
"""Steps of a stored value between 0 and 1."""
OPEN_STEPS = CELLS - 1
"""K: a game has no more positions before its last one."""
INNER, LEAST_VISITS = 4, 16
"""Most nodes of a tree that are labelled besides its root; their fewest visits, or half of the simulations."""
NEVER_OVER = 6
"""Stones with which no game is over."""
RANDOM_MOVES = (0.0, 0.1, 0.3)
"""Share of random moves of a game; each game draws one of these."""
END_OF_PROVEN = 0.7
"""Share of the games that end when their result is proven; the others show how such positions are played."""


class Window(NamedTuple):
    """The newest labels. Label number i is in row i mod N."""

    current: Any  # uint32 (N, 2), as `encoding.words`
    mask: Any  # uint32 (N, 2)
    policy: Any  # uint8 (N, A): 255 times the policy to learn; all 0 for a board that is not learned
    value: Any  # int8 (N,): VALUE_STEPS times the value, for the side to move
    written: Any  # int64 (): labels so far


class Lanes(NamedTuple):
    """Games in lock step."""

    current: Any  # uint64 (B,)
    mask: Any  # uint64 (B,)
    random_moves: Any  # float32 (B,): share of the moves that is random
    open: Any  # int32 (B,): the latest positions of this game whose labels wait for a result
    first: Any  # int64 (K,): number of the first root's label 1, 2, ... steps ago
    games: Any  # int32 (): games that have ended


# Positions ------------------------------------------------------------------------------------------------------------


def random_columns(key: Any, legal: Any) -> Any:
    """int32 (B,): a random one of the columns in bool (B, A)."""
    return jnp.where(legal, jax.random.uniform(key, legal.shape, jnp.float32), -1).argmax(1).astype(jnp.int32)


def after(current: Any, mask: Any, column: Any) -> tuple[Any, Any, Any, Any]:
    """Positions after these moves; whether the last stone wins; whether the board is full."""
    stone = jnp.take_along_axis(landing(mask), column[:, None], 1)[:, 0]
    return current ^ mask, mask | stone, has_four(current | stone), (mask | stone) == np.uint64(FULL_BOARD)


def openings(key: Any, count: int, moves: OpeningMoves) -> tuple[Any, Any]:
    """Positions after random moves, none of them over; in half of them a side blocks a win where it can.

    A game that ends on the way gives its position with NEVER_OVER stones. Each game draws one of the pairs of fewest
    and most `moves`.
    """
    pair, length, block, draws = jax.random.split(key, 4)
    table = np.array(opening_pairs(moves), np.int32)
    pairs = jnp.asarray(table)[jax.random.randint(pair, (count,), 0, len(table))]
    left = jax.random.randint(length, (count,), pairs[:, 0], pairs[:, 1] + 1)
    blocks = jax.random.bernoulli(block, shape=(count,))

    def play(number: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
        current, mask, early, over = before
        stones = landing(mask)
        threats = (winning_cells(current ^ mask)[:, None] & stones) != 0
        column = random_columns(jax.random.fold_in(draws, number), stones != 0)
        column = jnp.where(blocks & threats.any(1), threats.argmax(1).astype(jnp.int32), column)
        other, filled, won, full = after(current, mask, column)
        plays = (number < left) & ~over
        over |= plays & (won | full)
        current, mask = jnp.where(plays, other, current), jnp.where(plays, filled, mask)
        kept = number < NEVER_OVER
        early = tuple(jnp.where(kept, new, old) for new, old in zip((current, mask), early, strict=True))
        return current, mask, early, over

    empty = jnp.zeros(count, jnp.uint64)
    start = (empty, empty, (empty, empty), jnp.zeros(count, jnp.bool_))
    current, mask, early, over = jax.lax.fori_loop(0, int(table.max()), play, start)
    return jnp.where(over, early[0], current), jnp.where(over, early[1], mask)


def new_lanes(key: Any, count: int, moves: OpeningMoves) -> Lanes:
    key, shares = jax.random.split(key)
    # Only the `open` latest entries of `first` are used, and `open` is 0, so zeros are safe.
    return Lanes(*openings(key, count, moves), random_shares(shares, count), jnp.zeros(count, jnp.int32),
                 jnp.zeros(OPEN_STEPS, jnp.int64), jnp.int32(0))  # fmt: skip


def random_shares(key: Any, count: int) -> Any:
    """float32 (B,): a share of random moves for each game."""
    return jnp.asarray(RANDOM_MOVES, jnp.float32)[jax.random.randint(key, (count,), 0, len(RANDOM_MOVES))]


def new_window(rows: int) -> Window:
    words, policy = jnp.zeros((rows, 2), jnp.uint32), jnp.zeros((rows, COLUMNS), jnp.uint8)
    return Window(words, jnp.zeros_like(words), policy, jnp.zeros(rows, jnp.int8), jnp.int64(0))


# Play -----------------------------------------------------------------------------------------------------------------


def play_step(
    search: DeviceSearch,
    moves: OpeningMoves,
    window: Window,
    lanes: Lanes,
    weights: Any,
    excluded: Any,
    key: Any,
    simulations: Any,
    noise_fraction: Any,
    improved: Any,
) -> tuple[Window, Lanes]:
    """Search every lane's position, write the labels, play a move.

    Args:
      moves: fewest and most random moves of an opening.
      excluded: uint64 (E,), keys of boards that are not learned.
      simulations, noise_fraction: number of simulations, share of noise in the roots' priors.
      improved: share of the improved policy in the policy to learn; the rest are the shares of the visits.
    """
    noisy, draw, wild, wild_column, ends, fresh, fresh_share = jax.random.split(key, 7)
    count, settings = search.lanes, search.settings
    noise = jax.random.gamma(noisy, settings.dirichlet_alpha, (count, COLUMNS), jnp.float32)
    labels = search(lanes.current, lanes.mask, weights, simulations, noise, noise_fraction)
    first = window.written
    window = write_labels(window, labels, excluded, simulations, improved)

    column, is_random = choose_moves((draw, wild, wild_column), lanes, labels, settings.sampling_plies)
    current, mask, won, full = after(lanes.current, lanes.mask, column)
    proven = labels.proven[:, 0]
    drawn = full & ~won & ~proven  # an unproven last move is a draw
    is_known = proven | drawn
    window = settle(window, lanes, is_known, jnp.where(drawn, 0, labels.value[:, 0]), settings.discount)

    over = won | full | (proven & (jax.random.uniform(ends, (count,), jnp.float32) < END_OF_PROVEN))
    moved = lanes._replace(current=current, mask=mask)
    return window, next_games((fresh, fresh_share), moves, moved, over, is_known | is_random, first)


def write_labels(window: Window, labels: NodeLabels, excluded: Any, simulations: Any, improved: Any) -> Window:
    """Write the roots' labels, then those of other nodes that are worth it; the arguments are those of `play_step`."""
    count, capacity = len(labels.current), len(window.value)
    keys = canonical_keys(labels.current.reshape(-1), labels.mask.reshape(-1), jnp)
    learned = ~jnp.isin(keys, excluded, method="binary_search").reshape(labels.reached.shape)
    is_searched = labels.reached >= jnp.maximum(LEAST_VISITS, simulations // 2)
    inner = (learned & (is_searched | (labels.proven & (labels.reached > 0))))[:, 1:].reshape(-1)
    written = window.written
    inner_number = jnp.where(inner, written + count + jnp.cumsum(inner) - 1, -1)
    number = jnp.concatenate([written + jnp.arange(count), inner_number])
    row = jnp.where(number >= 0, number % capacity, capacity)  # rows beyond the window are dropped

    def rows(values: Any) -> Any:
        return jnp.concatenate([values[:, 0], values[:, 1:].reshape(-1, *values.shape[2:])])

    def words(bits: Any) -> Any:
        return jnp.stack([bits & 0xFFFFFFFF, bits >> 32], axis=-1).astype(jnp.uint32)

    shares = labels.visits / jnp.maximum(labels.visits.sum(-1, keepdims=True), 1)
    target = jnp.rint(255 * (improved * labels.policy + (1 - improved) * shares)).astype(jnp.uint8)
    target = jnp.where(learned[..., None], target, 0)
    value = jnp.rint(VALUE_STEPS * labels.value).astype(jnp.int8)
    return Window(
        window.current.at[row].set(rows(words(labels.current)), mode="drop"),
        window.mask.at[row].set(rows(words(labels.mask)), mode="drop"),
        window.policy.at[row].set(rows(target), mode="drop"),
        window.value.at[row].set(rows(value), mode="drop"),
        written + count + inner.sum(),
    )


def choose_moves(keys: tuple[Any, Any, Any], lanes: Lanes, labels: NodeLabels, sampling_plies: int) -> tuple[Any, Any]:
    """int32 (B,) and bool (B,): the columns to play, and whether a column is random.

    In the first plies they are drawn by the visits of the roots, later they are the labels.
    """
    draw, wild, wild_column = keys
    count, root_visits = len(lanes.mask), labels.visits[:, 0]
    shares = jnp.cumsum(root_visits, 1) / root_visits.sum(1, keepdims=True)
    threshold = jax.random.uniform(draw, (count, 1), jnp.float32)
    sampled = jnp.minimum((shares <= threshold).sum(1), COLUMNS - 1).astype(jnp.int32)
    early = jax.lax.population_count(lanes.mask) < sampling_plies
    is_random = jax.random.uniform(wild, (count,), jnp.float32) < lanes.random_moves
    column = jnp.where(early, sampled, labels.label[:, 0])
    return jnp.where(is_random, random_columns(wild_column, landing(lanes.mask) != 0), column), is_random


def settle(window: Window, lanes: Lanes, is_known: Any, result: Any, discount: float) -> Window:
    """Give open labels the value 0.5 × that of their search + 0.5 × the result of their game, discounted.

    Args:
      lanes: those before the move.
      is_known: bool (B,): games whose result is known.
      result: float32 (B,), for the side to move.
    """
    count, capacity = len(is_known), len(window.value)
    ago = jnp.arange(1, OPEN_STEPS + 1, dtype=jnp.int32)[:, None]  # (K, 1)
    first = lanes.first[:, None] + jnp.arange(count)
    settled = is_known & (ago <= lanes.open) & (window.written - first <= capacity)
    row = jnp.where(settled, first % capacity, capacity).reshape(-1)
    returns = (VALUE_STEPS * result * (-discount) ** ago.astype(jnp.float32)).reshape(-1)
    before = window.value[jnp.minimum(row, capacity - 1)].astype(jnp.float32)
    mixed = jnp.rint(0.5 * before + 0.5 * returns).astype(jnp.int8)
    return window._replace(value=window.value.at[row].set(mixed, mode="drop"))


def next_games(keys: tuple[Any, Any], moves: OpeningMoves, moved: Lanes, over: Any, closed: Any, first: Any) -> Lanes:
    """The lanes of the next step: a new game where one is over.

    Args:
      moved: the lanes with their positions after the move.
      over: bool (B,): games that have ended.
      closed: bool (B,): games whose labels so far no longer wait for a result.
      first: int64 (): number of the first root's label in this step.
    """
    opening, share = keys
    count = len(over)
    current, mask = openings(opening, count, moves)
    return Lanes(
        jnp.where(over, current, moved.current),
        jnp.where(over, mask, moved.mask),
        jnp.where(over, random_shares(share, count), moved.random_moves),
        jnp.where(over | closed, 0, jnp.minimum(moved.open + 1, OPEN_STEPS)),
        jnp.concatenate([first[None], moved.first[:-1]]),
        moved.games + over.sum(dtype=jnp.int32),
    )
