"""Grade players move by move against perfect play, and the labels of data folders.

    python -m distill.evaluate models/cnn random uct:100
    python -m distill.evaluate data/games
    python -m distill.evaluate models/cnn data/reference/validation     # also how often their moves are the same

In: players by name (`players/names.py`) and folders of finished games; the shipped benchmark boards. Out, in
`--out`: `metrics.json`, `report.md` and its pictures; on the screen, a table. Metrics are defined in
`evaluation/grading.py` and `evaluation/repeats.py`. Players need no solver; data folders do.
"""

from __future__ import annotations

import os.path
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from distill.common import (
    Progress,
    cli,
    cores,
    file_hash,
    folders,
    provenance,
    read_object,
    say,
    write_atomically,
    write_json,
)
from distill.datasets import benchmark
from distill.evaluation import grading, labels, plots, repeats, report, verdict
from distill.games import games
from distill.games.schema import MANIFEST
from distill.networks import finding
from distill.players import names
from distill.players.names import make
from distill.players.network import NetworkPlayer
from distill.players.player import Player
from distill.players.solver import check_installed


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig(cli.Settings):
    """Grade players and labels against perfect play."""

    players: tuple[str, ...] = cli.setting((), f"{names.NAMES}; or a folder of games", positional=True)
    half: Literal["test", "dev"] = cli.setting("test", "half of the benchmark: dev for choices, test for headlines")
    sets: tuple[str, ...] = cli.setting((), "sets of the benchmark, such as midgame heldout; nothing takes all")
    boards: int | None = cli.setting(None, "boards of each set at most; none takes all")
    benchmark: Path | None = cli.setting(None, "folder of graded boards; none takes the shipped ones")
    label_rows: int | None = cli.setting(2000, "labels graded in each data folder; none grades all")
    top1_rows: int = cli.setting(1000, "rows of each for which the teacher is asked again, nine times")
    latency: bool = cli.setting(True, "measure the time a move takes")
    workers: int = cli.setting(cores(), "processes for searches and the solver")
    seed: int = cli.setting(0, "of samples, searches and random moves")
    out: Path = cli.setting(Path("models/evaluation"), "folder that receives metrics.json, report.md and pictures")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check_least(self, boards=1, label_rows=1, top1_rows=0, workers=1)
        cli.check_seed(self.seed)
        if not self.players:
            raise ValueError(f"name a player: {names.NAMES}; or a folder of games")
        if len({word.replace("/@", "@").rstrip("/") for word in self.players}) < len(self.players):
            raise ValueError("a player is named twice")
        for word in self.players:
            if not _is_data(word):
                names.check(word)


FILES = ("metrics.json", "report.md", "by_set.png", "by_ply.png", "confusion.png", "calibration.png")
PICTURES = ("mistakes_[0-9]*.png", "labels_[0-9]*.png")
"""What an evaluation may replace in a folder of its own; of PICTURES there are as many as players or folders."""

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {
        "players": (str(cli.SMOKE_MODELS / "cnn"), "random", "uct:100"),
        "boards": 20,
        "label_rows": 50,
        "top1_rows": 10,
        "out": cli.SMOKE_MODELS / "evaluation",
    }
}


def _is_data(word: str) -> bool:
    """Whether a word names no player but a folder of games; models have a manifest of their own kind or none."""
    folder = Path(word)
    if names.parse(word).player or not os.path.isdir(word) or finding.find(word) != folder:
        return False
    return any(folder.glob("shard-*.parquet")) or read_object(folder / MANIFEST).get("kind") == "games"


def run(config: EvaluateConfig) -> str:
    """Grade everybody, print the tables, write the report; the last line says where it is."""
    began = time.monotonic()
    metrics: dict[str, Any] = {"config": cli.as_json(config), "commit": provenance.commit()}
    page, last, pictures = ["# How right every move is"], list[str](), plots.Pictures()
    _require(config.out)  # hours before it is written to
    of_games = [word for word in config.players if _is_data(word)]
    for word in of_games:  # before hours of grading
        check_installed()
        games.verify([games.open_run(Path(word))])
        repeats.teacher_of(Path(word))
    players = [make(word, config.workers) for word in config.players if word not in of_games]
    metrics["networks"] = _networks(config.players)
    if players:
        last.append(_grade_players(config, players, metrics, page, pictures))
    for word in of_games:
        last.append(_grade_labels(config, Path(word), metrics, page, pictures))
        _compare_labels(config, Path(word), players, metrics, page)
    metrics["seconds"] = round(time.monotonic() - began, 1)
    with folders.locked(config.out, wait=True):  # for the moment that another one needs to write its own
        _require(config.out)
        # First what tells whose folder it is: killed after it, another evaluation may write here.
        write_json(config.out / "metrics.json", report.plain(metrics))
        for left in {*_many(config.out)} - {*pictures}:
            (config.out / left).unlink()  # of an evaluation of more players
        say(f"drawing {len(pictures)} pictures")
        for name, draw in pictures.items():
            draw(config.out / name)
        write_atomically(config.out / "report.md", ("\n\n".join(page) + "\n").encode())
    return f"{' · '.join(last)} · {config.out / 'report.md'}"


