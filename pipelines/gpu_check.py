"""Fifteen minutes of an accelerator: check training on it, learn from random weights on it, then improve a network.

    python pipelines/gpu_check.py --prepare gpu-data                     # where PyArrow is: boards.npz and graded.npz
    python pipelines/gpu_check.py --data gpu-data --out gpu-out          # needs JAX, Keras, NumPy and no network access
    python pipelines/gpu_check.py --data gpu-data --out gpu-out --parts rounds -- -m experiments.large.rounds ...

Parts, in this order; each runs in a process of its own, for at most its seconds:

    speed    every network takes the same first steps here and on the CPU, then its speed is measured: `speed.json`
    minutes  self-play from random weights (`experiments/large/minutes.py`): `minutes/`
    rounds   the Python command after `--`, for the rest of `--seconds`; `{out}` and `{data}` in it name the folders

Every part writes its files while it runs, so what was complete is there whenever the machine is taken away.
`report.json` names the parts, their seconds and their results; the last line is the same JSON object. Exit 1 if a part
failed, or if the losses differ by more than TOLERANCE.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("KERAS_BACKEND", "jax")

if TYPE_CHECKING:
    from distill.datasets.batching import Examples
    from distill.training.step import TrainingModel

PARTS = ("speed", "minutes", "rounds")
ARCHS = ("cnn", "transformer", "pillar", "pillar-large")
COMPARED_STEPS, COMPARED_BATCH = 8, 256
TOLERANCE = 0.02
"""Largest difference of the mean loss, as a share of it: accelerators round the factors of float32 products."""
GRACE = 20.0
"""Seconds that a part has to end after its time."""


def main() -> int:
    words, command = sys.argv[1:], []
    if "--" in words:
        words, command = words[: words.index("--")], words[words.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--prepare", type=Path, metavar="FOLDER", help="write the files that the parts need, and stop")
    parser.add_argument("--boards", type=Path, default=Path("data/reference/labels-200"), help="what --prepare packs")
    parser.add_argument("--data", type=Path, default=Path("gpu-data"), help="folder that --prepare wrote")
    parser.add_argument("--out", type=Path, default=Path("gpu-out"))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--seconds", type=float, default=560, help="time for all parts together")
    parser.add_argument("--speed-seconds", type=float, default=180, help="most time for the part `speed`")
    parser.add_argument("--minutes-seconds", type=float, default=300, help="time for the part `minutes`")
    parser.add_argument("--minutes-flags", default="", help="more flags of experiments.large.minutes, in one word")
    parser.add_argument("--archs", nargs="+", default=ARCHS, help="networks whose speed is measured")
    parser.add_argument("--batch-size", type=int, default=4096, help="boards of a step whose speed is measured")
    parser.add_argument("--measure", type=float, default=6.0, help="seconds for which each speed is measured")
    parser.add_argument("--only", choices=("losses", "speed"), help=argparse.SUPPRESS)  # a process of a part
    options = parser.parse_args(words)
    if options.prepare:
        return prepare(options.boards, options.prepare)
    if options.only:
        print(json.dumps(losses(options) if options.only == "losses" else speeds(options)), flush=True)
        return 0
    return run_parts(options, command)


# Parts ----------------------------------------------------------------------------------------------------------------


def prepare(source: Path, folder: Path) -> int:
    """Write 200,000 labelled boards and the graded boards (dev half) as `.npz`; needs PyArrow."""
    from experiments.large import boards as packing

    folder.mkdir(parents=True, exist_ok=True)
    files = ["--out", str(folder / "boards.npz"), "--graded", str(folder / "graded.npz")]
    packing.main(["--data", str(source), "--most", "200000", *files])
    return 0


def run_parts(options: argparse.Namespace, command: list[str]) -> int:
    """Run the parts one after the other; a part that fails or is stopped does not stop the next."""
    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {}
    for part in options.parts:
        left = options.seconds - (time.monotonic() - began)
        words, seconds = part_command(part, options, command, left)
        if not words or left < 5:
            continue
        print(f"{time.monotonic() - began:.0f} s: {part}, for {seconds:.0f} s: {' '.join(words)}", flush=True)
        started = time.monotonic()
        status, last = run_until(words, seconds)
        report[part] = {"status": status, "seconds": round(time.monotonic() - started, 1), "result": last}
        (options.out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))
    differ = (report.get("speed", {}).get("result") or {}).get("differ")
    return 1 if differ or any(part["status"] for part in report.values()) else 0


def part_command(part: str, options: argparse.Namespace, command: list[str], left: float) -> tuple[list[str], float]:
    """The Python command of a part, empty for none, and the seconds that it has."""
    graded = options.data / "graded.npz"
    if part == "speed":
        flags = ["--data", str(options.data), "--out", str(options.out), "--batch-size", str(options.batch_size)]
        flags += ["--measure", str(options.measure), "--archs", *options.archs]
        return [__file__, "--only", "speed", *flags], min(left, options.speed_seconds)
    if part == "minutes":
        seconds = min(left - GRACE, options.minutes_seconds)
        flags = ["--graded", str(graded), "--seconds", f"{seconds:.0f}", "--out", str(options.out / "minutes")]
        return ["-m", "experiments.large.minutes", *flags, *options.minutes_flags.split()], seconds + GRACE
    folders = {"{out}": str(options.out), "{data}": str(options.data)}
    for name, folder in folders.items():
        command = [word.replace(name, folder) for word in command]
    return command, left


def run_until(words: list[str], seconds: float) -> tuple[int, Any]:
    """Run a Python command for at most so long; its status, and its last line if that is JSON."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    last, command = "", [sys.executable, "-u", *words]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        timers = [Timer(seconds, process.terminate), Timer(seconds + GRACE, process.kill)]
        for timer in timers:
            timer.start()
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
        status = process.wait()
        if not timers[0].is_alive():
            print(f"stopped after its {seconds:.0f} s", flush=True)
        for timer in timers:
            timer.cancel()
    try:
        return status, json.loads(last)
    except ValueError:
        return status, last


