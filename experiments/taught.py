"""A table of packed boards labelled anew by a network's own policy and value: a large network teaches a small one.

    python -m experiments.taught --network models/wide-lines --out data/taught

Boards and how their games ended stay. What a network says is without the chance and the habits of single searches, and
a small network can learn more of it (Hinton, Vinyals, Dean: Distilling the Knowledge in a Neural Network, 2015). A
killed run goes on with its command.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa

from distill import networks
from distill.common import Progress, UserError, canonical_json, file_hash, folders, provenance, read_object, write_json
from distill.datasets import packed
from distill.game import outputs, rules
from distill.games import reader, schema
from distill.games.schema import PACKED, PACKED_ROW, VALUE_STEPS
from distill.networks import finding

BOARDS = 1 << 17
"""Boards of a file, which is what a killed run loses: minutes of one core."""


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
    from distill.networks.evaluator import BATCH, Evaluator
    from experiments.study import shapes  # noqa: F401  their layers register themselves for loading

    run = reader.open_run(data)
    reader.verify([run])
    boards = pa.concat_tables([schema.read_table(shard.path, PACKED_ROW)[0] for shard in run.shards])
    file = finding.network_file(network)
    teacher = Evaluator(saved.load_core(file), BATCH)
    identity = {"kind": PACKED, "boards": run.name, "network": file_hash(file)}
    name = hashlib.sha256(canonical_json(identity).encode()).hexdigest()
    about = {"schema_version": schema.SCHEMA_VERSION, "kind": PACKED, "run": name, "identity": identity}

    def labelled(part: pa.Table) -> pa.Table:
        current, mask = rules.from_keys(part["key"].to_numpy())
        with outputs.named(str(network)):
            logits, value = outputs.evaluation(teacher.answers(current, mask), mask)
        logits = np.where(rules.legal_mask(mask), logits, -np.inf)
        shares = np.exp(logits - logits.max(1, keepdims=True))  # the largest is 1
        visits = np.rint(packed.MOST_VISITS * shares).astype(np.uint8)
        columns = pa.FixedSizeListArray.from_arrays(pa.array(visits.ravel()), rules.COLUMNS)
        value = np.rint(VALUE_STEPS * value).astype(np.int8)
        return pa.table([part["key"], columns, value, part["outcome"]], schema=PACKED_ROW)

    with folders.locked(out):
        folders.require(out, folders.PACKED_BOARDS, own=[path.name for path in out.glob("shard-*.parquet")])
        if read_object(out / "config.json") not in ({}, identity):
            raise UserError(f"{out}: holds other labels; name another folder")
        write_json(out / "config.json", identity)
        shards = []
        with Progress(len(boards), "boards") as progress:
            for number, first in enumerate(range(0, len(boards), BOARDS)):
                path, part = out / f"shard-{number:05}.parquet", boards.slice(first, BOARDS)
                part = _labelled_before(path, part, name) or labelled(part)
                shards.append(packed.write_shard(path, part, first, about))
                progress.advance(len(part))
        packed.write_manifest(out, about, shards, inputs=[], versions=provenance.versions("numpy", "pyarrow"))


def _labelled_before(path: Path, part: pa.Table, run: str) -> pa.Table | None:
    """What a killed process has left of this run for these boards; None where that is nothing, or something else."""
    if not path.is_file():
        return None
    table, about = schema.read_table(path, PACKED_ROW)
    return table if about.get("run") == run and table["key"].equals(part["key"]) else None


if __name__ == "__main__":
    main()
