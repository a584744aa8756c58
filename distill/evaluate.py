"""Grade players move by move against perfect play, and compare networks with the labels of data folders.

    python -m distill.evaluate models/cnn random uct:100
    python -m distill.evaluate models/cnn my_players:centre             # your own function, in my_players.py
    python -m distill.evaluate models/cnn data/reference/validation     # also top-1 accuracy against its labels

In: players by name (`players/names.py`) and folders of finished games; the shipped benchmark boards. Out, in `--out`:
a record and `report.md`; on the screen, a table. Metrics are defined in `evaluation/grading.py` and
`evaluation/labels.py`. No solver is needed; `distill inspect` grades the labels of a folder with one.
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("evaluate")

import os.path
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from distill.common import cli, cores, plugins, run_folder, write_atomically
from distill.common.settings import CommandLine, NameOrPath, Seed, Settings, as_json
from distill.datasets.benchmark import Half
from distill.evaluation import grading, labels, report
from distill.games import reader
from distill.networks import finding
from distill.players import names
from distill.players.network import NetworkPlayer
from distill.players.player import Player


class EvaluateConfig(Settings):
    """Grade players against perfect play."""

    command_line: ClassVar[CommandLine] = CommandLine(
        words="players",
        flags=("half", "sets", "boards", "workers", "seed", "out"),
        examples=("models/cnn random uct:100", "models/cnn data/reference/validation --boards 500"),
        page="docs/benchmark.md",
    )
    players: tuple[NameOrPath, ...] = Field(
        (), title="PLAYER", description=f"{names.NAMES}; and folders of games, for top-1 accuracy"
    )
    half: Half = "test"
    """half of the benchmark: dev for choices, test for headlines"""
    sets: tuple[str, ...] = Field((), title="SET")
    """sets of the benchmark, such as midgame heldout; default: all"""
    boards: int | None = Field(None, ge=1)
    """largest number of boards per set; default: all"""
    workers: int = Field(cores(), ge=1)
    """processes for searches and the solver"""
    seed: Seed = 0
    """seed of samples, searches and random moves"""
    out: Path = Path("models/evaluation")
    """folder for the record and report.md"""

    @model_validator(mode="after")
    def _check_players(self) -> Self:
        if not self.players:
            raise ValueError(f"name a player: {names.NAMES}")
        if len(set(map(names.shown, self.players))) < len(self.players):
            raise ValueError("a player is named twice")
        parts = [names.check(name) for name in self.players if not _is_data(name)]
        if len(parts) < len(self.players) and not any(part.mode == "policy" for part in parts):
            raise ValueError("name a network besides a folder of games; distill inspect grades the labels of a folder")
        return self


REPORT = "report.md"

PRESETS = cli.smoke(
    players=(str(cli.SMOKE_MODELS / "cnn"), "random", "uct:100"), boards=20, out=cli.SMOKE_MODELS / "evaluation"
)


def _is_data(name: str) -> bool:
    """Whether a name is that of no player but of a folder of games."""
    is_path = not names.parse(name).player and os.path.isdir(name) and finding.find(name) == Path(name)
    return is_path and getattr(run_folder.read(name), "kind", None) in reader.KINDS


def run(config: EvaluateConfig) -> str:
    """Grade players, print the tables, replace the report; the last line says where it is."""
    metrics: dict[str, Any] = {}
    page, settings, out = ["# How good every move is"], as_json(config), config.out
    of_games = [Path(name) for name in config.players if _is_data(name)]
    with run_folder.opened(out, "evaluation", settings, settings=settings, files=[REPORT], restart=True) as folder:
        # What is wrong must show before hours of grading.
        reader.verify(map(reader.open_run, of_games))
        wanted = [name for name in config.players if Path(name) not in of_games]
        players, metrics["networks"] = names.recorded(wanted, lambda name: names.make(name, config.workers))
        own = [name for name in wanted if names.parse(name).custom]
        metrics["sources"] = {name: plugins.Plugin.named(name, "player").source for name in own}
        last = [_grade_players(config, players, metrics, page)]
        last += [_compare_labels(games, players, metrics, page) for games in of_games]
        folder.begin()
        write_atomically(out / REPORT, ("\n\n".join(page) + "\n").encode())
        folder.finish(report.plain(metrics))
    return f"{' · '.join(last)} · {out / REPORT}"


def _grade_players(config: EvaluateConfig, players: Sequence[Player], metrics: dict[str, Any], page: list[str]) -> str:
    """Add the players' grades to the metrics and the page; returns a line on the best player."""
    boards = grading.read_boards(config.half, config.sets, config.boards, config.seed)
    graded = [grading.grade_aloud(player, boards, config.seed) for player in players]
    by_player = {one.name: grading.by_set(boards, one) for one in graded}
    pairs = {
        f"{one.name} − {other.name}": grading.compare(boards, one, other) for one, other in combinations(graded, 2)
    }
    metrics["benchmark"] = {"half": config.half, "boards": len(boards), "sets": boards.sets}
    metrics["players"] = {name: {"sets": sets} for name, sets in by_player.items()}
    metrics["paired_differences"] = pairs
    print(f"{report.headline(by_player)}\n\n{report.by_set(by_player, 'outcome')}\n")
    page.append(f"Benchmark: {len(boards):,} boards of the {config.half} half.")
    page += report.of_players(by_player, pairs)
    # The last line names the best player on the first headline set that was graded.
    main = report.headline_sets(by_player)[0]
    best = max(by_player, key=lambda name: by_player[name][main]["optimal"].mean)
    optimal, outcome = (report.percent(by_player[best][main][metric]) for metric in ("optimal", "outcome"))
    return f"{best} is best on {main}: {optimal} % optimal, {outcome} % outcome"


def _compare_labels(folder: Path, players: Sequence[Player], metrics: dict[str, Any], page: list[str]) -> str:
    """Compare the networks with a folder's labels; returns a line on the best top-1 accuracy."""
    networks = [player for player in players if isinstance(player, NetworkPlayer) and player.mode == "policy"]
    compared = labels.against(networks, reader.raw_rows([folder]))
    metrics.setdefault("labels", {})[str(folder)] = compared
    table, *details = report.against(compared)
    print(f"{table}\n")
    page += [f"## Top-1 accuracy against {folder}", table, *details]
    best = max(compared, key=lambda name: compared[name]["top1"].mean)
    return f"labels of {folder}: {best} {report.percent(compared[best]['top1'])} % top-1"


main = cli.Command("distill evaluate", EvaluateConfig, run, PRESETS)
