"""A verdict in words, the tables shown on the screen and in `report.md`, and as JSON values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distill.datasets.benchmark import GradedBoards
from distill.evaluation.grading import GENERAL, HEADLINES, METRICS, Mistake
from distill.evaluation.labels import LabelQuality
from distill.evaluation.repeats import Repeats
from distill.evaluation.verdict import Verdict
from distill.game.rules import Position, draw
from distill.players.intervals import Estimate

UNIFORM = "uniform random, exactly"

LEGEND = """\
*optimal*: the move keeps the best score; *outcome*: it keeps the win, draw or loss; *critical*: outcome, over boards
where legal moves differ in it. In percent, with half the width of the 95 % interval; every board is graded twice, as
stored and mirrored."""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, padded so that it reads well as it is; all but the first column are right-aligned."""
    lines = [list(header), *map(list, rows)]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if not column else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([line(lines[0]), line(rule), *map(line, lines[1:])])


def percent(estimate: Estimate) -> str:
    """ "75.4 ±1.2", with half the width of the interval; a dash where there is nothing to count."""
    if not estimate.units:
        return "–"
    return f"{100 * estimate.mean:.1f} ±{50 * (estimate.high - estimate.low):.1f}"


TIMES = (
    "ms: wall time; networks by TensorFlow, which takes milliseconds a call, however few the boards. play and serve "
    "use ONNX Runtime where it is installed, which takes tenths of a millisecond."
)
"""What the milliseconds of `headline` are."""


def headline(verdicts: Sequence[Verdict], uniform: Mapping[str, Mapping[str, float]]) -> str:
    """One row a player: the headline sets, the mean over the tactical sets, symmetry and speed."""
    names = list(uniform)
    main = headline_sets(names)
    tactical = [name for name in names if name not in GENERAL]
    batches = list(verdicts[0].latency_ms)
    header = ["player", *(f"{name} {metric}" for name in main for metric in METRICS)]
    header += ["tactics optimal", "mirrored moves", "opens in"]
    header += [f"ms a board at {batch}" for batch in batches]

    def mean(values: Sequence[float]) -> str:
        return f"{100 * float(np.mean(values)):.1f}" if values else "–"

    rows = [
        [
            verdict.name,
            *(percent(verdict.sets[name][metric]) for name in main for metric in METRICS),
            mean([verdict.sets[name]["optimal"].mean for name in tactical]),
            mean([verdict.mirror[key] for key in ("mirrored_moves",) if key in verdict.mirror]),
            str(verdict.empty_move + 1),
            *(f"{verdict.latency_ms[batch]:.3g}" for batch in batches),
        ]
        for verdict in verdicts
    ]
    expected = [f"{100 * uniform[name][metric]:.1f}" for name in main for metric in METRICS]
    rows.append(
        [UNIFORM, *expected, mean([uniform[name]["optimal"] for name in tactical]), *["–"] * (2 + len(batches))]
    )
    return "\n\n".join([table(header, rows), *([TIMES] if batches else [])])


def headline_sets(names: Sequence[str]) -> list[str]:
    """Those of `grading.HEADLINES` among these sets, or else the first."""
    return [name for name in HEADLINES if name in names] or list(names[:1])


def by_set(verdicts: Sequence[Verdict], uniform: Mapping[str, Mapping[str, float]], metric: str) -> str:
    """One row a set, one column a player."""
    header = ["set", "boards", *(verdict.name for verdict in verdicts), UNIFORM]
    rows = []
    for name, expected in uniform.items():
        estimates = [verdict.sets[name][metric] for verdict in verdicts]
        shown = f"{100 * expected[metric]:.1f}" if estimates[0].units else "–"
        rows.append([name, str(estimates[0].units), *map(percent, estimates), shown])
    return table(header, rows)


def by_ply(verdicts: Sequence[Verdict]) -> str:
    """Blunder rate, the share of moves that lose a class, by stones on the board; one column a player."""
    header = ["stones", "boards", *(verdict.name for verdict in verdicts)]
    rows = [
        [str(ply), str(row["boards"]), *(percent(verdict.plies[ply]["blunder_rate"]) for verdict in verdicts)]
        for ply, row in verdicts[0].plies.items()
    ]
    return table(header, rows)


def differences(pairs: Mapping[str, Mapping[str, Mapping[str, Estimate]]], name: str) -> str:
    """Paired differences on one set, in points; a star where the interval leaves out 0."""
    rows = []
    for pair, sets in pairs.items():
        cells = []
        for metric in METRICS:
            gap = sets[name][metric]
            star = " *" if gap.low > 0 or gap.high < 0 else ""
            cells.append(f"{100 * gap.mean:+.1f} ({100 * gap.low:+.1f} to {100 * gap.high:+.1f}){star}")
        rows.append([pair, *cells])
    return table([f"{name}, points", *METRICS], rows)


