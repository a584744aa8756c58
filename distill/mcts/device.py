"""PUCT search on an accelerator: thousands of trees in lock step, written in JAX. Import it only where JAX is there.

    search = DeviceSearch(evaluate=evaluate, settings=PuctSettings(simulations=64), lanes=4096)
    with jax.enable_x64(True):  # bitboards have 64 bits
        labels = jax.jit(search)(current, mask, weights)

It grows the trees of the textbook (`reference_puct.py`) by the same rule of selection, with the values in the same
whole units and the scores in float64; one simulation is again select, expand, evaluate, backup. One thing is different:
every node of a tree with enough visits can be labelled, not only its root, because the same search has found its visits
and its value (`device_tree.py`).

Differences from the engine: no Gumbel root, always MCTS-Solver, and nothing is kept for positions that are reached
again.

Dimensions: B lanes (trees), N nodes of a tree (simulations + 1), A = 7 columns. A slot, row · A + column, is a move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from distill.game.rules import CELLS, COLUMNS, FULL_BOARD, has_four, landing, playable_cells, winning_cells
from distill.mcts.device_tree import NodeLabels, Tree, first_case, first_largest, losing_columns, new_tree, node_labels
from distill.mcts.settings import C_BASE, LOST, UNIT, WON, PuctSettings

Evaluate = Callable[[Any, jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
"""Weights, and uint64 (B,) `current` and `mask` → float logits (B, A) and values (B,); traced by JAX."""


class Walk(NamedTuple):
    """The way of each lane from its root to a position without a node."""

    row: jax.Array  # int32 (B,): the last node
    entered: jax.Array  # int32 (B,): visits of the position after the last move, its own evaluation included
    active: jax.Array  # bool (B,): whether that position has a node and is not decided, so that the walk continues
    depth: jax.Array  # int32 (): length of the longest path
    path: jax.Array  # int32 (CELLS + 1, B): slots of the moves, and `nowhere` below them
    last: jax.Array  # int32 (B,): the last of these slots
    current: jax.Array  # uint64 (B,): the position
    mask: jax.Array  # uint64 (B,)


@dataclass(frozen=True, kw_only=True)
class DeviceSearch:
    """A search of B positions at once, none of them over; JAX traces it, alone or inside a larger function.

    Attributes:
      evaluate: the evaluator.
      settings: the rule; `simulations` is the largest number that a call may ask for, and decides the memory.
      lanes: B.
      inner: nodes of a tree that are labelled besides its root, at most N.
    """

    evaluate: Evaluate
    settings: PuctSettings
    lanes: int
    inner: int = 0

    def __post_init__(self) -> None:
        if self.settings.root != "puct" or self.settings.rule == "printed" or not self.settings.mcts_solver:
            raise ValueError("the search on a device has root 'puct', a rule with priors, and mcts_solver")

    @property
    def nodes(self) -> int:
        """N."""
        return self.settings.simulations + 1

    @property
    def roots(self) -> NDArray[Any]:
        """int32 (B,): the rows of the roots."""
        return np.arange(self.lanes, dtype=np.int32) * self.nodes

    @property
    def nowhere(self) -> int:
        """A row, and a slot of a row, that scatters drop."""
        return self.lanes * self.nodes * COLUMNS

    def __call__(
        self,
        current: jax.Array,
        mask: jax.Array,
        weights: Any,
        simulations: jax.Array | None = None,
        noise: jax.Array | None = None,
        noise_fraction: jax.Array | float = 0.0,
    ) -> NodeLabels:
        """Search positions `current` and `mask`, uint64 (B,).

        Args:
          weights: first argument of the evaluator.
          simulations: int32 (), at most the setting's; None: that.
          noise: float (B, A), mixed into the roots' priors over the legal columns, such as gamma variates; None: none.
          noise_fraction: float (), share of the noise in the priors.
        """
        tree = new_tree(self.lanes * self.nodes)
        tree, _ = self.expand(tree, jnp.asarray(self.roots), current, mask, weights)
        prior = tree.prior[self.roots]
        if noise is not None:
            tree = self.mix_noise(tree, noise, noise_fraction)

        def simulate(number: jax.Array, before: tuple[Tree, jax.Array]) -> tuple[Tree, jax.Array]:
            return self.simulate(*before, number, weights)

        count = jnp.int32(self.settings.simulations if simulations is None else simulations)
        used = jnp.ones(self.lanes, jnp.int32)
        tree, _ = jax.lax.fori_loop(jnp.int32(0), count, simulate, (tree, used))
        tree = tree._replace(prior=tree.prior.at[self.roots].set(prior))
        return node_labels(tree, self.roots, self.inner, self.settings, count)

    def simulate(self, tree: Tree, used: jax.Array, number: jax.Array, weights: Any) -> tuple[Tree, jax.Array]:
        """One simulation of every lane, the `number`-th; `used`, int32 (B,), counts the nodes of each."""
        walk = self.select(tree, number)
        value, proof, grows = self.evaluate_by_rules(tree, walk)
        row = jnp.where(grows, self.roots + used, self.nowhere)
        tree, evaluated = self.expand(tree, row, walk.current, walk.mask, weights)
        child = tree.child.reshape(-1).at[jnp.where(grows, walk.last, self.nowhere)].set(used, mode="drop")
        tree = tree._replace(child=child.reshape(-1, COLUMNS))
        in_units = jnp.rint(evaluated.astype(jnp.float64) * UNIT).astype(jnp.int32)
        value = jnp.where(grows, in_units, value)
        return self.backup(tree, walk, value, proof), used + grows

    def select(self, tree: Tree, number: jax.Array) -> Walk:
        """Follow the best moves of each lane to a position without a node."""

        def step(walk: Walk) -> Walk:
            column = self.best_column(tree, walk.row, walk.entered)
            slot = walk.row * COLUMNS + column
            stone = jnp.take_along_axis(landing(walk.mask), column[:, None], 1)[:, 0]
            child = tree.child.reshape(-1)[slot]
            active = walk.active & (child > 0) & (tree.proof.reshape(-1)[slot] == 0)
            return Walk(
                row=jnp.where(active, self.roots + child, walk.row),
                entered=tree.visits.reshape(-1)[slot],
                active=active,
                depth=walk.depth + 1,
                path=walk.path.at[walk.depth].set(jnp.where(walk.active, slot, self.nowhere)),
                last=jnp.where(walk.active, slot, walk.last),
                current=jnp.where(walk.active, walk.current ^ walk.mask, walk.current),
                mask=jnp.where(walk.active, walk.mask | stone, walk.mask),
            )

        roots = jnp.asarray(self.roots)
        start = Walk(
            row=roots,
            entered=jnp.full(self.lanes, number + 1, jnp.int32),
            active=jnp.ones(self.lanes, jnp.bool_),
            depth=jnp.int32(0),
            path=jnp.full((CELLS + 1, self.lanes), self.nowhere, jnp.int32),
            last=jnp.zeros_like(roots),
            current=tree.current[roots],
            mask=tree.mask[roots],
        )
        return jax.lax.while_loop(lambda walk: walk.active.any(), step, start)

    def best_column(self, tree: Tree, row: jax.Array, entered: jax.Array) -> jax.Array:
        """int32 (B,): the move with the highest score, as `reference_puct.best_score`."""
        settings = self.settings
        n, proof = tree.visits[row], tree.proof[row].astype(jnp.float64)
        prior, times = tree.prior[row].astype(jnp.float64), entered.astype(jnp.float64)
        factor = settings.exploration
        if settings.rule == "growing":
            factor = factor + jnp.log((times + (C_BASE + 1)) / C_BASE)
        unvisited = jnp.zeros(self.lanes, jnp.float64)
        if settings.fpu_reduction is not None:
            visited_prior = jnp.where(n > 0, jnp.maximum(prior, 0), 0).sum(1)
            unvisited = tree.value[row].astype(jnp.float64) - settings.fpu_reduction * jnp.sqrt(visited_prior)
        q = jnp.where(n > 0, tree.total[row] / (UNIT * jnp.maximum(n, 1).astype(jnp.float64)), unvisited[:, None])
        score = q + (factor * jnp.sqrt(times))[:, None] * prior / (1 + n)
        return first_largest(
            first_case((prior < 0, -jnp.inf), (proof > 0, WON - proof), (proof < 0, LOST - proof), otherwise=score)
        )

    def evaluate_by_rules(self, tree: Tree, walk: Walk) -> tuple[jax.Array, jax.Array, jax.Array]:
        """What the rules or a proof say about each lane's leaf, as `reference_puct.evaluate_by_rules`.

        Returns:
          value: int32 (B,), in UNITs, for the side to move at the leaf.
          proof: int32 (B,), k or −k where the last move is now proven to win or to lose in k plies, else 0.
          grows: bool (B,), where the evaluator must say the value.
        """
        current, mask = walk.current, walk.mask
        win = jnp.asarray(self.settings.win_values.astype(np.int32))
        before = tree.proof.reshape(-1)[walk.last].astype(jnp.int32)
        proven = before != 0
        won = has_four(current ^ mask)
        full = mask == np.uint64(FULL_BOARD)
        wins = (winning_cells(current) & playable_cells(mask)) != 0
        lost = (losing_columns(current, mask) | (landing(mask) == 0)).all(1)
        by_proof = -jnp.sign(before) * win[jnp.maximum(jnp.abs(before) - 1, 0)]
        value = first_case((won, -UNIT), (full, 0), (proven, by_proof), (wins, win[1]), (lost, -win[2]), otherwise=0)
        proof = first_case((won, 1), (full | proven, 0), (wins, -2), (lost, 3), otherwise=0)
        return value.astype(jnp.int32), proof, ~(won | full | proven | wins | lost)

    def expand(
        self, tree: Tree, row: jax.Array, current: jax.Array, mask: jax.Array, weights: Any
    ) -> tuple[Tree, jax.Array]:
        """Evaluate each lane's leaf and write its node; `row` is `nowhere` in lanes that get none. Returns the values.

        As in the textbook, one ply of look-ahead proves moves.
        """
        logits, value = self.evaluate(weights, current, mask)
        stone = landing(mask)
        logits = jnp.where(stone != 0, logits.astype(jnp.float32).astype(jnp.float64), -jnp.inf)
        prior = jax.nn.softmax(logits).astype(jnp.float32)
        value = jnp.clip(value.astype(jnp.float32), -1, 1)
        wins = (winning_cells(current)[:, None] & stone) != 0
        proof = first_case((wins, 1), (losing_columns(current, mask), -2), otherwise=0)
        tree = tree._replace(
            current=tree.current.at[row].set(current, mode="drop"),
            mask=tree.mask.at[row].set(mask, mode="drop"),
            value=tree.value.at[row].set(value, mode="drop"),
            prior=tree.prior.at[row].set(jnp.where(stone == 0, -1, prior), mode="drop"),
            proof=tree.proof.at[row].set(proof.astype(jnp.int8), mode="drop"),
        )
        return tree, value

    def mix_noise(self, tree: Tree, noise: jax.Array, share: jax.Array | float) -> Tree:
        """Mix noise into the roots' priors, as `reference_puct.mix_noise`."""
        prior = tree.prior[self.roots]
        noise = jnp.where(prior < 0, 0, noise.astype(jnp.float64))
        mixed = (1.0 - share) * prior.astype(jnp.float64) + share * noise / noise.sum(1, keepdims=True)
        return tree._replace(prior=tree.prior.at[self.roots].set(jnp.where(prior < 0, -1, mixed.astype(jnp.float32))))

    def backup(self, tree: Tree, walk: Walk, value: jax.Array, proof: jax.Array) -> Tree:
        """Add each leaf's value to every move of its path, and carry proofs towards the roots (MCTS-Solver)."""

        def step(below: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            level, value, proof, visits, total, proofs = below
            level -= 1
            slot = walk.path[level]
            on_path = slot < self.nowhere
            discounted = -jnp.rint(value.astype(jnp.float64) * self.settings.discount).astype(jnp.int32)
            value = jnp.where(on_path, discounted, value)
            total = total.at[slot].add(value, mode="drop")
            visits = visits.at[slot].add(1, mode="drop")
            # A move wins if all replies lose, in one ply more than the longest of them; it loses if one reply wins.
            proves = on_path & (proof != 0)
            row = jnp.where(on_path, slot // COLUMNS, 0)
            here = jnp.arange(COLUMNS) == (slot % COLUMNS)[:, None]
            known = proofs.reshape(-1, COLUMNS)[row].astype(jnp.int32)
            known = jnp.where(here & proves[:, None], proof[:, None], known)
            proofs = proofs.at[jnp.where(proves, slot, self.nowhere)].set(proof.astype(jnp.int8), mode="drop")
            is_open = tree.prior[row] >= 0
            all_lost = ((known < 0) | ~is_open).all(1)
            longest = jnp.where(is_open, -known, 0).max(1)
            above = first_case((proof > 0, -(proof + 1)), (all_lost, longest + 1), otherwise=0)
            return level, value, first_case((proves, above), (on_path, 0), otherwise=proof), visits, total, proofs

        start = (walk.depth, value, proof, tree.visits.reshape(-1), tree.total.reshape(-1), tree.proof.reshape(-1))
        *_, visits, total, proofs = jax.lax.while_loop(lambda below: below[0] > 0, step, start)
        visits, total, proofs = (flat.reshape(-1, COLUMNS) for flat in (visits, total, proofs))
        return tree._replace(visits=visits, total=total, proof=proofs)
