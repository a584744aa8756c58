"""Make a `pillar` win every game: enumerate its games, prove a strategy close to its own, learn it, and again.

    KERAS_BACKEND=jax python -m experiments.large.solve --network pillar-large --out solve    # a GPU

In: a network of the kind of `pillar`. Out, in `--out`: `best.keras`, the network with the fewest games that it does not
win; `rounds.jsonl`, a line a step. The same command resumes: `--out` holds what a killed process has evaluated.

Each round has three steps.

1. Enumerate. The network moves first, against every legal reply. Count the replies that win for the opponent and those
   that draw: zero of both, and every game is won.
2. Prove. Over all positions of all rounds, from the last layer to the first, find every move that wins at once or whose
   replies all lead to positions with such a move. Where the empty board has no such move yet, positions without one get
   those other moves enumerated that promise a win by the network's value, late in the game first. Then enumerate the
   games of the network that always takes its favourite among the proven moves: a winning strategy close to its own.
   Where its favourite is another move, that move is enumerated, too, because it may win as well.
3. Learn (`read_out.py`): in every position of both enumerations a proven move is to be ahead, and the answers on the
   boards of `--boards` are to change little. Only one layer changes, behind the features.

A network that chooses a proven move in each of these positions wins every game, and the target stands still. Rounds go
on until a proven move is SAFE ahead in each of them.

Before the first round, the weights are rounded to what the network's file in 8 bits stores (`exporters/quantized.py`):
8 bits for those of convolutions, 16 for the others. So this file has the same weights and computes in float32. Its
logits differ by rounding alone, and where two moves are nearly equal, the games after both are enumerated.

With `--quick`, a network that computes in 8 bits is asked first. On a CPU it answers three times as fast, and where its
favourite is `--trust` logits ahead, its answer counts for the network. In later rounds, favourites so far ahead are not
evaluated again. The row `trusted` says how many in a sample of them have changed unseen. So the last word is
`distill.walk`, which evaluates everything:

    nice python -m experiments.large.solve --network pillar-large --quick --out solve    # a CPU: an hour of two cores
    nice python -m distill.walk solve/best.keras --replies all --symmetric              # 75 minutes

The graded boards of `data/benchmark` are never learned; `kept_out` says in how many of them the network errs.

Dimensions: B positions of a batch, N positions of a layer, A = 7 columns, C features.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import jax
import keras
import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.alphazero import grades
from distill.common import boundary, executors, file_hash, run_folder, write_atomically
from distill.datasets import canonical
from distill.exporters import formats, quantized
from distill.game import encoding, rules
from distill.game.rules import CELLS, canonical_keys
from distill.games import reader
from distill.networks import finding, heads, predict, saved
from distill.players.network import NetworkPlayer
from experiments.large import positions, proofs
from experiments.large.positions import SAFE, START, Answers, Games, Keys, Layers, Moves
from experiments.large.read_out import Near, ReadOut, as_float16, learn, trunk

Evaluate: TypeAlias = Callable[[Keys], tuple[Any, Any]]
"""Keys → logits (B, A) and values (B,)."""

NEAR = 1 << 18
"""Positions that are learned: those with the smallest margins."""
FILES = ("rounds", "rounds.jsonl", "layers.npz", "best.keras")
KEPT = 20_000
"""Boards on which the answers are to change little."""
SAMPLE = 1 << 14
"""Trusted answers that are evaluated again to see how many favourites have changed."""


class Pool:
    """Positions of a strategy with their proven moves.

    Attributes:
      keys, moves, margins: uint64 (N,); uint8 (N,), their proven moves; float32 (N,), as in `proofs.margins`.
      wrong: positions in which no proven move is at least SAFE ahead of all others.
      kept_out: as many among the graded boards, which are never learned.
    """

    def __init__(self, layers: Layers, proof: Moves, answers: Answers, excluded: Keys) -> None:
        keys, moves, values, self.kept_out = [], [], [], 0
        for stones, layer in layers.items():
            margins, is_graded = proofs.margins(answers(stones, layer), proof[stones]), np.isin(layer, excluded)
            self.kept_out += int(((proof[stones] != 0) & is_graded & (margins <= 0)).sum())
            learned = (proof[stones] != 0) & ~is_graded
            keys.append(layer[learned])
            moves.append(proof[stones][learned])
            values.append(margins[learned])
        self.keys, self.moves, self.margins = map(np.concatenate, (keys, moves, values))
        self.wrong = int((self.margins < SAFE).sum())

    def nearest(self) -> NDArray[np.intp]:
        """Rows of the positions with the smallest margins."""
        return np.sort(np.argsort(self.margins)[:NEAR])


def boards_of(keys: Keys) -> NDArray[np.int8]:
    return encoding.boards_of_bits(*rules.from_keys(keys))


def rounded(core: keras.Model) -> keras.Model:
    """The network with its weights as the file in 8 bits stores them."""
    for layer in (layer for layer in core.layers if layer.weights):
        kernel = layer.get_weights()[0]
        if not isinstance(layer, keras.layers.Dense):
            numbers, scales = quantized.rounded(kernel)
            layer.kernel.assign(numbers * scales)
        elif kernel.size >= quantized.SMALL:
            layer.kernel.assign(as_float16(kernel))
    return core


def in_float32(core: keras.Model) -> Evaluate:
    """The network as Keras computes it."""
    played = compiled(heads.played(core))

    def answer(keys: Keys) -> tuple[Any, Any]:
        outputs = played.predict_on_batch(boards_of(keys))
        return outputs["logits"], outputs["value"]

    return answer


def features_of(core: keras.Model, keys: Keys) -> NDArray[np.float32]:
    """The features of positions, float32 (N, C)."""
    columns = compiled(trunk(core))

    def features(part: Keys) -> tuple[Any]:
        return (columns.predict_on_batch(encoding.planes(boards_of(part)).astype(np.float32)),)

    return np.concatenate([part for (part,) in positions.in_batches(features, keys)]).reshape(len(keys), -1)


def compiled(model: keras.Model) -> keras.Model:
    model.compile(jit_compile=keras.backend.backend() == "jax")
    return model


def in_8_bits(core: keras.Model, path: Path) -> Evaluate:
    """The network with activations in 8 bits, too, on all cores; its file is written to `path`."""
    from onnxruntime import quantization

    class Boards(quantization.CalibrationDataReader):
        """Boards on which the ranges of activations are found."""

        def __init__(self) -> None:
            boards = quantized.graded_boards()
            self.parts = np.array_split(encoding.boards(boards.current, boards.mask)[:: len(boards) // 512], 8)

        def get_next(self) -> dict[str, Any] | None:
            return {"board": self.parts.pop()} if self.parts else None

    if not path.exists():
        with tempfile.TemporaryDirectory() as workplace:
            floating, prepared, whole = (Path(workplace) / f"{name}.onnx" for name in ("float", "prepared", "whole"))
            formats.write_onnx(core, floating)
            quantization.quant_pre_process(floating, prepared, skip_symbolic_shape=True)
            quantization.quantize_static(
                prepared, whole, Boards(), op_types_to_quantize=["Conv"], per_channel=True, reduce_range=True
            )
            write_atomically(path, whole.read_bytes())
    predict_with, threads = predict.load(path), executors.cores()
    pool = ThreadPoolExecutor(threads)  # ONNX Runtime computes a batch of this network with one

    def answer(keys: Keys) -> tuple[Any, Any]:
        parts = [*pool.map(predict_with, np.array_split(boards_of(keys), threads))]
        logits, values = (np.concatenate([part[name] for part in parts]) for name in ("logits", "value"))
        return logits, values

    return answer


class Run:
    """A run in its folder: `rounds/1`, `rounds/2` … hold a network and its answers, the last one counts."""

    def __init__(self, options: argparse.Namespace) -> None:
        networks.start_backend()
        jax.config.update("jax_default_matmul_precision", "highest")
        self.options, self.began = options, time.monotonic()
        first = options.out / "rounds" / "1"
        rounds = [int(file.parent.name) for file in options.out.glob("rounds/*/network.keras")]
        if not rounds:
            first.mkdir(parents=True, exist_ok=True)
            saved.save_network(rounded(saved.load_core(finding.network_file(options.network))), first / "network.keras")
        self.number = max(rounds, default=1)
        self.core = saved.load_core(self.folder / "network.keras")
        self.excluded = canonical.excluded_keys("benchmark")
        self.graded = grades.boards(options.eval_boards)
        self.say("ready", device=jax.devices()[0].device_kind, round=self.number, **self.grades())

    @property
    def folder(self) -> Path:
        """What this round has evaluated."""
        return self.options.out / "rounds" / str(self.number)

    def say(self, what: str, **facts: Any) -> None:
        row = {"seconds": round(time.monotonic() - self.began, 1), "what": what} | facts
        print(json.dumps(row), flush=True)
        with (self.options.out / "rounds.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")

    def is_over(self) -> bool:
        return time.monotonic() - self.began > self.options.seconds

    def grades(self) -> dict[str, float]:
        """How the network plays on graded boards."""
        player = NetworkPlayer(name="candidate", predict=saved.predict_with(self.core))
        return {name: round(value, 4) for name, value in grades.grade(player, self.graded).items()}

    def answers(self) -> Answers:
        """The network's answers."""
        options, quick = self.options, None
        if options.quick:
            quick = Answers(self.folder / "int8", in_8_bits(self.core, self.folder / "model.int8.onnx"))
        return Answers(self.folder / "float32", in_float32(self.core), quick, options.trust)

    def round(self) -> bool:
        """Enumerate, prove and learn; returns whether the run is over."""
        options, began, answers = self.options, time.monotonic(), self.answers()
        all_layers = options.out / "layers.npz"
        layers: Layers = {}
        if all_layers.exists():
            with np.load(all_layers) as stored:
                layers = {int(name): stored[name] for name in stored.files}
        if trusted := sum(len(keys) for keys, _ in answers.known.values()):
            number, changed = answers.changed(SAMPLE)
            self.say("trusted", positions=trusted, sample=number, changed=changed)
        games = positions.enumerate_games(answers, START, options.most_stones)
        self.say("enumerated", round=self.number, positions=positions.size(games.keys),
                 losing_replies=games.losing, draws=games.draws)  # fmt: skip
        layers, pool = self.pool(layers, games, answers)
        with (options.out / ".layers.npz").open("wb") as file:
            np.savez(file, **{str(stones): keys for stones, keys in layers.items()})  # type: ignore[arg-type]
        (options.out / ".layers.npz").replace(all_layers)
        not_won = games.losing + games.draws
        self.keep_best(not_won, pool.wrong)
        if not pool.wrong or self.is_over() or self.number == options.rounds:
            self.say("done", not_won=not_won, wrong=pool.wrong)
            return True
        self.learn(pool)
        self.say("round over", round=self.number, took=round(time.monotonic() - began, 1), **self.grades())
        self.next_round(answers, pool)
        return False

    def pool(self, layers: Layers, games: Games, answers: Answers) -> tuple[Layers, Pool]:
        """All positions, and those to learn."""
        options = self.options
        layers = positions.united(layers, games.keys)
        layers, proof = proofs.prove_start(
            layers, games, options.most_stones, answers, options.most_positions, self.say
        )
        layers, strategy, proof = proofs.strategy(layers, proof, games, answers, options.most_stones)
        pool = Pool(strategy, proof, answers, self.excluded)
        moves = round(float(np.bitwise_count(pool.moves).mean()), 3)
        self.say("strategy", start_is_won=bool(proof[0][0]), positions=len(pool.keys), moves=moves, wrong=pool.wrong,
                 kept_out=pool.kept_out, below_1=int((pool.margins < 1).sum()),
                 smallest_margin=round(float(pool.margins.min(initial=99)), 5))  # fmt: skip
        return layers, pool

    def keep_best(self, not_won: int, wrong: int) -> None:
        """Copy the network if it is the best of all rounds: by games that are not won, then by wrong positions."""
        earlier = []
        for line in (self.options.out / "rounds.jsonl").read_text().splitlines():
            with suppress(json.JSONDecodeError):  # a kill or a full disk may have cut a line
                row = json.loads(line)
                earlier += [(row["not_won"], row["wrong"])] if row["what"] == "best so far" else []
        if (not_won, wrong) < min(earlier, default=(math.inf, math.inf)):
            write_atomically(self.options.out / "best.keras", (self.folder / "network.keras").read_bytes())
            self.say("best so far", round=self.number, not_won=not_won, wrong=wrong)

    def learn(self, pool: Pool) -> None:
        """Let the read-out choose proven moves in all positions of the pool."""
        rows, read_out = pool.nearest(), ReadOut(self.core)
        first = positions.is_in(pool.moves[rows])
        legal = rules.legal_mask(rules.from_keys(pool.keys[rows])[1])
        near = Near(features_of(self.core, pool.keys[rows]), first, legal & ~first)
        keys = kept_boards(self.options.boards, self.excluded)
        features, legal = features_of(self.core, keys), rules.legal_mask(rules.from_keys(keys)[1])
        favourites = np.where(legal, read_out.logits(read_out.hidden(features)), -np.inf).argmax(1)
        first = favourites[:, None] == np.arange(legal.shape[1])
        boards = Near(features, first, legal & ~first).rows(legal.sum(1) > 1)
        self.say("features", positions=len(near.features), boards=len(boards.features))
        learned = self.folder / "hidden.npy"
        if learned.exists():
            read_out.kernel = np.load(learned)
        for figures in learn(read_out, near, boards):
            content = io.BytesIO()
            np.save(content, read_out.kernel)
            write_atomically(learned, content.getvalue())
            self.say("learned", round=self.number, **figures)
        self.core.get_layer("hidden").kernel.assign(read_out.kernel)

    def next_round(self, answers: Answers, pool: Pool) -> None:
        """Write the folder of the next round and delete this one; the network is written last."""
        before, trust = self.folder, self.options.trust
        self.number += 1
        self.folder.mkdir(exist_ok=True)
        answers.hand_over(self.folder / "float32", np.sort(pool.keys[pool.margins < trust]), trust)
        saved.save_network(self.core, self.folder / "network.keras")
        shutil.rmtree(before)


