"""Minutes that self-play runs were given and minutes that they took.

    python benchmarks/minutes.py --minutes 3 6 20 60
    python benchmarks/minutes.py --minutes 3 --beside "python -c 'while True: pass'"      # beside other work

Runs `selfplay --preset hour --minutes M` one after the other; the minutes taken are those of the run's own clock, which
begins after Keras and the workers have started. Prints a table and, as its last line, one JSON object.
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
    runs = []
    try:
        with tempfile.TemporaryDirectory() as place:
            for number, minutes in enumerate(options.minutes):
                out = Path(place) / str(number)
                words = ["--preset", "hour", "--minutes", str(minutes), "--out", str(out)]
                subprocess.run([sys.executable, "-m", "distill.selfplay", *words], check=True)
                metrics = run_folder.result_of(out)
                runs.append({"minutes": minutes, "taken": metrics["minutes"], "optimal": metrics["optimal"]})
    finally:
        for process in busy:
            process.terminate()
    rows = [[f"{run['minutes']:g}", f"{run['taken']:.2f}", f"{run['taken'] / run['minutes']:.2f}"] for run in runs]
    print(table(["minutes", "taken", "ratio"], rows))
    print(json.dumps({"beside": options.beside, "runs": runs}))


if __name__ == "__main__":
    main()
