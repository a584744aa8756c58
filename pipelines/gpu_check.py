"""Check training on an accelerator: speed, memory, and whether the losses are those of the CPU. Under 5 minutes.

    python -m experiments.large.boards --data data/reference/labels-200 --most 200000 --out boards.npz  # needs PyArrow
    python pipelines/gpu_check.py --data boards.npz            # needs JAX, Keras, NumPy, joblib, portalocker, pydantic

In: packed boards as `.npz` (or a folder of them, where PyArrow is installed). Every network takes the same first steps
here and, in another process, on the CPU; then its speed is measured. Out: a table, and as the last line one JSON
object. Exit 1 if the losses differ by more than TOLERANCE.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.machinery
import json
import os
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("KERAS_BACKEND", "jax")

if TYPE_CHECKING:
    from distill.datasets.batching import Examples
    from distill.training.step import TrainingModel

ARCHS = ("cnn", "transformer", "pillar")
COMPARED_STEPS, COMPARED_BATCH = 8, 256
TOLERANCE = 0.02
"""Largest difference of the mean loss, as a share of it: accelerators round the factors of float32 products."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/reference/labels-200"), help="boards to train on")
    parser.add_argument("--archs", nargs="+", default=ARCHS)
    parser.add_argument("--batch-size", type=int, default=4096, help="boards of a step whose speed is measured")
    parser.add_argument("--seconds", type=float, default=15.0, help="how long each speed is measured")
    parser.add_argument("--losses", action="store_true", help="print the first losses as JSON, and nothing else")
    options = parser.parse_args()
    began = time.monotonic()
    if options.losses:
        print(json.dumps({arch: first_loss(arch, boards(options.data)) for arch in options.archs}))
        return 0
    words = [sys.executable, __file__, "--losses", "--data", str(options.data), "--archs", *options.archs]
    on_cpu = subprocess.Popen(words, env=os.environ | {"JAX_PLATFORMS": "cpu"}, stdout=subprocess.PIPE, text=True)
    examples, found = boards(options.data), {}
    import jax

    device = jax.devices()[0]
    print(f"{device.device_kind} ({device.platform}), JAX {jax.__version__}, {len(examples):,} boards", flush=True)
    for arch in options.archs:
        here = {"loss": first_loss(arch, examples)}
        found[arch] = here | speed(arch, examples, options.batch_size, options.seconds)
        print(f"{arch}: {found[arch]}", flush=True)
    expected, _ = on_cpu.communicate()
    if on_cpu.returncode:
        return 1
    print(f"\n{'':12} {'boards/s':>12} {'loss':>9} {'on the CPU':>11} {'peak memory':>12}")
    for arch, loss in json.loads(expected).items():
        here = found[arch]
        here["loss_on_cpu"], memory = loss, here["peak_memory_mb"]
        shown = "unknown" if memory is None else f"{memory:,} MB"
        print(f"{arch:12} {here['boards_per_s']:12,} {here['loss']:9.5f} {loss:11.5f} {shown:>12}")
    wrong = [arch for arch, here in found.items() if abs(here["loss"] / here["loss_on_cpu"] - 1) > TOLERANCE]
    about = {"device": device.device_kind, "platform": device.platform, "jax": jax.__version__}
    print(json.dumps(about | {"seconds": round(time.monotonic() - began), "networks": found, "differ": wrong}))
    return 1 if wrong else 0


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
    from distill.networks.cpu_kernels.fast_copy import fast_copy
    from distill.training import step
    from distill.training.recipe import Recipe, Targets

    optimizer = "muon" if arch == "pillar" else "adamw"
    recipe = Recipe(batch_size=batch_size, targets=Targets(value_target="blend"), optimizer=optimizer)
    step.make_repeatable(0)
    return step.compiled(fast_copy(networks.build(arch, True)), recipe)


def first_loss(arch: str, examples: Examples) -> float:
    """The mean loss of the first steps."""
    from distill.datasets import batching
    from distill.training import step

    model = compiled(arch, COMPARED_BATCH)
    picks = batching.picks(len(examples), COMPARED_BATCH, seed=0)
    return step.train_steps(model, picks, examples, range(COMPARED_STEPS), lambda _: model.recipe.lr, lambda *_: None)


