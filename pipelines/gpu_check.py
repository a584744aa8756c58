"""Ten minutes of an accelerator: check training on it, learn from random weights on it, then improve a network.

    python pipelines/gpu_check.py --wheels .whl                # what a machine with JAX may lack, for `pip install`
    python pipelines/gpu_check.py --out gpu-out                # installs nothing
    python pipelines/gpu_check.py --out gpu-out --parts rounds # resumes the rounds

Parts, in this order; each runs in a process of its own, for at most its seconds:

    speed    every network takes the same first steps here and on the CPU, then its speed is measured: `speed.json`
    minutes  `python -m distill.selfplay --preset minutes`: `minutes.csv`, `minutes.keras`
    rounds   `python -m experiments.large.solve`, from `pillar-large`: `rounds.jsonl`, `rounds.keras`

The parts work in `--work`. Whenever one prints a line, the curves and networks of that moment are copied to `--out`, so
they are there whenever the machine is taken away. `report.json` names the parts, their seconds and their results; the
last line is the same JSON object. Exit 1 if a part failed, or if the losses differ by more than TOLERANCE.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

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
STARTING = 45.0
"""Seconds in which self-play imports and compiles before its clock begins."""
PACKAGES = (
    *("keras", "namex", "optree", "pydantic", "pydantic-core", "annotated-types", "typing-inspection"),
    "typing-extensions",
)
"""What a machine with JAX and common packages may lack."""
NEEDED = ("jax", "keras", "pydantic", "pyarrow", "pandas", "numba", "joblib", "portalocker", "matplotlib", "tqdm")
RESULTS = {
    "minutes/history.csv": "minutes.csv",
    "minutes/best.keras": "minutes.keras",
    "rounds/rounds.jsonl": "rounds.jsonl",
    "rounds/best.keras": "rounds.keras",
}
"""Files of the parts in `--work`, and their names in `--out`."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="download wheels for Linux and stop")
    parser.add_argument(
        "--boards", type=Path, default=ROOT / "data/reference/labels-200", help="games or packed boards"
    )
    parser.add_argument("--work", type=Path, default=Path("gpu-work"), help="folder of the parts")
    parser.add_argument("--out", type=Path, default=Path("gpu-out"), help="folder of the results")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--seconds", type=float, default=570, help="time for all parts together")
    parser.add_argument("--speed-seconds", type=float, default=150, help="most time for the part `speed`")
    parser.add_argument("--minutes", type=float, default=5, help="minutes of self-play")
    parser.add_argument("--minutes-flags", default="", help="more flags of selfplay, in one word")
    parser.add_argument("--rounds-flags", default="", help="more flags of experiments.large.solve, in one word")
    parser.add_argument("--archs", nargs="+", default=ARCHS, help="networks whose speed is measured")
    parser.add_argument("--batch-size", type=int, default=4096, help="boards of a step whose speed is measured")
    parser.add_argument("--measure", type=float, default=6.0, help="seconds for which each speed is measured")
    parser.add_argument("--only", choices=("losses", "speed"), help=argparse.SUPPRESS)  # a process of a part
    options = parser.parse_args()
    if options.wheels:
        return wheels(options.wheels)
    if missing := [name for name in NEEDED if not importlib.util.find_spec(name)]:
        raise SystemExit(f"not installed here: {', '.join(missing)}")
    if options.only:
        print(json.dumps(losses(options) if options.only == "losses" else speeds(options)), flush=True)
        return 0
    return run_parts(options)


# Parts ----------------------------------------------------------------------------------------------------------------


def wheels(folder: Path) -> int:
    """Download PACKAGES in the versions that are installed here, for Python 3.12 on Linux."""
    platforms = [f"--platform=manylinux{version}_x86_64" for version in ("_2_28", "_2_27", "_2_17", "2014", "1")]
    versions = [f"{name}=={importlib.metadata.version(name)}" for name in PACKAGES]
    flags = ["--no-deps", "--only-binary=:all:", "--python-version=3.12", "--implementation=cp", *platforms]
    return subprocess.run([sys.executable, "-m", "pip", "download", *flags, "-d", folder, *versions]).returncode


