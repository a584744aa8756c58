"""The picture of a data card: rows, boards and repetition by stones, and how long games last."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from distill.game.rules import CELLS
from distill.judge.plots import BOARD, FIRST, GRID, INK, new_figure, save_figure
from distill.rows.census import Census


def plot_rows(path: Path, census: Census) -> None:
    """Rows and unlike boards, the share of rows on a repeated board, and games by length."""
    figure, axes = new_figure(3, 1, 9, 9)
    plies = list(census.plies)
    rows = np.array([census.plies[ply].rows for ply in plies])
    axes[0].bar(plies, rows, color=GRID, edgecolor=INK, linewidth=0.5, label="rows")
    boards = [census.plies[ply].boards for ply in plies]
    axes[0].plot(plies, boards, color=BOARD, marker="o", markersize=3, label="unlike boards, up to mirror")
    axes[0].set_ylabel("rows, boards")
    axes[0].legend(fontsize=8)
    repeated = np.array([census.plies[ply].repeated for ply in plies])
    axes[1].plot(plies, 100 * repeated / rows, color=FIRST, marker="o", markersize=3)
    axes[1].set_ylabel("rows on a repeated board, %")
    axes[1].set_ylim(0, 101)
    axes[1].set_xlabel("stones on the board")
    axes[2].bar(list(census.lengths), list(census.lengths.values()), color=BOARD)
    axes[2].set_ylabel("games")
    axes[2].set_xlabel("stones on the board at the end")
    for axis in axes:
        axis.set_xlim(-0.7, CELLS + 0.7)
        axis.grid(color=GRID)
        axis.set_axisbelow(True)
    save_figure(figure, path)
