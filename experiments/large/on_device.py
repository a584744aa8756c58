"""Train a larger network from packed boards, all of it on one device: Keras on JAX, without DuckDB and TensorFlow.

    KERAS_BACKEND=jax python -m experiments.large.on_device --shape attention --data data/reference/labels-200 \
        --steps 20000 --out models/attention

In: folders of packed boards (`prepare --packed`). Out, in `--out`: `weights.npz`, the averaged weights in the order of
`model.get_weights()`, and `history.csv`; started again with the same flags, it resumes from `state.npz`. Where
TensorFlow is installed,

    python -m experiments.large.on_device --shape attention --out models/attention --convert

writes `best.keras`. To load it, import `experiments.large.shapes` first, where its layers are.

The boards lie on the device as int8. A step draws its boards, mirrors half of them and updates the weights there; the
host hears of it once every STEPS_A_CALL steps. Needs jax, keras, optree, namex, numpy, pyarrow and tqdm.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.common import read_object, write_atomically, write_json

STEPS_A_CALL = 200
"""Steps of one call of the device."""
CALLS_A_LINE = 10
"""Calls between two evaluations, each with a checkpoint."""
WARM_UP = 0.05
"""Share of the steps in which the learning rate first rises from zero."""
HELD_OUT = 1 / 50
"""Share of the boards kept for the validation loss, by a hash of the board."""
EVALUATION_BATCH = 4096
NOT_FOR_MUON = ["logits", "read_out", "value_unit", "embedding", "relations"]
"""Outputs, and tables that are looked up: their rows are no directions of a space, so they go to AdamW."""


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shape", default="attention", help="a shape of experiments.large.shapes, or an arch")
    parser.add_argument("--data", type=Path, nargs="+", default=[Path("data/reference/labels-200")])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, help="stop, resumable, after so many minutes")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--lr", type=float, default=2e-3, help="highest learning rate of Muon; AdamW has the same")
    parser.add_argument("--ema", type=float, default=0.999, help="EMA decay of the weights")
    parser.add_argument("--value-weight", type=float, default=0.5)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--convert", action="store_true", help="write best.keras from weights.npz, and nothing else")
    options = parser.parse_args(words)
    if options.convert:
        convert(options.shape, options.out)
    else:
        train(options)


def build(shape: str) -> Any:
    """The network of that shape with a value head, from Keras' global seed."""
    from distill import networks
    from experiments.large import shapes

    return shapes.build(shape) if shape in shapes.SHAPES else networks.build(shape, value_head=True)


def convert(shape: str, out: Path) -> None:
    """Write `best.keras` of the averaged weights."""
    from distill import networks

    networks.start_backend()
    core = build(shape)
    with np.load(out / "weights.npz") as stored:
        core.set_weights([stored[str(number)] for number in range(len(stored.files))])
    core.save(out / "best.keras")
    print(f"{out / 'best.keras'}: {core.count_params():,} parameters")


# Boards ---------------------------------------------------------------------------------------------------------------


def load(folders: Sequence[Path]) -> dict[str, NDArray[Any]]:
    """All boards: `boards` int8 (N, 6, 7), `visits` uint8 (N, 7), `value` and `outcome` int8 (N,), `held_out` bool."""
    from distill.game import encoding, rules
    from distill.game.mixing import mix
    from distill.games import schema

    tables = []
    for folder in folders:
        for name in [shard["name"] for shard in schema.read_manifest(folder)["shards"]]:
            tables.append(schema.read_table(folder / name, schema.PACKED_ROW)[0])
    keys = np.concatenate([table["key"].to_numpy() for table in tables])
    current, mask = rules.from_keys(keys)
    return {
        "boards": encoding.boards(current, mask),
        "visits": np.concatenate([schema.matrix(table["visits"]) for table in tables]),
        "value": np.concatenate([table["value"].to_numpy() for table in tables]),
        "outcome": np.concatenate([table["outcome"].to_numpy() for table in tables]),
        "held_out": (mix(keys) >> np.uint64(11)).astype(np.float64) * 2.0**-53 < HELD_OUT,
    }


# Steps ----------------------------------------------------------------------------------------------------------------


