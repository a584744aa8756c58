"""Packed boards labelled by a network's policy and value: a large network teaches a small one.

    python -m experiments.taught --network models/wide-lines --out data/taught
    python -m experiments.taught --network pillar-large --student models/student --out data/student-games

Boards and how their games ended stay. The network's labels lack the chance and the habits of single searches, and a
small network can learn more from them (Hinton, Vinyals, Dean: Distilling the Knowledge in a Neural Network, 2015).

With `--student`, the boards are those of new games: the student moves first and plays its best move, the replies are
drawn from the network's policy. So the student learns what to do in the positions that it reaches itself (Ross, Gordon,
Bagnell: A Reduction of Imitation Learning and Structured Prediction to No-Regret Online Learning, 2011). `--out` then
has up to 16 folders: folder n holds the boards that at least n² games reach. With `train --data OUT/* --set
count_weights=count` a board thus weighs the root of its games.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.common import Progress, UserError, boundary, run_folder
from distill.datasets import packed
from distill.game import encoding, outputs, rules
from distill.games import reader, schema
from distill.networks import finding
from distill.players.names import make
from distill.players.player import Choices, Player, checked_choices, draw_by, seeds_for

AT_ONCE = 1 << 14
"""Boards evaluated between two steps of the progress bar."""
BATCH = 1024
"""Boards that a player sees at once."""
MOST_WEIGHT = 16
"""Folders that a board of many games is written to."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/reference/labels-200"), help="[%(default)s]")
    parser.add_argument("--network", required=True, help="a network with a value head, by name, folder or file")
    parser.add_argument("--student", help="a player; label the boards of its games in place of --data")
    parser.add_argument("--games", type=int, default=30_000, help="of the student [%(default)s]")
    parser.add_argument("--temperature", type=float, default=1.5, help="of the policy that replies [%(default)s]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.games < 1 or not arguments.temperature > 0:
        parser.error("--games must be at least 1, --temperature above 0")
    try:
        if arguments.student:
            folders = {weight: arguments.out / f"{weight:02}" for weight in range(1, MOST_WEIGHT + 1)}
            for folder in folders.values():  # before the games
                if folder.exists():
                    raise UserError(f"{folder}: exists; name another --out")
            players = make(arguments.student, fast=True), make(arguments.network, fast=True)
            boards, visits, value, games = play_games(*players, arguments.games, arguments.temperature, arguments.seed)
            for weight, folder in folders.items():
                often = games >= weight**2
                if often.any():
                    packed.write_labels(boards[often], visits[often], value[often], folder)
        else:
            teach(arguments.data, arguments.network, arguments.out)
    except ValueError as error:
        parser.error(str(error))
    return 0


def teach(data: Path, network: str | Path, out: Path) -> None:
    """Write the boards of `data` into `out` with a network's labels. Raises UserError where it holds a run."""
    networks.start_backend()
    from distill.networks import saved
    from distill.networks.evaluator import NetworkEvaluator
    from experiments.study import shapes  # noqa: F401  their layers register themselves for loading

    if (record := run_folder.read(out)) and (record.result or record.kind != schema.PACKED_BOARDS):
        raise UserError(f"{out}: holds {record.kind}; name another --out")
    run = reader.open_run(data)
    reader.verify([run])
    parts = [reader.read(shard, ("current", "mask", "outcome")) for shard in run.shards]
    current, mask, outcome = (np.concatenate([part[name] for part in parts]) for name in ("current", "mask", "outcome"))
    teacher = NetworkEvaluator(saved.load_core(finding.network_file(network)))
    visits, values = [], []
    with Progress(len(mask), "boards") as progress, outputs.named(str(network)):
        for first in range(0, len(mask), AT_ONCE):
            here = slice(first, first + AT_ONCE)
            logits, value = outputs.evaluation(teacher(current[here], mask[here]), mask[here])
            logits = np.where(rules.legal_mask(mask[here]), logits, -np.inf)
            visits.append(_visits(np.exp(logits - logits.max(1, keepdims=True))))
            values.append(value)
            progress.advance(len(value))
    boards = encoding.boards(current, mask)
    packed.write_labels(boards, np.concatenate(visits), np.concatenate(values), out, outcome=outcome)


def play_games(
    student: Player, network: Player, games: int, temperature: float, seed: int
) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """A student's games as first mover, with the labels of a network that has a value head.

    Returns the distinct boards int8 (B, 6, 7), visits int64 (B, 7), values (B,) and the number of games that reach each
    board int64 (B,). Raises UserError for a network without a value head.
    """
    current = mask = np.zeros(games, np.uint64)
    number = np.arange(games)
    labelled: list[tuple[Any, ...]] = []
    while len(mask):
        stones = len(labelled)
        keys, place, reached = np.unique(current + mask, return_inverse=True, return_counts=True)
        labels = _choices(network, keys)
        if labels[0].policy is None or labels[0].value is None:
            raise UserError(f"{network.name}: only a network with a value head can label boards")
        policy, value = (np.concatenate([getattr(part, name) for part in labels]) for name in ("policy", "value"))
        labelled.append((encoding.boards(*rules.from_keys(keys)), _visits(policy), value, reached))
        if stones % 2 == 0:
            moves = np.concatenate([part.moves for part in _choices(student, keys)])[place]
        else:
            moves = draw_by(policy[place] ** (1 / temperature), seeds_for(seed, number, stones))
        stone = rules.landing(mask)[np.arange(len(mask)), moves]
        going_on = ~rules.has_four(current | stone) & (mask | stone != rules.FULL_BOARD)
        print(f"{stones} stones: {len(keys):,} boards, {(~going_on).sum():,} games end", flush=True)
        current, mask, number = (current ^ mask)[going_on], (mask | stone)[going_on], number[going_on]
    boards, visits, values, reached = (np.concatenate(column) for column in zip(*labelled, strict=True))
    return boards, visits, values, reached


def _choices(player: Player, keys: NDArray[np.uint64]) -> list[Choices]:
    """A player's choices on any number of boards, in batches."""
    batches = [keys[start : start + BATCH] for start in range(0, len(keys), BATCH)]
    return [checked_choices(player, *rules.from_keys(batch), seeds_for(0, batch)) for batch in batches]


def _visits(policy: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Visits (B, 7), the most of a board packed.MOST_VISITS, in proportion to the policy."""
    return np.rint(packed.MOST_VISITS * policy / policy.max(1, keepdims=True)).astype(np.int64)


if __name__ == "__main__":
    raise SystemExit(boundary.guarded(main, "experiments taught", sys.argv[1:]))
