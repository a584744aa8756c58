"""Make a network win every game: enumerate its games, prove a strategy close to its own, learn it, and again.

    KERAS_BACKEND=jax python -m experiments.large.solve --network pillar-large --seconds 540 --out solve    # a GPU

In: a network whose moves mirror with the board, and games or packed boards (`--boards`). On their boards and on others
after random moves it must go on answering as it did before, which keeps its general strength (self-distillation).

Out, in `--out`: `best.keras`, the network with the fewest games that it does not win; `rounds.jsonl`, a line a step.
The same command resumes: what a killed process has evaluated, proven and learned is in `--out`, too.

Each round has three steps.

1. Enumerate. The network moves first, against every legal reply. Count the replies that win for the opponent and those
   that draw: zero of both, and every game is won.
2. Prove. Over all positions of all rounds, from the last layer to the first, find every move that wins at once or whose
   replies all lead to positions with such a move. Where the empty board has no such move yet, positions without one get
   those other moves enumerated that promise a win by the network's value, late in the game first. Then enumerate the
   games of the network that always takes its favourite among the proven moves: a winning strategy close to its own.
3. Learn all positions of both enumerations. The target is that any of the moves that are proven inside them is half a
   logit ahead of all others. Positions where the best other move is close to the set, or above it, come more often. Of
   the rest, a position of a layer of N comes as often as 1/√N: every game passes every layer, so few positions share
   many games.

A network that chooses a proven move in each of these positions wins every game, so the target stands still while it
learns.

Without an accelerator, JAX enumerates and proves, and the network runs on TensorFlow, which evaluates 3.7 times as many
boards there. The first enumeration of `pillar-large` takes two hours of two cores. With `--trust 2`, its 8-bit file
answers where its favourite is two logits ahead (`--quick-answers`), in three quarters of an hour, and later rounds
evaluate again only positions in which no move was two logits ahead, or no proven one. Such counts are estimates: the
row `trusted` says how many favourites in a sample of the others have changed unseen. Before a network counts as one
that wins every game, everything is evaluated.

    nice -n 19 python -m experiments.large.solve --precision float32 --random-boards 100000 --most-boards 100000 \
        --batch-size 2048 --steps 400 --cycle 100 --lr 1e-5 --ema 0.97 --trust 2 --out solve \
        --quick-answers models/reference/pillar-large/saved_model/model.int8.onnx

Dimensions: B positions of a batch, N positions of a layer, A = 7 columns.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from distill import networks
from distill.alphazero import grades
from distill.common import executors
from distill.common.settings import build
from distill.datasets import canonical
from distill.game import encoding, rules
from distill.game.rules import CELLS
from distill.networks import backend, copies, finding, heads, predict, saved
from distill.networks.copies import fast_copy
from distill.networks.evaluator import NetworkEvaluator
from distill.players.network import NetworkPlayer
from distill.training import checkpoint, step, streams
from distill.training.recipe import Recipe
from experiments.large import learning, positions
from experiments.large.positions import START, Answers, Keys, Layers

WARM_UP_STEPS = 600
SAMPLE = 1 << 14
"""Trusted answers that are evaluated again to see how many favourites have changed."""


@dataclass(kw_only=True)
class State:
    """How far a run is; with the model's checkpoint, all that the next step depends on.

    Attributes:
      best: games not won by `best.keras`, and how many positions it chose wrong in.
      steps: training steps of this round.
    """

    round: int = 1
    steps: int = 0
    best: list[int] = field(default_factory=list)


# The network ----------------------------------------------------------------------------------------------------------


def evaluation(model: keras.Model, exact: bool) -> Callable[[Any, Any], Any]:
    """A function of weights and keys uint64 (B,) that gives logits float32 (B, A), policy and value float16."""

    def evaluate(weights: Any, keys: Any) -> tuple[Any, Any, Any]:
        current, mask = rules.from_keys(keys)
        outputs, _ = model.stateless_call(*weights, encoding.boards_of_bits(current, mask), training=False)
        logits = jnp.where(rules.landing(mask) != 0, outputs["logits"].astype(jnp.float32), -jnp.inf)
        return logits, jax.nn.softmax(logits).astype(jnp.float16), outputs["value"].astype(jnp.float16)

    def exactly(weights: Any, keys: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return evaluate(weights, keys)

    return jax.jit(exactly if exact else evaluate)


def of_file(path: Path) -> Callable[[Keys], tuple[Any, Any]]:
    """Keys uint64 (B,) → logits and values by an exported network's file, on all cores."""
    evaluate, threads = predict.load(path), executors.cores()

    def of_part(keys: Keys) -> tuple[Any, Any]:
        current, mask = rules.from_keys(keys)
        outputs = evaluate(encoding.boards_of_bits(current, mask))
        return np.where(rules.legal_mask(mask), outputs["logits"], -np.inf).astype(np.float32), outputs["value"]

    pool = ThreadPoolExecutor(threads)  # ONNX Runtime computes a batch of this network with one

    def of_keys(keys: Keys) -> tuple[Any, Any]:
        logits, values = zip(*pool.map(of_part, np.array_split(keys, threads)), strict=True)
        return np.concatenate(logits), np.concatenate(values)

    return of_keys