def train(options: argparse.Namespace) -> None:
    """Train to the end of the steps, or until the minutes are over."""
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import jax
    import jax.numpy as jnp
    import keras

    from distill.games.schema import VALUE_STEPS
    from distill.networks import heads

    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(options.seed)
    keras.config.set_dtype_policy("mixed_bfloat16" if options.precision == "bfloat16" else "float32")
    core = build(options.shape)
    model = heads.played(core)
    optimizer = _optimizer(options)
    optimizer.build(model.trainable_variables)

    found = load(options.data)
    held_out = found.pop("held_out")
    learned = {name: jnp.asarray(values[~held_out]) for name, values in found.items()}
    kept = {name: values[held_out] for name, values in found.items()}
    if not len(kept["value"]):
        raise SystemExit(f"{len(held_out)} boards are too few: none is held out; name more --data")
    count = len(learned["value"])
    print(f"{count:,} boards, {len(kept['value']):,} held out, {core.count_params():,} parameters, {jax.devices()[0]}")

    def loss_of(trainable: Any, fixed: Any, batch: dict[str, Any], training: bool) -> tuple[Any, Any]:
        outputs, fixed = model.stateless_call(trainable, fixed, batch["boards"], training=training)
        visits = batch["visits"].astype(jnp.float32)
        target = visits / visits.sum(1, keepdims=True)
        policy = -(target * jax.nn.log_softmax(outputs["logits"].astype(jnp.float32))).sum(1)
        wanted = 0.5 * batch["value"].astype(jnp.float32) / VALUE_STEPS + 0.5 * batch["outcome"].astype(jnp.float32)
        value = jnp.square(outputs["value"].astype(jnp.float32) - wanted)
        agreed = outputs["logits"].argmax(1) == visits.argmax(1)
        return (policy + options.value_weight * value).mean(), (agreed.mean(), fixed)

    def drawn(key: Any) -> dict[str, Any]:
        """A batch of boards, half of them mirrored."""
        rows, mirrors = jax.random.split(key)
        chosen = jax.random.randint(rows, (options.batch_size,), 0, count)
        batch = {name: values[chosen] for name, values in learned.items()}
        turned = jax.random.bernoulli(mirrors, shape=(options.batch_size,))
        batch["boards"] = jnp.where(turned[:, None, None], batch["boards"][:, :, ::-1], batch["boards"])
        batch["visits"] = jnp.where(turned[:, None], batch["visits"][:, ::-1], batch["visits"])
        return batch

    def step(state: Any, number: Any) -> tuple[Any, Any]:
        trainable, fixed, own, average = state
        batch = drawn(jax.random.fold_in(jax.random.key(options.seed), number))
        (loss, (_, fixed)), gradients = jax.value_and_grad(loss_of, has_aux=True)(trainable, fixed, batch, True)
        trainable, own = optimizer.stateless_apply(own, gradients, trainable)
        decay = jnp.minimum(options.ema, (1 + number) / (10 + number))
        average = [decay * mean + (1 - decay) * each for mean, each in zip(average, trainable, strict=True)]
        return (trainable, fixed, own, average), loss

    @functools.partial(jax.jit, donate_argnums=0)
    def steps(state: Any, first: Any) -> tuple[Any, Any]:
        state, losses = jax.lax.scan(step, state, first + jnp.arange(STEPS_A_CALL))
        return state, losses.mean()

    measured = jax.jit(functools.partial(loss_of, training=False))

    def evaluate(state: Any) -> tuple[float, float]:
        """Validation loss and top-1 accuracy of the averaged weights."""
        size = min(EVALUATION_BATCH, len(kept["value"]))
        starts = range(0, len(kept["value"]) - size + 1, size)
        parts = [measured(state[3], state[1], {n: v[at : at + size] for n, v in kept.items()}) for at in starts]
        return float(np.mean([loss for loss, _ in parts])), float(np.mean([agreed for _, (agreed, _) in parts]))

    weights, fixed = model.trainable_variables, model.non_trainable_variables
    parts = (weights, fixed, optimizer.variables, weights)  # the last become the averages
    state = tuple([jnp.array(each.value, copy=True) for each in part] for part in parts)
    _claim(options)
    history, stored = _resumed(options.out)
    first = history[-1]["step"] if history else 0
    if stored:
        state = tuple([jnp.asarray(stored[f"{p}.{n}"]) for n in range(len(part))] for p, part in enumerate(state))
    while first < options.steps:
        called = time.monotonic()
        state, loss = steps(state, first)
        first += STEPS_A_CALL
        loss = float(loss)
        if not math.isfinite(loss):
            raise SystemExit(f"the loss is not a number after {first} steps; start again with a smaller --lr")
        boards_a_second = STEPS_A_CALL * options.batch_size / (time.monotonic() - called)
        over = options.minutes is not None and time.monotonic() - began > 60 * options.minutes
        if first % (CALLS_A_LINE * STEPS_A_CALL) == 0 or first >= options.steps or over:
            validation, accuracy = evaluate(state)
            history.append({"step": first, "training_loss": loss, "validation_loss": validation, "accuracy": accuracy})
            _save(options, model, state, history)
            found_so_far = f"loss {loss:.4f}, validation {validation:.4f}, {accuracy:.2%} top-1"
            print(f"step {first}: {found_so_far}, {boards_a_second:,.0f} boards/s", flush=True)
        if over:
            break
    memory = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    minutes = round((time.monotonic() - began) / 60, 2)
    print(json.dumps({"steps": first, "peak_memory_bytes": memory, "minutes": minutes}))


