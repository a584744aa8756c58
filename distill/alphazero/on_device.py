"""Self-play on an accelerator: games, searches, labels and training steps are all there, and the host only counts.

`selfplay` uses it where Keras runs on JAX with an accelerator. What it gains: an H100 labels 117,000 boards a second
so, and 3,300 where 15 processor cores search and it only evaluates the network. Workers with `machine.device_lanes` 0
replace it. Import it only where JAX is there.

Playing (`device_games.py`) and learning (`training/on_device.py`) take turns. The learner draws its batches from a
share of the window of labels, which is not stored: a resumed run fills it again. A stage with a Gumbel root searches by
PUCT here, and learns the improved policy of its visits and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from distill.alphazero import iterations
from distill.alphazero.device_games import INNER, VALUE_STEPS, new_lanes, new_window, play_step
from distill.alphazero.iterations import End
from distill.alphazero.run_files import Metrics
from distill.alphazero.settings import SelfPlayConfig
from distill.common import say
from distill.datasets import batching, canonical
from distill.game import encoding
from distill.mcts import compiling
from distill.mcts.device import DeviceSearch
from distill.mcts.settings import PuctSettings
from distill.networks import backend
from distill.networks.device_labeller import evaluates
from distill.training import checkpoint, losses, step, streams

# None of these is a setting. Whoever changes one adds 1 to `run_files.DEVICE_VERSION`.

WINDOW = 1 << 23
"""The most labels that are kept: 200 MB."""
PLAY_SHARE = 0.55
"""Share of the time that plays."""
ROUND, LONGER, LONGEST = 1.5, 0.03, 6.0
"""Seconds of the first rounds; then this share of the seconds gone; seconds of the longest."""
REUSE = 8
"""Most times that a label is drawn, on average."""
WARM_UP_STEPS = 300


def batch_of(columns: Mapping[str, Any], rows: Any, mirrored: Any) -> streams.Batch:
    """The batch of these rows of a window, some of them mirrored; boards that are not learned have the weight 0."""
    boards = encoding.boards_of_words(columns["current"][rows], columns["mask"][rows])
    boards = jnp.where(mirrored[:, None, None], boards[:, :, ::-1], boards)
    policy = columns["policy"][rows].astype(jnp.float32)
    policy = jnp.where(mirrored[:, None], policy[:, ::-1], policy)
    total = policy.sum(1)
    value = columns["value"][rows].astype(jnp.float32) / VALUE_STEPS
    targets = {"logits": policy / jnp.maximum(total, 1)[:, None], "value": value}
    return boards, targets, (total > 0).astype(jnp.float32)


class DevicePlay:
    """The `loop.Play` on a device: games, window and learner.

    Args:
      learner: the network that learns; the average of its weights plays.
      now: the clock, in seconds.
    """

    def __init__(self, learner: step.TrainingModel, config: SelfPlayConfig, now: Callable[[], float]) -> None:
        loss, lanes, moves = losses.policy_and_value_loss, config.machine.device_lanes or 0, config.opening_moves
        # Boards that are not learned have the weight 0, so the value's error must be that of each board.
        learner.loss_of_boards = partial(loss, value_weight=learner.recipe.targets.value_weight, by_board=True)
        self.learner, self.config, self.now = learner, config, now
        most = max([config.search.simulations, *(stage.simulations for stage in config.schedule.stages)])
        settings = config.search.replace(root="puct", simulations=most)
        # A simulation adds at most one node.
        search = DeviceSearch(evaluate=evaluates(learner), settings=settings, lanes=lanes, inner=min(INNER, most))
        with jax.enable_x64(True):
            self.lanes = jax.jit(partial(new_lanes, count=lanes, moves=moves))(jax.random.key(config.seed % 2**63))
            self.window = new_window(max(WINDOW, 2 * lanes * (1 + INNER)))
            self.excluded = jnp.asarray(canonical.excluded_keys("benchmark"))
        self.compiled = jax.jit(partial(play_step, search, moves), donate_argnums=(0, 1))
        self.stream = streams.Table(columns={}, picks=self.picks(), batch=batch_of, on_device=backend.on_accelerator())
        self.searches, self.began = 0, now()

    def picks(self) -> Iterator[batching.Pick]:
        """Rows of the newest labels, without end: so many as `config.replay` says, of all labels so far."""
        random, size = np.random.default_rng(self.config.seed), len(self.window.value)
        recipe, replay = self.learner.recipe, self.config.replay
        while True:
            written = int(self.window.written)
            newest = min(max(replay.rows or size, int((replay.share or 0.0) * written)), written, size)
            rows = (written - 1 - random.integers(0, newest, recipe.batch_size)) % size
            yield rows, random.random(recipe.batch_size) < (0.5 if recipe.mirror else 0)

    def warm_up(self) -> None:
        """Compile a step of the games, which is played, and one of the training, which leaves the network as it was."""
        say("compiling self-play for the device")
        before = checkpoint.snapshot(self.learner)
        self.play(self.config.search_at(0.0), step.learned_weights(self.learner))
        step.fit(self.learner, self.stream, range(1), lambda _: 0.0)
        checkpoint.restore(self.learner, before)
        if self.config.arena.gate is not None:  # the arena is played on the CPU
            compiling.prepare("puct")

    def iterate(self, number: int, end: End, share: float, _finished: Sequence[Metrics]) -> Metrics:
        """Play and learn in turns until the end of an iteration (`loop.Play`); the metrics also have the speeds."""
        search, learning_rate = self.config.search_at(share), iterations.learning_rate(self.config, number, share)
        games, written, searches = int(self.lanes.games), int(self.window.written), self.searches
        turns = [self.turn(search, learning_rate, end.is_over)]
        while not end.is_over():
            turns.append(self.turn(search, learning_rate, end.is_over))
        playing, learning, steps, loss = map(sum, zip(*turns, strict=True))
        labels = int(self.window.written) - written
        evaluations = (self.searches - searches) * search.simulations * len(self.lanes.current)
        return {
            "games": int(self.lanes.games) - games,
            "rows": labels,
            "games_hash": None,  # they stay on the device
            "simulations": search.simulations,
            "training_loss": loss / steps,
            "steps": steps,
            "step_seconds": round(learning, 2),
            "replay_boards": min(int(self.window.written), len(self.window.value)),
            "labels_per_second": round(labels / playing),
            "evaluations_per_second": round(evaluations / playing),
            "learning_rate": learning_rate,
        }

    def play(self, search: PuctSettings, weights: Any) -> int:
        """Search and play a move in each game; returns the number of labels so far, which waits for the device."""
        with jax.enable_x64(True):
            key = jax.random.fold_in(jax.random.key((self.config.seed + 1) % 2**63), self.searches)
            improved = search.root == "gumbel"
            how = np.int32(search.simulations), np.float32(search.noise_fraction), np.float32(improved)
            self.window, self.lanes = self.compiled(self.window, self.lanes, weights, self.excluded, key, *how)
        self.searches += 1
        self.stream.columns = {name: getattr(self.window, name) for name in ("current", "mask", "policy", "value")}
        return int(self.window.written)

    def turn(self, search: PuctSettings, learning_rate: float, is_over: Callable[[], bool]) -> tuple[float, ...]:
        """Play for some seconds, then learn for the time that belongs to it; both end when it is over.

        Returns the seconds of playing and of learning, the number of steps, and the sum of their losses.
        """
        began, before, weights = self.now(), int(self.window.written), step.learned_weights(self.learner)
        seconds = PLAY_SHARE * min(LONGEST, max(ROUND, LONGER * (began - self.began)))
        written = self.play(search, weights)
        while not is_over() and self.now() - began < seconds:
            written = self.play(search, weights)
        played, done = self.now(), int(self.learner.optimizer.iterations)
        until = played + (1 - PLAY_SHARE) / PLAY_SHARE * (played - began)
        steps, means = step.fit(
            self.learner,
            self.stream,
            range(max(1, REUSE * (written - before) // self.learner.recipe.batch_size)),
            lambda number: learning_rate * min(1, (done + number + 1) / WARM_UP_STEPS),
            is_over=lambda: is_over() or self.now() >= until,
        )
        return played - began, self.now() - played, steps, steps * means["loss"]
