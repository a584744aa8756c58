"""Packed boards labelled by a network's policy and value: a large network teaches a small one.

    python -m experiments.taught --network models/wide-lines --out data/taught

Boards and how their games ended stay. The network's labels lack the chance and the habits of single searches, and a
small network can learn more from them (Hinton, Vinyals, Dean: Distilling the Knowledge in a Neural Network, 2015).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from distill import networks
from distill.common import Progress, UserError
from distill.datasets import packed
from distill.game import encoding, outputs, rules
from distill.games import reader
from distill.networks import finding

AT_ONCE = 1 << 14
"""Boards evaluated between two steps of the progress bar."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/reference/labels-200"), help="[%(default)s]")
    parser.add_argument("--network", required=True, help="a network with a value head, by name, folder or file")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        teach(arguments.data, arguments.network, arguments.out)
    except UserError as error:
        parser.error(str(error))


def teach(data: Path, network: str | Path, out: Path) -> None:
    """Write the boards of `data` into `out` with a network's labels. Raises UserError for a folder of other labels."""
    networks.start_backend()
    from distill.networks import saved
    from distill.networks.evaluator import NetworkEvaluator
    from experiments.study import shapes  # noqa: F401  their layers register themselves for loading

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
            shares = np.exp(logits - logits.max(1, keepdims=True))  # the largest is 1
            visits.append(np.rint(packed.MOST_VISITS * shares).astype(np.int64))
            values.append(value)
            progress.advance(len(value))
    boards = encoding.boards(current, mask)
    packed.write_labels(boards, np.concatenate(visits), np.concatenate(values), out, outcome=outcome)


if __name__ == "__main__":
    main()
