"""Train a network on finished games: prepare tables, train, evaluate, export.

    python -m distill.train --arch cnn

In: folders that `generate` finished; their tables are prepared first if they are missing or out of date. Out, in
`models/<arch>/`: `best.keras`, `last.keras`, `history.csv`, `curves.png`, `saved_model/1/`, and the record `_run.json`
with the settings and, once the run is finished, its result. The same command resumes an interrupted run.

`--arch my_nets:build` trains a network of your own, `build(value_head) -> keras.Model`. From Python: `train_network`.
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("train")

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from distill import networks
from distill.common import DataError, UserError, cli, plugins, say, sources
from distill.common.settings import CommandLine, NameOrPath
from distill.common.settings import build as build_config
from distill.datasets import preparation, validation
from distill.games import schema
from distill.networks import finding
from distill.training import identity
from distill.training.identity import BEST, LAST
from distill.training.recipe import Recipe

if TYPE_CHECKING:
    import keras

    from distill.training.losses import Loss

FILES = ("checkpoint.npz", BEST, LAST, "history.csv", "curves.png", "tensorboard")
"""Files that a restart deletes; the exported model stays until the next one replaces it."""

KIND = "training run"
"""The kind of folder, in its record."""

PLACES = ("init", "out", "data", "prepared", "export", "restart", "log")
"""Settings left out of a run's identity: places and files to write, or to read, whose content is hashed instead."""

PRESETS: cli.Presets = {
    "published": cli.Preset(
        "the recipe of the UT Project: Adam, plateau schedule, one-hot votes",
        {"target": "vote", "weight_decay": 0.0, "schedule": "plateau", "lr": 1e-3, "epochs": 60},
    ),
    **cli.smoke(
        data=(cli.SMOKE_DATA / "games",),
        prepared=cli.SMOKE_DATA / "prepared",
        out=lambda config: cli.SMOKE_MODELS / _folder(config).name,
        validation_fraction=0.5,  # as prepare has it
        epochs=2,
        batch_size=32,
    ),
}


class TrainConfig(preparation.TableSettings):
    """Train a network on finished games."""

    command_line: ClassVar[CommandLine] = CommandLine(
        flags=(
            *("arch", "init", "data", "out", "restart", "log", "export", "prepared", "exclude", "validation_fraction"),
            *("learning.length.epochs", "learning.length.steps"),
            *("learning.batch_size", "learning.lr", "learning.targets.value_target"),
        ),
        examples=("--arch cnn", "--arch transformer --set arch.layers=8"),
        page="docs/train.md",
    )
    archs: ClassVar[Sequence[str]] = networks.ARCHS
    """The networks with a name that this command trains."""
    arch: networks.Architecture = Field(networks.Architecture(), title="NETWORK", description=networks.ARCH_HELP)
    init: NameOrPath | None = Field(None, title="NETWORK")
    """initial network of the same --arch: a name, run folder or .keras file; built anew only with arch.*"""
    validation_fraction: float = Field(0.15, gt=0, lt=1)
    """share of the games held out for validation (0–1)"""
    prepared: Path = Path("data/prepared")
    """folder of prepared tables, created or updated when needed"""
    out: Path | None = None
    """output folder of the run; default: models/<arch>"""
    export: bool = True
    """write the SavedModel and the model card, for use outside distill"""
    restart: bool = False
    """delete the run in the output folder and start from scratch"""
    log: Literal["none", "tensorboard"] = "none"
    """also write the history for TensorBoard, into the folder tensorboard of the run"""
    learning: Recipe = Recipe()

    @model_validator(mode="after")
    def _check_arch(self) -> Self:
        arch, recipe = self.arch.name, self.learning
        if arch not in self.archs and not plugins.is_spec(arch):
            raise ValueError(f"--arch {arch} must be {networks.ARCH_RULE}")
        if recipe.interpolate and self.init is None:
            raise ValueError(f"interpolate {recipe.interpolate} must be 0 without --init")
        if arch == "resnet" and recipe.targets.value_target == "none":
            raise ValueError("--value-target none does not fit resnet, which always has a value head")
        if recipe.targets.value_weight != 1 and not self.value_head:
            raise ValueError(f"value_weight {recipe.targets.value_weight} needs --value-target")
        return self

    @property
    def value_head(self) -> bool:
        """Whether the network gets a value head."""
        target = self.learning.targets.value_target
        return self.arch.name == "resnet" if target == "auto" else target != "none"