def _optimizer(options: argparse.Namespace) -> Any:
    """Muon for matrices, AdamW for the rest, as `train --optimizer muon`."""
    import keras

    warm_up = max(1, int(WARM_UP * options.steps))
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, options.steps - warm_up, warmup_target=options.lr, warmup_steps=warm_up
    )
    return keras.optimizers.Muon(rate, weight_decay=0.01, adam_weight_decay=0.01, exclude_layers=NOT_FOR_MUON)


# Files ----------------------------------------------------------------------------------------------------------------


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """What a resumed run must have in common."""
    names = ("shape", "steps", "batch_size", "lr", "ema", "value_weight", "precision", "seed")
    return {name: getattr(options, name) for name in names} | {"data": sorted(map(str, options.data))}


def _claim(options: argparse.Namespace) -> None:
    """Write the settings of a new run; exit where the folder holds a run with other settings."""
    before, settings = read_object(options.out / "config.json"), _settings(options)
    if before not in ({}, settings):
        raise SystemExit(f"{options.out}: holds a run with other settings ({before}); name another --out")
    write_json(options.out / "config.json", settings)


def _resumed(out: Path) -> tuple[list[dict[str, float]], dict[str, NDArray[Any]]]:
    """History and state of an interrupted run; empty for a new one."""
    if not (out / "state.npz").exists():
        return [], {}
    with np.load(out / "state.npz") as stored:
        arrays = dict(stored)
    return json.loads(str(arrays.pop("history"))), arrays


def _save(options: argparse.Namespace, model: Any, state: Any, history: list[dict[str, float]]) -> None:
    """Averaged weights and curve, then in one file all that a resumed run needs."""
    averages = dict(zip(map(id, model.trainable_variables), state[3], strict=True))
    fixed = dict(zip(map(id, model.non_trainable_variables), state[1], strict=True))
    weights = [np.asarray((averages | fixed)[id(each)], np.float32) for each in model.weights]
    _write(options.out / "weights.npz", {str(number): each for number, each in enumerate(weights)})
    lines = [",".join(history[0]), *(",".join(f"{value:.6g}" for value in row.values()) for row in history)]
    write_atomically(options.out / "history.csv", ("\n".join(lines) + "\n").encode())
    numbered = {f"{p}.{n}": np.asarray(each) for p, part in enumerate(state) for n, each in enumerate(part)}
    _write(options.out / "state.npz", numbered | {"history": np.array(json.dumps(history))})


def _write(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    temporary = path.with_name(f".{path.name}.partial.npz")
    np.savez(temporary, **arrays)  # type: ignore[arg-type]
    os.replace(temporary, path)


if __name__ == "__main__":
    main()
