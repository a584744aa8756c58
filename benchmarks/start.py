"""From a command to the first answer: `play` in the terminal and `load_pretrained`, by ONNX Runtime and by TensorFlow.

    pip install -e ".[serve]"
    python benchmarks/start.py                          # pillar, and pillar with a search of 200 and of 800 simulations

For `play` the clock runs from the start of the command, with the move 4 typed at once, to the machine's move on the
screen; for `load_pretrained` from the start of Python to the policy of one board. Contestants run in turns, every
second round in the other order; the table shows medians, and the ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np

WITHOUT_ONNX = "from distill.networks import pretrained; pretrained.onnx_to_run = lambda path: None; "
KINDS = {"TensorFlow": WITHOUT_ONNX, "ONNX Runtime": ""}
PLAY = "import sys; from distill import play; raise SystemExit(play.main(sys.argv[1:]))"
LOAD = (
    "import sys, distill, numpy; print(distill.load_pretrained(sys.argv[1])(numpy.zeros((1, 6, 7), 'int8'))['policy'])"
)


def first_answer(code: str, player: str, answer: str) -> float:
    """Seconds from the start of this Python to the line that holds `answer`."""
    began = time.perf_counter()
    command = [sys.executable, "-c", code, player]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("4\n")
        process.stdin.flush()
        for line in process.stdout:
            if answer in line:
                return time.perf_counter() - began
    raise SystemExit(f"no answer of {player}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--players", nargs="+", default=["pillar", "pillar@puct:200", "pillar@puct:800"])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    asked = {f"play {player}": (PLAY, player, f"{player} plays") for player in arguments.players}
    asked["load_pretrained"] = (LOAD, arguments.players[0].partition("@")[0], "[[")
    print(f"{'seconds':28}" + "".join(f"{kind:>14}" for kind in KINDS) + f"{'ratio':>8}")
    figures = {}
    for name, (code, player, answer) in asked.items():
        first_answer(code, player, answer)  # fills the caches
        times: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for number in range(arguments.rounds):
            for kind in list(KINDS)[:: 1 if number % 2 else -1]:
                times[kind].append(first_answer(KINDS[kind] + code, player, answer))
        slow, quick = (np.array(times[kind]) for kind in KINDS)
        figures[name] = {kind: round(float(np.median(times[kind])), 2) for kind in KINDS}
        figures[name]["ratio"] = round(float(np.median(slow / quick)), 2)
        print(f"{name:28}" + "".join(f"{value:14.2f}" for value in figures[name].values())[:-14], end="")
        print(f"{figures[name]['ratio']:8.2f}", flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
