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

A network that chooses a proven move in each of these positions wins every game, and the target stands still.

With `--quick`, a file of the network in 8 bits is asked first. On a CPU it computes three times as many boards a
second, and where its favourite is `--trust` logits ahead, its answer counts for the network. With `--int8`, the network
learns to win every game by this file, too: it has other features and the same read-out, which stays in float. In later
rounds, favourites so far ahead are not evaluated again. The row `trusted` says how many in a sample of them have
changed unseen. So the last word is `distill.walk`, which evaluates everything:

    nice python -m experiments.large.solve --network pillar-large --quick --out solve    # a CPU: two hours of two cores
    nice python -m distill.walk solve/best.keras --replies all --symmetric              # two hours

The graded boards of `data/benchmark` are never learned; `kept_out` says in how many of them the network errs.

Dimensions: B positions of a batch, N positions of a layer, A = 7 columns, C features.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax
import keras
import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.alphazero import grades
from distill.common import executors, write_atomically
from distill.datasets import canonical
from distill.game import encoding, rules
from distill.game.rules import CELLS
from distill.games import reader
from distill.networks import finding, heads, predict, saved
from distill.players.network import NetworkPlayer
from experiments.large import positions, proofs
from experiments.large.positions import START, Answers, Games, Keys, Layers, Moves
from experiments.large.read_out import Near, ReadOut, learn, trunk

NEAR = 1 << 18
"""Positions of each kind of file that are learned: those with the smallest margins."""
KEPT = 20_000
"""Boards on which the answers are to change little."""
SAMPLE = 1 << 14
"""Trusted answers that are evaluated again to see how many favourites have changed."""


