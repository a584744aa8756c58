"""Make a network win every game: enumerate its games, prove a strategy close to its own, learn it, and again.

    KERAS_BACKEND=jax python -m experiments.large.solve --network models/reference/pillar-large/best.keras \
        --boards boards.npz --graded graded.npz --seconds 540 --out solve

In: a network that mirrors its moves with the board, and boards (`boards.py`). On these and on boards after random moves
it must go on answering as it did before, which keeps its general strength (self-distillation).
Out, in `--out`: `best.keras`, the network with the fewest games that it does not win; `last.keras`; `rounds.jsonl`.

Each round has three steps.

1. Enumerate. The network moves first, against every legal reply. A board and its mirror image are one position. Count
   the replies that win for the opponent and those that draw: zero of both, and every game is won.
2. Prove. Over all positions of all rounds, from the last layer to the first, find every move that wins at once or whose
   replies all lead to positions with such a move. Where the empty board has no such move yet, positions without one get
   their other moves enumerated too. Then enumerate the games of the network that always takes its favourite among the
   proven moves: a winning strategy close to its own.
3. Learn. In each position of that strategy, the target is the set of all moves that stay inside it. Positions where the
   best other move is close to them, or better, come more often; they are found by evaluating all positions again every
   few seconds.

A network that chooses a move of the set in each of these positions wins every game. So the target stands still during
a round, which labels by search do not.

Dimensions: B positions of a batch, N positions of a layer or pool, A = 7 columns, R = 7 replies.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distill.game import rules
from distill.game.rules import (
    BITS_PER_COLUMN,
    CELLS,
    CENTRE,
    COLUMNS,
    FULL_BOARD,
    LINE_SHIFTS,
    column_bits,
)
from distill.mcts.device import landed
from experiments.large import boards as labelled_boards
from experiments.large import shapes
from experiments.large.label import boards_of_words
from experiments.large.search import openings
from experiments.large.train import NOT_FOR_MUON

Keys = NDArray[np.uint64]
NONE, DRAWN, LOST = (np.uint64(2**64 - number) for number in (1, 2, 3))
"""In place of the key of a position: no such reply; it fills the board; it wins, or the move is illegal."""

BATCH = 1 << 15
"""Positions that the device evaluates at once."""
AHEAD = 4
"""Batches that are computed while the results of others are copied."""
STEPS_A_CALL = 100
NEAREST, NEAR = 1 << 13, 1 << 17
"""Positions in the two pools of those with the smallest margins."""
SHARES = {"kept": 0.25, "nearest": 0.15, "near": 0.35, "all": 0.25}
"""What a batch is made of; `kept` are the boards on which the network answers as before."""
EMA = 0.998
VALUE_WEIGHT = 0.5
THREADS, RANDOM_PART = 8, 200_000
"""Threads that draw random boards, and how many each draws at a time."""
MOST_POSITIONS = 40_000_000
"""Positions of all rounds, above which no other moves are enumerated."""


# Rules on the device --------------------------------------------------------------------------------------------------


def from_keys(keys: Any) -> tuple[Any, Any]:
    """Current and mask, as `rules.from_keys`."""
    import jax.numpy as jnp

    current, mask = jnp.zeros_like(keys), jnp.zeros_like(keys)
    for shift in (np.uint64(BITS_PER_COLUMN * column) for column in range(COLUMNS)):
        total = ((keys >> shift) & np.uint64(127)) + np.uint64(1)
        stones = total
        for distance in (1, 2, 4):
            stones = stones | (stones >> np.uint64(distance))
        stones = stones >> np.uint64(1)
        mask |= stones << shift
        current |= (total & stones) << shift
    return current, mask


def mirrored(bits: Any) -> Any:
    """The bits reflected left to right, as `rules.mirror_bits`."""
    result = bits & np.uint64(column_bits(CENTRE))
    for column in range(CENTRE):
        distance = np.uint64(BITS_PER_COLUMN * (COLUMNS - 1 - 2 * column))
        result |= (bits & np.uint64(column_bits(column))) << distance
        result |= (bits & np.uint64(column_bits(COLUMNS - 1 - column))) >> distance
    return result


def canonical_keys(current: Any, mask: Any) -> Any:
    """Keys of the boards of `rules.canonicalise`."""
    import jax.numpy as jnp

    other, other_mask = mirrored(current), mirrored(mask)
    smaller = (other < current) | ((other == current) & (other_mask < mask))
    return jnp.where(smaller, other + other_mask, current + mask)


def has_four(stones: Any) -> Any:
    """bool: four in a line, as `rules.has_four`."""
    fours = stones & np.uint64(0)
    for shift in LINE_SHIFTS:
        pairs = stones & (stones >> np.uint64(shift))
        fours |= pairs & (pairs >> np.uint64(2 * shift))
    return fours != 0


def replies(keys: Any) -> Any:
    """uint64 (B, A, R): canonical keys of the positions after each move and each reply, or NONE, DRAWN, LOST.

    All are NONE after a move that wins. All are LOST for a full column.
    """
    import jax.numpy as jnp

    current, mask = from_keys(keys)
    stone = landed(mask)  # (B, A)
    wins = has_four(current[:, None] | stone)
    filled = mask[:, None] | stone
    opponent = (current ^ mask)[:, None, None]
    reply = landed(filled.reshape(-1)).reshape(-1, COLUMNS, COLUMNS)
    full = filled[:, :, None] | reply
    key = canonical_keys(opponent ^ filled[:, :, None], full)
    key = jnp.where(full == np.uint64(FULL_BOARD), DRAWN, key)
    key = jnp.where(has_four(opponent | reply), LOST, key)
    key = jnp.where((reply == 0) | wins[:, :, None], NONE, key)
    return jnp.where((stone == 0)[:, :, None], LOST, key)


def proven_moves(keys: Any, won: Any | None) -> Any:
    """uint8 (B,): bit c is set where the move in column c wins, or each reply leads to a position in `won`.

    `won` is uint64, sorted, filled up with NONE. None: the last layer of a cut-off enumeration, where every reply that
    goes on counts as won.
    """
    import jax.numpy as jnp

    after = replies(keys)
    if won is None:
        fine = (after < LOST) | (after == NONE)
    else:
        place = jnp.searchsorted(won, after.reshape(-1))
        fine = (won[jnp.minimum(place, len(won) - 1)] == after.reshape(-1)).reshape(after.shape)
    bits = np.array([1 << column for column in range(COLUMNS)], np.uint8)
    return (fine.all(2) * bits).sum(1).astype(jnp.uint8)


# Positions by layers --------------------------------------------------------------------------------------------------

Layers = dict[int, Keys]
"""Canonical keys of positions in which the first player moves, sorted, by their number of stones."""


Proof = dict[int, NDArray[np.uint8]]
"""For each layer the proven moves of its positions, uint8 (N,): bit c for column c."""


class Games(NamedTuple):
    """A network's games against every reply: the positions, the replies that win for the opponent, those that draw."""

    keys: Layers
    losing: int
    draws: int


