"""Choose the three positions of the page's tour from the graded boards.

    python -m experiments.page.tour

In: the benchmark (`datasets/benchmark.py`), the network `pillar` and its searches. Out: `distill/web/page/tour.json`,
whose bytes are a function of these. Takes a minute.

Candidates are quiet boards of ordinary games: neither side can win with its next stone, and one column alone keeps the
win. Of them the tour has

    right        the longest win of which the network is SURE, and its search agrees
    wrong        the board on which the network is surest of a column that throws the win away; a short search misses
                 the winning column, too, and a longer one finds it
    surprising   the longest win of which the network is SURE where the column is an outermost one, the search agrees,
                 and a level that prefers the centre (`casual`) is not likely to play it
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from distill.common import cli
from distill.common.files import write_atomically
from distill.common.settings import CommandLine, Settings
from distill.datasets import benchmark
from distill.datasets.benchmark import GradedBoards
from distill.datasets.grades import keeps_outcome
from distill.evaluation.grading import GENERAL
from distill.game.encoding import FULL_COLUMN
from distill.game.rules import COLUMNS, Position
from distill.game.tactics import wins
from distill.players.names import make
from distill.players.player import Choices, checked_choices
from experiments.page.puzzles import history

NETWORK = "reference/pillar"
SHORT, LONG = f"{NETWORK}@puct:50", f"{NETWORK}@puct:800"
"""Searches of the page: its second step and its last."""
SURE = 0.8
"""Smallest probability at which the network's answer is shown as right."""
STONES = range(10, 23)
"""Enough to look like a game, and few enough to be seen at once."""
LONGEST = 17
"""Largest number of plies to the end: the exact answer is a win within nine moves."""


class Config(Settings):
    """Choose the positions of the page's tour."""

    command_line: ClassVar[CommandLine] = CommandLine(flags=("out",))
    out: Path = Field(Path("distill/web/page/tour.json"), description="file to write")


def run(config: Config) -> str:
    """Query the network and its searches, choose, write the file."""
    boards = candidates(benchmark.read(sets=GENERAL))
    glance, short, long = (_choices(word, boards) for word in (NETWORK, SHORT, LONG))
    assert glance.policy is not None
    rows = np.arange(len(boards))
    winning = keeps_outcome(boards.scores).argmax(1)
    sure = glance.policy[rows, glance.moves]
    is_right = (glance.moves == winning) & (sure >= SURE)
    is_found = long.moves == winning
    length = boards.moves_to_end + sure  # of equal lengths the one of which the network is surest
    is_outer = (winning == 0) | (winning == COLUMNS - 1)
    casual = _choices("casual", boards).policy
    assert casual is not None
    chosen = {
        "right": _first(is_right & is_found & ~is_outer, length),
        "wrong": _first((glance.moves != winning) & (short.moves != winning) & is_found, sure),
        "surprising": _first(is_right & is_found & is_outer & (casual[rows, winning] < 1 / COLUMNS), length),
    }
    positions = []
    for kind, row in chosen.items():
        moves = history(Position(int(boards.current[row]), int(boards.mask[row])))
        scores = [None if score == FULL_COLUMN else score for score in boards.scores[row].tolist()]
        positions.append({"kind": kind, "moves": moves, "scores": scores})
        print(f"{kind:11} {moves:24} glance {glance.moves[row] + 1} ({sure[row]:.0%}), best {winning[row] + 1}")
    text = ",\n".join(json.dumps(position, separators=(",", ":")) for position in positions)
    write_atomically(config.out, f'{{"positions": [\n{text}\n]}}\n'.encode())
    return f"3 positions of {len(boards):,} · {config.out}"


def candidates(boards: GradedBoards) -> GradedBoards:
    """The quiet boards on which one column alone keeps the win, of a size that can be shown."""
    quiet = ~(wins(boards.current, boards.mask) | wins(boards.current ^ boards.mask, boards.mask)).any(1)
    single = (keeps_outcome(boards.scores).sum(1) == 1) & (boards.scores.max(1) > 0)
    return boards[quiet & single & np.isin(boards.ply, STONES) & (boards.moves_to_end <= LONGEST)]


def _choices(word: str, boards: GradedBoards) -> Choices:
    return checked_choices(make(word, fast=True), boards.current, boards.mask, np.zeros(len(boards), np.uint64))


def _first(belongs: NDArray[np.bool_], worth: NDArray[np.float64]) -> int:
    """The row of the highest worth among those that belong."""
    return int(np.where(belongs, worth, -np.inf).argmax())


main = cli.Command("experiments page.tour", Config, run)

if __name__ == "__main__":
    raise SystemExit(main())