def _networks(players: Sequence[str]) -> dict[str, str]:
    """SHA-256 of the `.keras` file behind each player that has one: a card takes grades of that very network alone."""
    folders_of = {word: finding.find(network) for word in players if (network := names.parse(word).network)}
    files = {word: place / finding.BEST for word, place in folders_of.items() if place}
    return {word: file_hash(file) for word, file in files.items() if file.is_file()}


def _require(out: Path) -> None:
    folders.require(out, folders.EVALUATION, own=(*FILES, *_many(out)))


def _many(out: Path) -> list[str]:
    """The PICTURES that lie there."""
    return [path.name for pattern in PICTURES for path in out.glob(pattern)]


def _grade_players(
    config: EvaluateConfig,
    players: Sequence[Player],
    metrics: dict[str, Any],
    page: list[str],
    pictures: plots.Pictures,
) -> str:
    boards = benchmark.read(config.benchmark, half=config.half, sets=config.sets or None)
    if config.boards:
        boards = grading.sample(boards, config.boards, config.seed)
    uniform = grading.uniform_by_set(boards)
    everybody, verdicts = [], []
    for player in players:
        say(f"grading {player.name}{', then measuring the time of a move' if config.latency else ''}")
        with Progress(2 * len(boards), "moves", warm_up=True) as progress:
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

    print(f"{report.headline(verdicts, uniform)}\n\n{report.by_set(verdicts, uniform, 'outcome')}\n")
    page.append(f"Benchmark: {len(boards):,} boards of the {config.half} half.")
    page += report.of_players(boards, verdicts, uniform, pairs)
    pictures |= plots.of_players(boards, everybody, verdicts, uniform)
    main = report.headline_sets(boards.sets)[0]
    best = max(verdicts, key=lambda one: one.sets[main]["optimal"].mean)
    optimal, keeps = (report.percent(best.sets[main][metric]) for metric in ("optimal", "outcome"))
    return f"{best.name} is best on {main}: {optimal} % optimal, {keeps} % outcome"


def _grade_labels(
    config: EvaluateConfig, folder: Path, metrics: dict[str, Any], page: list[str], pictures: plots.Pictures
) -> str:
    quality = labels.grade_labels(folder, config.label_rows, config.seed, config.workers)
    metrics.setdefault("labels", {})[str(folder)] = quality
    text = report.label_tables(str(folder), quality)
    print(f"{text}\n")
    picture = f"labels_{len(metrics['labels'])}.png"
    pictures[picture] = lambda file: plots.plot_by_ply(file, {str(folder): quality.by_ply})
    page += [f"## Labels of {folder}", text, f"![labels by ply]({picture})"]
    return f"labels of {folder}: {report.percent(quality.optimal)} % optimal, {report.percent(quality.keeps)} % outcome"


def _compare_labels(
    config: EvaluateConfig, folder: Path, players: Sequence[Player], metrics: dict[str, Any], page: list[str]
) -> None:
    """How often the teacher gives its labels again, and how often the networks, which answer at once, give them."""
    again = None
    if config.top1_rows and (teacher := repeats.teacher_of(folder)):
        asked, _ = labels.sample(folder, config.top1_rows, config.seed)
        again = repeats.ask_again(asked, teacher, config.seed, config.workers)
    at_once = [player for player in players if isinstance(player, NetworkPlayer) and player.mode == "policy"]
    students = repeats.students(at_once, games.raw_rows([folder], None, 0.0)) if at_once else {}
    metrics.setdefault("top1", {})[str(folder)] = {"teacher": again, "players": students}
    parts = [report.label_repeats(again)] if again else []
    parts += [report.students(students)] if students else []
    if parts:
        print("\n\n".join(parts) + "\n")
        page += [f"## Agreement with the labels of {folder}", *parts]


main = cli.Command("evaluate", EvaluateConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
