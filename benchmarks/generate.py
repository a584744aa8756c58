"""The generator as users run it: games an hour, simulations a second and memory, with 1 and with 2 workers.

    python benchmarks/generate.py                          # 3 votes of 10,000 simulations
    python benchmarks/generate.py --simulations 1000 --votes 1 --games 2000

Runs the command in new processes and folders, alternating between the numbers of workers, `--rounds` times.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from distill.common import run_folder


def generate(workers: int, arguments: argparse.Namespace) -> dict[str, float]:
    """Speeds of one run of the command."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "distill.generate", "--out", folder, "--workers", str(workers)]
        command += ["--games", str(arguments.games), "--shard-games", str(arguments.shard_games)]
        command += ["--simulations", str(arguments.simulations), "--votes", str(arguments.votes)]
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds = time.perf_counter() - began
        result = run_folder.result_of(folder)
    return {
        "games_per_hour": result["games"] / seconds * 3600,
        "rows_per_hour": result["rows"] / seconds * 3600,
        "sims_per_s": result["simulations"] / seconds,
        "wall_s": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--shard-games", type=int, default=50)
    parser.add_argument("--simulations", type=int, default=10_000)
    parser.add_argument("--votes", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    runs: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(arguments.rounds):
        for workers, found in runs.items():
            found.append(generate(workers, arguments))

    figures: dict[str, float] = {}
    print(f"{arguments.games} games, {arguments.simulations:,} x {arguments.votes}, median of {arguments.rounds}")
    print(f"{'workers':8}{'games/h':>10}{'rows/h':>13}{'M sims/s':>10}{'wall s':>8}")
    for workers, found in runs.items():
        middle = {name: statistics.median(run[name] for run in found) for name in found[0]}
        print(
            f"{workers:<8}{middle['games_per_hour']:>10,.0f}{middle['rows_per_hour']:>13,.0f}"
            f"{middle['sims_per_s'] / 1e6:>10.2f}{middle['wall_s']:>8.1f}"
        )
        figures |= {f"{name}_{workers}": value for name, value in middle.items()}
    # Paired by round, so that other load on the machine affects both.
    pairs = [b["sims_per_s"] / a["sims_per_s"] for a, b in zip(runs[1], runs[2], strict=True)]
    figures["second_worker"] = statistics.median(pairs)
    figures["peak_worker_mb"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"second worker: {figures['second_worker']:.2f}x (paired); largest process: {figures['peak_worker_mb']:.0f} MB"
    )
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
