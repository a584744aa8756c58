"""Train a larger network on labelled boards, all of it on one device: Keras on JAX, without TensorFlow and PyArrow.

    KERAS_BACKEND=jax python -m experiments.large.train --shape lines-64x5 --data boards.npz --steps 20000 --out OUT

In: `.npz` files of `boards.py` (or folders, where PyArrow is installed), and with `--graded` those graded boards that
`boards.py --graded` wrote. Out, in `--out`: `best.keras`, the averaged weights without auxiliary heads; `history.csv`;
`config.json`. Started again with the same flags, it resumes from `state.npz`.

The boards lie on the device as int8. A step draws its boards, mirrors half of them and updates the weights there; the
host hears of it once every STEPS_A_CALL steps, and then sets the learning rate.
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
from distill.game import rules
from distill.game.mixing import splitmix64
from experiments.large import boards as labelled_boards
from experiments.large import shapes
from experiments.large.boards import VALUE_STEPS
from experiments.large.label import boards_of_words, words_of

STEPS_A_CALL = 100
"""Steps of one call of the device."""
CALLS_A_LINE = 20
"""Calls between two evaluations; every fourth of them also writes a checkpoint."""
WARM_UP = 0.03
"""Share of the steps in which the learning rate first rises from zero."""
HELD_OUT = 1 / 100
"""Share of the boards kept for the validation loss, by a hash of the board."""
EVALUATION_BATCH = 4096
SOFT_TEMPERATURE = 4.0
"""Temperature of the softened policy target, as in KataGo."""
NO_OUTCOME = 2
"""In place of the outcome of a board whose value is not learned."""
NOT_FOR_MUON = ["logits", "children", "reply", "of_side", "value_unit", "embedding", "relations"]
"""Outputs, and tables that are looked up: their rows are no directions of a space, so they go to AdamW."""


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shape", default="lines-64x5", help="a shape of shapes.py")
    parser.add_argument("--init", type=Path, help="best.keras of the same shape to start from")
    parser.add_argument(
        "--interpolate", type=float, default=1.0, help="share of the trained weights, the rest --init's"
    )
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--extra", type=Path, nargs="*", default=[], help="boards that fill --extra-share of a batch")
    parser.add_argument("--extra-share", type=float, default=0.5)
    parser.add_argument("--tree", type=Path, help="folder of tree.py: keep the moves of its won positions")
    parser.add_argument("--tree-share", type=float, default=0.3, help="share of a batch from --tree")
    parser.add_argument("--graded", type=Path, help="graded boards (dev half) to report on")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--fit-minutes", type=float, help="as many steps as fit, by the speed of the first calls")
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--lr", type=float, default=3e-3, help="highest learning rate, of Muon and AdamW")
    parser.add_argument("--ema", type=float, default=0.999, help="EMA decay of the weights")
    parser.add_argument("--value-weight", type=float, default=0.5)
    parser.add_argument("--children", type=Path, help="a network whose values of the seven children become a target")
    parser.add_argument("--children-weight", type=float, default=0.5)
    parser.add_argument("--reply-weight", type=float, default=0.0, help="weight of the opponent's reply as a target")
    parser.add_argument("--soft-weight", type=float, default=0.0, help="weight of the softened policy target")
    parser.add_argument(
        "--loss-sampling", type=float, default=0.0, help="draw boards below this divergence less often, in nats"
    )
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    train(parser.parse_args(words))


# Boards ---------------------------------------------------------------------------------------------------------------


@functools.cache
def load(paths: tuple[Path, ...], children: Path | None, precision: str) -> dict[str, NDArray[Any]]:
    """The boards of files, with `key` uint64 (N,) as `words` uint32 (N, 2, 2): current and mask.

    Boards without values of their children get them from the network `children`.
    """
    stored = labelled_boards.load(paths)
    stored["words"] = words_of(*rules.from_keys(stored.pop("key")))
    if children:
        rows = np.flatnonzero((stored["children"] == labelled_boards.UNKNOWN).all(1))
        stored["children"][rows] = values_of_children(children, stored["words"][rows], precision)
    return stored


def bitboards(words: NDArray[np.uint32]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Current and mask, uint64 (N,) each, of `words`."""
    pairs = np.ascontiguousarray(words).view(np.uint64)
    return pairs[:, 0, 0], pairs[:, 1, 0]


