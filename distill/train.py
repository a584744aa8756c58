"""Train a network on finished games: prepare, learn, measure, export.

    python -m distill.train --arch cnn

In: folders that `generate` finished, prepared first where that is missing or stale. Out, in `models/<arch>/`:
`best.keras`, `last.keras`, `config.json`, `history.csv`, `curves.png`, `saved_model/1/`, and `metrics.json`, written
last: with it the run is finished. An interrupted run goes on with the same command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distill import networks
from distill.common import DataError, UserError, cli, folders, say, write_json
from distill.datasets import batching, preparation, validation
from distill.games import schema
from distill.networks import finding
from distill.networks.finding import BEST
from distill.training import run_folder
from distill.training.recipe import Recipe
from distill.training.run_folder import CONFIG, LAST, METRICS, RUN, Claim

if TYPE_CHECKING:
    import keras

    from distill.training.training import Quick, Watch

OWN_FILES = (METRICS, "checkpoint.npz", BEST, LAST, "history.csv", "curves.png", "events")
"""What a restart deletes, in this order; the exported model stays until another takes its place."""

PLACES = ("init", "out", "data", "prepared", "export", "restart")
"""Settings that say where things lie and what is written; the weights do not depend on them."""

PRESETS: cli.Presets = {
    "published": cli.Preset(
        "the recipe of the UT Project: Adam, plateau schedule, cross-entropy on the vote",
        {"target": "vote", "optimizer": "adam", "schedule": "plateau", "lr": 1e-3, "epochs": 60},
    ),
    "smoke": cli.smoke(
        data=(cli.SMOKE_DATA / "games",),
        prepared=cli.SMOKE_DATA / "prepared",
        out=lambda settings: cli.SMOKE_MODELS / settings["arch"],
        validation_fraction=0.5,  # as prepare has it
        epochs=2,
        batch_size=32,
    ),
}


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Recipe):
    """Train a network on finished games."""

    arch: networks.Arch = cli.setting("cnn", "the network")
    init: str | None = cli.setting(
        None, "the network to begin from, same arch and heads: a run's folder, a .keras file or a name; none: nothing"
    )
    data: tuple[Path, ...] = cli.setting((Path("data/games"),), "folders of finished games, each another run")
    prepared: Path = cli.setting(Path("data/prepared"), "folder of prepared tables, made where missing or stale")
    validation_fraction: float = cli.setting(0.15, "expected share of the games kept for validation")
    exclude: tuple[str, ...] = cli.setting(("benchmark",), "boards kept out of the tables, as for prepare")
    out: Path | None = cli.setting(None, "folder of the run; none: models/<arch>")
    export: bool = cli.setting(
        True, "write the SavedModel and the card; without them only distill can load the network"
    )
    restart: bool = cli.setting(False, "begin anew, in place of what the folder holds")

    def __post_init__(self) -> None:
        super().__post_init__()
        cli.check(0 < self.validation_fraction < 1, "validation_fraction", self.validation_fraction, "between 0 and 1")
        cli.check(len(self.data) > 0, "data", "", "at least one folder")
        cli.check(not self.interpolate or self.init is not None, "interpolate", self.interpolate, "0 without --init")
        forbidden = self.arch == "resnet" and self.value_target == "none"
        cli.check(not forbidden, "value_target", "none", "another one for resnet, which always has a value head")
        fixed = self.dropout is not None and self.arch not in ("cnn", "transformer")
        cli.check(not fixed, "dropout", self.dropout, f"left out for {self.arch}, which has none that can be set")

    @property
    def value_head(self) -> bool:
        """Whether the network gets a value head."""
        return self.arch == "resnet" if self.value_target == "auto" else self.value_target != "none"


def run(
    config: TrainConfig,
    build: networks.Builder | None = None,
    watch: Watch | None = None,
    quick: Quick | None = None,
) -> str:
    """Train one network; returns the line that says where it is and its top-1 accuracy against the teacher.

    `build` makes the network of that name; None is `networks.build`. `watch` says more of it after each epoch, and
    `quick` makes it in the form that the steps go to; None is `training.quick_form`.
    """
    out = config.out or Path("models") / config.arch
    given = _given_network(config)  # before anything is written, or prepared for minutes
    folders.require(out, folders.TRAINING, own=(CONFIG, RUN, *OWN_FILES), restart=config.restart)
    fraction, exclude = config.validation_fraction, config.exclude
    data, place = config.data, config.prepared
    prepared = preparation.prepare(data, place, validation_fraction=fraction, exclude=exclude)
    print(prepared.told(data))
    with folders.locked(out):
        return _run(config, build or networks.build, watch, quick, out, given, prepared)


def _run(
    config: TrainConfig,
    build: networks.Builder,
    watch: Watch | None,
    quick: Quick | None,
    out: Path,
    given: keras.Model | None,
    prepared: preparation.Prepared,
) -> str:
    claim = _claim(out, config, prepared)
    claim.check()
    if not config.restart and (before := run_folder.finished(out, partial(_result, out))):
        lacks = config.export and not (out / finding.PUBLISHED).is_dir()
        return before + (f"; there is no SavedModel, python -m distill.export {out} writes it" if lacks else "")

    source, rows = validation.validation_rows(config.data, config.validation_fraction)
    learned, held_out = (batching.load(prepared.folder, split) for split in (schema.TRAINING, schema.VALIDATION))
    networks.start_backend(aloud=True)
    from distill.exporters import publish, run_facts
    from distill.networks import saved
    from distill.training import top1, training

    training.make_repeatable(config.seed)
    core = build(config.arch, config.value_head, "float32")
    if given is not None:
        try:
            core.set_weights(given.get_weights())
        except ValueError:
            raise UserError(f"{config.init}: a {config.arch} of another shape than this distill makes") from None
    if not len(held_out):
        raise DataError("no validation board that training does not hold as well: generate more games")
    if config.export:
        publish.check_place(out)
    claim.begin()  # nothing that was given can be wrong any more
    state = training.fit(core, learned, held_out, config, out, watch, quick)

    say(f"measuring top-1 accuracy against the teacher: {len(rows):,} rows of {source}")
    best = saved.load_core(out / BEST)
    metrics = {
        "arch": config.arch,
        "parameters": best.count_params(),
        "training_boards": len(learned),
        "epochs": state.epoch,
        "steps": state.step,
        "best_epoch": state.best_epoch,
        "validation_loss": state.best_loss,
        "validation_rows_from": source,
    } | top1.measure(saved.predict_with(best), rows, learned)
    facts = run_facts.facts_of_run(out) | metrics
    if run_facts.TEACHER in facts:  # kept, for games and tables may be gone when the network is exported again
        metrics[run_facts.TEACHER] = facts[run_facts.TEACHER]
    if config.export:
        publish.publish_if_possible(best, out, facts)
    else:
        print(f"no SavedModel was asked for; python -m distill.export {out} writes it")
    write_json(out / METRICS, metrics)
    return _result(out, metrics)


def _claim(out: Path, config: TrainConfig, prepared: preparation.Prepared) -> Claim:
    """The run's claim to its folder."""
    also = {
        "arch": networks.in_identity(config.arch),
        "prepared data": prepared.manifest["prepared"],
    }
    return run_folder.claim(out, folders.TRAINING, OWN_FILES, config, PLACES, also)


def _given_network(config: TrainConfig) -> keras.Model | None:
    """The network of --init, None without. Raises UserError where it is another kind than the one that is to learn."""
    if config.init is None:
        return None
    file = finding.network_file(config.init)
    networks.start_backend(aloud=True)
    from distill.networks import heads, saved

    given = saved.load_core(file)
    if (networks.arch_of(given), heads.has_value(given)) != (config.arch, config.value_head):
        kind = f"a {networks.arch_of(given)} {'with' if heads.has_value(given) else 'without'} a value head"
        raise UserError(f"{config.init}: {kind}; --arch and --value-target must ask for the same")
    return given


def _result(out: Path, metrics: Mapping[str, Any]) -> str:
    unseen = metrics["top1_unseen"]
    on_unseen = "none of them unseen" if unseen is None else f"{unseen:.2%} on the {metrics['rows_unseen']:,} unseen"
    return (
        f"{out}: top-1 accuracy against the teacher: {metrics['top1_all']:.2%} on {metrics['rows_all']:,} rows of "
        f"{metrics['validation_rows_from']}, {on_unseen}"
    )


main = cli.Command("train", TrainConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
