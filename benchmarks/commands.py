"""Whole commands in two checkouts, paired: wall time and processor time of each, and their ratios.

    git worktree add ../before v0.1.0
    python benchmarks/commands.py . ../before --rounds 6        # half an hour

Every round runs each job in one checkout and then in the other, in new processes and folders, so other load on the
machine affects both. The other checkout goes first in the next round. A job is a command as users start it, so its time
includes that of Python and of the libraries. The first round is not counted: it compiles. The table shows medians over
the rounds; a ratio above 1 says that the first checkout takes longer.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from distill.common.tables import table

MOVES = """
import distill
predict = distill.load_pretrained("reference/pillar")
board = distill.board(distill.from_moves("4453"))
for _ in range(5000):
    predict(board)
"""
JOBS = {
    "games of the teacher": "-m distill.generate --games 100 --seed 1 --workers 2 --out {out}/games",
    "training, cnn": "-m distill.train --arch cnn --steps 400 --data {out}/games --out {out}/cnn",
    "training, transformer": "-m distill.train --arch transformer --steps 150 --data {out}/games"
    " --out {out}/transformer",
    "games of a network": "-m distill.selfplay --games-only --init pillar --games 200 --seed 1 --out {out}/selfplay",
    "5,000 moves of a network": "-c {moves}",
}
"""Jobs by name; each after the others, because networks learn from the games of the first."""


def seconds(job: str, checkout: Path, out: str) -> tuple[float, float]:
    """Wall time and processor time of a job."""
    words = [sys.executable, *(word.format(out=out, moves=MOVES) for word in job.split())]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    run = subprocess.run(words, cwd=checkout, env=environment, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{checkout}: {job}: {run.stderr}")
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkouts", type=Path, nargs=2, metavar="CHECKOUT")
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    checkouts = [path.resolve() for path in options.checkouts]
    taken: dict[str, list[tuple[tuple[float, float], tuple[float, float]]]] = {name: [] for name in JOBS}
    for number in range(options.rounds + 1):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            for name, job in JOBS.items():
                sides = [(0, one), (1, other)]
                taking = {side: seconds(job, checkouts[side], out) for side, out in sides[:: (-1) ** number]}
                if number:
                    taken[name].append((taking[0], taking[1]))
        print(f"round {number} of {options.rounds}", file=sys.stderr, flush=True)
    rows, summary = [], {}
    for name, pairs in taken.items():
        walls = [statistics.median(pair[side][0] for pair in pairs) for side in (0, 1)]
        ratios = [[pair[0][kind] / pair[1][kind] for pair in pairs] for kind in (0, 1)]
        medians = [statistics.median(values) for values in ratios]
        spread = f"{min(ratios[1]):.2f} to {max(ratios[1]):.2f}"
        rows.append([name, *(f"{wall:.1f}" for wall in walls), *(f"{ratio:.3f}" for ratio in medians), spread])
        summary[name] = {"wall_ratio": round(medians[0], 4), "processor_ratio": round(medians[1], 4)}
    head = ["job", "s, first", "s, second", "ratio of wall time", "of processor time", "its range"]
    print(table(head, rows))
    print(json.dumps({"rounds": options.rounds, "jobs": summary}))


if __name__ == "__main__":
    main()