def held_out(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """bool (N,): the boards of the validation loss, by a hash of the position."""
    current, mask = bitboards(words)
    kept: NDArray[np.bool_] = (splitmix64(current + mask) >> np.uint64(11)).astype(np.float64) * 2.0**-53 < HELD_OUT
    return kept


def won_in_tree(folder: Path, excluded: NDArray[np.uint64] | None) -> dict[str, NDArray[Any]]:
    """The won positions of an enumeration and the moves that win them: `words` uint32 (N, 2, 2), `move` int8 (N,)."""
    lost = np.sort(np.load(folder / "not_won.npz")["key"])
    layers = sorted(folder.glob("moves-*.npy"))  # a last layer that was not enumerated has no moves
    moves = np.concatenate([np.load(path) for path in layers])
    keys = np.concatenate([np.load(folder / path.name.replace("moves", "keys")) for path in layers])
    keep = ~np.isin(keys, lost)
    if excluded is not None:
        own, stones, _ = rules.canonicalise(*rules.from_keys(keys))
        keep &= ~np.isin(own + stones, excluded)
    return {"words": words_of(*rules.from_keys(keys[keep])), "move": moves[keep]}


def values_of_children(path: Path, words: NDArray[np.uint32], precision: str) -> NDArray[np.int8]:
    """int8 (N, 7): VALUE_STEPS times what a network makes of the position after each move, for the side that moved.

    A winning move has the value 1. Full columns have −128.
    """
    from experiments.large.label import evaluator

    batch = 1 << 15
    evaluate = evaluator(path, batch, precision)
    current, mask = bitboards(words)
    found = np.full((len(words), rules.COLUMNS), labelled_boards.UNKNOWN, np.int8)
    for column in range(rules.COLUMNS):
        stone = rules.landing(mask)[:, column]
        own, after = current | stone, mask | stone
        won, drawn = rules.has_four(own), after == np.uint64(rules.FULL_BOARD)
        open_column = stone != 0
        found[open_column, column] = np.where(won, VALUE_STEPS, 0)[open_column]
        rows = np.flatnonzero(open_column & ~won & ~drawn)
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            _, value = evaluate(own[part] ^ after[part], after[part])
            found[part, column] = np.rint(-VALUE_STEPS * value)
    return found


# Steps ----------------------------------------------------------------------------------------------------------------


def train(options: argparse.Namespace) -> None:
    """Train to the end of the steps; `--fit-minutes` decides how many those are."""
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import jax
    import jax.numpy as jnp
    import keras

    from distill.networks import heads

    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    settings = _claimed(options)
    keras.utils.set_random_seed(options.seed)
    keras.config.set_dtype_policy("mixed_bfloat16" if options.precision == "bfloat16" else "float32")
    wanted_heads = [*(["children"] if options.children else []), *(["reply"] if options.reply_weight else [])]
    core = shapes.build(options.shape, wanted_heads)
    played = shapes.without_heads(core)
    if options.init:
        weights = shapes.network(options.init).get_weights()
        keras.config.set_dtype_policy("mixed_bfloat16" if options.precision == "bfloat16" else "float32")
        played.set_weights(weights)
    model = heads.played(core)
    optimizer = keras.optimizers.Muon(0.0, weight_decay=0.01, adam_weight_decay=0.01, exclude_layers=NOT_FOR_MUON)
    optimizer.build(model.trainable_variables)
    lr_index = [each is optimizer._learning_rate for each in optimizer.variables].index(True)

    data = load(tuple(options.data), options.children, options.precision)
    apart = held_out(data["words"])
    kept = {name: values[apart][: 8 * EVALUATION_BATCH] for name, values in data.items()}
    pools = [{name: values[~apart] for name, values in data.items()}]
    if options.extra:
        pools.append(load(tuple(options.extra), options.children, options.precision))
    graded = dict(np.load(options.graded)) if options.graded else {}
    excluded = graded.pop("excluded", None)
    filled = [int(options.extra_share * options.batch_size)] if options.extra else []
    if options.tree:
        pools.append(won_in_tree(options.tree, excluded))
        filled.append(int(options.tree_share * options.batch_size))
    counts = [len(next(iter(pool.values()))) for pool in pools]
    shares = [options.batch_size - sum(filled), *filled]
    learned = [{name: jnp.asarray(values) for name, values in pool.items()} for pool in pools]
    if options.loss_sampling:
        for pool, count in zip(learned, counts, strict=True):
            pool["divergence"] = jnp.full(count, options.loss_sampling, jnp.float16)
    print(f"{counts} boards, {len(kept['value']):,} held out, {core.count_params():,} parameters, {jax.devices()[0]}")

    def errors(outputs: Any, batch: dict[str, Any]) -> dict[str, Any]:
        """The error of each board, (B,), by name."""
        visits = batch["visits"].astype(jnp.float32)
        target = visits / visits.sum(1, keepdims=True)
        log_policy = jax.nn.log_softmax(outputs["logits"].astype(jnp.float32))
        wanted = 0.5 * batch["value"].astype(jnp.float32) / VALUE_STEPS + 0.5 * batch["outcome"].astype(jnp.float32)
        found = {
            "policy": -(target * log_policy).sum(1),
            "value": jnp.square(outputs["value"].astype(jnp.float32) - wanted) * (batch["outcome"] != NO_OUTCOME),
            "entropy": -(target * jnp.log(target + 1e-9)).sum(1),
        }
        if options.soft_weight:
            soft = jnp.where(batch["boards"][:, 0] == 0, (target + 1e-3) ** (1 / SOFT_TEMPERATURE), 0)
            found["soft"] = -(soft / soft.sum(1, keepdims=True) * log_policy).sum(1)
        if "children" in outputs and "children" in batch:
            legal = batch["children"] > labelled_boards.UNKNOWN
            off = outputs["children"].astype(jnp.float32) - batch["children"].astype(jnp.float32) / VALUE_STEPS
            found["children"] = (jnp.square(off) * legal).sum(1) / jnp.maximum(legal.sum(1), 1)
        if "reply" in outputs:
            known = batch["reply"] >= 0
            chosen = jnp.take_along_axis(
                jax.nn.log_softmax(outputs["reply"].astype(jnp.float32)), jnp.maximum(batch["reply"], 0)[:, None], 1
            )
            found["reply"] = -chosen[:, 0] * known
        return found

    weights_of = {
        "policy": 1.0, "value": options.value_weight, "soft": options.soft_weight,
        "children": options.children_weight, "reply": options.reply_weight,
    }  # fmt: skip

    def loss_of(trainable: Any, fixed: Any, batch: dict[str, Any], training: bool) -> tuple[Any, Any]:
        outputs, fixed = model.stateless_call(trainable, fixed, batch["boards"], training=training)
        found = errors(outputs, batch)
        loss = sum(weight * found[name].mean() for name, weight in weights_of.items() if name in found)
        return loss, (found["policy"] - found["entropy"], fixed)

    def of_tree(part: dict[str, Any]) -> dict[str, Any]:
        """Boards whose target is one move; their value is not learned."""
        nothing = jnp.zeros_like(part["move"])
        return {
            "words": part["words"],
            "visits": jax.nn.one_hot(part["move"], rules.COLUMNS, dtype=jnp.uint8),
            "value": nothing, "outcome": nothing + NO_OUTCOME, "reply": nothing - 1,
            "children": jnp.full((len(nothing), rules.COLUMNS), labelled_boards.UNKNOWN, jnp.int8),
        }  # fmt: skip

    def drawn(key: Any, pools: Any) -> tuple[dict[str, Any], Any]:
        """A batch of boards, half of them mirrored, and which rows of the pools they are."""
        parts, rows = [], []
        for number, (pool, count, share) in enumerate(zip(pools, counts, shares, strict=True)):
            picks, takes = jax.random.split(jax.random.fold_in(key, number))
            if options.loss_sampling:  # of 2 B random boards, each taken with its chance, until B are found
                candidates = jax.random.randint(picks, (2 * share,), 0, count)
                chance = jnp.clip(pool["divergence"][candidates] / options.loss_sampling, 1 / 8, 1)
                order = jnp.argsort(jax.random.uniform(takes, (2 * share,)) > chance, stable=True)
                chosen = candidates[order[:share]]
            else:
                chosen = jax.random.randint(picks, (share,), 0, count)
            rows.append(chosen)
            part = {name: values[chosen] for name, values in pool.items()}
            parts.append(of_tree(part) if "move" in part else part)
        batch = {name: jnp.concatenate([part[name] for part in parts]) for name in parts[0]}
        batch["boards"] = boards_of_words(batch.pop("words"))
        turned = jax.random.bernoulli(jax.random.fold_in(key, 99), shape=(options.batch_size,))
        batch["boards"] = jnp.where(turned[:, None, None], batch["boards"][:, :, ::-1], batch["boards"])
        for name in ("visits", "children"):
            batch[name] = jnp.where(turned[:, None], batch[name][:, ::-1], batch[name])
        other = jnp.where(batch["reply"] >= 0, rules.COLUMNS - 1 - batch["reply"], -1)
        batch["reply"] = jnp.where(turned, other, batch["reply"])
        return batch, rows

    def step(carried: Any, number: Any) -> tuple[Any, Any]:
        (trainable, fixed, own, average), divergences, pools = carried
        pools = [pool | extra for pool, extra in zip(pools, divergences, strict=True)]
        batch, rows = drawn(jax.random.fold_in(jax.random.key(options.seed), number), pools)
        (loss, (divergence, fixed)), gradients = jax.value_and_grad(loss_of, has_aux=True)(
            trainable, fixed, batch, True
        )
        trainable, own = optimizer.stateless_apply(own, gradients, trainable)
        decay = jnp.minimum(options.ema, (1 + number) / (10 + number))
        average = [decay * mean + (1 - decay) * each for mean, each in zip(average, trainable, strict=True)]
        if options.loss_sampling:
            ends = np.cumsum(shares)[:-1]
            parts = jnp.split(divergence.astype(jnp.float16), ends)
            divergences = [
                {"divergence": each["divergence"].at[chosen].set(part)}
                for each, chosen, part in zip(divergences, rows, parts, strict=True)
            ]
        return ((trainable, fixed, own, average), divergences, pools), loss

    split = [{name: pool.pop(name) for name in ("divergence",) if name in pool} for pool in learned]

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def steps(state: Any, divergences: Any, pools: Any, first: Any) -> tuple[Any, Any, Any]:
        def one(carried: Any, number: Any) -> tuple[Any, Any]:
            (state, divergences, _), loss = step((*carried, pools), number)
            return (state, divergences), loss

        (state, divergences), losses = jax.lax.scan(one, (state, divergences), first + jnp.arange(STEPS_A_CALL))
        return state, divergences, losses.mean()

    @jax.jit  # type: ignore[untyped-decorator]
    def measured(trainable: Any, fixed: Any, batch: dict[str, Any]) -> Any:
        batch = batch | {"boards": boards_of_words(batch["words"])}
        return errors(model.stateless_call(trainable, fixed, batch["boards"], training=False)[0], batch)

    chosen_moves = jax.jit(lambda trainable, fixed, boards: model.stateless_call(
        trainable, fixed, boards, training=False)[0]["logits"].argmax(1)
    )  # fmt: skip

    def evaluate(state: Any) -> dict[str, float]:
        """Validation losses and the rates on graded boards of the averaged weights."""
        size = min(EVALUATION_BATCH, len(kept["value"]))
        kept_batches = [{n: v[at : at + size] for n, v in kept.items()} for at in range(0, len(kept["value"]), size)]
        kept_batches = [each for each in kept_batches if len(each["value"]) == size]
        found = [measured(state[3], state[1], each) for each in kept_batches]
        row = {name: float(np.mean([each[name].mean() for each in found])) for name in ("policy", "value") if found}
        for name in sorted({key.split(":")[0] for key in graded}):
            boards, scores = graded[f"{name}:boards"], graded[f"{name}:scores"].astype(int)
            moves = np.asarray(chosen_moves(state[3], state[1], boards))
            got, best = scores[np.arange(len(moves)), moves], scores.max(1)
            row |= {f"{name}_optimal": float((got == best).mean() * 100)}
            row |= {f"{name}_outcome": float((np.sign(got) == np.sign(best)).mean() * 100)}
        return row

    parts = (model.trainable_variables, model.non_trainable_variables, optimizer.variables, model.trainable_variables)
    state = tuple([jnp.array(each.value, copy=True) for each in part] for part in parts)
    initial = [np.asarray(each) for each in state[0]]
    write_json(options.out / "config.json", settings)
    history, stored = _resumed(options.out)
    first = int(history[-1]["step"]) if history else 0
    total = int(history[-1]["steps"]) if history else options.steps
    if stored:
        state = tuple([jnp.asarray(stored[f"{p}.{n}"]) for n in range(len(part))] for p, part in enumerate(state))
    calls = 0
    fit = options.fit_minutes if not history else None
    while first < total:
        called = time.monotonic()
        state[2][lr_index] = jnp.asarray(options.lr * _share_of_rate(first / total), state[2][lr_index].dtype)
        state, split, loss = steps(state, split, learned, first)
        loss = float(loss)
        first, calls = first + STEPS_A_CALL, calls + 1
        took = time.monotonic() - called
        if not math.isfinite(loss):
            raise SystemExit(f"the loss is not a number after {first} steps; start again with a smaller --lr")
        if fit is not None and calls == 3:  # the first call compiles, the second may
            left = 60 * fit - (time.monotonic() - began) - 15
            total = first + max(1, int(left / took)) * STEPS_A_CALL
            print(f"{took / STEPS_A_CALL * 1000:.2f} ms a step: {total} steps", flush=True)
        if calls % CALLS_A_LINE == 0 or first >= total:
            row = {"step": first, "steps": total, "training_loss": loss} | evaluate(state)
            history.append(row)
            shown = ", ".join(f"{name} {value:.4g}" for name, value in row.items() if name not in ("step", "steps"))
            print(f"{time.monotonic() - began:.0f} s, step {first}: {shown}, "
                  f"{STEPS_A_CALL * options.batch_size / took:,.0f} boards/s", flush=True)  # fmt: skip
            if first >= total or (calls // CALLS_A_LINE) % 4 == 0:
                _save(options.out, state, history)
    share = options.interpolate
    finished = [share * np.asarray(mean) + (1 - share) * before for mean, before in zip(state[3], initial, strict=True)]
    for variable, value in zip(model.trainable_variables, finished, strict=True):
        variable.assign(value)
    exported = shapes.to_play(options.shape)
    exported.set_weights([np.asarray(each, np.float32) for each in played.get_weights()])
    exported.save(options.out / "best.keras")
    memory = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    minutes = round((time.monotonic() - began) / 60, 2)
    print(json.dumps({"steps": first, "peak_memory_bytes": memory, "minutes": minutes}))


def _share_of_rate(progress: float) -> float:
    """Linear warm-up, then half a cosine down to zero."""
    if progress < WARM_UP:
        return (progress + 1e-3) / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (progress - WARM_UP) / (1 - WARM_UP)))


