"""Label boards with a network's own search on an accelerator: many games in lock step, one thread a core.

    KERAS_BACKEND=jax python -m experiments.large.label --network models/reference/pillar/best.keras \
        --minutes 5 --seed 1 --out games.npz

In: a network. Out: labelled boards (`boards.py`), for `--out games.npz` in `games-0.npz`, `games-1.npz` and so on. It
is like `distill.selfplay --games-only`, but the network computes in bfloat16 and in batches of any composition, so the
same seed does not give the same bytes on another device. Three kinds:

    games     self-play; one game in four starts from the empty board or after one move, the others after up to 20 or
              28 random moves. Every position of a game is labelled.
    replies   positions in which the first player moves, reached by the network's own moves against random replies;
              each is searched once. These are the positions of `distill.walk --replies all`.
    keys      the positions of `--keys`, such as those that `tree.py` found lost or drawn; each is searched once.

Threads share one network: the compiled search releases the interpreter lock, so 15 threads keep 15 cores busy.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.game.rules import CELLS, COLUMNS, FULL_BOARD, ROWS, from_keys, has_four, landing, legal_mask
from distill.game.tactics import wins
from distill.mcts import puct
from distill.mcts.puct import PuctSettings
from distill.mcts.results import GameRecord
from experiments.large import boards
from experiments.large.shapes import network

OPENINGS = ((0, 1), (0, 20), (0, 20), (0, 28))
"""Fewest and most random moves before the search plays; the games take these pairs in turn."""

FILE_BOARDS = 2_000_000
"""Most boards in one file: about 14 MB."""

Keys = NDArray[np.uint64]
Evaluate = Callable[[Keys, Keys], tuple[NDArray[np.float32], NDArray[np.float32]]]


def settings(simulations: int) -> PuctSettings:
    """The search that labels: no root noise, so that equal boards get equal labels, and wins that are quick."""
    return PuctSettings(simulations=simulations, exploration=1.0, discount=0.98, noise_fraction=0.0, sampling_plies=16)


class OverError(Exception):
    """Raised inside a search to stop it when the time is over."""


evaluations = [0]
"""Boards evaluated so far, for the progress lines."""


def words_of(current: Keys, mask: Keys) -> NDArray[np.uint32]:
    """uint32 (B, 2, 2): current and mask, each as its lower and upper 32 bits; accelerators prefer those."""
    return np.stack([current, mask], axis=1).view(np.uint32).reshape(-1, 2, 2)


def boards_of_words(words: Any) -> Any:
    """Boards int8 (B, 6, 7) of words uint32 (B, 2, 2), on the accelerator."""
    import jax.numpy as jnp

    cell = np.array([column * (ROWS + 1) + ROWS - 1 - row for row in range(ROWS) for column in range(COLUMNS)])
    bits = ((words[:, :, cell // 32] >> (cell % 32).astype(np.uint32)) & 1).astype(jnp.int8)  # (B, 2, T)
    return (2 * bits[:, 0] - bits[:, 1]).reshape(-1, ROWS, COLUMNS)


# The network ----------------------------------------------------------------------------------------------------------


def evaluator(path: Path, batch: int, precision: str = "bfloat16") -> Evaluate:
    """The network on the accelerator, for at most `batch` bitboards at a time; smaller batches are padded."""
    import jax
    import jax.numpy as jnp

    from distill.networks import heads

    model = heads.played(network(path, precision))
    weights = [each.value for each in model.trainable_variables], [each.value for each in model.non_trainable_variables]

    @jax.jit  # type: ignore[untyped-decorator]
    def forward(words: Any) -> Any:
        """words uint32 (B, 2, 2) → float32 (B, 8), logits and value."""
        found, _ = model.stateless_call(*weights, boards_of_words(words), training=False)
        return jnp.concatenate([found["logits"], found["value"][:, None]], axis=1).astype(jnp.float32)

    def evaluate(current: Keys, mask: Keys) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        evaluations[0] += len(current)
        words = np.zeros((batch, 2, 2), np.uint32)
        words[: len(current)] = words_of(current, mask)
        found = np.asarray(forward(words))[: len(current)]
        return found[:, :COLUMNS], found[:, COLUMNS]

    evaluate(np.zeros(1, np.uint64), np.zeros(1, np.uint64))  # compiles
    return evaluate


# Positions ------------------------------------------------------------------------------------------------------------


def next_positions(current: Keys, mask: Keys, column: NDArray[np.integer[Any]]) -> tuple[Keys, Keys, NDArray[np.bool_]]:
    """`current` and `mask` after these moves, and whether the game is over."""
    stone = landing(mask)[np.arange(len(mask)), column]
    after = mask | stone
    return current ^ mask, after, has_four(current | stone) | (after == np.uint64(FULL_BOARD))


def random_columns(mask: Keys, random: np.random.Generator) -> NDArray[np.int64]:
    """A random legal column for each position."""
    return np.where(legal_mask(mask), random.random((len(mask), COLUMNS)), -1).argmax(axis=1)


def openings(count: int, random: np.random.Generator) -> tuple[Keys, Keys]:
    """Positions after random moves, none of them over."""
    return random_positions(np.array(OPENINGS)[np.arange(count) % len(OPENINGS)], random)


def random_positions(
    pairs: NDArray[np.int64], random: np.random.Generator, blocks: NDArray[np.bool_] | None = None
) -> tuple[Keys, Keys]:
    """Positions after so many random moves, none of them over; a game that ends starts over with another length.

    Args:
      pairs: (B, 2), fewest and most moves.
      blocks: (B,), the games in which a side blocks a win where it can; None: none.
    """
    count = len(pairs)
    current, mask = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    left, todo = np.zeros(count, np.int64), np.arange(count)
    while len(todo):
        left[todo] = random.integers(pairs[todo, 0], pairs[todo, 1] + 1)
        current[todo] = mask[todo] = 0
        over = np.zeros(count, np.bool_)
        while len(live := todo[(left[todo] > 0) & ~over[todo]]):
            column = random_columns(mask[live], random)
            if blocks is not None:
                threats = wins(current[live] ^ mask[live], mask[live])
                column = np.where(blocks[live] & threats.any(1), threats.argmax(1), column)
            current[live], mask[live], over[live] = next_positions(current[live], mask[live], column)
            left[live] -= 1
        todo = todo[over[todo]]
    return current, mask


def first_player_positions(count: int, evaluate: Evaluate, batch: int, random: np.random.Generator) -> Keys:
    """About `count` distinct keys of positions in which the first player moves, in games of the network's best moves.

    The opponent moves at random in half of the games, and in the others with an even chance of the network's move.
    """
    found: list[Keys] = []
    total = 0
    while total < count:
        current, mask = np.zeros(batch, np.uint64), np.zeros(batch, np.uint64)
        wild = random.random(batch) < 0.5
        for ply in range(CELLS):
            logits, _ = evaluate(current, mask)
            column = np.where(legal_mask(mask), logits, -np.inf).argmax(axis=1)
            if ply % 2 == 0:
                found.append(np.unique(current + mask))
                total += len(found[-1])
            else:
                surprise = wild | (random.random(len(wild)) < 0.5)
                column = np.where(surprise, random_columns(mask, random), column)
            current, mask, over = next_positions(current, mask, column)
            current, mask, wild = current[~over], mask[~over], wild[~over]
            if not len(mask):
                break
        if len(found) > 4 * CELLS:
            found = [np.unique(np.concatenate(found))]
            total = len(found[0])
    return random.permutation(np.unique(np.concatenate(found)))


# Labels ---------------------------------------------------------------------------------------------------------------


def labelled(record: GameRecord) -> boards.Boards:
    """The packed boards of all games that have ended."""
    games = np.flatnonzero(record.length)
    game, step = np.nonzero(np.arange(record.label.shape[1]) < record.length[games][:, None])
    game = games[game]
    to_end = record.length[game] - 1 - step
    outcome = record.result[game] * (1 - 2 * (to_end % 2))
    reply = np.where(to_end > 0, record.move[game, np.minimum(step + 1, record.move.shape[1] - 1)], -1)
    at = game, step
    return boards.pack(record.current[at], record.mask[at], record.visits[at], record.value[at], outcome, reply)


def search(
    current: Keys,
    mask: Keys,
    chosen: PuctSettings,
    evaluate: Evaluate,
    *,
    seed: int,
    lanes: int,
    threads: int,
    seconds: float,
    steps: int = CELLS,
) -> list[boards.Boards]:
    """Play games on from these positions until the time is over; with `steps` 1, search each position once."""
    deadline = time.monotonic() + seconds
    threads = min(threads, len(mask))

    def work(number: int) -> boards.Boards:
        mine = np.arange(number, len(mask), threads)
        records: list[GameRecord] = []

        def ended(record: GameRecord, _: NDArray[np.int64]) -> None:
            if not records:
                records.append(record)
            if time.monotonic() > deadline:
                raise OverError

        with contextlib.suppress(OverError):
            puct.play_games(
                current[mine], mask[mine], chosen, evaluate,
                seeds=seed, games=mine.tolist(), lanes=lanes, steps=steps, ended=ended,
            )  # fmt: skip
        return labelled(records[0])

    since = time.monotonic()
    with ThreadPoolExecutor(max(1, threads)) as pool:
        running = [pool.submit(work, number) for number in range(threads)]
        while wait(running, timeout=15).not_done:
            print(f"{time.monotonic() - since:.0f} s: {evaluations[0]:,} evaluations", flush=True)
        return [each.result() for each in running]


def first_searches(parts: Sequence[boards.Boards]) -> Iterator[boards.Boards]:
    """Labels of single positions: there is no game, so the outcome is the sign of a clear value."""
    for part in parts:
        clear = np.abs(part["value"].astype(np.int64)) > boards.VALUE_STEPS // 2
        yield part | {"outcome": np.where(clear, np.sign(part["value"]), 0).astype(np.int8)}


def _compile() -> None:
    """Compile the search by running a small one."""
    none = np.zeros(1, np.uint64)
    logits, value = np.zeros((1, COLUMNS), np.float32), np.zeros(1, np.float32)
    puct.play_games(none, none, settings(2), lambda current, _: (logits, value), steps=1)


def arguments(description: str) -> argparse.ArgumentParser:
    """The flags that this program shares with `search.py`."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--network", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--exclude", type=Path, help=".npz with `excluded`: keys of boards that are left out")
    parser.add_argument("--out", type=Path, required=True)
    return parser


