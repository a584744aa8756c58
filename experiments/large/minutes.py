"""Self-play from random weights on one device, in minutes: searches, games, replay window and training, all on it.

    KERAS_BACKEND=jax python -m experiments.large.minutes --graded graded.npz --seconds 300 --out minutes

In: with `--graded`, the graded boards (dev half) that `boards.py --graded` wrote; they are also left out of training.
Out, in `--out`: `curve.csv`, a row an iteration; `network.keras`, the network after the last complete row; `run.json`,
settings, device and the seconds at which each level was passed. All three are written anew after each iteration, so
whoever stops the run loses one iteration. SIGTERM and Ctrl-C end it.

An iteration has a share of the clock. It plays: B games in lock step, in which the averaged weights choose moves by
search; the root of each search is labelled, and so are the nodes of its tree with enough visits. Then it learns: steps
on boards drawn from the newest part of the window. The host only waits and counts.

Where a search proves who wins, all open labels of its game get that result, discounted by the plies to it, as half of
their value; the other half is the value of their search.

Dimensions: B lanes, N rows of the window, A = 7 columns, K steps whose labels are still open, L labelled nodes.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from distill.common import write_json
from distill.game.rules import CELLS, COLUMNS, FULL_BOARD, has_four, mirror_bits
from distill.mcts import device
from distill.mcts.settings import PuctSettings

DISCOUNT = 0.98
VALUE_STEPS = 127
"""Steps of a stored value between 0 and 1."""
OPEN_STEPS = CELLS - 1
"""K: a game has no more positions before its last one."""
OPENINGS = ((0, 3), (0, 12), (4, 16), (6, 20), (8, 24), (8, 30))
"""Fewest and most random moves of an opening; each game draws one of these pairs."""
NEVER_OVER = 6
"""Stones with which no game is over."""
RANDOM_MOVES = (0.0, 0.1, 0.3)
"""Share of random moves of a game; each game draws one of these."""
SAMPLED_STONES = 16
"""Positions with fewer stones play a move drawn by visits, later ones the best."""
END_OF_PROVEN = 0.7
"""Share of the games that end when their result is proven; the others show how such positions are played."""
NOT_FOR_MUON = ["logits", "read_out", "of_side", "value_unit", "embedding", "relations"]
"""Layers that AdamW updates: outputs, and tables that are looked up."""
WARM_UP_STEPS = 300
EMA = 0.999
BEGAN = time.monotonic() - time.process_time()
"""About when this process began: the imports above keep one processor busy."""
LEVELS = {
    "uct:1000": {"midgame": (74.4, 93.2), "heldout": (76.2, 93.7)},
    "teacher:10000": {"midgame": (79.0, 94.6), "heldout": (80.4, 95.7)},
    "uct:100000": {"midgame": (80.8, 95.0), "heldout": (82.6, 95.9)},
}
"""Optimal-move rate and outcome accuracy of searches in percent, on the test half (`docs/results.md`)."""


class Window(NamedTuple):
    """The newest labels. Label number i is in row i mod N."""

    words: Any  # uint32 (N, 4): current and mask, each as its lower and upper half
    policy: Any  # uint8 (N, A): 255 times the policy to learn; all 0 for a board that is not learned
    value: Any  # int8 (N,): VALUE_STEPS times the value, for the side to move
    written: Any  # int32 (): labels so far


class Lanes(NamedTuple):
    """Games in lock step."""

    current: Any  # uint64 (B,)
    mask: Any  # uint64 (B,)
    random_moves: Any  # float32 (B,): share of the moves that is random
    open: Any  # int32 (B,): the latest positions of this game whose labels wait for a result
    first: Any  # int32 (K,): number of the first root's label 1, 2, ... steps ago


# Positions ------------------------------------------------------------------------------------------------------------


def random_columns(key: Any, legal: Any) -> Any:
    """int32 (B,): a random one of the columns in bool (B, A)."""
    return jnp.where(legal, jax.random.uniform(key, legal.shape, jnp.float32), -1).argmax(1).astype(jnp.int32)


def after(current: Any, mask: Any, column: Any) -> tuple[Any, Any, Any, Any]:
    """Positions after these moves; whether the last stone wins; whether the board is full."""
    stone = jnp.take_along_axis(device.landed(mask), column[:, None], 1)[:, 0]
    return current ^ mask, mask | stone, has_four(current | stone), (mask | stone) == np.uint64(FULL_BOARD)


def openings(key: Any, count: int) -> tuple[Any, Any]:
    """Positions after random moves, none of them over; in half of them a side blocks a win where it can.

    A game that ends on the way gives its position with NEVER_OVER stones.
    """
    pair, length, block, moves = jax.random.split(key, 4)
    pairs = jnp.asarray(np.array(OPENINGS, np.int32))[jax.random.randint(pair, (count,), 0, len(OPENINGS))]
    left = jax.random.randint(length, (count,), pairs[:, 0], pairs[:, 1] + 1)
    blocks = jax.random.bernoulli(block, shape=(count,))

    def step(number: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
        current, mask, early, over = before
        stones = device.landed(mask)
        threats = (device.winning_cells(current ^ mask)[:, None] & stones) != 0
        column = random_columns(jax.random.fold_in(moves, number), stones != 0)
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
    most = max(high for _, high in OPENINGS)
    current, mask, early, over = jax.lax.fori_loop(0, most, step, start)
    return jnp.where(over, early[0], current), jnp.where(over, early[1], mask)


def canonical_keys(current: Any, mask: Any) -> Any:
    """uint64 (B,): `current + mask` of each board or its mirror image, as `rules.canonicalise` chooses."""
    other, other_mask = mirror_bits(current), mirror_bits(mask)
    turned = (other < current) | ((other == current) & (other_mask < mask))
    return jnp.where(turned, other + other_mask, current + mask)


def is_in(keys: Any, sorted_keys: Any) -> Any:
    """bool (B,): which keys occur among the sorted ones."""
    if not len(sorted_keys):
        return jnp.zeros(keys.shape, jnp.bool_)
    place = jnp.minimum(jnp.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return sorted_keys[place] == keys


def new_lanes(seed: Any, count: int) -> Lanes:
    key, shares = jax.random.split(jax.random.key(seed))
    current, mask = openings(key, count)
    # "First" labels that are older than the window are never written to.
    return Lanes(current, mask, drawn_shares(shares, count), jnp.zeros(count, jnp.int32),
                 jnp.zeros(OPEN_STEPS, jnp.int32))  # fmt: skip


def drawn_shares(key: Any, count: int) -> Any:
    """float32 (B,): a share of random moves for each game."""
    return jnp.asarray(RANDOM_MOVES, jnp.float32)[jax.random.randint(key, (count,), 0, len(RANDOM_MOVES))]


# Play -----------------------------------------------------------------------------------------------------------------


def play_step(
    search: device.DeviceSearch,
    excluded: Any,
    window: Window,
    lanes: Lanes,
    weights: Any,
    key: Any,
    simulations: Any,
    noise: Any,
    inner_visits: Any,
    improved: Any,
) -> tuple[Window, Lanes]:
    """Search every lane's position, write the labels, play a move.

    Args:
      excluded: uint64 (E,), sorted keys of boards that are not learned.
      simulations, noise: number of simulations, share of noise in the roots' priors.
      inner_visits: fewest visits of a labelled node below the root.
      improved: share of the improved policy in the policy to learn; the rest are the shares of the visits.
    """
    noisy, draw, wild, wild_column, ends, fresh, fresh_share = jax.random.split(key, 7)
    count, capacity = search.lanes, len(window.value)
    # Dirichlet noise of concentration 1: exponential variates over their sum.
    gamma = jax.random.exponential(noisy, (count, COLUMNS), jnp.float32)
    labels = search(lanes.current, lanes.mask, weights, simulations, gamma, noise)
    learned = ~is_in(canonical_keys(labels.current.reshape(-1), labels.mask.reshape(-1)), excluded)
    learned = learned.reshape(labels.reached.shape)

    # Write the roots' labels, then those of other nodes that are worth it.
    inner = learned & ((labels.reached >= inner_visits) | (labels.proven & (labels.reached > 0)))
    inner = inner[:, 1:].reshape(-1)
    written = window.written
    number = jnp.concatenate([
        written + jnp.arange(count, dtype=jnp.int32),
        jnp.where(inner, written + count + jnp.cumsum(inner, dtype=jnp.int32) - 1, -1),
    ])  # fmt: skip
    row = jnp.where(number >= 0, number % capacity, capacity)

    def rows(values: Any) -> Any:
        return jnp.concatenate([values[:, 0], values[:, 1:].reshape(-1, *values.shape[2:])])

    shares = labels.visits / jnp.maximum(labels.visits.sum(-1, keepdims=True), 1)
    target = jnp.rint(255 * (improved * labels.policy + (1 - improved) * shares)).astype(jnp.uint8)
    target = jnp.where(learned[..., None], target, 0)
    halves = [bits >> shift & 0xFFFFFFFF for bits in (labels.current, labels.mask) for shift in (0, 32)]
    words = jnp.stack(halves, axis=-1).astype(jnp.uint32)
    value = jnp.rint(VALUE_STEPS * labels.value).astype(jnp.int8)
    window = Window(
        window.words.at[row].set(rows(words), mode="drop"),
        window.policy.at[row].set(rows(target), mode="drop"),
        window.value.at[row].set(rows(value), mode="drop"),
        written + count + inner.sum(dtype=jnp.int32),
    )

    # Play a move.
    root_visits, proven = labels.visits[:, 0], labels.proven[:, 0]
    shares = jnp.cumsum(root_visits, 1) / root_visits.sum(1, keepdims=True)
    threshold = jax.random.uniform(draw, (count, 1), jnp.float32)
    sampled = jnp.minimum((shares <= threshold).sum(1), COLUMNS - 1).astype(jnp.int32)
    early = jax.lax.population_count(lanes.mask) < SAMPLED_STONES
    is_random = jax.random.uniform(wild, (count,), jnp.float32) < lanes.random_moves
    legal = device.landed(lanes.mask) != 0
    column = jnp.where(early, sampled, labels.label[:, 0])
    column = jnp.where(is_random, random_columns(wild_column, legal), column)
    current, mask, won, full = after(lanes.current, lanes.mask, column)

    # Half of the value of open labels becomes the game's result, discounted. An unproven last move is a draw.
    drawn = full & ~won & ~proven
    known = proven | drawn
    result = jnp.where(drawn, 0, labels.value[:, 0])
    ago = jnp.arange(1, OPEN_STEPS + 1, dtype=jnp.int32)[:, None]  # (K, 1)
    first = lanes.first[:, None] + jnp.arange(count, dtype=jnp.int32)
    settled = known & (ago <= lanes.open) & (window.written - first <= capacity)
    row = jnp.where(settled, first % capacity, capacity).reshape(-1)
    returns = (VALUE_STEPS * result * (-DISCOUNT) ** ago.astype(jnp.float32)).reshape(-1)
    before = window.value[jnp.minimum(row, capacity - 1)].astype(jnp.float32)
    mixed = jnp.rint(0.5 * before + 0.5 * returns).astype(jnp.int8)
    window = window._replace(value=window.value.at[row].set(mixed, mode="drop"))

    # Start the next games.
    over = won | full | (proven & (jax.random.uniform(ends, (count,), jnp.float32) < END_OF_PROVEN))
    new_current, new_mask = openings(fresh, count)
    lanes = Lanes(
        jnp.where(over, new_current, current),
        jnp.where(over, new_mask, mask),
        jnp.where(over, drawn_shares(fresh_share, count), lanes.random_moves),
        jnp.where(over | known | is_random, 0, jnp.minimum(lanes.open + 1, OPEN_STEPS)),
        jnp.concatenate([written[None], lanes.first[:-1]]),
    )
    return window, lanes


# Learning -------------------------------------------------------------------------------------------------------------


class Learned(NamedTuple):
    """What a training step changes."""

    trainable: Any
    fixed: Any  # such as the statistics of batch norms
    optimizer: Any
    average: Any  # the trainable weights' exponential moving average, which plays


def boards_of_words(words: Any) -> Any:
    """int8 (B, 6, 7) of words (B, 4)."""
    cells = np.array([column * 7 + 5 - line for line in range(6) for column in range(COLUMNS)])
    pairs = words.reshape(-1, 2, 2)
    bits = ((pairs[:, :, cells // 32] >> (cells % 32).astype(np.uint32)) & 1).astype(jnp.int8)
    return (2 * bits[:, 0] - bits[:, 1]).reshape(-1, 6, COLUMNS)


def learner(
    model: Any, optimizer: Any, batch_size: int, value_weight: float, least: int, seed: int
) -> Callable[..., tuple[Learned, Any]]:
    """A function that takes steps: state, window, number of steps, number of the first, its rate, share of the window.

    It returns the state and the mean losses, float32 (2,): divergence of the policy, squared error of the value.
    """
    rate_at = [variable is optimizer._learning_rate for variable in optimizer.variables].index(True)

    def batch(key: Any, window: Window, share: Any) -> tuple[Any, Any, Any]:
        """Boards, targets of the policy and values, from the newest `share` of all labels; half of them mirrored."""
        picks, turns = jax.random.split(key)
        newest = jnp.maximum(share * window.written, least).astype(jnp.int32)
        newest = jnp.minimum(newest, jnp.minimum(window.written, len(window.value)))
        age = (jax.random.uniform(picks, (batch_size,), jnp.float32) * newest).astype(jnp.int32)
        row = (window.written - 1 - jnp.minimum(age, newest - 1)) % len(window.value)
        boards, visits = boards_of_words(window.words[row]), window.policy[row].astype(jnp.float32)
        turned = jax.random.bernoulli(turns, shape=(batch_size,))
        boards = jnp.where(turned[:, None, None], boards[:, :, ::-1], boards)
        visits = jnp.where(turned[:, None], visits[:, ::-1], visits)
        return boards, visits, window.value[row].astype(jnp.float32) / VALUE_STEPS

    def loss_of(trainable: Any, fixed: Any, boards: Any, visits: Any, value: Any) -> tuple[Any, Any]:
        outputs, fixed = model.stateless_call(trainable, fixed, boards, training=True)
        is_learned = (visits.sum(1) > 0).astype(jnp.float32)
        target = visits / jnp.maximum(visits.sum(1, keepdims=True), 1)
        entropy = -(target * jnp.log(target + 1e-9)).sum(1)
        policy = -(target * jax.nn.log_softmax(outputs["logits"].astype(jnp.float32))).sum(1)
        error = jnp.square(outputs["value"].astype(jnp.float32) - value)
        number = jnp.maximum(is_learned.sum(), 1)
        losses = [(is_learned * each).sum() / number for each in (policy, policy - entropy, error)]
        return losses[0] + value_weight * losses[2], (fixed, jnp.stack(losses[1:]))

    def steps(state: Learned, window: Window, count: Any, first: Any, rate: Any, share: Any) -> tuple[Learned, Any]:
        def step(number: Any, before: tuple[Learned, Any]) -> tuple[Learned, Any]:
            (trainable, fixed, own, average), total = before
            key = jax.random.fold_in(jax.random.key(seed), first + number)
            gradient = jax.value_and_grad(loss_of, has_aux=True)
            (_, (fixed, losses)), gradients = gradient(trainable, fixed, *batch(key, window, share))
            done = (first + number).astype(jnp.float32)
            own[rate_at] = (rate * jnp.minimum(1, (done + 1) / WARM_UP_STEPS)).astype(own[rate_at].dtype)
            trainable, own = optimizer.stateless_apply(own, gradients, trainable)
            decay = jnp.minimum(EMA, (1 + done) / (10 + done))
            average = [decay * mean + (1 - decay) * value for mean, value in zip(average, trainable, strict=True)]
            return Learned(trainable, fixed, own, average), total + losses

        state, total = jax.lax.fori_loop(0, count, step, (state, jnp.zeros(2, jnp.float32)))
        return state, total / jnp.maximum(count, 1)

    return steps


# The run --------------------------------------------------------------------------------------------------------------


def flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=300, help="length of the run, with imports and compiling")
    parser.add_argument("--arch", default="pillar", help="network of distill.networks with a value head")
    parser.add_argument("--arch-set", nargs="*", default=[], metavar="NAME=N", help="its whole-number arguments")
    parser.add_argument("--graded", type=Path, help=".npz of graded boards, written by boards.py --graded")
    parser.add_argument("--lanes", type=int, default=1 << 15, help="games in lock step")
    parser.add_argument("--simulations", type=int, nargs=2, default=(16, 64), help="at the begin, and from the half on")
    parser.add_argument("--noise", type=float, default=0.25, help="share of noise at the roots at the begin; then less")
    parser.add_argument(
        "--improved-until", type=float, default=0.4, help="share of the time that learns improved policies, not visits"
    )
    parser.add_argument("--inner", type=int, default=4, help="most labelled nodes of a tree besides the root")
    parser.add_argument("--play-share", type=float, default=0.55, help="share of the time that plays")
    parser.add_argument("--reuse", type=float, default=8, help="most steps: times that a label is drawn, on average")
    parser.add_argument("--window", type=int, default=1 << 23, help="rows of the replay window")
    parser.add_argument("--window-share", type=float, default=0.4, help="newest share of all labels that is learned")
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--lr", type=float, default=3e-3, help="highest learning rate")
    parser.add_argument("--value-weight", type=float, default=0.5)
    parser.add_argument(
        "--iteration", type=float, nargs=2, default=(1.5, 6), help="seconds: the first, and the longest"
    )
    parser.add_argument("--iterations", type=int, default=10**6, help="most iterations")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    options = flags().parse_args(words)
    os.environ.setdefault("KERAS_BACKEND", "jax")
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        Run(options).run()
    except KeyboardInterrupt:
        print(f"stopped after {clock():.0f} s; {options.out} has the rows until then", flush=True)
        return 130
    return 0


def clock() -> float:
    """Seconds since this process began, with all imports."""
    return time.monotonic() - BEGAN


class Run:
    """A run: what is on the device, its compiled functions, and the curve."""

    def __init__(self, options: argparse.Namespace) -> None:
        import keras

        from distill import networks
        from distill.networks import heads
        from distill.networks.device_labeller import evaluates

        networks.start_backend()
        self.options = options
        options.out.mkdir(parents=True, exist_ok=True)
        graded = dict(np.load(options.graded)) if options.graded else {}
        self.excluded = np.sort(graded.pop("excluded", np.zeros(0, np.uint64)))
        names = sorted({name.split(":")[0] for name in graded})
        self.graded = [(name, graded[f"{name}:boards"], graded[f"{name}:scores"].astype(int)) for name in names]

        keras.utils.set_random_seed(options.seed)
        arguments = {name: int(number) for name, _, number in (word.partition("=") for word in options.arch_set)}
        self.exported = networks.build(options.arch, True, **arguments)  # float32, as its file
        keras.config.set_dtype_policy("mixed_bfloat16" if options.precision == "bfloat16" else "float32")
        keras.utils.set_random_seed(options.seed)
        self.core = networks.build(options.arch, True, **arguments)
        model = heads.played(self.core)
        optimizer = keras.optimizers.Muon(0.0, weight_decay=0.01, adam_weight_decay=0.01, exclude_layers=NOT_FOR_MUON)
        optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
        optimizer.build(model.trainable_variables)
        weights = model.trainable_variables  # also the first average
        parts = (weights, model.non_trainable_variables, optimizer.variables, weights)
        self.state = Learned(*([jnp.array(variable.value, copy=True) for variable in part] for part in parts))

        settings = PuctSettings(simulations=max(options.simulations), exploration=1.0, discount=DISCOUNT)
        search = device.DeviceSearch(
            evaluate=evaluates(model), settings=settings, lanes=options.lanes, inner=options.inner
        )
        rows = max(options.window, 2 * options.lanes * (1 + options.inner))
        with jax.enable_x64(True):
            self.lanes = jax.jit(functools.partial(new_lanes, count=options.lanes))(np.int32(options.seed))
            excluded = jnp.asarray(self.excluded)
        self.window = Window(
            jnp.zeros((rows, 4), jnp.uint32), jnp.zeros((rows, COLUMNS), jnp.uint8), jnp.zeros(rows, jnp.int8),
            jnp.int32(0),
        )  # fmt: skip

        def play(
            window: Window, lanes: Lanes, average: Any, fixed: Any, excluded: Any, number: Any, *chosen: Any
        ) -> Any:
            key = jax.random.fold_in(jax.random.key(options.seed + 1), number)
            return play_step(search, excluded, window, lanes, (average, fixed), key, *chosen)

        self.on_device_excluded = excluded
        least = 4 * options.lanes
        learn = learner(model, optimizer, options.batch_size, options.value_weight, least, options.seed)
        choose = lambda average, fixed, boards: model.stateless_call(  # noqa: E731
            average, fixed, boards, training=False)[0]["logits"].argmax(1)  # fmt: skip
        started = clock()
        print(f"{started:.0f} s: {jax.devices()[0]}, JAX {jax.__version__}; {self.core.count_params():,} parameters, "
              f"window of {rows:,} rows, {len(self.excluded):,} boards excluded", flush=True)  # fmt: skip
        with jax.enable_x64(True):
            chosen = self.chosen(0, 16, 0.0, 0.0)
            play_arguments = (self.window, self.lanes, self.state.average, self.state.fixed, excluded, *chosen)
            lowered = {"play": jax.jit(play, donate_argnums=(0, 1)).lower(*play_arguments)}
        numbers = (np.int32(1), np.int32(0), np.float32(0), np.float32(0))
        lowered["learn"] = jax.jit(learn, donate_argnums=0).lower(self.state, self.window, *numbers)
        self.all_boards = np.concatenate([boards for _, boards, _ in self.graded]) if self.graded else None
        if self.graded:
            lowered["grade"] = jax.jit(choose).lower(self.state.average, self.state.fixed, self.all_boards)
        self.functions: dict[str, Any] = {}

        def compiled(name: str) -> None:
            with jax.enable_x64(name == "play"):
                self.functions[name] = lowered[name].compile()
            print(f"{clock():.0f} s: compiled {name}", flush=True)

        with ThreadPoolExecutor(3) as threads:
            list(threads.map(compiled, lowered))
        self.compile_seconds = clock() - started
        self.steps = self.searches = 0
        self.saver = ThreadPoolExecutor(1)
        self.saved: Future[None] = self.saver.submit(lambda: None)
        self.curve: list[dict[str, Any]] = []
        self.passed: dict[str, float] = {}

    def chosen(self, number: int, simulations: int, noise: float, improved: float) -> tuple[Any, ...]:
        """The last arguments of a play step, always of the same types."""
        chosen = np.int32(simulations), np.float32(noise), np.int32(max(16, simulations // 2)), np.float32(improved)
        return np.int32(number), *chosen

    def play(self, count: int, simulations: int, noise: float, improved: float) -> None:
        """Start so many play steps; they run while the host goes on."""
        with jax.enable_x64(True):
            for _ in range(count):
                self.window, self.lanes = self.functions["play"](
                    self.window, self.lanes, self.state.average, self.state.fixed, self.on_device_excluded,
                    *self.chosen(self.searches, simulations, noise, improved),
                )  # fmt: skip
                self.searches += 1

    def run(self) -> None:
        options = self.options
        search_cost = step_cost = None  # seconds a simulation of all lanes, and a training step
        written, started = 0, clock()
        while (left := options.seconds - clock()) > 0.5 and len(self.curve) < options.iterations:
            progress = (clock() - started) / (options.seconds - started)
            first, longest = options.iteration
            share = min(left, min(longest, max(first, 0.03 * clock())))
            begin, end = options.simulations
            simulations = round(begin + (end - begin) * min(1, progress / 0.5))
            noise = options.noise * max(0.2, 1 - progress / 0.5)
            # Play.
            began = clock()
            count = 1 if search_cost is None else int(options.play_share * share / (search_cost * simulations))
            count = min(max(1, count), 400)
            self.play(count, simulations, noise, float(progress < options.improved_until))
            now = int(self.window.written)
            boards, written = now - written, now
            play_seconds = clock() - began
            cost = play_seconds / (count * simulations)
            search_cost = cost if search_cost is None else 0.5 * (search_cost + cost)
            # Learn.
            began = clock()
            steps = 10 if step_cost is None else int((1 - options.play_share) * share / step_cost)
            steps = max(1, min(steps, int(options.reuse * boards / options.batch_size)))
            rate = options.lr * max(0.02, 0.5 * (1 + math.cos(math.pi * min(1, progress))))
            numbers = (np.int32(steps), np.int32(self.steps), np.float32(rate), np.float32(options.window_share))
            self.state, losses = self.functions["learn"](self.state, self.window, *numbers)
            policy, value = (float(loss) for loss in losses)
            self.steps += steps
            learn_seconds = clock() - began
            cost = learn_seconds / steps
            step_cost = cost if step_cost is None else 0.5 * (step_cost + cost)
            if not math.isfinite(policy + value):
                raise SystemExit(f"the loss is not a number after {self.steps} steps")
            self.report({
                "seconds": round(clock(), 2), "compile_seconds": round(self.compile_seconds, 2),
                "iteration": len(self.curve) + 1, "simulations": simulations, "play_steps": count,
                "play_seconds": round(play_seconds, 3), "learn_seconds": round(learn_seconds, 3), "boards": written,
                "boards_per_s": round(boards / play_seconds),
                "evaluations_per_s": round(count * simulations * options.lanes / play_seconds), "steps": self.steps,
                "learned_per_s": round(steps * options.batch_size / learn_seconds), "lr": round(rate, 6),
                "policy_divergence": round(policy, 5), "value_error": round(value, 5),
            })  # fmt: skip
            self.save()
        if not self.curve:
            raise SystemExit(f"no iteration fits {options.seconds} seconds: compiling took {self.compile_seconds:.0f}")
        self.saved.result()
        print(json.dumps({"network": str(options.out / "network.keras"), "passed": self.passed} | self.curve[-1]))

    def report(self, row: dict[str, Any]) -> None:
        """Grade the averaged weights, and add a row to the curve's file."""
        if self.graded:
            moves = np.asarray(self.functions["grade"](self.state.average, self.state.fixed, self.all_boards))
            for name, boards, scores in self.graded:
                mine, moves = moves[: len(boards)], moves[len(boards) :]
                got, best = scores[np.arange(len(mine)), mine], scores.max(1)
                row[f"{name}_optimal"] = round(float((got == best).mean() * 100), 2)
                row[f"{name}_outcome"] = round(float((np.sign(got) == np.sign(best)).mean() * 100), 2)
        self.curve.append(row)
        with (self.options.out / "curve.csv").open("w" if len(self.curve) == 1 else "a") as file:
            if len(self.curve) == 1:
                file.write(",".join(row) + "\n")
            file.write(",".join(map(str, row.values())) + "\n")
        grades = ", ".join(f"{name} {row[f'{name}_optimal']} / {row[f'{name}_outcome']}" for name, *_ in self.graded)
        print(f"{row['seconds']:.1f} s: {row['simulations']} simulations, {row['boards']:,} boards, "
              f"{row['boards_per_s']:,}/s, {row['evaluations_per_s']:,} evaluations/s; {row['steps']} steps, "
              f"{row['learned_per_s']:,} boards/s; loss {row['policy_divergence']} {row['value_error']}; {grades}",
              flush=True)  # fmt: skip
        for level, expected in LEVELS.items():
            rates = [(row.get(f"{name}_{kind}", 0), rate) for name, pair in expected.items()
                     for kind, rate in zip(("optimal", "outcome"), pair, strict=True)]  # fmt: skip
            if level not in self.passed and self.graded and all(mine >= rate for mine, rate in rates):
                self.passed[level] = row["seconds"]
                print(f"{row['seconds']:.1f} s: above {level} without search "
                      f"({row['seconds'] - self.compile_seconds:.1f} s without compiling)", flush=True)  # fmt: skip

    def save(self) -> None:
        """Begin to write the averaged network and the record of the run, in a thread, while the device plays."""
        self.saved.result()  # the last one's errors
        weights = [np.asarray(weight) for weight in (*self.state.average, *self.state.fixed)]
        self.saved = self.saver.submit(self.write, weights, self.curve[-1])

    def write(self, weights: list[Any], row: dict[str, Any]) -> None:
        """Write these weights and the record, each file at once."""
        variables = (*self.exported.trainable_variables, *self.exported.non_trainable_variables)
        for variable, value in zip(variables, weights, strict=True):
            variable.assign(value)
        temporary = self.options.out / ".partial.keras"
        self.exported.save(temporary)
        os.replace(temporary, self.options.out / "network.keras")
        settings = {
            name: str(value) if isinstance(value, Path) else value for name, value in vars(self.options).items()
        }
        found = jax.devices()[0]
        memory = (found.memory_stats() or {}).get("peak_bytes_in_use")
        write_json(self.options.out / "run.json", {
            "settings": settings, "device": found.device_kind, "platform": found.platform, "jax": jax.__version__,
            "peak_memory_bytes": memory, "passed": self.passed, "levels": LEVELS, "last": row,
        })  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
