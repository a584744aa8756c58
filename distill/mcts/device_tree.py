"""The trees of a search on an accelerator (`device.py`): their arrays, and the labels that are read from them.

Dimensions: B lanes (trees), N nodes of a tree, A = 7 columns, L labelled nodes of a tree, M = B · L.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from distill.game.rules import COLUMNS, COLUMNS_FROM_CENTRE, landing, playable_cells, winning_cells
from distill.mcts.settings import C_SCALE, C_VISIT, LEAST_PRIOR, UNIT, PuctSettings

PLY_WEIGHT, MOST_PLIES = 1e6, 100
"""To choose the best move, PLY_WEIGHT · (MOST_PLIES − k) visits are added to one that is proven to win in k plies, and
subtracted from one that is proven to lose in k plies.

No node has that many visits (MOST_PUCT_SIMULATIONS), and k is at most 42.
"""


class Tree(NamedTuple):
    """The trees of all lanes; node n of lane b is row b · N + n. Node 0 is the root."""

    current: jax.Array  # uint64 (B · N,)
    mask: jax.Array  # uint64 (B · N,)
    value: jax.Array  # float32 (B · N,): the evaluator's, for the side to move
    prior: jax.Array  # float32 (B · N, A); −1 for a full column
    visits: jax.Array  # int32 (B · N, A)
    total: jax.Array  # int32 (B · N, A): sum of the values in UNITs, for the side to move at the node
    child: jax.Array  # int32 (B · N, A): the node after the move, 0 for none
    proof: jax.Array  # int8 (B · N, A): k, the move wins in k plies; −k, it loses; 0, not known


class NodeLabels(NamedTuple):
    """Labels of L nodes of each tree: the root, then those with most visits."""

    current: jax.Array  # uint64 (B, L)
    mask: jax.Array  # uint64 (B, L)
    visits: jax.Array  # int32 (B, L, A); of a proven node, all on its best move
    policy: jax.Array  # float32 (B, L, A): the improved policy of these visits and values, as that of a Gumbel root
    label: jax.Array  # int32 (B, L): the best column
    value: jax.Array  # float32 (B, L), for the side to move
    reached: jax.Array  # int32 (B, L): visits of the node; 0 for none
    proven: jax.Array  # bool (B, L)


def new_tree(rows: int) -> Tree:
    """Trees without a node; `rows` is B · N."""
    return Tree(
        current=jnp.zeros(rows, jnp.uint64),
        mask=jnp.zeros(rows, jnp.uint64),
        value=jnp.zeros(rows, jnp.float32),
        prior=jnp.full((rows, COLUMNS), -1, jnp.float32),
        visits=jnp.zeros((rows, COLUMNS), jnp.int32),
        total=jnp.zeros((rows, COLUMNS), jnp.int32),
        child=jnp.zeros((rows, COLUMNS), jnp.int32),
        proof=jnp.zeros((rows, COLUMNS), jnp.int8),
    )


# Columns and boards ---------------------------------------------------------------------------------------------------


def first_case(*cases: tuple[jax.Array, Any], otherwise: Any) -> jax.Array:
    """The value of the first pair (condition, value) whose condition holds, or `otherwise`, for each element."""
    for condition, value in reversed(cases):
        otherwise = jnp.where(condition, value, otherwise)
    return otherwise


def first_largest(scores: jax.Array) -> jax.Array:
    """int32 (B,): the column with the highest of scores (B, A), of equals the nearest to the centre."""
    order = np.array(COLUMNS_FROM_CENTRE, np.int32)
    return jnp.asarray(order)[scores[:, order].argmax(1)]


def losing_columns(current: jax.Array, mask: jax.Array) -> jax.Array:
    """bool (B, A): moves that let the opponent win at once; `current` and `mask` are uint64 (B,)."""
    threats = winning_cells(current ^ mask)[:, None]
    stone = landing(mask)
    return (stone != 0) & ((threats & playable_cells(mask[:, None] | stone)) != 0)


# Labels ---------------------------------------------------------------------------------------------------------------


def node_labels(
    tree: Tree, roots: NDArray[np.int32], inner: int, settings: PuctSettings, simulations: jax.Array
) -> NodeLabels:
    """Labels of the roots, and of the `inner` nodes of each tree that were visited most.

    Args:
      roots: int32 (B,), their rows.
      settings: of the search.
      simulations: int32 (), visits of each root.
    """
    lanes = len(roots)
    reached = tree.visits.sum(1, dtype=jnp.int32).reshape(lanes, -1).at[:, 0].set(0)
    most, node = jax.lax.top_k(reached, inner)
    row = jnp.concatenate([jnp.asarray(roots)[:, None], roots[:, None] + node], 1).reshape(-1)
    reached = jnp.concatenate([jnp.full((lanes, 1), simulations, jnp.int32), most], 1)
    n, proof = tree.visits[row], tree.proof[row].astype(jnp.int32)
    is_open = tree.prior[row] >= 0
    proven = (proof > 0).any(1) | ((proof < 0) | ~is_open).all(1)
    # The best move: by proof the quickest win or the slowest loss, then by visits, then by value.
    win = jnp.asarray(settings.win_values / UNIT)
    mean = tree.total[row] / (UNIT * jnp.maximum(n, 1).astype(jnp.float64))
    mean = jnp.where(proof != 0, jnp.sign(proof) * win[jnp.abs(proof)], mean)
    by_proof = first_case(
        (proof > 0, PLY_WEIGHT * (MOST_PLIES - proof)), (proof < 0, -PLY_WEIGHT * (MOST_PLIES + proof)), otherwise=0
    )
    best = first_largest(jnp.where(is_open, by_proof + n + (1 + mean) / 4, -jnp.inf))
    # A proven node has the value of its best move, and all visits and the whole policy there.
    average = (n * mean).sum(1) / jnp.maximum(n.sum(1), 1)
    value = jnp.where(proven, jnp.take_along_axis(mean, best[:, None], 1)[:, 0], average)
    on_best = jax.nn.one_hot(best, COLUMNS, dtype=jnp.int32) * jnp.maximum(reached.reshape(-1, 1), 1)
    visits = jnp.where(proven[:, None], on_best, n)
    policy = jnp.where(proven[:, None], jax.nn.one_hot(best, COLUMNS), improved_policy(tree, row, n, mean))
    labels = NodeLabels(
        current=tree.current[row],
        mask=tree.mask[row],
        visits=visits,
        policy=policy.astype(jnp.float32),
        label=best,
        value=value.astype(jnp.float32),
        reached=reached.reshape(-1),
        proven=proven,
    )
    return jax.tree.map(lambda values: values.reshape(*reached.shape, *values.shape[1:]), labels)


def improved_policy(tree: Tree, row: jax.Array, n: jax.Array, mean: jax.Array) -> jax.Array:
    """float64 (M, A): softmax of ln P + sigma(Q), as `reference_puct.gumbel_scores`.

    Args:
      row: int32 (M,), rows of the nodes.
      n, mean: (M, A), visits and mean values of their moves.
    """
    prior = jnp.maximum(tree.prior[row].astype(jnp.float64), LEAST_PRIOR)
    weight = jnp.where(n > 0, prior, 0)
    expected = (weight * mean).sum(1) / jnp.maximum(weight.sum(1), LEAST_PRIOR)
    mixed = (tree.value[row].astype(jnp.float64) + n.sum(1) * expected) / (1 + n.sum(1))
    q = jnp.where((n > 0) | (tree.proof[row] != 0), mean, mixed[:, None])
    scores = jnp.log(prior) + ((C_VISIT + n.max(1)) * C_SCALE)[:, None] * (1 + q) / 2
    return jax.nn.softmax(jnp.where(tree.prior[row] >= 0, scores, -jnp.inf))