def on_host(evaluator: NetworkEvaluator, keys: Keys) -> tuple[Any, Any, Any]:
    """As `evaluation`, where Keras does not run on JAX."""
    current, mask = rules.from_keys(keys)
    logits, value = evaluator(current, mask)
    logits = np.where(rules.legal_mask(mask), logits, -np.inf).astype(np.float32)
    odds = np.exp(logits - logits.max(1, keepdims=True, initial=-1e9))
    policy = odds / np.maximum(odds.sum(1, keepdims=True), 1e-9)
    return logits, policy.astype(np.float16), value.astype(np.float16)


# Rounds ---------------------------------------------------------------------------------------------------------------


class Run:
    """A run in its folder."""

    def __init__(self, options: argparse.Namespace) -> None:
        networks.start_backend()
        self.options, self.began = options, time.monotonic()
        options.out.mkdir(parents=True, exist_ok=True)
        self.core = saved.load_core(finding.network_file(options.network))
        values = {"batch_size": options.batch_size, "optimizer": "muon", "ema": options.ema, "value_target": "value"}
        recipe = build(Recipe, values)
        step.make_repeatable(0)
        self.model = step.compiled(fast_copy(self.core, options.precision), recipe, learning.loss_of_boards)
        self.excluded = canonical.excluded_keys("benchmark")
        self.xp: Any = np
        if keras.backend.backend() == "jax":
            self.xp, self.quick = jnp, evaluation(self.model, exact=options.precision == "float32")
        else:
            self.evaluator = NetworkEvaluator(self.core)
        # Kept boards are answered by the network as it was at first, and once.
        stored = options.out / "kept.npz"
        if not stored.exists():
            keys = learning.kept_boards(options.boards, options.random_boards, options.most_boards, self.excluded)
            parts = zip(*positions.in_batches(self.answer(), keys), strict=True)
            _, policy, value = map(np.concatenate, parts)
            np.savez(options.out / ".kept.npz", keys=keys, policy=policy, value=value)
            (options.out / ".kept.npz").replace(stored)
        kept = dict(np.load(stored))
        boards = {f"kept_{name}": column for name, column in learning.words(kept["keys"], len(kept["keys"])).items()}
        self.kept = boards | {f"kept_{name}": kept[name] for name in ("policy", "value")}
        self.number = len(kept["keys"])
        before = checkpoint.load(options.out, State)
        self.state: State = before[1] if before else State()
        if before:
            checkpoint.restore(self.model, before[0], options.out)
        self.batch = partial(learning.batch_of, xp=self.xp)  # one function, because JAX compiles it
        self.quick_answer = of_file(options.quick_answers) if options.quick_answers else None
        player = NetworkPlayer(name="candidate", predict=saved.predict_with(self.core))
        self.grade = partial(grades.grade, player, grades.boards(options.eval_boards))
        self.say("ready", device=jax.devices()[0].device_kind, boards=self.number, **self.grades())

    def answer(self, exact: bool = False) -> Callable[[Any], tuple[Any, Any, Any]]:
        """Keys → logits, policy and value of the network as it has learned, in float32 if they must be `exact`."""
        if keras.backend.backend() != "jax":
            self.learned()
            self.evaluator.take_weights(self.core)
            return partial(on_host, self.evaluator)
        if not exact or self.options.precision == "float32":
            return partial(self.quick, step.learned_weights(self.model))
        precise = heads.played(copies.copy(self.learned(), "float32"))
        weights = [variable.value for variable in precise.trainable_variables], list[Any]()
        return partial(evaluation(precise, exact=True), weights)

    def answers(self, name: str, exact: bool = False) -> Answers:
        """The network's answers that a folder keeps, and those that it lacks."""
        answer, quick = self.answer(exact), None if exact else self.quick_answer
        return Answers(self.options.out / name, lambda keys: answer(keys)[::2], quick, self.options.trust)

    def learned(self) -> keras.Model:
        """The network as it has learned."""
        if int(self.model.optimizer.iterations):
            step.copy_learned(self.model, self.core)
        return self.core

    def say(self, what: str, **facts: Any) -> None:
        row = {"seconds": round(time.monotonic() - self.began, 1), "what": what} | facts
        print(json.dumps(row), flush=True)
        with (self.options.out / "rounds.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")

    def is_over(self) -> bool:
        return time.monotonic() - self.began > self.options.seconds

    def grades(self) -> dict[str, float]:
        """How the network plays on graded boards."""
        self.learned()
        return {name: round(value, 4) for name, value in self.grade().items()}

    def enumerated(self) -> tuple[Answers, positions.Games]:
        """The network's answers and its games, which are complete and in float32 where none of them is lost."""
        options, state = self.options, self.state
        answers = self.answers(self.folder)
        if trusted := sum(len(keys) for keys, _ in answers.known.values()):
            number, changed = answers.changed(SAMPLE)
            self.say("trusted", round=state.round, positions=trusted, sample=number, changed=changed)
        games = positions.enumerate_games(answers, START, options.most_stones)
        self.say("enumerated", round=state.round, positions=positions.size(games.keys), losing_replies=games.losing,
                 draws=games.draws)  # fmt: skip
        if games.losing + games.draws or (options.precision == "float32" and options.trust == math.inf):
            return answers, games
        answers = self.answers(f"complete-{state.round}", exact=True)
        games = positions.enumerate_games(answers, START, options.most_stones)
        self.say("enumerated completely, in float32", round=state.round, positions=positions.size(games.keys),
                 losing_replies=games.losing, draws=games.draws)  # fmt: skip
        if games.losing + games.draws:
            state.best = []  # of other networks, some of the answers were trusted
        shutil.rmtree(options.out / self.folder)
        answers.folder = answers.folder.rename(options.out / self.folder)
        return answers, games

    @property
    def folder(self) -> str:
        """The name of the folder that holds the answers of this round."""
        return f"answers-{self.state.round}"

    def round(self) -> bool:
        """Enumerate, prove and learn; returns whether the run is over."""
        options, state, began = self.options, self.state, time.monotonic()
        all_layers = options.out / "layers.npz"
        known: Layers = {}
        if all_layers.exists():
            with np.load(all_layers) as stored:
                known = {int(name): stored[name] for name in stored.files}
        # Enumerate.
        answers, games = self.enumerated()
        # Prove. Which games follow another move matters little, so the file plays them where there is one.
        others = Answers(options.out / "others", self.quick_answer) if self.quick_answer else answers
        layers, proof = positions.prove_start(
            positions.united(known, games.keys), games, options.most_stones, others, options.most_positions, self.say
        )
        np.savez(options.out / ".layers.npz", **{str(stones): keys for stones, keys in layers.items()})  # type: ignore[arg-type]
        (options.out / ".layers.npz").replace(all_layers)
        learned = games.keys
        if proof[0][0]:
            strategy = positions.enumerate_games(answers, START, options.most_stones, proof=(layers, proof))
            learned = positions.united(learned, strategy.keys)
            proof = positions.prove(learned, options.most_stones)
        else:  # learn what is proven, wherever it is
            proof = {n: proof[n][np.searchsorted(layers[n], keys)] for n, keys in learned.items()}
        pool = learning.Pool(learned, proof, answers, self.excluded)
        moves = round(float(np.bitwise_count(pool.moves).mean()), 3)
        self.say("strategy", start_is_won=bool(proof[0][0]), positions=len(pool.keys), moves=moves, wrong=pool.wrong,
                 kept_out=pool.kept_out, below_1=pool.below_1)  # fmt: skip
        count = games.losing + games.draws
        # A resumed round has learned since, so its count is that of the network at its start.
        if not state.steps and (not state.best or [count, pool.wrong] < state.best):
            state.best = [count, pool.wrong]
            saved.save_network(self.learned(), options.out / "best.keras")
            self.say("best so far", round=state.round, not_won=count, wrong=pool.wrong)
        if not count or self.is_over():
            return True
        self.learn(pool)
        self.say("round over", round=state.round, took=round(time.monotonic() - began, 1), **self.grades())
        if state.steps < options.steps:  # the time is over; the next process goes on with this round
            return True
        before = [answers.folder, options.out / f"complete-{state.round}"]
        state.round, state.steps = state.round + 1, 0
        unsure = np.sort(pool.keys[pool.margins < options.trust])
        answers.hand_over(options.out / self.folder, unsure)
        checkpoint.save(options.out, self.model, asdict(state))
        for folder in before:
            shutil.rmtree(folder, ignore_errors=True)
        return state.round > options.rounds

    def learn(self, pool: learning.Pool) -> None:
        """Take the steps of a round that are left; after each cycle the near positions are evaluated again."""
        options, state = self.options, self.state
        rows = 1 << max(12, (len(pool.keys) - 1).bit_length())  # few sizes, because each is compiled
        moves = np.pad(pool.moves, (0, rows - len(pool.moves)), constant_values=1)
        columns = learning.words(pool.keys, rows) | {"moves": moves} | self.kept
        columns = {name: self.xp.asarray(column) for name, column in columns.items()}
        picks = pool.picks(np.random.default_rng([state.round, state.steps]), options.batch_size, self.number)
        on_device = keras.backend.backend() == "jax" and backend.on_accelerator()
        stream = streams.Table(columns=columns, picks=picks, batch=self.batch, on_device=on_device)

        def rate(number: int) -> float:
            warm_up = min(1.0, (number + 100) / WARM_UP_STEPS) if state.round == 1 else 1.0
            return float(options.lr * warm_up * max(0.02, 0.5 * (1 + math.cos(math.pi * number / options.steps))))

        while state.steps < options.steps and not self.is_over():
            numbers = range(state.steps, min(state.steps + options.cycle, options.steps))
            _, means = step.fit(self.model, stream, numbers, rate)
            state.steps = numbers.stop
            checkpoint.save(options.out, self.model, asdict(state))
            logits = [part[0] for part in positions.in_batches(self.answer(), pool.keys[pool.near])]
            near = learning.margins(np.concatenate(logits), pool.moves[pool.near])
            pool.look(near)
            self.say("learned", round=state.round, steps=state.steps, loss=round(means["loss"], 5),
                     near_wrong=int((near <= 0).sum()), near_below_1=int((near < 1).sum()))  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--network", default="pillar-large")
    parser.add_argument(
        "--boards", type=Path, nargs="+", default=[Path("data/reference/labels-200")], help="games or packed boards"
    )
    parser.add_argument("--random-boards", type=int, default=1 << 22, help="about so many boards after random moves")
    parser.add_argument("--most-boards", type=int, help="most boards to keep the network's answers on; default: all")
    parser.add_argument("--seconds", type=float, default=math.inf, help="time after which no cycle begins")
    parser.add_argument("--rounds", type=int, default=10**6, help="most rounds")
    parser.add_argument("--steps", type=int, default=3000, help="training steps of a round")
    parser.add_argument("--cycle", type=int, default=500, help="steps between two evaluations of the near positions")
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--lr", type=float, default=6e-4, help="highest learning rate")
    parser.add_argument("--ema", type=float, default=0.998, help="EMA decay of the weights")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--eval-boards", type=int, default=1000, help="graded boards of each set")
    parser.add_argument("--most-stones", type=int, default=CELLS - 2)
    parser.add_argument(
        "--trust",
        type=float,
        default=math.inf,
        help="logits ahead of any other move at which a favourite is not evaluated again in the next round",
    )
    parser.add_argument(
        "--quick-answers",
        type=Path,
        metavar="FILE",
        help="an 8-bit file of the network: where its favourite is so far ahead, the network is not evaluated",
    )
    parser.add_argument(
        "--most-positions", type=int, default=40_000_000, help="positions above which no other moves are enumerated"
    )
    parser.add_argument("--out", type=Path, default=Path("models/solve"))
    run = Run(parser.parse_args(words))
    while not run.round():
        pass
    run.say("done", best=run.state.best)


if __name__ == "__main__":
    main()