def main(words: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--kind", choices=("games", "replies", "keys"), default="games")
    parser.add_argument("--keys", type=Path, help=".npz with `key`: the positions of --kind keys")
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--most", type=int, default=600_000, help="most games, or positions of --kind replies")
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--lanes", type=int, default=2048, help="games in lock step of one thread")
    options = parser.parse_args(words)
    compiling = threading.Thread(target=_compile)  # while the network compiles
    compiling.start()
    evaluate = evaluator(options.network, options.lanes, options.precision)
    compiling.join()
    random = np.random.default_rng([options.seed, 0])
    began = time.monotonic()
    if options.kind == "games":
        current, mask = openings(options.most, random)
    elif options.kind == "replies":
        current, mask = from_keys(first_player_positions(options.most, evaluate, options.lanes, random))
    else:
        current, mask = from_keys(random.permutation(np.load(options.keys)["key"])[: options.most])
    print(f"{len(mask):,} positions to start from, {time.monotonic() - began:.0f} s", flush=True)
    began = time.monotonic()
    parts = search(
        current, mask, settings(options.simulations), evaluate, seed=options.seed, lanes=options.lanes,
        threads=options.threads, seconds=60 * options.minutes, steps=CELLS if options.kind == "games" else 1,
    )  # fmt: skip
    seconds = time.monotonic() - began
    rows = sum(len(part["key"]) for part in parts)
    print(f"{rows:,} boards in {seconds:.0f} s: {rows / seconds:,.0f} a second", flush=True)
    excluded = np.load(options.exclude)["excluded"] if options.exclude else None
    merged = boards.merge(parts if options.kind == "games" else list(first_searches(parts)), excluded)
    for number, start in enumerate(range(0, len(merged["key"]), FILE_BOARDS)):
        path = options.out.with_name(f"{options.out.stem}-{number}.npz")
        boards.save(path, {name: values[start : start + FILE_BOARDS] for name, values in merged.items()})
        print(f"{path}: {path.stat().st_size:,} bytes")
    print(f"{len(merged['key']):,} distinct boards")


if __name__ == "__main__":
    main()