# Speed ----------------------------------------------------------------------------------------------------------------


def losses(options: argparse.Namespace) -> dict[str, float]:
    """The mean loss of each network's first steps."""
    examples = boards(options.data / "boards.npz")
    return {arch: first_loss(arch, examples) for arch in options.archs}


def speeds(options: argparse.Namespace) -> dict[str, Any]:
    """Loss and speed of each network here, and its loss on the CPU, which another process computes; in `speed.json`."""
    import jax

    began = time.monotonic()
    words = [sys.executable, __file__, "--only", "losses", "--data", str(options.data), "--archs", *options.archs]
    on_cpu = subprocess.Popen(words, env=os.environ | {"JAX_PLATFORMS": "cpu"}, stdout=subprocess.PIPE, text=True)
    try:
        examples = boards(options.data / "boards.npz")
        device = jax.devices()[0]
        about = {"device": device.device_kind, "platform": device.platform, "jax": jax.__version__}
        print(f"{device.device_kind} ({device.platform}), JAX {jax.__version__}, {len(examples):,} boards", flush=True)
        networks: dict[str, Any] = {}
        result = about | {"networks": networks, "differ": []}
        for arch in options.archs:
            loss = first_loss(arch, examples)
            networks[arch] = {"loss": loss} | speed(arch, examples, options.batch_size, options.measure)
            print(f"{time.monotonic() - began:.0f} s: {arch}: {networks[arch]}", flush=True)
            (options.out / "speed.json").write_text(json.dumps(result, indent=1) + "\n")
        expected, _ = on_cpu.communicate()
    finally:
        on_cpu.kill()
    if on_cpu.returncode:
        raise SystemExit("the process that computes the losses on the CPU failed")
    print(f"\n{'':12} {'boards/s':>12} {'loss':>9} {'on the CPU':>11} {'peak memory':>12}")
    for arch, loss in json.loads(expected).items():
        measured = networks[arch]
        measured["loss_on_cpu"], memory = loss, measured["peak_memory_mb"]
        shown = "unknown" if memory is None else f"{memory:,} MB"
        print(f"{arch:12} {measured['boards_per_s']:12,} {measured['loss']:9.5f} {loss:11.5f} {shown:>12}")
    result["differ"] = [
        arch for arch, each in networks.items() if abs(each["loss"] / each["loss_on_cpu"] - 1) > TOLERANCE
    ]
    (options.out / "speed.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


def boards(path: Path) -> Examples:
    """Packed boards as a table to train on."""
    from distill.datasets.batching import Examples
    from distill.game import rules
    from experiments.large.boards import VALUE_STEPS, load

    try:
        packed = load([path])
    except ImportError as error:
        raise SystemExit(f"{path}: {error}; write an .npz where PyArrow is installed, as `--help` shows") from None
    current, mask = rules.from_keys(packed["key"])
    return Examples(
        current=current,
        mask=mask,
        visits=packed["visits"].astype(np.int64),
        label=packed["visits"].argmax(1).astype(np.int8),
        value=packed["value"].astype(np.float32) / VALUE_STEPS,
        outcome=packed["outcome"].astype(np.float32),
        count=np.ones(len(mask), np.int32),
    )


def compiled(arch: str, batch_size: int) -> TrainingModel:
    """A new network of this arch, the same on every device, ready to train."""
    from distill import networks

    networks.start_backend()
    from distill.networks.copies import fast_copy
    from distill.training import step
    from distill.training.recipe import Recipe, Targets

    optimizer = "muon" if arch.startswith("pillar") else "adamw"
    recipe = Recipe(batch_size=batch_size, targets=Targets(value_target="blend"), optimizer=optimizer)
    step.make_repeatable(0)
    return step.compiled(fast_copy(networks.build(arch, True)), recipe)


def first_loss(arch: str, examples: Examples) -> float:
    """The mean loss of the first steps."""
    from distill.datasets import batching
    from distill.training import step, streams

    model = compiled(arch, COMPARED_BATCH)
    stream = streams.table(model, examples, batching.picks(len(examples), COMPARED_BATCH, seed=0))
    return step.fit(model, stream, range(COMPARED_STEPS), lambda _: model.recipe.lr)[1]["loss"]


def speed(arch: str, examples: Examples, batch_size: int, seconds: float) -> dict[str, int | None]:
    """Boards a second in steps of this size, and the device's peak memory so far."""
    import jax

    from distill.datasets import batching
    from distill.training import on_device, step, streams

    model = compiled(arch, batch_size)
    stream = streams.table(model, examples, batching.picks(len(examples), batch_size, seed=0))
    rate = 1e-6  # keeps every loss a number
    step.fit(model, stream, range(on_device.STEPS), lambda _: rate)  # compiles
    began = time.monotonic()
    taken, _ = step.fit(
        model, stream, range(sys.maxsize), lambda _: rate, is_over=lambda: time.monotonic() > began + seconds
    )
    steps = taken / (time.monotonic() - began)
    memory = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    return {
        "boards_per_s": round(steps * min(batch_size, len(examples))),
        "peak_memory_mb": None if memory is None else round(memory / 1e6),
    }


if __name__ == "__main__":
    raise SystemExit(main())