# Files ----------------------------------------------------------------------------------------------------------------


def _claimed(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of a run; exits where the folder holds a run with other ones."""
    settings = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
    settings |= {name: sorted(map(str, getattr(options, name))) for name in ("data", "extra")}
    before = read_object(options.out / "config.json")
    if before not in ({}, settings):
        raise SystemExit(f"{options.out}: holds a run with other settings ({before}); name another --out")
    return settings


def _resumed(out: Path) -> tuple[list[dict[str, float]], dict[str, NDArray[Any]]]:
    """History and state of an interrupted run; empty for a new one."""
    if not (out / "state.npz").exists():
        return [], {}
    with np.load(out / "state.npz") as stored:
        arrays = dict(stored)
    return json.loads(str(arrays.pop("history"))), arrays


def _save(out: Path, state: Any, history: list[dict[str, float]]) -> None:
    """The curve, then in one file all that a resumed run needs."""
    lines = [",".join(history[0]), *(",".join(f"{value:.6g}" for value in row.values()) for row in history)]
    write_atomically(out / "history.csv", ("\n".join(lines) + "\n").encode())
    numbered = {f"{p}.{n}": np.asarray(each) for p, part in enumerate(state) for n, each in enumerate(part)}
    temporary = out / ".state.partial.npz"
    np.savez(temporary, **numbered | {"history": np.array(json.dumps(history))})  # type: ignore[arg-type]
    os.replace(temporary, out / "state.npz")


if __name__ == "__main__":
    main()
