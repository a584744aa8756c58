"""Write the data card of finished games: how made, counts, redundancy, label quality, hashes.

    python -m distill.describe data/games                                 # data/games/README.md
    python -m distill.describe data/games --out dev/data/games-5000.md

In: a folder that `generate`, or `selfplay --games-only`, finished, or packed boards of `prepare`. Out: a Markdown page.
Rows are counted in `games/census.py`; a sample of labels is graded by the exact solver, and the teacher labels some
rows again (`evaluation/labels.py`). Without the solver, an optional package, the card says so.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from distill.common import UserError, cli, cores, provenance, run_folder, say
from distill.evaluation import data_card, labels
from distill.evaluation.labels import Shares
from distill.games import census, reader
from distill.players import solver


@dataclass(frozen=True, kw_only=True)
class DescribeConfig(cli.Settings):
    """Write the data card of finished games."""

    folders: tuple[Path, ...] = cli.setting((), "folders of finished games", positional=True)
    out: Path | None = cli.setting(None, "the card, a Markdown file; default: README.md in the folder of games")
    use: str = cli.setting("", "a sentence for the card on what the games are for")
    label_rows: int | None = cli.setting(2000, "labels graded by the solver; 0: no label, `none`: all")
    top1_rows: int = cli.setting(1000, "rows that the teacher labels nine more times, for the noise ceiling; 0: no row")
    workers: int = cli.setting(cores(), "processes for searches and the solver")
    seed: int = cli.setting(0, "seed of the sample and the searches")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.folders:
            raise ValueError("name a folder of games")
        cli.check(self.out is None or len(self.folders) == 1, "out", self.out, "left out where several are given")
        cli.check(self.out is None or self.out.suffix == ".md", "out", self.out, "a Markdown file, such as games.md")
        cli.check_within(self, "[0, inf)", "label_rows", "top1_rows")
        cli.check_within(self, "[1, inf)", "workers")
        cli.check_seed(self.seed)


PRESETS: cli.Presets = {"smoke": cli.smoke(folders=(cli.SMOKE_DATA / "games",), label_rows=50, top1_rows=10)}


def run(config: DescribeConfig) -> str:
    """Write the card of each folder; returns a line for each."""
    return "\n".join(_describe(config, folder) for folder in config.folders)


def _describe(config: DescribeConfig, folder: Path) -> str:
    page = config.out or folder / "README.md"
    found = reader.open_run(folder)
    data_card.require(page)
    record = run_folder.finished(folder, *reader.KINDS)
    manifest = dataclasses.asdict(record) | (record.result or {})
    data_card.about(found, manifest)  # fails now, before the labels are graded
    counted = census.count(found)
    quality, ceiling = _grade(config, folder), _label_again(config, folder)
    data_card.write(page, found, manifest, counted, quality, ceiling, use=config.use, command=_command(config, folder))
    boards = f"{counted.plies['boards'].sum():,} distinct boards"
    return f"{page}: {found.games:,} games, {found.rows:,} rows, {boards}; {_told(quality)}"


def _told(quality: Shares | str) -> str:
    if isinstance(quality, str):
        return "labels not graded"
    optimal, outcome = (quality[metric]["all"].mean for metric in ("optimal", "outcome"))
    return f"labels {optimal:.1%} optimal, {outcome:.1%} outcome"


def _grade(config: DescribeConfig, folder: Path) -> Shares | str:
    """The quality of the labels, or the line that says why they were not graded."""
    if config.label_rows == 0:
        return "Not graded (`--label-rows 0`)."
    try:
        solver.check_installed()
    except UserError:
        line = f"Not graded: the solver is not installed (`{provenance.install_line('solver')}`)."
        say(f"{folder}: {line}")
        return line
    return labels.quality(folder, config.label_rows, config.seed, config.workers)


def _label_again(config: DescribeConfig, folder: Path) -> Shares | str:
    """How often the teacher repeats itself, or the line that says why it was not measured."""
    teacher = labels.teacher_of(folder)
    if teacher is None:
        return "Not measured: the labels do not come from this version's search without a network."
    if not config.top1_rows:
        return "Not measured (`--top1-rows 0`)."
    rows = labels.sample(folder, config.top1_rows, config.seed)
    return labels.noise_ceiling(rows, teacher, config.seed, config.workers)


def _command(config: DescribeConfig, folder: Path) -> list[str]:
    """The words of the line that writes this card again; the number of workers has no influence on it."""
    words = ["python", "-m", "distill.describe", str(folder)]
    words += ["--out", str(config.out)] if config.out else []
    words += ["--use", config.use] if config.use else []
    rows = "none" if config.label_rows is None else str(config.label_rows)
    return [*words, "--label-rows", rows, "--top1-rows", str(config.top1_rows), "--seed", str(config.seed)]


main = cli.Command("describe", DescribeConfig, run, PRESETS, resumes=False)

if __name__ == "__main__":
    raise SystemExit(main())
