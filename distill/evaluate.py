"""Grade players move by move against perfect play, and the labels of data folders.

    python -m distill.evaluate models/cnn random uct:100
    python -m distill.evaluate data/games

In: players by name (`judge/players.py`) and folders of finished games; the shipped benchmark boards. Out, in
`--out`: `metrics.json`, `report.md` and its pictures; on the screen, a table. Metrics are defined in `judge/grading.py`
and `judge/labels.py`. Players need no solver; data folders do.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np

from distill import cli, provenance
from distill.data import benchmark
from distill.data.schema import MANIFEST, read_manifest, write_atomically
from distill.judge import grading, labels, plots, report, verdict
from distill.judge import players as roster


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    """Grade players and labels against perfect play."""

    players: tuple[str, ...] = cli.setting((), f"{roster.NAMES}; or a folder of games", positional=True)
    half: Literal["test", "dev"] = cli.setting("test", "half of the benchmark: dev for choices, test for headlines")
    boards: int | None = cli.setting(None, "boards of each set at most; none takes all")
    benchmark: Path | None = cli.setting(None, "folder of graded boards; none takes the shipped ones")
    label_rows: int | None = cli.setting(2000, "labels graded in each data folder; none grades all")
    agreement_rows: int = cli.setting(1000, "labels of these that the teacher is asked for again, twice")
    latency: bool = cli.setting(True, "measure the time a move takes")
    workers: int = cli.setting(cli.cores(), "processes for searches and the solver")
    seed: int = cli.setting(0, "of samples, searches and random moves")
    out: Path = cli.setting(Path("models/evaluation"), "folder that receives metrics.json, report.md and pictures")

    def __post_init__(self) -> None:
        cli.check(self.boards is None or self.boards >= 1, "boards", self.boards, "at least 1")
        cli.check(self.label_rows is None or self.label_rows >= 1, "label_rows", self.label_rows, "at least 1")
        cli.check(self.agreement_rows >= 0, "agreement_rows", self.agreement_rows, "0 or more")
        cli.check(self.workers >= 1, "workers", self.workers, "at least 1")
        if not self.players:
            raise ValueError(f"name a player: {roster.NAMES}; or a folder of games")
        if len(set(self.players)) < len(self.players):
            raise ValueError("a player is named twice")
        for word in self.players:
            if not _is_data(word):
                roster.check(word)


PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {
        "players": (str(cli.SMOKE_MODELS / "cnn"), "random", "uct:100"),
        "boards": 20,
        "label_rows": 50,
        "agreement_rows": 10,
        "out": cli.SMOKE_MODELS / "evaluation",
    },
}


def _is_data(word: str) -> bool:
    """Whether a word names a folder of games; models have a manifest of their own kind or none."""
    folder = Path(word)
    return any(folder.glob("shard-*.parquet")) or (
        (folder / MANIFEST).is_file() and read_manifest(folder).get("kind") == "games"
    )


def run(config: EvaluateConfig) -> str:
    """Grade everybody, print the tables, write the report; the last line says where it is."""
    began = time.monotonic()
    metrics: dict[str, Any] = {"config": cli.as_json(config), "commit": provenance.commit()}
    page, last = ["# How right every move is"], []
    folders = [word for word in config.players if _is_data(word)]
    names = [word for word in config.players if word not in folders]
    if names:
        last.append(_grade_players(config, names, metrics, page))
    for word in folders:
        last.append(_grade_labels(config, Path(word), metrics, page))
    metrics["seconds"] = round(time.monotonic() - began, 1)
    write_atomically(config.out / "metrics.json", (json.dumps(plain(metrics), indent=1) + "\n").encode())
    write_atomically(config.out / "report.md", ("\n\n".join(page) + "\n").encode())
    return f"{' · '.join(last)} · {config.out / 'report.md'}"


def _grade_players(config: EvaluateConfig, names: Sequence[str], metrics: dict[str, Any], page: list[str]) -> str:
    boards = benchmark.read(config.benchmark, half=config.half)
    if config.boards:
        boards = grading.sample(boards, config.boards, config.seed)
    uniform = grading.uniform_by_set(boards)
    everybody, verdicts = [], []
    for word in names:
        player = roster.make(word, config.workers)
        with cli.Progress(2 * len(boards), "moves") as progress:
            graded = grading.grade(player, boards, config.seed, progress.advance)
        everybody.append(graded)
        verdicts.append(verdict.judge(player, boards, graded, config.seed, config.latency))
    pairs = {
        f"{one.name} − {other.name}": grading.compare(boards, one, other) for one, other in combinations(everybody, 2)
    }
    metrics["benchmark"] = {"half": config.half, "boards": len(boards), "sets": boards.sets}
    metrics["uniform_random"] = uniform
    metrics["players"] = {one.name: one for one in verdicts}
    metrics["paired_differences"] = pairs

    main = boards.sets[0]
    headline = report.headline(verdicts, uniform)
    print(f"{headline}\n\n{report.by_set(verdicts, uniform, 'class')}\n")
    page += [f"Benchmark: {len(boards):,} boards of the {config.half} half.", report.LEGEND, headline]
    page += ["![by set](by_set.png)", "![by ply](by_ply.png)"]
    for metric, title in report.METRIC_TITLES.items():
        page += [f"## {title}", report.by_set(verdicts, uniform, metric)]
    page += ["## Blunders by ply", report.by_ply(verdicts)]
    if pairs:
        page += ["## On the same boards, paired", report.differences(pairs, main)]
    page += ["## The answers themselves", report.answers(verdicts), report.empty_board(verdicts)]
    page += ["![calibration](calibration.png)", "![confusion](confusion.png)"]

    plots.plot_by_set(config.out / "by_set.png", {one.name: one.sets for one in verdicts}, uniform)
    plots.plot_by_ply(config.out / "by_ply.png", {one.name: one.plies for one in verdicts})
    plots.plot_confusion(config.out / "confusion.png", boards, everybody)
    plots.plot_calibration(
        config.out / "calibration.png",
        {one.name: one.policy_calibration for one in verdicts if one.policy_calibration},
        {one.name: one.value_calibration for one in verdicts if one.value_calibration},
    )
    for number, graded in enumerate(everybody, start=1):
        plots.plot_mistakes(config.out / f"mistakes_{number}.png", boards, graded)
        page += [f"## Worst mistakes of {graded.name}", f"![mistakes](mistakes_{number}.png)"]
        page.append(report.mistakes(boards, graded))
    best = max(verdicts, key=lambda one: one.sets[main]["exact"].mean)
    exact, keeps = (report.percent(best.sets[main][metric]) for metric in ("exact", "class"))
    return f"{best.name} is best on {main}: {exact} % exact, {keeps} % class"


def _grade_labels(config: EvaluateConfig, folder: Path, metrics: dict[str, Any], page: list[str]) -> str:
    rows = config.label_rows or int(read_manifest(folder)["rows"])
    with cli.Progress(rows, "boards") as progress:
        quality = labels.grade_labels(
            folder, config.label_rows, config.agreement_rows, config.seed, config.workers, progress.advance
        )
    metrics.setdefault("labels", {})[str(folder)] = quality
    text = report.label_tables(str(folder), quality)
    print(f"{text}\n")
    picture = f"labels_{len(metrics['labels'])}.png"
    plots.plot_by_ply(config.out / picture, {str(folder): quality.by_ply})
    page += [f"## Labels of {folder}", text, f"![labels by ply]({picture})"]
    return f"labels of {folder}: {report.percent(quality.exact)} % exact, {report.percent(quality.keeps)} % class"


def plain(value: Any) -> Any:
    """Results as JSON values: dataclasses become objects, arrays lists, a missing number null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the return value is the exit code."""
    return cli.main("evaluate", EvaluateConfig, run, PRESETS, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