def speed(arch: str, examples: Examples, batch_size: int, seconds: float) -> dict[str, int | None]:
    """Boards a second in steps of this size, and the device's peak memory so far."""
    import jax

    from distill.training import step

    model = compiled(arch, batch_size)
    until: list[float] = []

    def over() -> bool:
        until.append(time.monotonic() + seconds)
        return time.monotonic() >= until[0]

    steps = step.steps_a_second(model, examples, over)
    memory = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    return {
        "boards_per_s": round(steps * min(batch_size, len(examples))),
        "peak_memory_mb": None if memory is None else round(memory / 1e6),
    }


def stand_in_for_optree() -> None:
    """Without optree, which Keras needs for nested structures, give it the few functions that it calls."""
    with contextlib.suppress(ImportError):
        import optree  # noqa: F401

        return

    def parts(tree: Any, is_leaf: Any) -> tuple[list[Any], Any, list[Any]] | None:
        """Children, the function that puts them together, and their keys; None for a leaf."""
        if is_leaf and is_leaf(tree):
            return None
        if type(tree) in registered:
            children, about, *_ = tree.tree_flatten()
            return list(children), lambda new: type(tree).tree_unflatten(about, new), [*range(len(children))]
        if isinstance(tree, dict):
            keys = sorted(tree)
            return [tree[key] for key in keys], lambda new: type(tree)(zip(keys, new, strict=True)), keys
        if isinstance(tree, list | tuple):
            named = hasattr(tree, "_fields")
            return [*tree], lambda new: type(tree)(*new) if named else type(tree)(new), [*range(len(tree))]
        return None

    def flatten(tree: Any, is_leaf: Any = None, **_: Any) -> tuple[list[Any], types.SimpleNamespace]:
        _, leaves, spec = with_path(tree, is_leaf)
        return leaves, spec

    def with_path(tree: Any, is_leaf: Any = None, **_: Any) -> tuple[list[Any], list[Any], types.SimpleNamespace]:
        found = parts(tree, is_leaf)
        if not found:
            return [()], [tree], types.SimpleNamespace(num_nodes=1, num_leaves=1, build=next)
        below = [with_path(child, is_leaf) for child in found[0]]
        paths = [(key, *path) for key, each in zip(found[2], below, strict=True) for path in each[0]]
        leaves = [leaf for each in below for leaf in each[1]]
        nodes = 1 + sum(each[2].num_nodes for each in below)

        def build(left: Any) -> Any:
            return found[1]([each[2].build(left) for each in below])

        return paths, leaves, types.SimpleNamespace(num_nodes=nodes, num_leaves=len(leaves), build=build)

    def mapped(function: Any, tree: Any, *others: Any, is_leaf: Any = None, **_: Any) -> Any:
        found = parts(tree, is_leaf)
        if not found:
            return function(tree, *others)
        below = [parts(other, None) for other in others]
        if any(each is None or each[2] != found[2] for each in below):
            raise ValueError("the structures differ")
        return found[1]([mapped(function, *each, is_leaf=is_leaf) for each in
                         zip(found[0], *(each[0] for each in below if each), strict=True)])  # fmt: skip

    registered: set[type] = set()
    module: Any = types.ModuleType("optree")
    module.utils = types.ModuleType("optree.utils")
    module.__path__, module.__spec__ = [], importlib.machinery.ModuleSpec("optree", None)
    module.register_pytree_node_class = lambda cls, **_: registered.add(cls) or cls
    module.tree_is_leaf = lambda tree, is_leaf=None, **_: parts(tree, is_leaf) is None
    module.tree_flatten, module.tree_flatten_with_path, module.tree_map = flatten, with_path, mapped
    module.tree_unflatten = lambda spec, leaves: spec.build(iter(leaves))
    module.tree_paths = lambda tree, **_: with_path(tree)[0]
    sys.modules |= {"optree": module, "optree.utils": module.utils}


if __name__ == "__main__":
    stand_in_for_optree()
    raise SystemExit(main())
