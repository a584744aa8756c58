"""Whether two runs of the same games carry the same labels, as `--savings exact` promises.

python -m distill.generate --games 5000
python -m distill.generate --games 5000 --savings exact --out data/games-exact
python benchmarks/labels.py data/games data/games-exact
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from distill.games import schema


def rows_of(folder: Path) -> pa.Table:
    names = [shard["name"] for shard in schema.read_manifest(folder)["shards"]]
    return pa.concat_tables([schema.read_table(folder / name)[0] for name in names])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", type=Path, nargs=2)
    first, second = (rows_of(folder) for folder in parser.parse_args().folders)
    keys = ("game_id", "ply", "current", "mask")
    same_positions = len(first) == len(second) and all(first[key].equals(second[key]) for key in keys)
    # Games part at the first label that differs, so equal positions throughout already mean equal labels.
    labels = [table["label"].to_numpy() for table in (first, second)]
    equal = int(np.sum(labels[0] == labels[1])) if same_positions else 0
    executed = [int(table["simulations"].to_numpy().sum(dtype=np.int64)) for table in (first, second)]
    print(f"positions {len(first):,} and {len(second):,}, the same: {same_positions}; equal labels: {equal:,}")
    print(f"simulations executed {executed[0]:,} and {executed[1]:,}, {executed[1] / executed[0]:.1%}")
    print(json.dumps({"rows": len(first), "equal_labels": equal, "executed_share": executed[1] / executed[0]}))


if __name__ == "__main__":
    main()