class Pool:
    """Positions of a strategy with their proven moves.

    Attributes:
      keys, moves, margins: uint64 (N,); uint8 (N,), their proven moves; float32 (N,), as in `proofs.margins`.
      wrong: positions in which the network chooses a move that is not proven.
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
        self.wrong = int((self.margins <= 0).sum())

    def nearest(self) -> NDArray[np.intp]:
        """Rows of the positions with the smallest margins."""
        return np.sort(np.argsort(self.margins)[:NEAR])


class Network(NamedTuple):
    """The network in one arithmetic: keys → logits (B, A) and values (B,); keys → features (B, 1, 7, C / 7)."""

    answer: Callable[[Keys], tuple[Any, Any]]
    features: Callable[[Keys], Any]


def boards_of(keys: Keys) -> NDArray[np.int8]:
    return encoding.boards_of_bits(*rules.from_keys(keys))


def in_float32(core: keras.Model) -> Network:
    """The network as Keras computes it."""
    played, columns = heads.played(core), trunk(core)
    for model in (played, columns):
        model.compile(jit_compile=keras.backend.backend() == "jax")

    def answer(keys: Keys) -> tuple[Any, Any]:
        outputs = played.predict_on_batch(boards_of(keys))
        return outputs["logits"], outputs["value"]

    return Network(answer, lambda keys: columns.predict_on_batch(encoding.planes(boards_of(keys)).astype(np.float32)))


def in_int8(core: keras.Model, path: Path) -> Network:
    """The network in 8 bits, on all cores; its file is written to `path`."""
    import onnx
    import onnxruntime

    from distill.exporters import formats, quantized

    if not path.exists():
        with tempfile.TemporaryDirectory() as workplace:
            floating = Path(workplace) / "float.onnx"
            formats.write_onnx(core, floating)
            quantized.to_onnx(floating, path, ["Conv"])  # all before the features; the read-out stays in float
    nodes = onnx.load(path).graph.node
    (output,) = (name for node in nodes for name in node.output if "/columns_relu" in name and name.endswith("/Relu:0"))
    trunk_path = path.with_suffix(".trunk.onnx")
    onnx.utils.extract_model(path, trunk_path, ["board"], [output])
    whole, features = predict.load(path), onnxruntime.InferenceSession(trunk_path)
    threads = executors.cores()
    pool = ThreadPoolExecutor(threads)  # ONNX Runtime computes a batch of this network with one

    def on_all_cores(function: Callable[[Any], Any], keys: Keys) -> list[Any]:
        return [*pool.map(function, np.array_split(boards_of(keys), threads))]

    def answer(keys: Keys) -> tuple[Any, Any]:
        parts = on_all_cores(whole, keys)
        logits, values = (np.concatenate([part[name] for part in parts]) for name in ("logits", "value"))
        return logits, values

    def columns(boards: Any) -> Any:
        return np.moveaxis(features.run([output], {"board": boards})[0], 1, 3)  # channels last, as in Keras

    return Network(answer, lambda keys: np.concatenate(on_all_cores(columns, keys)))


class Run:
    """A run in its folder: `round-1`, `round-2` … hold a network and its answers, the last one counts."""

    def __init__(self, options: argparse.Namespace) -> None:
        networks.start_backend()
        jax.config.update("jax_default_matmul_precision", "highest")
        self.options, self.began = options, time.monotonic()
        first = options.out / "round-1"
        rounds = [int(file.parent.name[6:]) for file in options.out.glob("round-*/network.keras")]
        if not rounds:
            first.mkdir(parents=True, exist_ok=True)
            saved.save_network(saved.load_core(finding.network_file(options.network)), first / "network.keras")
        self.number = max(rounds, default=1)
        self.core = saved.load_core(self.folder / "network.keras")
        self.excluded = canonical.excluded_keys("benchmark")
        self.graded = grades.boards(options.eval_boards)
        self.say("ready", device=jax.devices()[0].device_kind, round=self.number, **self.grades())

    @property
    def folder(self) -> Path:
        """What this round has evaluated."""
        return self.options.out / f"round-{self.number}"

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

    def answers(self) -> dict[str, tuple[Network, Answers]]:
        """The network in each arithmetic, and its answers."""
        options, kinds, quick = self.options, dict[str, tuple[Network, Answers]](), None
        if options.quick or options.int8:
            network = in_int8(self.core, self.folder / "model.int8.onnx")
            quick = Answers(self.folder / "int8", network.answer)
            if options.int8:
                kinds["int8"] = network, quick
        network = in_float32(self.core)
        kinds["float32"] = network, Answers(self.folder / "float32", network.answer, quick, options.trust)
        return kinds

    def round(self) -> bool:
        """Enumerate, prove and learn; returns whether the run is over."""
        options, began, pools, not_won = self.options, time.monotonic(), dict[str, Pool](), 0
        kinds, all_layers = self.answers(), options.out / "layers.npz"
        layers: Layers = {}
        if all_layers.exists():
            with np.load(all_layers) as stored:
                layers = {int(name): stored[name] for name in stored.files}
        for name, (_, answers) in kinds.items():
            if trusted := sum(len(keys) for keys, _ in answers.known.values()):
                number, changed = answers.changed(SAMPLE)
                self.say("trusted", file=name, positions=trusted, sample=number, changed=changed)
            games = positions.enumerate_games(answers, START, options.most_stones)
            not_won += games.losing + games.draws
            self.say("enumerated", round=self.number, file=name, positions=positions.size(games.keys),
                     losing_replies=games.losing, draws=games.draws)  # fmt: skip
            layers, pools[name] = self.pool(layers, games, answers)
        with (options.out / ".layers.npz").open("wb") as file:
            np.savez(file, **{str(stones): keys for stones, keys in layers.items()})  # type: ignore[arg-type]
        (options.out / ".layers.npz").replace(all_layers)
        wrong = sum(pool.wrong for pool in pools.values())
        self.keep_best(not_won, wrong)
        if not (not_won and wrong) or self.is_over() or self.number == options.rounds:
            return True
        self.learn({name: (kinds[name][0], pool) for name, pool in pools.items()})
        self.say("round over", round=self.number, took=round(time.monotonic() - began, 1), **self.grades())
        self.next_round({name: (kinds[name][1], pool) for name, pool in pools.items()})
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
                 kept_out=pool.kept_out, below_1=int((pool.margins < 1).sum()))  # fmt: skip
        return layers, pool

    def keep_best(self, not_won: int, wrong: int) -> None:
        """Copy the network if it is the best of all rounds: by games that are not won, then by wrong positions."""
        rows = [json.loads(line) for line in (self.options.out / "rounds.jsonl").read_text().splitlines()]
        earlier = [(row["not_won"], row["wrong"]) for row in rows if row["what"] == "best so far"]
        if (not_won, wrong) < min(earlier, default=(math.inf, math.inf)):
            shutil.copyfile(self.folder / "network.keras", self.options.out / "best.keras")
            self.say("best so far", round=self.number, not_won=not_won, wrong=wrong)

    def learn(self, kinds: dict[str, tuple[Network, Pool]]) -> None:
        """Let the read-out choose proven moves in all positions of these pools."""
        parts = []
        for network, pool in kinds.values():
            rows = pool.nearest()
            first = positions.is_in(pool.moves[rows])
            others = rules.legal_mask(rules.from_keys(pool.keys[rows])[1]) & ~first
            parts.append(Near(features_of(network, pool.keys[rows]), first, others))
        near = Near(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        read_out, network = ReadOut(self.core), kinds["float32"][0]
        keys = kept_boards(self.options.boards, self.excluded)
        features, legal = features_of(network, keys), rules.legal_mask(rules.from_keys(keys)[1])
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

    def next_round(self, kinds: dict[str, tuple[Answers, Pool]]) -> None:
        """Write the folder of the next round and delete this one; the network is written last."""
        before = self.folder
        self.number += 1
        self.folder.mkdir(exist_ok=True)
        trust = self.options.trust
        for name, (answers, pool) in kinds.items():
            answers.hand_over(self.folder / name, np.sort(pool.keys[pool.margins < trust]), trust)
        saved.save_network(self.core, self.folder / "network.keras")
        shutil.rmtree(before)


def features_of(network: Network, keys: Keys) -> NDArray[np.float32]:
    """float32 (N, C)."""
    parts = [features for (features,) in positions.in_batches(lambda part: (network.features(part),), keys)]
    columns: NDArray[np.float32] = np.concatenate(parts)
    return columns.reshape(len(keys), -1)


def kept_boards(folders: Sequence[Path], excluded: Keys) -> Keys:
    """Keys of KEPT random boards in games or packed boards, without the excluded ones."""
    shards = [shard for run in reader.open_runs(folders) for shard in run.shards]
    rows = [reader.read(shard, ("current", "mask")) for shard in shards]
    keys = positions.distinct([canonical.board_keys(part["current"], part["mask"]) for part in rows])
    return np.sort(np.random.default_rng(0).permutation(keys[~np.isin(keys, excluded)])[:KEPT])


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--network", default="pillar-large")
    parser.add_argument(
        "--boards", type=Path, nargs="+", default=[Path("data/reference/labels-200")], help="games or packed boards"
    )
    parser.add_argument("--quick", action="store_true", help="ask a file in 8 bits first; needs ONNX Runtime")
    parser.add_argument("--int8", action="store_true", help="the same, and win every game by that file, too")
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
    run = Run(parser.parse_args(words))
    while not run.round():
        pass
    run.say("done")


if __name__ == "__main__":
    main()
