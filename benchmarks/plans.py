"""Planned and actual minutes of self-play runs.

    python benchmarks/plans.py --minutes 3 6 20 60
    python benchmarks/plans.py --minutes 3 --beside "python -c 'while True: pass'"      # beside other work

Runs `selfplay --preset hour --minutes M` one after the other; takes the minutes from the line `plan for M minutes` on
from the run's metrics. Prints a table and, as its last line, one JSON object.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from distill.common import run_folder
from distill.common.tables import table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, nargs="+", default=[3, 6, 20, 60])
    parser.add_argument("--beside", nargs="*", default=[], help="commands that run meanwhile")
    options = parser.parse_args()
    busy = [subprocess.Popen(shlex.split(command)) for command in options.beside]
    found = []
    try:
        with tempfile.TemporaryDirectory() as place:
            for number, minutes in enumerate(options.minutes):
                out = Path(place) / str(number)
                words = ["--preset", "hour", "--minutes", str(minutes), "--out", str(out)]
                subprocess.run([sys.executable, "-m", "distill.selfplay", *words], check=True)
                metrics = run_folder.result_of(out)
                found.append({"planned": minutes, "actual": metrics["minutes"], "optimal": metrics["optimal"]})
    finally:
        for process in busy:
            process.terminate()
    rows = [[f"{run['planned']:g}", f"{run['actual']:.1f}", f"{run['actual'] / run['planned']:.2f}"] for run in found]
    print(table(["planned, minutes", "actual", "ratio"], rows))
    print(json.dumps({"beside": options.beside, "runs": found}))


if __name__ == "__main__":
    main()
