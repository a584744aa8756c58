"""How much a random split inflates validation accuracy: the same games, split by scikit-learn in three ways.

    python -m experiments.splits                                    # 5,000 games, three seeds, both published networks
    python -m experiments.splits --archs cnn --seeds 1 --games 200

In: finished games. 15 % of the games are test games, which no network trains on or is chosen by. The others are split
into 85 % training and 15 % validation, by

- `games`: whole games (GroupShuffleSplit);
- `rows`: rows, whichever game they come from (ShuffleSplit), so that one game and one board lie on both sides;
- `boards`: distinct boards, a board and its mirror image being two (ShuffleSplit), so that the mirror image of nearly
  every validation board is trained on.

Each table's rows merge by canonical board, and the published recipe trains on them. Out: a folder a network, and a
Markdown table of top-1 accuracy, every board once: on validation, on the test games, and the difference, by which
validation is inflated. Intervals are 95 %, Student's t over the seeds, which draw the split and the weights. The same
command resumes an interrupted run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill import networks, train
from distill.common import UserError, boundary, run_folder, say
from distill.common.settings import as_json, build
from distill.common.tables import table
from distill.datasets.batching import Examples
from distill.datasets.canonical import canonical, merged
from distill.game.encoding import ENCODING_VERSION
from distill.games import reader
from distill.games.reader import Columns
from distill.networks import backend, registry
from distill.networks.finding import BEST
from distill.training.recipe import Recipe

Split = Literal["games", "rows", "boards"]
SPLITS: tuple[Split, ...] = get_args(Split)
HELD_OUT = 0.15
"""Share of the games that are test games, and of the others that is validation."""

Tables: TypeAlias = dict[str, Examples]
"""By name: training, validation, test."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/published/move-20000"), help="games [%(default)s]")
    parser.add_argument("--games", type=int, default=5000, help="the first of them that are used [%(default)s]")
    parser.add_argument("--archs", nargs="+", default=["cnn", "transformer"], help="networks [%(default)s]")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each [%(default)s]")
    parser.add_argument("--epochs", type=int, default=60, help="most epochs of each run [%(default)s]")
    parser.add_argument("--out", type=Path, default=Path("models/splits"), help="[%(default)s]")
    parser.add_argument("--restart", action="store_true", help="delete the networks in --out, and train them again")
    arguments = parser.parse_args()
    if min(arguments.games, arguments.seeds, arguments.epochs) < 1:
        parser.error("--games, --seeds and --epochs must be at least 1")
    for name in arguments.archs:
        networks.trust(name)
        if not networks.is_arch(name):
            parser.error(f"--archs: {name} must be {networks.ARCH_RULE}")
    name, rows = read(arguments.data, arguments.games)
    lines = []
    for arch in arguments.archs:
        for split in SPLITS:
            say(f"{arch}, split by {split}")
            results = [
                accuracy(
                    arguments.out / f"{arch}-{arguments.games}-{split}-seed{seed}",
                    {"run": name, "games": arguments.games},
                    rows,
                    arch,
                    split,
                    recipe(seed, arguments.epochs),
                    arguments.restart,
                )
                for seed in range(arguments.seeds)
            ]
            lines.append([arch, split, *summary(results)])
    print(table(["network", "split by", "validation, %", "test games, %", "difference, points"], lines))
    return 0


def read(folder: Path, games: int) -> tuple[str, Columns]:
    """The name of a run, and the rows of its first games on their canonical boards."""
    run = reader.open_run(folder)
    reader.verify([run])
    if games > run.games:
        raise UserError(f"{folder}: has {run.games:,} games, not {games:,}; name fewer by --games")
    columns = ("game_id", "current", "mask", "label", "visits", "value", "outcome")
    parts = [canonical(reader.read(shard, columns)) for shard in run.shards if shard.first_game < games]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in columns}
    return run.name, {name: values[rows["game_id"] < games] for name, values in rows.items()}


def recipe(seed: int, epochs: int) -> Recipe:
    """The published recipe."""
    return build(Recipe, {**train.PRESETS["published"].values, "epochs": epochs, "seed": seed})


def split_of(rows: Columns, split: Split, seed: int) -> Tables:
    """The tables of rows with the columns of `read`; the test games depend on the seed alone."""
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit  # not at the top, because it takes a second

    by_game = GroupShuffleSplit(1, test_size=HELD_OUT, random_state=seed)
    ((others, test),) = by_game.split(rows["game_id"], groups=rows["game_id"])
    test_rows, rows = ({name: values[chosen] for name, values in rows.items()} for chosen in (test, others))
    at_random = ShuffleSplit(1, test_size=HELD_OUT, random_state=seed)
    if split == "games":
        ((training, validation),) = by_game.split(rows["game_id"], groups=rows["game_id"])
    elif split == "rows":
        ((training, validation),) = at_random.split(rows["game_id"])
    else:
        boards, board = np.unique(rows["current"] + rows["mask"], return_inverse=True)
        # Both images of each board are split; a table has the rows of every board of which it has an image.
        images = np.tile(np.arange(len(boards)), 2)
        training, validation = (np.flatnonzero(np.isin(board, images[part])) for part in next(at_random.split(images)))
    chosen = {
        name: {key: values[part] for key, values in rows.items()}
        for name, part in (("training", training), ("validation", validation))
    } | {"test": test_rows}
    return {name: examples(part) for name, part in chosen.items()}


def examples(rows: Columns) -> Examples:
    """Canonical rows as a table, merged by board."""
    return Examples(**merged({name: rows[name] for name in rows if name != "game_id"}, ("current", "mask")))


def accuracy(
    out: Path, data: Mapping[str, object], rows: Columns, arch: str, split: Split, recipe: Recipe, restart: bool
) -> dict[str, float]:
    """Train a network, or resume, and return its top-1 accuracy: `validation` and `test`."""
    settings = {**data, "split": split, "held_out": HELD_OUT, "arch": arch, "recipe": as_json(recipe)}
    settings |= {"backend": backend.backend_name(), "encoding_version": ENCODING_VERSION}
    settings |= {"arch source": registry.trusted_source(arch)}
    opened = run_folder.opened(out, "split", settings, settings=settings, files=train.FILES, restart=restart)
    with opened as folder:
        if folder.result is None:
            networks.start_backend()
            from distill.networks import heads, saved
            from distill.training import loop, losses, step

            tables = split_of(rows, split, recipe.seed)
            step.make_repeatable(recipe.seed)
            folder.begin()
            loop.train(networks.build(arch), tables["training"], tables["validation"], recipe, out)
            best = heads.played(saved.load_core(out / BEST))
            folder.finish(
                {name: losses.evaluate(best, tables[name], recipe)["top1"] for name in ("validation", "test")}
            )
        assert folder.result is not None
        return folder.result


def summary(results: Sequence[Mapping[str, float]]) -> list[str]:
    """Validation and test accuracy in percent and their difference in points."""
    validation, test = (np.array([result[name] for result in results]) for name in ("validation", "test"))
    return [with_interval(validation, ".1f"), with_interval(test, ".1f"), with_interval(validation - test, "+.1f")]


def with_interval(shares: ArrayLike, form: str) -> str:
    """The mean of shares in percent, with half the width of its 95 % interval where there are several."""
    from scipy import stats

    values: NDArray[np.float64] = 100 * np.asarray(shares, np.float64)
    if len(values) < 2:
        return f"{values.mean():{form}}"
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():{form}} ±{half:.1f}"


if __name__ == "__main__":
    raise SystemExit(boundary.guarded(main, "experiments splits", sys.argv[1:]))