def run_parts(options: argparse.Namespace) -> int:
    """Run the parts one after the other; a part that fails or is stopped does not stop the next."""
    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    options.work.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {}
    if (options.out / "report.json").exists():  # of parts that ran before
        report = json.loads((options.out / "report.json").read_text())
    for part in options.parts:
        words, seconds = part_command(part, options, options.seconds - (time.monotonic() - began))
        if seconds < 5:
            continue
        print(f"{time.monotonic() - began:.0f} s: {part}, for {seconds:.0f} s: {' '.join(words)}", flush=True)
        started = time.monotonic()
        status, last = run_until(words, seconds, options)
        report[part] = {"status": status, "seconds": round(time.monotonic() - started, 1), "result": last}
        write(options.out / "report.json", report)
    print(json.dumps(report))
    report = {part: report[part] for part in options.parts if part in report}
    result = report.get("speed", {}).get("result")
    differ = isinstance(result, dict) and result.get("differ")
    return 1 if differ or any(part["status"] for part in report.values()) else 0


def part_command(part: str, options: argparse.Namespace, left: float) -> tuple[list[str], float]:
    """The Python command of a part, and the seconds that it has."""
    if part == "speed":
        flags = ["--boards", str(options.boards), "--out", str(options.out), "--batch-size", str(options.batch_size)]
        flags += ["--measure", str(options.measure), "--archs", *options.archs]
        return [__file__, "--only", "speed", *flags], min(left, options.speed_seconds)
    if part == "minutes":
        seconds = min(left - GRACE, 60 * options.minutes + STARTING)
        flags = ["--preset", "minutes", "--minutes", f"{max(1, seconds - STARTING) / 60:.2f}"]
        flags += ["--out", str(options.work / "minutes"), *options.minutes_flags.split()]
        return ["-m", "distill.selfplay", *flags], seconds + GRACE
    flags = ["--seconds", f"{max(5, left - GRACE):.0f}", "--out", str(options.work / "rounds")]
    return ["-m", "experiments.large.solve", *flags, *options.rounds_flags.split()], left


def run_until(words: list[str], seconds: float, options: argparse.Namespace) -> tuple[int, Any]:
    """Run a Python command for at most so long; its status, and its last line, read if that is JSON."""
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
            keep_results(options)
        status = process.wait()
        keep_results(options)
        if not timers[0].is_alive():
            print(f"stopped after its {seconds:.0f} s", flush=True)
        for timer in timers:
            timer.cancel()
    try:
        return status, json.loads(last)
    except ValueError:
        return status, last


def keep_results(options: argparse.Namespace) -> None:
    """Copy the results that are new; each is written at once, so that none is half a file."""
    for name, copy in RESULTS.items():
        source, target = options.work / name, options.out / copy
        if source.exists() and (not target.exists() or source.stat().st_mtime > target.stat().st_mtime):
            shutil.copyfile(source, target.with_suffix(".tmp"))
            os.replace(target.with_suffix(".tmp"), target)


def write(file: Path, content: dict[str, Any]) -> None:
    """Replace a JSON file at once."""
    file.with_suffix(".tmp").write_text(json.dumps(content, indent=1) + "\n")
    os.replace(file.with_suffix(".tmp"), file)


# Speed ----------------------------------------------------------------------------------------------------------------


def losses(options: argparse.Namespace) -> dict[str, float]:
    """The mean loss of each network's first steps."""
    examples = boards(options.boards)
    return {arch: first_loss(arch, examples) for arch in options.archs}


def speeds(options: argparse.Namespace) -> dict[str, Any]:
    """Loss and speed of each network here, and its loss on the CPU, which another process computes; in `speed.json`."""
    import jax

    began = time.monotonic()
    words = [sys.executable, __file__, "--only", "losses", "--boards", str(options.boards), "--archs", *options.archs]
    on_cpu = subprocess.Popen(words, env=os.environ | {"JAX_PLATFORMS": "cpu"}, stdout=subprocess.PIPE, text=True)
    try:
        examples = boards(options.boards)
        device = jax.devices()[0]
        about = {"device": device.device_kind, "platform": device.platform, "jax": jax.__version__}
        print(f"{device.device_kind} ({device.platform}), JAX {jax.__version__}, {len(examples):,} boards", flush=True)
        networks: dict[str, Any] = {}
        result = about | {"networks": networks, "differ": []}
        for arch in options.archs:
            loss = first_loss(arch, examples)
            networks[arch] = {"loss": loss} | speed(arch, examples, options.batch_size, options.measure)
            print(f"{time.monotonic() - began:.0f} s: {arch}: {networks[arch]}", flush=True)
            write(options.out / "speed.json", result)
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
    write(options.out / "speed.json", result)
    return result


def boards(folder: Path) -> Examples:
    """At most 200,000 boards of a folder as a table to train on."""
    from distill.datasets import canonical, replay
    from distill.games import reader

    table = replay.table(reader.open_run(folder).shards, canonical.excluded_keys("benchmark"))
    return replay.sample(table, 200_000, 0)


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
