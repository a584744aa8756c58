"""Tables as Markdown that is readable as text."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, padded so that it is readable as text; all but the first column are right-aligned."""
    lines = [list(header), *map(list, rows)]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "| " + " | ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]) + " |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([line(lines[0]), line(rule), *map(line, lines[1:])])
