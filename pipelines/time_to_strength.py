"""How many minutes a self-play run needs to reach searches of given lengths, by the grades of its own iterations.

    python -m distill.selfplay --preset hour --out models/hour
    python pipelines/time_to_strength.py models/hour --plot models/hour/curve.png

After every iteration a run grades its network, without search, on the dev half of the boards `midgame` and `heldout`.
This script grades the searches on the same boards. A search is reached at the first iteration from which on the network
stays at or above it. Minutes are the run's own clock, which stops while the run is stopped (until 2026-11-25 it did not
count what an interrupted run had learned of its current iteration).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pandas as pd

from distill.alphazero import grades, run_files
from distill.common import DataError, run_folder
from distill.common.settings import by_path
from distill.datasets import benchmark
from distill.players import names

SEARCHES = ("uct:100", "uct:1000", "teacher:10000", "uct:100000")
MEASURES = ("optimal", "outcome")


def metrics(name: str, boards: benchmark.GradedBoards) -> dict[str, float]:
    """A player's metrics in percent, named as those of an iteration."""
    return {each: 100 * value for each, value in grades.grade(names.make(name), boards).items()}


def reached(history: list[dict[str, Any]], column: str, line: float) -> float | None:
    """Minutes of the first iteration from which on the metric stays at or above the line; None if the last is below."""
    found = None
    for each in reversed(history):
        if 100 * each[column] < line:
            break
        found = each["minutes"]
    return found


def draw(history: list[dict[str, Any]], lines: dict[str, dict[str, float]], path: Path) -> None:
    """Draw the metrics by minutes, with a line for each search."""
    from distill.common.pictures import new_figure

    figure, axes = new_figure(1, 2, 10, 3.4)
    minutes = [each["minutes"] for each in history]
    for panel, measure in zip(axes, MEASURES, strict=True):
        for title, prefix in grades.SETS.items():
            panel.plot(minutes, [100 * each[prefix + measure] for each in history], marker=".", label=title)
        levels = sorted((found[measure], name) for name, found in lines.items())
        lowest, highest = levels[0][0] - 4, max(100 * each[measure] for each in history) + 1
        panel.set(title=f"{measure}, % of boards, without search", xlabel="minutes", ylim=(lowest, highest + 1))
        written = lowest
        for level, name in levels:
            panel.axhline(level, linewidth=0.8, linestyle="--", color="#777777")
            written = max(level, written + (highest - lowest) / 16)  # move up a name that would touch the one below
            panel.annotate(name, (1.01, written), xycoords=("axes fraction", "data"), va="center", fontsize=7)
        panel.legend(loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path, help="folder of a run of selfplay --preset hour")
    parser.add_argument("--plot", type=Path, help="file for the curve")
    arguments = parser.parse_args()
    table = arguments.run / "history.csv"
    history = pd.read_csv(table).to_dict("records") if table.is_file() else []
    if not history or "minutes" not in history[-1]:
        parser.error(f"{arguments.run}: no iteration of a self-play run is finished there")
    try:
        settings = by_path(run_folder.finished(arguments.run, run_files.KIND).settings)
    except DataError as error:
        parser.error(str(error))
    boards = grades.boards(next(value for path, value in settings.items() if path.endswith("eval_boards")))
    lines = {name: metrics(name, boards) for name in SEARCHES}
    print(f"{arguments.run}: {history[-1]['minutes']:.0f} minutes; grades in percent, and the minutes to reach them")
    columns = [prefix + measure for prefix in grades.SETS.values() for measure in MEASURES]
    print(f"{'':14}" + "".join(f"{column.replace('_', ' '):>22}" for column in columns))
    result: dict[str, Any] = {"minutes": history[-1]["minutes"]}
    for name, found in lines.items():
        result[name] = {column: reached(history, column, found[column]) for column in columns}
        cells = (
            f"{found[column]:.1f} after {'–' if minutes is None else f'{minutes:.1f}'}"
            for column, minutes in result[name].items()
        )
        print(f"{name:14}" + "".join(f"{cell:>22}" for cell in cells))
    print(f"{'the network':14}" + "".join(f"{100 * history[-1][column]:>22.1f}" for column in columns))
    if arguments.plot:
        draw(history, lines, arguments.plot)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
