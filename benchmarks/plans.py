"""Planned and actual minutes of self-play runs.

    python benchmarks/plans.py --minutes 3 6 20 60
    python benchmarks/plans.py --minutes 3 --load 1      # beside one process that always computes

Runs `selfplay --preset hour --minutes M` one after the other; takes the minutes from the line `plan for M minutes` on
from the run's metrics. Prints a table and, as its last line, one JSON object.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from distill.common.tables import table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, nargs="+", default=[3, 6, 20, 60])
    parser.add_argument("--load", type=int, default=0, help="processes that compute meanwhile")
    options = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.load)]
    found = []
    try:
        with tempfile.TemporaryDirectory() as place:
            for number, minutes in enumerate(options.minutes):
                out = Path(place) / str(number)
                words = ["--preset", "hour", "--minutes", str(minutes), "--out", str(out)]
                subprocess.run([sys.executable, "-m", "distill.selfplay", *words], check=True)
                metrics = json.loads((out / "metrics.json").read_text())
                found.append({"planned": minutes, "actual": metrics["minutes"], "optimal": metrics["optimal"]})
    finally:
        for process in busy:
            process.kill()
    rows = [[f"{run['planned']:g}", f"{run['actual']:.1f}", f"{run['actual'] / run['planned']:.2f}"] for run in found]
    print(table(["planned, minutes", "actual", "ratio"], rows))
    print(json.dumps({"load": options.load, "runs": found}))


if __name__ == "__main__":
    main()