def answers(verdicts: Sequence[Verdict]) -> str:
    """Symmetry and calibration, one row a player."""
    header = ["player", "mirrored moves, %", "largest policy difference", "mean", "policy error", "value error"]
    rows = []
    for verdict in verdicts:
        same, *gaps = map(verdict.mirror.get, ("mirrored_moves", "largest_policy_difference", "mean_policy_difference"))
        errors = [bins.error if bins else None for bins in (verdict.policy_calibration, verdict.value_calibration)]
        cells = ["–" if value is None else f"{value:.3f}" for value in (*gaps, *errors)]
        rows.append([verdict.name, "–" if same is None else f"{100 * same:.1f}", *cells])
    return table(header, rows)


def empty_board(verdicts: Sequence[Verdict]) -> str:
    """The policy on the empty board, in percent by column."""
    rows = [
        [verdict.name, *(f"{100 * probability:.1f}" for probability in verdict.empty_policy)]
        for verdict in verdicts
        if verdict.empty_policy is not None
    ]
    return table(["empty board, %", *map(str, range(1, 8))], rows)


def mistakes(found: Sequence[Mistake]) -> str:
    """The worst mistakes as drawn boards."""
    parts = []
    for one in found:
        position = Position(one.current, one.mask)
        best = ", ".join(str(column + 1) for column in one.best)
        parts.append(
            f"{'XO'[position.ply % 2]} played {one.played + 1} ({one.score:+d}), best {best} ({one.best_score:+d}); "
            f"{one.set}\n\n" + "\n".join("    " + line for line in draw(position).splitlines())
        )
    return "\n\n".join(parts) or "none on these boards"


def of_players(
    boards: GradedBoards,
    verdicts: Sequence[Verdict],
    uniform: Mapping[str, Mapping[str, float]],
    pairs: Mapping[str, Mapping[str, Mapping[str, Estimate]]],
) -> list[str]:
    """The sections on the players, with the pictures of `plots.of_players`."""
    page = [LEGEND, headline(verdicts, uniform), "![by set](by_set.png)", "![by ply](by_ply.png)"]
    for metric in METRICS:
        page += [f"## {metric.capitalize()}", by_set(verdicts, uniform, metric)]
    page += ["## Blunders by ply", by_ply(verdicts)]
    if pairs:
        main = headline_sets(boards.sets)
        page += ["## On the same boards, paired", *(differences(pairs, name) for name in main)]
    page += ["## The answers themselves", answers(verdicts), empty_board(verdicts)]
    page += ["![calibration](calibration.png)", "![confusion](confusion.png)"]
    for number, one in enumerate(verdicts, start=1):
        page += [f"## Worst mistakes of {one.name}", f"![mistakes](mistakes_{number}.png)", mistakes(one.mistakes)]
    return page


def label_tables(name: str, quality: LabelQuality) -> str:
    """Label quality, also by stones on the board."""
    parts = [
        label_summary(name, quality),
        f"{quality.boards:,} unlike boards scored in {quality.seconds:.1f} s, "
        f"{quality.boards / quality.seconds:,.0f} boards/s",
        table(
            ["stones", "rows", "optimal", "outcome", "critical"],
            [
                [str(ply), str(row["rows"]), percent(row["optimal"]), percent(row["outcome"]), percent(row["critical"])]
                for ply, row in quality.by_ply.items()
            ],
        ),
    ]
    return "\n\n".join(parts)


def label_summary(name: str, quality: LabelQuality) -> str:
    """The quality of all graded labels, one row."""
    shares = [percent(estimate) for estimate in (quality.optimal, quality.keeps, quality.critical)]
    header = ["labels", "graded", "of", "optimal", "outcome", "critical"]
    return table(header, [[name, f"{quality.rows:,}", f"{quality.of:,}", *shares]])


def label_repeats(found: Repeats) -> str:
    """How often the teacher gives the same label again, and the most a student can agree with it."""
    rows = [
        [band, f"{two.units:,}", percent(two), percent(found.ceiling[band]), percent(found.stored[band])]
        for band, two in found.pairs.items()
    ]
    return table(["stones", "rows", "two fresh labels agree", "ceiling", "stored and fresh agree"], rows)


def students(shares: Mapping[str, Mapping[str, Estimate]]) -> str:
    """How often players give a folder's labels: one column a player, by stones on the board."""
    bands = next(iter(shares.values()))
    rows = [[band, f"{bands[band].units:,}", *(percent(one[band]) for one in shares.values())] for band in bands]
    return table(["stones", "rows", *shares], rows)


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
