"""Turn finished games into tables to train on, and say what was merged, split off and left out.

    python -m distill.prepare --data data/games --out data/prepared --validation-fraction 0.15
    python -m distill.prepare --data data/games --packed data/boards    # the same boards in a few bytes each

In: one or more folders that `generate` finished. Out: `<out>/<hash>/` (see `datasets/preparation.py`), with every count
in its record. `train` does this itself where it is missing or stale. `--data` takes folders of packed boards
too, here, in `train` and in `inspect`.
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("prepare")

from pathlib import Path
from typing import ClassVar, Self

from pydantic import model_validator

from distill.common import cli
from distill.common.settings import CommandLine
from distill.common.tables import table
from distill.datasets import packed, preparation


class PrepareConfig(preparation.TableSettings):
    """Turn finished games into tables to train on."""

    command_line: ClassVar[CommandLine] = CommandLine(
        flags=("data", "out", "validation_fraction", "exclude", "packed", "restart"),
        examples=("--data data/games", "--data data/games data/more --packed data/boards"),
        page="docs/train.md",
    )
    out: Path = Path("data/prepared")
    """parent folder of the tables, which go into <hash>/"""
    packed: Path | None = None
    """also write the boards of both tables, packed, to this folder, which --data can read"""
    restart: bool = False
    """prepare again even where the result exists"""

    @model_validator(mode="after")
    def _check_packed(self) -> Self:
        if self.packed and self.packed.resolve() in [Path(folder).resolve() for folder in self.data]:
            raise ValueError(f"--packed {self.packed} must not be a folder of --data, which it would replace")
        return self


# Half of the games validate, so that either split gets some of a few.
PRESETS = cli.smoke(data=(cli.SMOKE_DATA / "games",), out=cli.SMOKE_DATA / "prepared", validation_fraction=0.5)


def run(config: PrepareConfig) -> str:
    """Prepare, print the counts, and return the line that says where the tables are."""
    prepared = preparation.prepare(config, config.out, restart=config.restart)
    counts = prepared.result["counts"]
    boards, removed, excluded = counts["boards"], counts["removed_from_validation"], counts["excluded"]
    rows = [[name, *map("{:,}".format, counts[name].values())] for name in ("games", "rows", "boards")]
    print(table(["", "training", "validation"], rows))
    print(f"removed from validation, as training has the board: {removed['boards']:,} boards, {removed['rows']:,} rows")
    print(f"excluded: {excluded['boards']:,} boards, {excluded['rows']:,} rows")
    line = prepared.summary(config.data)
    line += f"; {boards['training']:,} training and {boards['validation']:,} validation boards"
    if config.packed:
        line += f"; {packed.pack(prepared, config.packed, restart=config.restart):,} boards in {config.packed}"
    return line


main = cli.Command("distill prepare", PrepareConfig, run, PRESETS)
