"""The files in 8 bits against the float ones beside them: size, time of a move, and what their moves lose.

    pip install -e ".[onnx,litert]"
    python benchmarks/quantized.py                       # the networks that ship
    python benchmarks/quantized.py models/cnn --boards 1000

Times are of one board at a time, on one thread, the median over both files asked in turns; so whatever else the machine
does meets both. Losses are in points, on boards of the dev half of `midgame` and `heldout` on which no range was found,
as stored and mirrored, paired, against the float file of the same runtime; below 0: gained.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from distill.exporters import quantized
from distill.exporters.formats import FORMATS
from distill.networks import finding

Answer = Callable[[Any], Any]
ROUNDS = 500
CHUNK = 1000


def loaded(file: Path) -> Answer:
    """int8 boards (B, 6, 7) → moves (B,), on one thread."""
    if file.suffix == ".onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        return lambda boards: session.run(["move"], {"board": boards})[0]
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(str(file), num_threads=1).get_signature_runner("serving_default")
    return lambda boards: runner(board=boards)["move"].copy()


def milliseconds(answers: list[Answer], boards: Any) -> list[float]:
    """Of each, the median over ROUNDS moves, in turns."""
    times: list[list[float]] = [[] for _ in answers]
    for number in range(-20, ROUNDS):
        board = boards[number % len(boards)][None]
        for place, answer in enumerate(answers):
            began = time.perf_counter()
            answer(board)
            if number >= 0:
                times[place].append(time.perf_counter() - began)
    return [1000 * float(np.median(each)) for each in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", type=Path, help="folders of networks; none: those that ship")
    parser.add_argument("--boards", type=int, help="of each set at most")
    arguments = parser.parse_args()
    shipped = finding.networks(finding.places(), (finding.EXPORTED,))
    models = arguments.models or [place for name, place in shipped.items() if name.startswith(finding.REFERENCE)]

    _, boards = quantized.graded_boards()
    if arguments.boards:
        kept = [np.flatnonzero(boards.set == name)[: arguments.boards] for name in boards.sets]
        boards = boards[np.concatenate(kept)]
    questions = quantized.with_mirrors(boards)
    print(f"{'file':<34}{'KB':>14}{'ms a board':>16}  lost: optimal, outcome, by set")
    for model in models:
        for name, format in FORMATS.items():
            small = model / finding.PUBLISHED / format.file
            if not format.int8 or not small.is_file():
                continue
            floating = small.with_name(FORMATS[name.removesuffix("-int8")].file)
            answers = [loaded(floating), loaded(small)]
            parts = range(0, len(questions), CHUNK)
            moves = [np.concatenate([answer(questions[at : at + CHUNK]) for at in parts]) for answer in answers]
            sizes = " → ".join(f"{each.stat().st_size / 1000:.0f}" for each in (floating, small))
            times = " → ".join(f"{each:.2f}" for each in milliseconds(answers, questions))
            lost = "; ".join(
                f"{name} {quantized.points(loss, 'optimal')}, {quantized.points(loss, 'outcome')}"
                for name, loss in quantized.losses(boards, *moves).items()
            )
            print(f"{f'{model.name}/{small.name}':<34}{sizes:>14}{times:>16}  {lost}", flush=True)


if __name__ == "__main__":
    main()
