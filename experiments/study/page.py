"""The page of a study, and beside it its table and its pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from distill.common import UserError, write_atomically
from distill.players.intervals import Estimate
from experiments.study import plots
from experiments.study.plan import Plan, Run
from experiments.study.results import Line, Result, csv, labels, labels_csv, markdown, seeds

MADE_BY = "python -m experiments.study"
"""The command that every page names."""

LEGEND = """\
Figures are percentages and differences are in points, with half the width of the 95 % interval; * marks an interval
without 0, as one comparison in twenty has by chance. Differences are paired, board by board: the interval covers the
choice of boards, not the randomness of training. *boards*: training boards, merged; *epochs*: passes over them; *loss*:
validation loss; *tactics*: the mean of optimal over the sets chosen for a tactical motif."""


def require(page: Path) -> None:
    """Raise UserError for files that would be replaced: one that is no page of a study, and a CSV of no page."""
    if not page.exists() and (csv_file := page.with_suffix(".csv")).exists():
        raise UserError(f"{csv_file}: would be replaced; delete it, or name another --page")
    if page.is_file() and MADE_BY not in page.read_text(encoding="utf-8", errors="replace"):
        raise UserError(f"{page}: is no page of a study and would be replaced; name another --page")


def write(
    page: Path,
    plan: Plan,
    tier: str,
    graded_on: str,
    results: Sequence[Result],
    lines: Sequence[Line],
    labelled: Mapping[str, Mapping[str, Estimate]],
    histories: Mapping[str, pd.DataFrame],
    flags: str,
) -> None:
    """Write the page of one tier, its tables (CSV) and the pictures that have enough runs.

    Args:
      page: the Markdown file; the names of the CSV and the pictures beside it start with its stem.
      graded_on: which boards, in words.
      lines: the players that the runs are compared with.
      labelled: grades of each data set's labels.
      histories: of the runs, as `train` leaves them.
      flags: of the command that makes this page.
    """
    page.parent.mkdir(parents=True, exist_ok=True)
    by_name = {result.name: result for result in results}
    curve = [by_name[name] for name in plan.learning_curve if name in by_name]
    targets = [by_name[name] for name in plan.targets if name in by_name]
    pictures: list[str] = []

    def picture(title: str, has_data: bool, draw: Callable[[Path], None]) -> None:
        if has_data:
            file = page.with_name(f"{page.stem}-{title.replace(' ', '-')}.png")
            draw(file)
            pictures.append(f"![{title}]({file.name})")

    compared = any(result.gaps for result in results)
    picture("differences", compared, lambda file: plots.differences(file, results))
    picture("learning curve", len(curve) > 1, lambda file: plots.learning_curve(file, curve, lines))
    picture("over time", plan.over_time, lambda file: plots.over_time(file, histories))
    learned = "Policy target; the baseline: visit shares"
    picture("targets", len(targets) > 1, lambda file: plots.bars(file, learned, targets))

    sections = [
        f"# {plan.title}",
        plan.about.strip(),
        f"Every run: `train {plan.tier[tier].train}`. Graded on {graded_on}. {LEGEND}",
        markdown(results, lines),
        seeds(results),
        labels(labelled),
        *pictures,
        "## What each run changes",
        "\n".join(_changed(name, plan.runs[name], name in by_name) for name in plan.tier[tier].runs or plan.runs),
        f"All figures: [`{page.stem}.csv`]({page.stem}.csv). `{MADE_BY} {flags}` made this page.",
    ]
    if labelled:
        write_atomically(page.with_name(f"{page.stem}-labels.csv"), labels_csv(labelled).encode())
    write_atomically(page, ("\n\n".join(filter(None, sections)) + "\n").encode())
    write_atomically(page.with_suffix(".csv"), csv(results).encode())


def _changed(name: str, settings: Run, is_there: bool) -> str:
    title = f"**{name}**" if is_there else f"**{name}** (not run in this tier)"
    flags = f", `{settings.train}`" if settings.train else ""
    confounded = f" *Confounded:* {settings.confounded}" if settings.confounded else ""
    return f"- {title}: {settings.change}{flags}; data `{settings.data}`.{confounded}"