def train_network(
    arch: str | Callable[[bool], keras.Model] = "cnn",
    *,
    loss: Loss | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    **settings: Any,
) -> Path:
    """Train a network as the command does, with its settings by name; returns the folder of the run.

        folder = distill.train_network("cnn", data=["data/games"], epochs=3, out="models/mine")
        predict = distill.load_pretrained(folder)

    Args:
      arch: a built-in network, "module:function", or such a function itself, `build(value_head) -> keras.Model`.
      loss: targets, outputs → the loss of each board, (B,); see `training.losses.Loss`. None: the default loss.
      callbacks: Keras callbacks, such as those of Weights & Biases and MLflow; an evaluation is an epoch to them, and
        its row of `history.csv` the logs, to which they may add numbers.
      settings: any setting that `python -m distill.train --show-config` prints: epochs=3, arch={"name": "cnn"}.

    Raises ValueError for a wrong setting and `distill.UserError` for data, networks and folders that cannot be used.
    """
    if not isinstance(arch, str):
        sources.source_hash(arch)  # raises UserError for a function that is defined in no file
        # An object without a name, such as a functools.partial, is refused with the settings.
        arch = f"{arch.__module__}:{getattr(arch, '__qualname__', arch)}"
    if isinstance(data := settings.get("data"), str | Path):
        settings["data"] = [data]
    config = build_config(TrainConfig, {"arch": arch, **settings})
    print(run(config, loss=loss, callbacks=callbacks))
    return _folder(config)


def run(
    config: TrainConfig,
    build: Callable[..., keras.Model] | None = None,
    loss: Loss | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> str:
    """Train one network; returns the line with its folder and its top-1 accuracy against the teacher.

    `build` makes the network of an arch; `loss` and `callbacks` are those of `train_network`.
    """
    named = f"{loss.__module__}:{loss.__qualname__}" if inspect.isfunction(loss) else ""
    if loss is not None and not plugins.is_spec(named):  # its name would not tell it from others
        raise UserError(f"loss {loss}: must be a function at the top of a module")
    out = _folder(config)
    networks.trust(config.arch.name)
    config = identity.with_arch(config, config.arch.name)
    prepared = preparation.prepare(config, config.prepared)
    print(prepared.summary(config.data))
    own = {"loss source": loss, "build source": build}
    also = {name: sources.source_hash(code) for name, code in own.items() if code is not None}
    also["prepared data"] = prepared.folder.name
    if loss is not None:
        also["loss"] = named
    with identity.opened(config, out, KIND, FILES, PLACES, **also) as folder:
        if folder.result is not None:
            return identity.finished_line(out, _result(out, folder.result))
        networks.start_backend(aloud=True)  # as late as possible, because it takes seconds
        from distill.exporters import card, publish
        from distill.networks import heads, saved
        from distill.training import accuracy, loop, losses, step, tensorboard

        seed, sha256 = config.learning.seed, folder.ours.identity["init"]
        core = step.initial_network(config.arch, config.init, config.value_head, seed, sha256, build)
        if heads.has_value(core) != config.value_head:
            raise UserError(f"{config.init}: it has a value head, and --value-target does not ask for it")
        source, rows = validation.validation_rows(config.data, config.validation_fraction)
        training = preparation.load(prepared.folder, schema.TRAINING)
        held_out = preparation.load(prepared.folder, schema.VALIDATION)
        if not len(held_out):
            raise DataError("no validation board that is not a training board too: generate more games")
        if loss is not None:
            loss = losses.checked(loss, core, training, config.learning)
        if config.log == "tensorboard":
            callbacks = [*callbacks, tensorboard.TensorBoard(out)]
        folder.begin()  # everything that the user gave has been checked
        state = loop.train(core, training, held_out, config.learning, out, loss, callbacks)

        say(f"measuring accuracy against the teacher: {len(rows):,} rows of {source}")
        best = saved.load_core(out / BEST)
        runs = prepared.result["inputs"]
        metrics = {
            "arch": config.arch.name,
            "parameters": best.count_params(),
            "training_boards": len(training),
            "epochs": state.history[-1]["epoch"],
            "steps": state.step,
            "best_step": state.best_step,
            "validation_loss": state.best_loss,
            "validation_rows_from": source,
            # Stored for the card, because games and tables may be gone at the next export.
            "training_games": [{name: run[name] for name in ("games", "rows", "settings")} for run in runs],
        } | accuracy.measure(saved.predict_with(best), rows, training)
        if config.export:
            publish.publish_if_possible(out, card.results(out, metrics))
        folder.finish(metrics)
    return _result(out, metrics)


def _folder(config: TrainConfig) -> Path:
    return config.out or Path("models") / config.arch.name.replace(":", "-")


def _result(out: Path, metrics: Mapping[str, Any]) -> str:
    unseen = metrics["top1_unseen"]
    exported = "" if (out / finding.PUBLISHED).exists() else f"; python -m distill.export {out} exports it"
    on_unseen = "none of them unseen" if unseen is None else f"{unseen:.2%} on the {metrics['rows_unseen']:,} unseen"
    return (
        f"{out}: top-1 accuracy against the teacher: {metrics['top1_all']:.2%} on {metrics['rows_all']:,} rows of "
        f"{metrics['validation_rows_from']}, {on_unseen}{exported}"
    )


main = cli.Command("distill train", TrainConfig, run, PRESETS)