def kept_boards(folders: Sequence[Path], excluded: Keys) -> Keys:
    """Keys of KEPT random boards in games or packed boards, without the excluded ones."""
    shards = [shard for run in reader.open_runs(folders) for shard in run.shards]
    rows = [reader.read(shard, ("current", "mask")) for shard in shards]
    keys = positions.distinct([canonical_keys(part["current"], part["mask"]) for part in rows])
    return np.sort(np.random.default_rng(0).permutation(keys[~np.isin(keys, excluded)])[:KEPT])


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--network", default="pillar-large")
    parser.add_argument(
        "--boards", type=Path, nargs="+", default=[Path("data/reference/labels-200")], help="games or packed boards"
    )
    parser.add_argument(
        "--quick", action="store_true", help="ask a network in 8 bits first; needs TensorFlow and the extra onnx"
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="time after which nothing more is learned")
    parser.add_argument("--rounds", type=int, default=10**6, help="most rounds; the last one learns nothing")
    parser.add_argument("--eval-boards", type=int, default=1000, help="graded boards of each set")
    parser.add_argument("--most-stones", type=int, default=CELLS - 2)
    parser.add_argument(
        "--trust", type=float, default=6, help="logits ahead of any other move at which a favourite is trusted"
    )
    parser.add_argument(
        "--most-positions", type=int, default=40_000_000, help="positions above which no other moves are enumerated"
    )
    parser.add_argument("--out", type=Path, default=Path("models/solve"))
    parser.add_argument("--restart", action="store_true", help="delete what --out holds and start from scratch")
    options = parser.parse_args(words)
    free = {"seconds", "rounds", "trust", "out", "restart"}
    settings = {name: value for name, value in vars(options).items() if name not in free}
    settings["boards"] = [str(folder) for folder in options.boards]
    identity = settings | {"network": file_hash(finding.network_file(options.network))}
    with run_folder.opened(
        options.out, "rounds of solve.py", identity, settings={}, files=FILES, restart=options.restart
    ) as folder:
        folder.begin()
        run = Run(options)
        while not run.round():
            pass
    return 0


if __name__ == "__main__":
    raise SystemExit(boundary.guarded(main, "experiments large solve", sys.argv[1:]))