def distinct(parts: Sequence[Keys]) -> Keys:
    """The keys sorted, each once."""
    if not parts:
        return np.empty(0, np.uint64)
    keys = np.sort(np.concatenate(parts))
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def without(keys: Keys, others: Keys) -> Keys:
    """Those of the sorted keys that the sorted others lack."""
    if not len(others):
        return keys
    return keys[others[np.minimum(np.searchsorted(others, keys), len(others) - 1)] != keys]


def united(one: Layers, other: Layers) -> Layers:
    """The positions of both."""
    nothing = np.empty(0, np.uint64)
    return {stones: distinct([one.get(stones, nothing), other.get(stones, nothing)]) for stones in {*one, *other}}


def size(layers: Layers) -> int:
    """Positions in all layers."""
    return sum(map(len, layers.values()))


def in_batches(function: Callable[..., Any], *arrays: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Results of a function of arrays (BATCH,) for any number of rows; AHEAD batches are computed meanwhile."""
    import jax

    running: deque[tuple[int, Any]] = deque()

    def copied() -> tuple[NDArray[Any], ...]:
        rows, results = running.popleft()
        return tuple([np.asarray(result)[:rows] for result in results])

    for start in range(0, len(arrays[0]), BATCH):
        parts = [array[start : start + BATCH] for array in arrays]
        rows = len(parts[0])
        with jax.enable_x64(True):
            running.append((rows, function(*(np.pad(part, (0, BATCH - rows)) for part in parts))))
        if len(running) > AHEAD:
            yield copied()
    while running:
        yield copied()


Choose = Callable[[Any, Any], Any]
"""Keys uint64 (BATCH,) and the moves to choose from uint8 (BATCH,) → replies to the best move, uint64 (BATCH, R)."""
ALL_MOVES = (1 << COLUMNS) - 1


def enumerate_games(
    choose: Choose,
    starts: Layers,
    most_stones: int,
    known: Layers | None = None,
    proof: tuple[Layers, Proof] | None = None,
) -> Games:
    """All games of the network from these positions.

    Args:
      known: positions from which the games are not followed.
      proof: layers and their proven moves, to which the network's choice is restricted.
    """
    keys: Layers = {}
    pending: list[Keys] = []
    losing = draws = 0
    for stones in range(0, most_stones + 1, 2):
        layer = distinct([*pending, starts.get(stones, np.empty(0, np.uint64))])
        if known:
            layer = without(layer, known.get(stones, np.empty(0, np.uint64)))
        allowed = np.full(len(layer), ALL_MOVES, np.uint8)
        if proof:
            allowed = proof[1][stones][np.searchsorted(proof[0][stones], layer)]
        pending = []
        for (after,) in in_batches(choose, layer, allowed):
            losing += int((after == LOST).sum())
            draws += int((after == DRAWN).sum())
            pending.append(distinct([after[after < LOST]]))
        keys[stones] = layer
    return Games(keys, losing, draws)


def prove(layers: Layers, most_stones: int, proofs: Callable[[Any, Any], Any]) -> Proof:
    """Find all proven moves, from the last layer to the first."""
    import jax

    width = 1 << max(len(keys) for keys in layers.values()).bit_length()
    width = max(width, 1 << 22) if width > 1 << 18 else width  # one compilation for all rounds of a whole tree
    proven: Proof = {}
    won: Any = None
    for stones in range(most_stones, -1, -2):
        keys = layers[stones]
        parts = in_batches(functools.partial(lambda won, keys: (proofs(keys, won),), won), keys)
        proven[stones] = np.concatenate([np.empty(0, np.uint8), *(part for (part,) in parts)])
        with jax.enable_x64(True):
            kept = keys[proven[stones] != 0]
            won = jax.device_put(np.pad(kept, (0, width - len(kept)), constant_values=NONE))
    return proven


def other_moves(keys: Keys, others: Callable[[Any], Any]) -> Keys:
    """Positions after every move that no reply refutes at once, and every reply."""
    parts = []
    for (after,) in in_batches(lambda keys: (others(keys),), keys):
        open_moves = ~((after == LOST) | (after == DRAWN)).any(2)
        reached = after[open_moves]
        parts.append(distinct([reached[reached < LOST]]))
    return distinct(parts)


# The network ----------------------------------------------------------------------------------------------------------


class Network:
    """A network on the device: its weights are arguments of all functions, so each is compiled once."""

    def __init__(self, path: Path) -> None:
        import jax
        import jax.numpy as jnp
        import keras

        from distill.networks import heads

        self.path = path
        models = {precision: heads.played(shapes.network(path, precision)) for precision in ("bfloat16", "float32")}
        self.model = models["bfloat16"]
        self.variables = self.model.trainable_variables
        self.fixed = [variable.value for variable in self.model.non_trainable_variables]
        keras.config.set_dtype_policy("float32")
        bits = np.arange(COLUMNS, dtype=np.uint8)
        legal = np.array([1 << (BITS_PER_COLUMN * column + 5) for column in range(COLUMNS)], np.uint64)

        def choose(precision: str, weights: Any, keys: Any, allowed: Any) -> Any:
            current, mask = from_keys(keys)
            halves = [part for bits in (current, mask) for part in (bits & 0xFFFFFFFF, bits >> 32)]
            words = jnp.stack(halves, axis=1).astype(jnp.uint32).reshape(-1, 2, 2)
            outputs, _ = models[precision].stateless_call(weights, self.fixed, boards_of_words(words), training=False)
            is_open = ((mask[:, None] & legal) == 0) & (((allowed[:, None] >> bits) & 1) == 1)
            move = jnp.where(is_open, outputs["logits"].astype(jnp.float32), -jnp.inf).argmax(1)
            return (jnp.take_along_axis(replies(keys), move[:, None, None], 1)[:, 0],)

        def exact(weights: Any, keys: Any, allowed: Any) -> Any:
            with jax.default_matmul_precision("highest"):
                return choose("float32", weights, keys, allowed)

        def outputs(weights: Any, keys: Any) -> Any:
            """words uint32 (B, 2, 2), policy float16 (B, A) and value float16 (B,)."""
            halves = [part for bits in from_keys(keys) for part in (bits & 0xFFFFFFFF, bits >> 32)]
            words = jnp.stack(halves, axis=1).astype(jnp.uint32).reshape(-1, 2, 2)
            played, _ = models["bfloat16"].stateless_call(weights, self.fixed, boards_of_words(words), training=False)
            policy = jax.nn.softmax(played["logits"].astype(jnp.float32))
            return words, policy.astype(jnp.float16), played["value"].astype(jnp.float16)

        def best_moves(weights: Any, boards: Any) -> Any:
            return self.model.stateless_call(weights, self.fixed, boards, training=False)[0]["logits"].argmax(1)

        self.outputs, self.best_moves = jax.jit(outputs), jax.jit(best_moves)
        self._choose = {"bfloat16": jax.jit(functools.partial(choose, "bfloat16")), "float32": jax.jit(exact)}

    def chooser(self, weights: Any, precision: str = "bfloat16") -> Choose:
        """The replies to its moves."""
        return functools.partial(self._choose[precision], weights)

    def save(self, weights: Any, path: Path) -> None:
        """Write the `.keras` file with these weights."""
        stored = shapes.network(self.path)
        of_path = {variable.path: array for variable, array in zip(self.variables, weights, strict=True)}
        for variable in stored.trainable_variables:
            variable.assign(np.asarray(of_path[variable.path], np.float32))
        stored.save(path)


# Learning -------------------------------------------------------------------------------------------------------------


class Pool(NamedTuple):
    """Positions to learn, on the device, filled up to a fixed capacity: only the first `rows` count."""

    words: Any  # uint32 (capacity, 2, 2)
    moves: Any  # uint8 (capacity,): the proven moves
    rows: int


class Learner:
    """Trains the network on the proven moves of a pool, and on some boards to answer as it did at first."""

    def __init__(self, network: Network, boards: Keys, batch_size: int, capacity: int) -> None:
        import jax
        import jax.numpy as jnp
        import keras

        self.capacity, self.batch_size, self.steps = capacity, batch_size, 0
        model, optimizer = network.model, keras.optimizers.Muon(
            0.0, weight_decay=0.01, adam_weight_decay=0.01, exclude_layers=NOT_FOR_MUON
        )  # fmt: skip
        optimizer.build(network.variables)
        rate_index = [variable is optimizer._learning_rate for variable in optimizer.variables].index(True)
        parts = (network.variables, optimizer.variables, network.variables)
        self.state = tuple([jnp.array(variable.value, copy=True) for variable in part] for part in parts)
        first = functools.partial(network.outputs, self.state[0])
        answers = [np.concatenate(parts) for parts in zip(*in_batches(first, boards), strict=True)]
        self.kept = dict(zip(("words", "policy", "value"), map(jnp.asarray, answers), strict=True))
        shares = {name: int(share * batch_size) for name, share in SHARES.items()}
        bits = np.arange(COLUMNS, dtype=np.uint8)

        def policy(trainable: Any, words: Any) -> tuple[Any, Any]:
            outputs, _ = model.stateless_call(trainable, network.fixed, boards_of_words(words), training=True)
            return outputs["logits"].astype(jnp.float32), outputs["value"].astype(jnp.float32)

        def loss_of(trainable: Any, words: Any, kept: dict[str, Any], moves: Any) -> Any:
            logits, value = policy(trainable, words)
            log_policy = jax.nn.log_softmax(logits)
            before, rows = kept["policy"].astype(jnp.float32), shares["kept"]
            divergence = (before * (jnp.log(before + 1e-6) - jnp.maximum(log_policy[:rows], -20))).sum(1)
            of_value = jnp.square(value[:rows] - kept["value"].astype(jnp.float32))
            proven = ((moves[:, None] >> bits) & 1) == 1
            of_moves = -jax.nn.logsumexp(jnp.where(proven, log_policy[rows:], -jnp.inf), axis=1)
            total = divergence.sum() + VALUE_WEIGHT * of_value.sum() + of_moves.sum()
            return total / len(words), (divergence.mean(), of_moves.mean())

        def step(carried: Any, number: Any, pool: Pool, near: Any, nearest: Any, kept: Any) -> tuple[Any, Any]:
            trainable, moments, average = carried
            keys = jax.random.split(jax.random.fold_in(jax.random.key(0), number), 4)
            chosen = jax.random.randint(keys[0], (shares["kept"],), 0, len(kept["value"]))
            drawn = {name: values[chosen] for name, values in kept.items()}
            rows = jnp.concatenate([
                nearest[jax.random.randint(keys[1], (shares["nearest"],), 0, len(nearest))],
                near[jax.random.randint(keys[2], (shares["near"],), 0, len(near))],
                jax.random.randint(keys[3], (shares["all"],), 0, pool.rows),
            ])  # fmt: skip
            words = jnp.concatenate([drawn["words"], pool.words[rows]])
            (_, losses), gradients = jax.value_and_grad(loss_of, has_aux=True)(
                trainable, words, drawn, pool.moves[rows]
            )
            trainable, moments = optimizer.stateless_apply(moments, gradients, trainable)
            average = [EMA * mean + (1 - EMA) * weight for mean, weight in zip(average, trainable, strict=True)]
            return (trainable, moments, average), losses

        @functools.partial(jax.jit, donate_argnums=0)
        def steps(state: Any, pool: Pool, near: Any, nearest: Any, kept: Any, first: Any, rate: Any) -> Any:
            trainable, moments, average = state
            moments = [rate.astype(m.dtype) if index == rate_index else m for index, m in enumerate(moments)]
            state, losses = jax.lax.scan(
                lambda carried, number: step(carried, number, pool, near, nearest, kept),
                (trainable, moments, average),
                first + jnp.arange(STEPS_A_CALL),
            )
            return state, [part.mean() for part in losses]

        @jax.jit  # type: ignore[untyped-decorator]
        def margins(weights: Any, pool: Pool) -> Any:
            """float32 (capacity,): logit of the best proven move, less that of the best other one."""

            def part(number: Any, result: Any) -> Any:
                start = number * BATCH
                words = jax.lax.dynamic_slice_in_dim(pool.words, start, BATCH)
                moves = jax.lax.dynamic_slice_in_dim(pool.moves, start, BATCH)
                logits, _ = policy(weights, words)
                proven = ((moves[:, None] >> bits) & 1) == 1
                best, other = (jnp.where(mask, logits, -1e9).max(1) for mask in (proven, ~proven))
                return jax.lax.dynamic_update_slice_in_dim(result, best - other, start, 0)

            parts = (pool.rows + BATCH - 1) // BATCH
            return jax.lax.fori_loop(0, parts, part, jnp.full(capacity, jnp.inf, jnp.float32))

        self._steps, self._margins = steps, margins

        @jax.jit  # type: ignore[untyped-decorator]
        def words_of_keys(keys: Any) -> Any:
            halves = [part for bits in from_keys(keys) for part in (bits & 0xFFFFFFFF, bits >> 32)]
            return jnp.stack(halves, axis=1).astype(jnp.uint32).reshape(-1, 2, 2)

        self._words = words_of_keys

    @property
    def average(self) -> Any:
        """The EMA of the weights."""
        return self.state[2]

    def pool(self, keys: Keys, moves: NDArray[np.uint8]) -> Pool:
        """These positions and their proven moves, in any order."""
        import jax
        import jax.numpy as jnp

        if len(keys) > self.capacity:
            drawn = np.random.default_rng(0).permutation(len(keys))[: self.capacity]
            keys, moves = keys[drawn], moves[drawn]
        rows = len(keys)
        with jax.enable_x64(True):
            words = self._words(np.pad(keys, (0, self.capacity - rows)))
        return Pool(words, jnp.asarray(np.pad(moves, (0, self.capacity - rows), constant_values=1)), rows)

    def margins(self, pool: Pool) -> NDArray[np.float32]:
        """float32 (rows,): above 0 where the network chooses a proven move."""
        return np.asarray(self._margins(self.average, pool))[: pool.rows]

    def learn(self, pool: Pool, margins: NDArray[np.float32], calls: int, rate: float) -> list[float]:
        """Take `calls` times STEPS_A_CALL steps; returns the mean losses of kept boards and of proven moves."""
        import jax.numpy as jnp

        order = np.argpartition(margins, min(NEAR, len(margins) - 1))[:NEAR]
        near = np.resize(order, NEAR)
        nearest = near[np.argpartition(margins[near], NEAREST)[:NEAREST]]
        indices = jnp.asarray(near, jnp.int32), jnp.asarray(nearest, jnp.int32)
        losses = []
        for _ in range(calls):
            self.state, loss = self._steps(
                self.state, pool, *indices, self.kept, jnp.int32(self.steps), jnp.float32(rate)
            )
            self.steps += STEPS_A_CALL
            losses.append(loss)
        return [float(part) for part in np.mean([[float(part) for part in loss] for loss in losses], axis=0)]


# Boards ---------------------------------------------------------------------------------------------------------------


def kept_boards(files: Sequence[Path], random_boards: int, excluded: Keys) -> Keys:
    """Canonical keys of the boards in files and of about so many after random moves, without the excluded ones."""
    parts = [labelled_boards.load(files)["key"]]
    tasks = range(0, random_boards, RANDOM_PART)
    with ThreadPoolExecutor(THREADS) as threads:
        for current, mask in threads.map(lambda seed: openings(RANDOM_PART, np.random.default_rng(seed)), tasks):
            own, stones, _ = rules.canonicalise(current, mask)
            parts.append(own + stones)
    keys = distinct(parts)
    return keys[~np.isin(keys, excluded)]


# Rounds ---------------------------------------------------------------------------------------------------------------


def grades(network: Network, graded: dict[str, NDArray[Any]], weights: Any) -> dict[str, float]:
    """Optimal-move rate and outcome accuracy on graded boards, in per cent."""
    result = {}
    for name in sorted({key.split(":")[0] for key in graded}):
        boards, scores = graded[f"{name}:boards"], graded[f"{name}:scores"].astype(int)
        moves = np.asarray(network.best_moves(weights, boards))
        score, best = scores[np.arange(len(moves)), moves], scores.max(1)
        result[f"{name}_optimal"] = round(float((score == best).mean() * 100), 2)
        result[f"{name}_outcome"] = round(float((np.sign(score) == np.sign(best)).mean() * 100), 2)
    return result


def learning_rate(highest: float, share: float) -> float:
    """Half a cosine over the share of the time that is gone."""
    return highest * 0.5 * (1 + math.cos(math.pi * min(1.0, share)))


def prove_start(
    layers: Layers, games: Games, most_stones: int, choose: Choose, functions: tuple[Any, Any], say: Callable[..., None]
) -> tuple[Layers, Proof]:
    """The positions, with those added that a proof of the empty board needs, and their proven moves.

    Where the network's games reach a position that is not won, its other moves are enumerated: first late in the game,
    where few positions follow, and then earlier, until the empty board is won.
    """
    proofs, others = functions
    before = CELLS
    for stones in [*range((most_stones - 4) // 4 * 4, 3, -4), None]:
        proof = prove(layers, most_stones, proofs)
        lost = {n: keys[proof[n][np.searchsorted(layers[n], keys)] == 0] for n, keys in games.keys.items() if len(keys)}
        say("proved", positions=size(layers), start_is_won=bool(proof[0][0]), not_won=size(lost), expanded_from=before)
        if proof[0][0] or stones is None or size(layers) > MOST_POSITIONS:
            break
        late = {n: keys for n, keys in lost.items() if stones <= n < min(before, most_stones - 1)}
        starts = {n + 2: other_moves(keys, others) for n, keys in late.items()}
        layers = united(layers, enumerate_games(choose, starts, most_stones, layers).keys)
        before = stones
    return layers, proof


def run(options: argparse.Namespace) -> None:
    import jax

    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)

    def say(what: str, **facts: Any) -> None:
        row = {"seconds": round(time.monotonic() - began, 1), "what": what} | facts
        print(json.dumps(row), flush=True)
        with (options.out / "rounds.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")

    graded = dict(np.load(options.graded)) if options.graded else {}
    excluded = graded.pop("excluded", np.empty(0, np.uint64))
    kept = kept_boards(options.boards, options.random_boards, excluded)
    network = Network(options.network)
    learner = Learner(network, kept, options.batch_size, options.capacity)
    proofs = jax.jit(proven_moves)
    functions = proofs, jax.jit(replies)
    start: Layers = {0: np.zeros(1, np.uint64)}
    layers: Layers = {}
    best: tuple[float, float] | None = None
    say(
        "ready",
        device=jax.devices()[0].device_kind,
        boards=len(kept),
        **grades(network, graded, learner.average),
    )
    number = 0
    while True:
        number += 1
        round_began = time.monotonic()
        choose = network.chooser(learner.average)
        games = enumerate_games(choose, start, options.most_stones)
        count = games.losing + games.draws
        say("enumerated", round=number, positions=size(games.keys), losing_replies=games.losing, draws=games.draws,
            **grades(network, graded, learner.average))  # fmt: skip
        precision = "bfloat16"
        if not count:
            precise = enumerate_games(network.chooser(learner.average, "float32"), start, options.most_stones)
            count, precision = precise.losing + precise.draws, "float32"
            say(
                "enumerated in float32",
                positions=size(precise.keys),
                losing_replies=precise.losing,
                draws=precise.draws,
            )
            layers = united(layers, precise.keys)
        network.save(learner.average, options.out / "last.keras")
        over = time.monotonic() - began > options.seconds
        layers, proof = prove_start(united(layers, games.keys), games, options.most_stones, choose, functions, say)
        learned = layers
        if proof[0][0]:  # else learn what is proven, wherever it is
            learned = enumerate_games(choose, start, options.most_stones, proof=(layers, proof)).keys
            proof = prove(learned, options.most_stones, proofs)
        keys = np.concatenate([learned[stones] for stones in sorted(learned)])
        moves = np.concatenate([proof[stones] for stones in sorted(learned)])
        fit = (moves != 0) & ~np.isin(keys, excluded)
        pool = learner.pool(keys[fit], moves[fit])
        margins = learner.margins(pool)
        wrong = int((margins <= 0).sum())
        say("strategy", positions=len(keys), moves=round(float(np.bitwise_count(moves).mean()), 3), wrong=wrong,
            below_1=int((margins < 1).sum()))  # fmt: skip
        score = (count, wrong)
        if best is None or score < best:
            best = score
            network.save(learner.average, options.out / "best.keras")
            say("best so far", round=number, not_won=count, wrong=wrong, precision=precision)
        if over or not count:
            break
        until = min(time.monotonic() + options.round_seconds, began + options.seconds)
        cycle = 0
        while True:
            share = (time.monotonic() - began) / options.seconds
            rate = learning_rate(options.lr, share) * min(1.0, (learner.steps + 100) / 600)
            losses = learner.learn(pool, margins, options.calls, rate)
            margins = learner.margins(pool)
            cycle += 1
            wrong = int((margins <= 0).sum())
            kept_loss, move_loss = (round(loss, 5) for loss in losses)
            facts = {"cycle": cycle, "steps": learner.steps, "lr": round(rate, 7), "below_1": int((margins < 1).sum())}
            say("learned", **facts, kept_loss=kept_loss, move_loss=move_loss, wrong=wrong)
            if not math.isfinite(sum(losses)):
                raise SystemExit("the loss is not a number; start again with a smaller --lr")
            if time.monotonic() > until or not wrong:
                break
        say("round over", round=number, took=round(time.monotonic() - round_began, 1))
    say("done", not_won=best[0] if best else None)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--network", type=Path, required=True)
    parser.add_argument("--boards", type=Path, nargs="+", required=True, help="boards to keep the network's answers on")
    parser.add_argument("--random-boards", type=int, default=4_000_000, help="about so many boards after random moves")
    parser.add_argument("--graded", type=Path, help="graded boards (dev half) to report on")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--round-seconds", type=float, default=50, help="seconds of learning between two enumerations")
    parser.add_argument(
        "--calls", type=int, default=10, help="hundreds of steps between two evaluations of all positions"
    )
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--lr", type=float, default=6e-4)
    parser.add_argument("--capacity", type=int, default=1 << 24, help="most positions to learn")
    parser.add_argument("--most-stones", type=int, default=CELLS - 2)
    parser.add_argument("--out", type=Path, required=True)
    run(parser.parse_args(words))


if __name__ == "__main__":
    main()
