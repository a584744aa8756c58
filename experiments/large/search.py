"""Label boards with a network's own search that runs on the accelerator whole: thousands of trees in lock step.

    KERAS_BACKEND=jax python -m experiments.large.search --network OUT/best.keras --minutes 9 --seed 1 --out found.npz

In: a network, and with `--keys` the positions to search. Out: labelled boards (`boards.py`), not compressed. Beside the
root of each search, nodes of its tree with at least `--inner-visits` visits are labelled too: the same search has found
their visits and values.

It is the search of `distill.mcts.puct` (exploration 1, first-play reduction 0.25, discount 0.98, MCTS-Solver, no noise)
with two differences: values are float32, and nothing is kept for positions that are reached again.

Without `--keys`, every lane plays: a random opening, then moves drawn by the visits of its searches or at random.

Dimensions: B lanes, N nodes of a lane's tree (simulations + 1), A = 7 columns.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distill.game.rules import (
    CELLS,
    COLUMNS,
    COLUMNS_FROM_CENTRE,
    FULL_BOARD,
    from_keys,
    has_four,
    legal_mask,
)
from distill.mcts.device import landed, losing_columns, playable_cells, winning_cells
from experiments.large import boards
from experiments.large.label import Keys, arguments, boards_of_words, next_positions, random_columns, random_positions
from experiments.large.shapes import network

EXPLORATION, FPU_REDUCTION, DISCOUNT = 1.0, 0.25, 0.98
CERTAIN = 1e6
"""Score of a proven move, less the plies to the end; the opposite for a proven loss."""
INNER = 6
"""Most nodes of a tree that are labelled beside its root."""
OPENINGS = ((0, 3), (4, 16), (6, 18), (8, 20), (8, 24))
"""Fewest and most random moves of an opening; each lane draws one of these pairs."""


class Tree(NamedTuple):
    """The trees of all lanes; node n of lane b is row b · N + n. Node 0 is the root."""

    current: Any  # uint64 (B · N,)
    mask: Any  # uint64 (B · N,)
    value: Any  # float32 (B · N,): the network's, for the side to move
    prior: Any  # float32 (B · N, A); −1 for a full column
    visits: Any  # int32 (B · N, A)
    total: Any  # float32 (B · N, A): sum of the values, for the side to move at the node
    child: Any  # int32 (B · N, A): the node after the move, 0 for none
    proof: Any  # int8 (B · N, A): k, the move wins in k plies; −k, it loses; 0, not known


class Found(NamedTuple):
    """The root and INNER nodes of each tree: M = B · (1 + INNER) rows."""

    current: Any  # uint64 (M,)
    mask: Any  # uint64 (M,)
    visits: Any  # int32 (M, A); of a proven node, all on its best move
    value: Any  # float32 (M,)
    children: Any  # int8 (M, A): VALUE_STEPS times the value of each move, boards.UNKNOWN for those not visited
    reached: Any  # int32 (M,): visits of the node; 0 for none
    proven: Any  # bool (M,)


# The search -----------------------------------------------------------------------------------------------------------


def searcher(path: Path, lanes: int, simulations: int, precision: str = "bfloat16") -> Callable[[Keys, Keys], Found]:
    """A function that searches B = `lanes` positions, none of them over; its result is still being computed."""
    import jax
    import jax.numpy as jnp

    from distill.networks import heads

    model = heads.played(network(path, precision))
    weights = [each.value for each in model.trainable_variables], [each.value for each in model.non_trainable_variables]
    nodes = simulations + 1
    first = np.arange(lanes, dtype=np.int32) * nodes
    nowhere = lanes * nodes * COLUMNS  # an index that scatters drop

    def evaluate(current: Any, mask: Any, weights: Any) -> tuple[Any, Any]:
        """float32 (B, A) priors and (B,) values."""
        halves = [part for bits in (current, mask) for part in (bits & 0xFFFFFFFF, bits >> 32)]
        words = jnp.stack(halves, axis=1).astype(jnp.uint32).reshape(-1, 2, 2)
        found, _ = model.stateless_call(*weights, boards_of_words(words), training=False)
        logits = jnp.where(landed(mask) != 0, found["logits"].astype(jnp.float32), -jnp.inf)
        return jax.nn.softmax(logits), jnp.clip(found["value"].astype(jnp.float32), -1, 1)

    def expanded(tree: Tree, row: Any, current: Any, mask: Any, weights: Any, root: bool) -> tuple[Tree, Any]:
        """Write the row of each leaf, `row` being an index to drop where it gets none, and its value."""
        prior, value = evaluate(current, mask, weights)
        stone = landed(mask)
        proof = jnp.where(losing_columns(current, mask), -2, 0)
        if root:
            proof = jnp.where((winning_cells(current)[:, None] & stone) != 0, 1, proof)
        tree = tree._replace(
            current=tree.current.at[row].set(current, mode="drop"),
            mask=tree.mask.at[row].set(mask, mode="drop"),
            value=tree.value.at[row].set(value, mode="drop"),
            prior=tree.prior.at[row].set(jnp.where(stone == 0, -1.0, prior), mode="drop"),
            proof=tree.proof.at[row].set(proof.astype(jnp.int8), mode="drop"),
        )
        return tree, value

    def first_largest(scores: Any) -> Any:
        """int32 (B,): the column with the highest score, of equals the nearest to the centre."""
        order = np.array(COLUMNS_FROM_CENTRE, np.int32)
        return jnp.asarray(order)[scores[:, order].argmax(1)]

    def best_column(tree: Tree, row: Any, entered: Any) -> Any:
        """(B,): the move with the highest score, proven wins first and proven losses last."""
        n, prior, proof = tree.visits[row], tree.prior[row], tree.proof[row].astype(jnp.float32)
        seen = jnp.where(n > 0, jnp.maximum(prior, 0), 0).sum(1)
        unseen = (tree.value[row] - FPU_REDUCTION * jnp.sqrt(seen))[:, None]
        mean = jnp.where(n > 0, tree.total[row] / jnp.maximum(n, 1), unseen)
        score = mean + EXPLORATION * jnp.sqrt(entered.astype(jnp.float32))[:, None] * prior / (1 + n)
        score = jnp.where(proof > 0, CERTAIN - proof, jnp.where(proof < 0, -CERTAIN - proof, score))
        return first_largest(jnp.where(prior < 0, -jnp.inf, score))

    def descend(tree: Tree, number: Any) -> tuple[Any, ...]:
        """Follow the best moves to a position without a row: path, its depth, last slot, current, mask."""

        def step(carried: tuple[Any, ...]) -> tuple[Any, ...]:
            row, entered, active, depth, path, last, current, mask = carried
            column = best_column(tree, row, entered)
            slot = row * COLUMNS + column
            path = path.at[depth].set(jnp.where(active, slot, nowhere))
            last = jnp.where(active, slot, last)
            stone = jnp.take_along_axis(landed(mask), column[:, None], 1)[:, 0]
            current, mask = jnp.where(active, current ^ mask, current), jnp.where(active, mask | stone, mask)
            entered, child = tree.visits.reshape(-1)[slot], tree.child.reshape(-1)[slot]
            active &= (child > 0) & (tree.proof.reshape(-1)[slot] == 0)
            return jnp.where(active, first + child, row), entered, active, depth + 1, path, last, current, mask

        path = jnp.full((CELLS + 1, lanes), nowhere, jnp.int32)
        begin = jnp.asarray(first), jnp.full(lanes, number + 1), jnp.ones(lanes, jnp.bool_)
        start = (*begin, jnp.int32(0), path, jnp.zeros(lanes, jnp.int32), tree.current[first], tree.mask[first])
        *_, depth, path, last, current, mask = jax.lax.while_loop(lambda carried: carried[2].any(), step, start)
        return path, depth, last, current, mask

    def simulate(number: Any, carried: tuple[Tree, Any, Any]) -> tuple[Tree, Any, Any]:
        tree, used, weights = carried
        path, depth, last, current, mask = descend(tree, number)
        before = tree.proof.reshape(-1)[last].astype(jnp.int32)
        won = has_four(current ^ mask)
        full = mask == np.uint64(FULL_BOARD)
        stone = landed(mask)
        wins = (winning_cells(current) & playable_cells(mask)) != 0
        lost = (losing_columns(current, mask) | (stone == 0)).all(1)
        # For the side to move at the leaf.
        plies = jnp.abs(before).astype(jnp.float32)
        value = jnp.where(lost, -(DISCOUNT**2), 0.0)
        value = jnp.where(wins, DISCOUNT, value)
        value = jnp.where(before != 0, -jnp.sign(before) * DISCOUNT ** (plies - 1), value)
        value = jnp.where(full, 0.0, value)
        value = jnp.where(won, -1.0, value).astype(jnp.float32)
        proof = jnp.where(won, 1, jnp.where(full | (before != 0), 0, jnp.where(wins, -2, jnp.where(lost, 3, 0))))
        grows = ~(won | full | (before != 0) | wins | lost)
        tree, own = expanded(tree, jnp.where(grows, first + used, nowhere), current, mask, weights, root=False)
        value = jnp.where(grows, own, value)
        child = tree.child.reshape(-1).at[jnp.where(grows, last, nowhere)].set(used, mode="drop")
        tree, used = tree._replace(child=child.reshape(-1, COLUMNS)), used + grows

        def back(carried: tuple[Any, ...]) -> tuple[Any, ...]:
            level, value, proof, visits, total, proofs = carried
            level -= 1
            slot = path[level]
            on = slot < nowhere
            value = jnp.where(on, -DISCOUNT * value, value)
            total = total.at[slot].add(value, mode="drop")
            visits = visits.at[slot].add(1, mode="drop")
            proved = on & (proof != 0)
            row = jnp.where(on, slot // COLUMNS, 0)
            here = jnp.arange(COLUMNS) == (slot % COLUMNS)[:, None]
            known = proofs.reshape(-1, COLUMNS)[row].astype(jnp.int32)
            known = jnp.where(here & proved[:, None], proof[:, None], known)
            proofs = proofs.at[jnp.where(proved, slot, nowhere)].set(proof.astype(jnp.int8), mode="drop")
            is_open = tree.prior[row] >= 0
            all_lost = ((known < 0) | ~is_open).all(1)
            longest = jnp.where(is_open, -known, 0).max(1)
            above = jnp.where(proof > 0, -(proof + 1), jnp.where(all_lost, longest + 1, 0))
            return level, value, jnp.where(proved, above, jnp.where(on, 0, proof)), visits, total, proofs

        flat = (tree.visits.reshape(-1), tree.total.reshape(-1), tree.proof.reshape(-1))
        start = (depth, value, proof, *flat)
        *_, visits, total, proofs = jax.lax.while_loop(lambda carried: carried[0] > 0, back, start)
        shaped = [each.reshape(-1, COLUMNS) for each in (visits, total, proofs)]
        return tree._replace(visits=shaped[0], total=shaped[1], proof=shaped[2]), used, weights

    def labels(tree: Tree) -> Found:
        """Those of the roots and of the nodes that were visited most."""
        reached = tree.visits.sum(1).reshape(lanes, nodes).at[:, 0].set(0)
        most, node = jax.lax.top_k(reached, INNER)
        row = jnp.concatenate([jnp.asarray(first)[:, None], first[:, None] + node.astype(jnp.int32)], 1).reshape(-1)
        most = jnp.concatenate([jnp.full((lanes, 1), simulations, most.dtype), most], 1).reshape(-1)
        n, proof = tree.visits[row], tree.proof[row].astype(jnp.int32)
        is_open = tree.prior[row] >= 0
        won, lost = (proof > 0).any(1), ((proof < 0) | ~is_open).all(1)
        # Of proven moves the one that wins soonest or loses last, then the most visited.
        rank = jnp.where(proof > 0, 100 - proof, jnp.where(proof < 0, -100 - proof, 0)) * nodes + n
        best = first_largest(jnp.where(is_open, rank, -1000 * nodes))
        certain = jnp.where(proof > 0, 1, -1) * DISCOUNT ** jnp.abs(proof).astype(jnp.float32)
        mean = jnp.where(proof != 0, certain, tree.total[row] / jnp.maximum(n, 1))
        known = is_open & ((proof != 0) | (n > 0))
        value = jnp.where(
            won | lost, jnp.take_along_axis(mean, best[:, None], 1)[:, 0], (n * mean).sum(1) / jnp.maximum(n.sum(1), 1)
        )
        visits = jnp.where((won | lost)[:, None], boards.MOST_VISITS * jax.nn.one_hot(best, COLUMNS, dtype=n.dtype), n)
        children = jnp.where(known, jnp.rint(boards.VALUE_STEPS * mean), boards.UNKNOWN).astype(jnp.int8)
        return Found(tree.current[row], tree.mask[row], visits, value, children, most, won | lost)

    @jax.jit  # type: ignore[untyped-decorator]
    def run(current: Any, mask: Any, weights: Any) -> Found:
        rows, columns = lanes * nodes, (lanes * nodes, COLUMNS)
        tree = Tree(
            jnp.zeros(rows, jnp.uint64), jnp.zeros(rows, jnp.uint64), jnp.zeros(rows, jnp.float32),
            jnp.full(columns, -1, jnp.float32), jnp.zeros(columns, jnp.int32), jnp.zeros(columns, jnp.float32),
            jnp.zeros(columns, jnp.int32), jnp.zeros(columns, jnp.int8),
        )  # fmt: skip
        tree, _ = expanded(tree, jnp.asarray(first), current, mask, weights, root=True)
        used = jnp.ones(lanes, jnp.int32)
        tree, _, _ = jax.lax.fori_loop(0, simulations, simulate, (tree, used, weights))
        return labels(tree)

    def search(current: Keys, mask: Keys) -> Found:
        with jax.enable_x64(True):
            return run(current, mask, weights)

    return search


# Positions ------------------------------------------------------------------------------------------------------------


class Lanes:
    """Games of B lanes that restart at a random opening when they end."""

    def __init__(self, count: int, random: np.random.Generator, random_moves: float) -> None:
        self.random, self.random_moves, self.count = random, random_moves, count
        self.current, self.mask = openings(count, random)

    def advance(self, visits: NDArray[np.integer[Any]], proven: NDArray[np.bool_]) -> None:
        """Play a move in each lane, by the visits of its search or at random."""
        share = visits / visits.sum(1, keepdims=True)
        drawn = (share.cumsum(1) < self.random.random((self.count, 1))).sum(1).clip(max=COLUMNS - 1)
        at_random = self.random.random(self.count) < self.random_moves
        column = np.where(at_random | ~legal_mask(self.mask)[np.arange(self.count), drawn],
                          random_columns(self.mask, self.random), drawn)  # fmt: skip
        self.current, self.mask, over = next_positions(self.current, self.mask, column)
        ends = over | (proven & (self.random.random(self.count) < 0.7))
        self.current[ends], self.mask[ends] = openings(int(ends.sum()), self.random)


def openings(count: int, random: np.random.Generator) -> tuple[Keys, Keys]:
    """Positions after random moves, none of them over; in half of them a side blocks a win where it can."""
    pairs = np.array(OPENINGS)[random.integers(0, len(OPENINGS), count)]
    return random_positions(pairs, random, blocks=random.random(count) < 0.5)


# Labels ---------------------------------------------------------------------------------------------------------------


def packed(found: Found, inner_visits: int) -> boards.Boards:
    """Labelled boards of the rows with enough visits; there is no game, so the outcome is the sign of a clear value."""
    reached, proven = np.asarray(found.reached), np.asarray(found.proven)
    rows = np.flatnonzero((reached >= inner_visits) | (proven & (reached > 0)))
    current, mask, visits, value, children = (np.asarray(each)[rows] for each in found[:5])
    outcome = np.where(np.abs(value) > 0.5, np.sign(value), 0)
    return boards.pack(current, mask, visits, value, outcome, np.full(len(rows), -1), children)


def search_all(
    search: Callable[[Keys, Keys], Found], lanes: int, keys: Keys, inner_visits: int, seconds: float = math.inf
) -> list[boards.Boards]:
    """Search these positions, as many as the time allows, without labelling inner nodes of the padding."""
    parts, deadline = [], time.monotonic() + seconds
    for start in range(0, len(keys), lanes):
        if time.monotonic() > deadline:
            break
        chosen = keys[start : start + lanes]
        current, mask = from_keys(np.resize(chosen, lanes))
        found = search(current, mask)
        rows = len(chosen) * (1 + INNER)
        parts.append(packed(Found(*(np.asarray(each)[:rows] for each in found)), inner_visits))
    return parts


def play_on(
    search: Callable[[Keys, Keys], Found], groups: Sequence[Lanes], inner_visits: int, seconds: float
) -> Iterator[boards.Boards]:
    """The boards of one search after the other; the accelerator searches one group while another is advanced."""
    deadline = time.monotonic() + seconds
    running = [search(group.current, group.mask) for group in groups]
    number = 0
    while time.monotonic() < deadline:
        which = number % len(groups)
        found, group = running[which], groups[which]
        found = Found(*(np.asarray(each) for each in found))
        root = slice(None, None, 1 + INNER)
        group.advance(found.visits[root], found.proven[root])
        running[which] = search(group.current, group.mask)
        yield packed(found, inner_visits)
        number += 1


def main(words: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--keys", type=Path, help=".npz with `key`: positions to search in place of games")
    parser.add_argument("--simulations", type=int, default=160)
    parser.add_argument("--inner-visits", type=int, default=64, help="fewest visits of a labelled node below the root")
    parser.add_argument("--lanes", type=int, default=1 << 16)
    parser.add_argument("--random-moves", type=float, default=0.35, help="share of the games' moves that is random")
    options = parser.parse_args(words)
    random = np.random.default_rng([options.seed, 1])
    search = searcher(options.network, options.lanes, options.simulations, options.precision)
    began = time.monotonic()
    parts: list[boards.Boards] = []
    if options.keys:
        keys = random.permutation(np.load(options.keys)["key"])
        parts = search_all(search, options.lanes, keys, options.inner_visits, 60 * options.minutes)
    else:
        groups = [Lanes(options.lanes, random, options.random_moves) for _ in range(2)]
        for part in play_on(search, groups, options.inner_visits, 60 * options.minutes):
            parts.append(part)
            seconds = time.monotonic() - began
            rows = sum(len(each["key"]) for each in parts)
            print(f"{seconds:.0f} s: {rows:,} boards, {rows / seconds:,.0f} a second", flush=True)
    excluded = np.load(options.exclude)["excluded"] if options.exclude else None
    merged = boards.merge(parts, excluded)
    boards.save(options.out, merged, compressed=False)
    print(f"{len(merged['key']):,} distinct boards, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
