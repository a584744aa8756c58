"""The table of all players: in a page between two markers, and beside it as CSV."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from distill.common import UserError, write_atomically
from distill.common.tables import table as markdown_table
from distill.evaluation import report
from experiments.players.measure import Row

BEGIN, END = "<!-- python -m experiments.players: begin -->", "<!-- python -m experiments.players: end -->"


def require(page: Path) -> None:
    """Raise UserError for a page without the markers, which has no place for the table, and for a CSV of no page."""
    if (csv := page.with_suffix(".csv")).exists() and not page.exists():
        raise UserError(f"{csv}: would be replaced; delete it, or name another --page")
    if page.is_file() and not _has_markers(page.read_text(encoding="utf-8", errors="replace")):
        raise UserError(f"{page}: has no place for the table, between {BEGIN} and {END}; name another --page")


def _has_markers(text: str) -> bool:
    return text.count(BEGIN) == text.count(END) == 1 and text.index(BEGIN) < text.index(END)


def write(page: Path, rows: Sequence[Row], legend: str) -> None:
    """Put legend and table between the markers of the page, which is made where missing, and the CSV beside it."""
    before, after = "# Players\n\n", "\n"
    if page.is_file():
        text = page.read_text(encoding="utf-8")
        before, after = text[: text.index(BEGIN)], text[text.index(END) + len(END) :]
    times = f"Processor: {', '.join(sorted({row.processor for row in rows}))}, one core."
    said = textwrap.fill(f"{legend} {times}", 120, break_on_hyphens=False)
    inside = f"{said}\n\n{table(rows)}\n\nAll figures: [`{page.stem}.csv`]({page.stem}.csv)."
    write_atomically(page, f"{before}{BEGIN}\n\n{inside}\n\n{END}{after}".encode())
    write_atomically(page.with_suffix(".csv"), _csv(rows).encode())


def legend(games: int, apart: int, plies: int, name: str, few: int) -> str:
    """How the figures were measured."""
    onnx = importlib.util.find_spec("onnxruntime") is not None
    runtime = "in ONNX Runtime if `model.onnx` ships, else in TensorFlow, which is slower" if onnx else "in TensorFlow"
    return f"""\
The players are first ranked by expected strength; those up to {apart} places apart play {games} games, from openings of
{plies} random stones, each played from both sides. *Elo*: `random` has 0; an interval (95 %) is for the distance to the
mean player, not to `random`. *Optimal* (a best move) and *outcome* (win, draw or loss kept): percent on the test half
of the set `{name}`; slow players on {few} boards. *ms*: processor time of a single move; networks run
{runtime}."""


def table(rows: Sequence[Row]) -> str:
    """The table as Markdown."""
    header = ("player", "Elo (95 %)", "optimal", "outcome", "ms")
    return markdown_table(header, [_cells(row) for row in rows])


def _cells(row: Row) -> list[str]:
    low, high = round(row.elo.low), round(row.elo.high)
    return [
        f"`{row.player}`",
        f"{row.elo.mean:.0f} ({low} to {high})".replace("-", "−"),
        report.percent(row.optimal),
        report.percent(row.outcome),
        f"{row.ms:.2g}" if row.ms < 10 else f"{row.ms:.0f}",
    ]


def _csv(rows: Sequence[Row]) -> str:
    """One row a player, shares as fractions, an interval as two columns."""
    records = []
    for row in rows:
        record: dict[str, object] = {"player": row.player}
        for name, estimate in (("elo", row.elo), ("optimal", row.optimal), ("outcome", row.outcome)):
            record |= {name: estimate.mean, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        records.append(
            record
            | {"games": row.games, "boards": row.boards, "ms": row.ms, "bytes": row.bytes, "processor": row.processor}
        )
    return pd.DataFrame(records).astype({"bytes": "Int64"}).to_csv(index=False, float_format="%.5f")
