"""The 8-bit files against the float files beside them: size, time of a move, and how much worse their moves are.

    pip install -e ".[onnx,litert]"
    python benchmarks/quantized.py                       # the networks that ship
    python benchmarks/quantized.py models/cnn --boards 1000
    python -m distill.export pillar-large --formats onnx onnx-int8 --out large
    python benchmarks/quantized.py pillar large

Times are for one board at a time on one thread, the median over calls that alternate between all files, so other load
on the machine affects all. Losses are in points, paired, against the float file of the same runtime, on boards of the
dev half of `midgame` and `heldout`, as stored and mirrored; negative is better.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from distill.common import UserError
from distill.exporters import quantized
from distill.exporters.formats import FORMATS
from distill.networks import finding

Choose = Callable[[Any], Any]
"""int8 boards (B, 6, 7) → moves (B,)."""
ROUNDS = 500
CHUNK = 1000


def loaded(file: Path) -> Choose:
    """The network in a file, on one thread."""
    if file.suffix == ".onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        return lambda boards: session.run(["move"], {"board": boards})[0]
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(str(file), num_threads=1).get_signature_runner("serving_default")
    return lambda boards: runner(board=boards)["move"].copy()


def milliseconds(files: list[Choose], boards: Any) -> list[float]:
    """The median time of a move of each file over ROUNDS boards, alternating between the files."""
    times: list[list[float]] = [[] for _ in files]
    for number in range(-20, ROUNDS):  # the first 20 warm up
        board = boards[number % len(boards)][None]
        for place, choose in enumerate(files):
            began = time.perf_counter()
            choose(board)
            if number >= 0:
                times[place].append(time.perf_counter() - began)
    return [1000 * float(np.median(each)) for each in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", help="networks by name or folder; none: those that ship")
    parser.add_argument("--boards", type=int, help="largest number of boards of each set")
    arguments = parser.parse_args()
    shipped = finding.networks(finding.places(), (finding.EXPORTED,))
    models = arguments.models or [str(place) for name, place in shipped.items() if name.startswith(finding.REFERENCE)]

    boards = quantized.graded_boards()
    if arguments.boards:
        kept = [np.flatnonzero(boards.set == name)[: arguments.boards] for name in boards.sets]
        boards = boards[np.concatenate(kept)]
    both = quantized.with_mirrors(boards)
    pairs: list[tuple[Path, Path]] = []
    for model in models:
        try:
            place = Path(model) if Path(model).is_dir() else finding.network_file(model).parent
        except UserError as error:
            parser.error(str(error))
        before = len(pairs)
        for name, format in FORMATS.items():
            floating, small = (
                place / finding.PUBLISHED / FORMATS[kind].file for kind in (name.removesuffix("-int8"), name)
            )
            if format.int8 and floating.is_file() and small.is_file():
                pairs.append((floating, small))
        if arguments.models and len(pairs) == before:
            parser.error(f"{model}: no 8-bit file beside its float file; python -m distill.export writes both")
    files = [[loaded(file) for file in pair] for pair in pairs]
    times = iter(milliseconds([*itertools.chain(*files)], both))
    print(f"{'file':<34}{'KB':>14}{'ms a board':>16}  lost: optimal, outcome, by set")
    for pair, choosers in zip(pairs, files, strict=True):
        parts = range(0, len(both), CHUNK)
        moves = [np.concatenate([choose(both[at : at + CHUNK]) for at in parts]) for choose in choosers]
        sizes = " → ".join(f"{file.stat().st_size / 1000:.0f}" for file in pair)
        speeds = f"{next(times):.2f} → {next(times):.2f}"
        lost = "; ".join(
            f"{name} {quantized.points(loss, 'optimal')}, {quantized.points(loss, 'outcome')}"
            for name, loss in quantized.losses(boards, *moves).items()
        )
        shown = f"{pair[1].parent.parent.name}/{pair[1].name}"
        print(f"{shown:<34}{sizes:>14}{speeds:>16}  {lost}", flush=True)


if __name__ == "__main__":
    main()
