"""PUCT search on an accelerator: thousands of trees in lock step, written in JAX. Import it only where JAX is there.

    search = DeviceSearch(evaluate=evaluate, settings=PuctSettings(simulations=64), lanes=4096)
    with jax.enable_x64(True):  # bitboards have 64 bits
        labels = jax.jit(search)(current, mask, weights)

It grows the trees of the textbook (`reference_puct.py`) by the same rule of selection, with the values in the same
whole units and the scores in float64; one simulation is again select, expand, evaluate, backup. One thing is different:
every node of a tree with enough visits can be labelled, not only its root, because the same search has found its visits
and its value.

Differences from the engine: no Gumbel root, always MCTS-Solver, and nothing is kept for positions that are reached
again.

Dimensions: B lanes (trees), N nodes of a tree (simulations + 1), A = 7 columns, L labelled nodes of a tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from distill.game.rules import (
    CELLS,
    COLUMNS,
    COLUMNS_FROM_CENTRE,
    FULL_BOARD,
    has_four,
    landing,
    mirror_bits,
    playable_cells,
    winning_cells,
)
from distill.mcts.reference_puct import C_SCALE, C_VISIT, UNIT
from distill.mcts.settings import PuctSettings

Evaluate = Callable[[Any, Any, Any], tuple[Any, Any]]
"""Weights, and uint64 (B,) `current` and `mask` → float logits (B, A) and values (B,); traced by JAX."""


class Tree(NamedTuple):
    """The trees of all lanes; node n of lane b is row b · N + n. Node 0 is the root."""

    current: Any  # uint64 (B · N,)
    mask: Any  # uint64 (B · N,)
    value: Any  # float32 (B · N,): the evaluator's, for the side to move
    prior: Any  # float32 (B · N, A); −1 for a full column
    visits: Any  # int32 (B · N, A)
    total: Any  # int32 (B · N, A): sum of the values in UNITs, for the side to move at the node
    child: Any  # int32 (B · N, A): the node after the move, 0 for none
    proof: Any  # int8 (B · N, A): k, the move wins in k plies; −k, it loses; 0, not known


class NodeLabels(NamedTuple):
    """Labels of L nodes of each tree: the root, then those with most visits."""

    current: Any  # uint64 (B, L)
    mask: Any  # uint64 (B, L)
    visits: Any  # int32 (B, L, A); of a proven node, all on its best move
    policy: Any  # float32 (B, L, A): the improved policy of these visits and values, as that of a Gumbel root
    label: Any  # int32 (B, L): the best column
    value: Any  # float32 (B, L), for the side to move
    reached: Any  # int32 (B, L): visits of the node; 0 for none
    proven: Any  # bool (B, L)


# Bitboards on the accelerator -----------------------------------------------------------------------------------------


def losing_columns(current: Any, mask: Any) -> Any:
    """bool (B, A): moves that let the opponent win at once."""
    threats = winning_cells(current ^ mask)[:, None]
    stone = landing(mask)
    return (stone != 0) & ((threats & playable_cells(mask[:, None] | stone)) != 0)


def canonical_keys(current: Any, mask: Any) -> Any:
    """uint64, any shape: `current + mask` of each board or its mirror image, as `rules.canonicalise` chooses."""
    other, other_mask = mirror_bits(current), mirror_bits(mask)
    turned = (other < current) | ((other == current) & (other_mask < mask))
    return jnp.where(turned, other + other_mask, current + mask)


def first_largest(scores: Any) -> Any:
    """int32 (B,): the column with the highest of scores (B, A), of equals the nearest to the centre."""
    order = np.array(COLUMNS_FROM_CENTRE, np.int32)
    return jnp.asarray(order)[scores[:, order].argmax(1)]


# The search -----------------------------------------------------------------------------------------------------------


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
    def roots(self) -> Any:
        """int32 (B,): the rows of the roots."""
        return np.arange(self.lanes, dtype=np.int32) * self.nodes

    @property
    def nowhere(self) -> int:
        """A row, and a slot of a row, that scatters drop."""
        return self.lanes * self.nodes * COLUMNS

    def __call__(
        self, current: Any, mask: Any, weights: Any, simulations: Any = None, noise: Any = None, share: Any = 0.0
    ) -> NodeLabels:
        """Search positions `current` and `mask`, uint64 (B,).

        Args:
          weights: first argument of the evaluator.
          simulations: int32 (), at most the setting's; None: that.
          noise: float (B, A), mixed into the roots' priors over the legal columns, such as gamma variates; None: none.
          share: float (), of the noise in the priors.
        """
        rows, columns = self.lanes * self.nodes, (self.lanes * self.nodes, COLUMNS)
        tree = Tree(
            jnp.zeros(rows, jnp.uint64), jnp.zeros(rows, jnp.uint64), jnp.zeros(rows, jnp.float32),
            jnp.full(columns, -1, jnp.float32), jnp.zeros(columns, jnp.int32), jnp.zeros(columns, jnp.int32),
            jnp.zeros(columns, jnp.int32), jnp.zeros(columns, jnp.int8),
        )  # fmt: skip
        tree, _ = self.expand(tree, jnp.asarray(self.roots), current, mask, weights)
        prior = tree.prior[self.roots]
        if noise is not None:
            tree = self.mix_noise(tree, noise, share)

        def simulate(number: Any, before: tuple[Tree, Any]) -> tuple[Tree, Any]:
            return self.simulate(*before, number, weights)

        count = jnp.int32(self.settings.simulations if simulations is None else simulations)
        used = jnp.ones(self.lanes, jnp.int32)
        tree, _ = jax.lax.fori_loop(jnp.int32(0), count, simulate, (tree, used))
        return self.labels(tree._replace(prior=tree.prior.at[self.roots].set(prior)), count)

    def simulate(self, tree: Tree, used: Any, number: Any, weights: Any) -> tuple[Tree, Any]:
        """One simulation of every lane, the `number`-th; `used`, int32 (B,), counts the nodes of each."""
        path, depth, last, current, mask = self.select(tree, number)
        value, proof, grows = self.evaluate_by_rules(tree, last, current, mask)
        row = jnp.where(grows, self.roots + used, self.nowhere)
        tree, evaluated = self.expand(tree, row, current, mask, weights)
        child = tree.child.reshape(-1).at[jnp.where(grows, last, self.nowhere)].set(used, mode="drop")
        tree = tree._replace(child=child.reshape(-1, COLUMNS))
        in_units = jnp.rint(evaluated.astype(jnp.float64) * UNIT).astype(jnp.int32)
        value = jnp.where(grows, in_units, value)
        return self.backup(tree, path, depth, value, proof), used + grows

    def select(self, tree: Tree, number: Any) -> tuple[Any, ...]:
        """Follow the best moves of each lane to a position without a node.

        Returns:
          path: int32 (CELLS + 1, B), the slots (row · A + column) of the moves, and `nowhere` below them.
          depth: int32 (), length of the longest path.
          last: int32 (B,), the last slot of each.
          current, mask: uint64 (B,), the positions reached.
        """

        def step(before: tuple[Any, ...]) -> tuple[Any, ...]:
            row, entered, active, depth, path, last, current, mask = before
            column = self.best_column(tree, row, entered)
            slot = row * COLUMNS + column
            path = path.at[depth].set(jnp.where(active, slot, self.nowhere))
            last = jnp.where(active, slot, last)
            stone = jnp.take_along_axis(landing(mask), column[:, None], 1)[:, 0]
            current, mask = jnp.where(active, current ^ mask, current), jnp.where(active, mask | stone, mask)
            entered, child = tree.visits.reshape(-1)[slot], tree.child.reshape(-1)[slot]
            active &= (child > 0) & (tree.proof.reshape(-1)[slot] == 0)
            return jnp.where(active, self.roots + child, row), entered, active, depth + 1, path, last, current, mask

        roots = jnp.asarray(self.roots)
        path = jnp.full((CELLS + 1, self.lanes), self.nowhere, jnp.int32)
        entered = jnp.full(self.lanes, number + 1, jnp.int32)  # visits to the root, its own evaluation included
        start = (roots, entered, jnp.ones(self.lanes, jnp.bool_), jnp.int32(0), path, jnp.zeros_like(roots),
                 tree.current[roots], tree.mask[roots])  # fmt: skip
        *_, depth, path, last, current, mask = jax.lax.while_loop(lambda before: before[2].any(), step, start)
        return path, depth, last, current, mask

    def best_column(self, tree: Tree, row: Any, entered: Any) -> Any:
        """int32 (B,): the move with the highest score, as `reference_puct.best_score`."""
        settings = self.settings
        n, proof = tree.visits[row], tree.proof[row].astype(jnp.float64)
        prior, times = tree.prior[row].astype(jnp.float64), entered.astype(jnp.float64)
        factor = settings.exploration
        if settings.rule == "growing":
            factor = factor + jnp.log((times + 19653) / 19652)
        unvisited = jnp.zeros(self.lanes, jnp.float64)
        if settings.fpu_reduction is not None:
            visited_prior = jnp.where(n > 0, jnp.maximum(prior, 0), 0).sum(1)
            unvisited = tree.value[row].astype(jnp.float64) - settings.fpu_reduction * jnp.sqrt(visited_prior)
        q = jnp.where(n > 0, tree.total[row] / (UNIT * jnp.maximum(n, 1).astype(jnp.float64)), unvisited[:, None])
        score = q + (factor * jnp.sqrt(times))[:, None] * prior / (1 + n)
        score = jnp.where(proof > 0, 1e9 - proof, jnp.where(proof < 0, -1e9 - proof, score))
        return first_largest(jnp.where(prior < 0, -jnp.inf, score))

    def evaluate_by_rules(self, tree: Tree, last: Any, current: Any, mask: Any) -> tuple[Any, Any, Any]:
        """What the rules or a proof say about each lane's leaf, as `reference_puct.evaluate_by_rules`.

        Returns:
          value: int32 (B,), in UNITs, for the side to move at the leaf.
          proof: int32 (B,), k or −k where the last move is now proven to win or to lose in k plies, else 0.
          grows: bool (B,), where the evaluator must say the value.
        """
        win = jnp.asarray(np.rint(UNIT * self.settings.discount ** np.arange(CELLS + 2)).astype(np.int32))
        before = tree.proof.reshape(-1)[last].astype(jnp.int32)
        won = has_four(current ^ mask)
        full = mask == np.uint64(FULL_BOARD)
        wins = (winning_cells(current) & playable_cells(mask)) != 0
        lost = (losing_columns(current, mask) | (landing(mask) == 0)).all(1)
        value = jnp.where(lost, -win[2], 0)
        value = jnp.where(wins, win[1], value)
        value = jnp.where(before != 0, -jnp.sign(before) * win[jnp.maximum(jnp.abs(before) - 1, 0)], value)
        value = jnp.where(full, 0, value)
        value = jnp.where(won, -UNIT, value)
        proof = jnp.where(won, 1, jnp.where(full | (before != 0), 0, jnp.where(wins, -2, jnp.where(lost, 3, 0))))
        return value.astype(jnp.int32), proof, ~(won | full | (before != 0) | wins | lost)

    def expand(self, tree: Tree, row: Any, current: Any, mask: Any, weights: Any) -> tuple[Tree, Any]:
        """Evaluate each lane's leaf and write its node; `row` is `nowhere` in lanes that get none. Returns the values.

        As in the textbook, one ply of look-ahead proves moves.
        """
        logits, value = self.evaluate(weights, current, mask)
        stone = landing(mask)
        logits = jnp.where(stone != 0, logits.astype(jnp.float32).astype(jnp.float64), -jnp.inf)
        prior = jax.nn.softmax(logits).astype(jnp.float32)
        value = jnp.clip(value.astype(jnp.float32), -1, 1)
        proof = jnp.where(losing_columns(current, mask), -2, 0)
        proof = jnp.where((winning_cells(current)[:, None] & stone) != 0, 1, proof)
        tree = tree._replace(
            current=tree.current.at[row].set(current, mode="drop"),
            mask=tree.mask.at[row].set(mask, mode="drop"),
            value=tree.value.at[row].set(value, mode="drop"),
            prior=tree.prior.at[row].set(jnp.where(stone == 0, -1, prior), mode="drop"),
            proof=tree.proof.at[row].set(proof.astype(jnp.int8), mode="drop"),
        )
        return tree, value

    def mix_noise(self, tree: Tree, noise: Any, share: Any) -> Tree:
        """Mix noise into the roots' priors, as `reference_puct.mix_noise`."""
        prior = tree.prior[self.roots]
        noise = jnp.where(prior < 0, 0, noise.astype(jnp.float64))
        mixed = (1.0 - share) * prior.astype(jnp.float64) + share * noise / noise.sum(1, keepdims=True)
        return tree._replace(prior=tree.prior.at[self.roots].set(jnp.where(prior < 0, -1, mixed.astype(jnp.float32))))

    def backup(self, tree: Tree, path: Any, depth: Any, value: Any, proof: Any) -> Tree:
        """Add each leaf's value to every move of its path, and carry proofs towards the roots (MCTS-Solver)."""

        def step(before: tuple[Any, ...]) -> tuple[Any, ...]:
            level, value, proof, visits, total, proofs = before
            level -= 1
            slot = path[level]
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
            above = jnp.where(proof > 0, -(proof + 1), jnp.where(all_lost, longest + 1, 0))
            return level, value, jnp.where(proves, above, jnp.where(on_path, 0, proof)), visits, total, proofs

        start = (depth, value, proof, tree.visits.reshape(-1), tree.total.reshape(-1), tree.proof.reshape(-1))
        *_, visits, total, proofs = jax.lax.while_loop(lambda before: before[0] > 0, step, start)
        visits, total, proofs = (flat.reshape(-1, COLUMNS) for flat in (visits, total, proofs))
        return tree._replace(visits=visits, total=total, proof=proofs)

    def labels(self, tree: Tree, simulations: Any) -> NodeLabels:
        """Those of the roots, and of the `inner` nodes of each tree that were visited most."""
        nodes = 1 + self.inner
        reached = tree.visits.sum(1, dtype=jnp.int32).reshape(self.lanes, self.nodes).at[:, 0].set(0)
        most, node = jax.lax.top_k(reached, self.inner)
        row = jnp.concatenate([jnp.asarray(self.roots)[:, None], self.roots[:, None] + node], 1).reshape(-1)
        reached = jnp.concatenate([jnp.full((self.lanes, 1), simulations, jnp.int32), most], 1)
        n, proof = tree.visits[row], tree.proof[row].astype(jnp.int32)
        is_open = tree.prior[row] >= 0
        won, lost = (proof > 0).any(1), ((proof < 0) | ~is_open).all(1)
        # The best move: by proof the quickest win or the slowest loss, then by visits, then by value.
        win = jnp.asarray(np.rint(UNIT * self.settings.discount ** np.arange(CELLS + 2)) / UNIT)
        mean = tree.total[row] / (UNIT * jnp.maximum(n, 1).astype(jnp.float64))
        mean = jnp.where(proof != 0, jnp.sign(proof) * win[jnp.abs(proof)], mean)
        by_proof = jnp.where(proof > 0, 1e6 * (100 - proof), jnp.where(proof < 0, -1e6 * (100 + proof), 0))
        best = first_largest(jnp.where(is_open, by_proof + n + (1 + mean) / 4, -jnp.inf))
        average = (n * mean).sum(1) / jnp.maximum(n.sum(1), 1)
        value = jnp.where(won | lost, jnp.take_along_axis(mean, best[:, None], 1)[:, 0], average)
        one_hot = jax.nn.one_hot(best, COLUMNS, dtype=jnp.int32) * jnp.maximum(reached.reshape(-1, 1), 1)
        visits = jnp.where((won | lost)[:, None], one_hot, n)

        policy = jnp.where((won | lost)[:, None], jax.nn.one_hot(best, COLUMNS), self.improved(tree, row, n, mean))

        def by_lane(values: Any) -> Any:
            return values.reshape(self.lanes, nodes, *values.shape[1:])

        return NodeLabels(
            by_lane(tree.current[row]), by_lane(tree.mask[row]), by_lane(visits), by_lane(policy.astype(jnp.float32)),
            by_lane(best), by_lane(value.astype(jnp.float32)), reached, by_lane(won | lost),
        )  # fmt: skip

    def improved(self, tree: Tree, row: Any, n: Any, mean: Any) -> Any:
        """float64 (M, A): softmax of ln P + sigma(Q) of these nodes, as `reference_puct.gumbel_scores`."""
        prior = jnp.maximum(tree.prior[row].astype(jnp.float64), 1e-12)
        weight = jnp.where(n > 0, prior, 0)
        expected = (weight * mean).sum(1) / jnp.maximum(weight.sum(1), 1e-12)
        mixed = (tree.value[row].astype(jnp.float64) + n.sum(1) * expected) / (1 + n.sum(1))
        q = jnp.where((n > 0) | (tree.proof[row] != 0), mean, mixed[:, None])
        scores = jnp.log(prior) + ((C_VISIT + n.max(1)) * C_SCALE)[:, None] * (1 + q) / 2
        return jax.nn.softmax(jnp.where(tree.prior[row] >= 0, scores, -jnp.inf))
