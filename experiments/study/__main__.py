"""Find out what matters: many short runs that each change one thing, graded on the same boards.

    python -m experiments.study                          # data, runs and report of study.toml beside this
    python -m experiments.study --do data                # the games alone
    python -m experiments.study --do train --runs vote   # one run
    python -m experiments.study --do report              # grades what is finished, writes table, pictures and page

In: a recipe (TOML: data sets as flags of `generate`, runs as flags of `train`, whose `--arch` may be a shape of the
study). Out: games in `--data`, a folder a run in `--out`, and beside `--page` the table and the pictures. What is
finished is kept, what was interrupted goes on; a run without its games is left out with a line that says so.
"""

from __future__ import annotations

import dataclasses
import hashlib
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from distill import networks
from distill.common import UserError, cli, cores, file_hash, read_object, run_folder, say, write_atomically, write_json
from distill.common.command_line import parse
from distill.common.settings import CommandLine, Settings
from distill.datasets import benchmark
from distill.evaluation import grading, labels
from distill.games import reader
from distill.games.schema import VALIDATION
from distill.networks import finding
from distill.players import names, player
from distill.players.intervals import Estimate
from distill.players.names import identity
from distill.train import PRESETS as PRESETS_OF_TRAIN
from distill.train import TrainConfig
from experiments.study import page as pages
from experiments.study import plan as plans
from experiments.study import results as graded
from experiments.study.plan import Plan, Tier

Step = Literal["data", "train", "report"]
STEPS: tuple[Step, ...] = get_args(Step)
HERE = Path(__file__).parent
FRACTION: float = TrainConfig.model_fields["validation_fraction"].default
"""Share of the games that are validation games."""
RECORD = "study.json"
"""What this command notes of a finished run's games, in the run's folder: how many, their rows, and their hash."""


class StudyConfig(Settings):
    """Train many runs that each change one thing, and compare them."""

    command_line: ClassVar[CommandLine] = CommandLine(
        flags=("recipe", "do", "runs", "tier", "half", "boards", "data", "out", "page", "workers")
    )
    recipe: Path = Field(HERE / "study.toml", description="what is compared with what")
    do: tuple[Step, ...] = Field(STEPS, min_length=1, description="steps to take: data, train, report")
    runs: tuple[str, ...] = Field((), description="runs of the recipe, by name; none: all of the tier")
    tier: int = Field(1, description="tier of the recipe: how long its runs are, and with how many seeds")
    half: Literal["dev", "test"] = Field(
        "dev", description="half of the benchmark: dev for choices, test for headlines"
    )
    boards: int | None = Field(None, ge=1, description="boards of each set at most; none takes all")
    data: Path = Field(Path("data/study"), description="folder of the games that the recipe asks for")
    out: Path | None = Field(None, description="folder of the runs; default: models/study/<recipe>")
    page: Path | None = Field(
        None, description="the page; table and pictures lie beside it; default: <recipe>.md in the folder of the runs"
    )
    workers: int = Field(cores(), ge=1, description="processes for the searches that runs are measured by")


PRESETS = cli.smoke(
    recipe=HERE / "study-smoke.toml",
    boards=20,
    data=cli.SMOKE_DATA / "study",
    out=cli.SMOKE_MODELS / "study",
)


# The steps ------------------------------------------------------------------------------------------------------------


def run(config: StudyConfig) -> str:
    """Take the steps asked for; returns the line that says where the result is."""
    plan = plans.read(config.recipe)
    tier = plan.tier.get(str(config.tier))
    if tier is None:
        raise UserError(f"{config.recipe}: no tier {config.tier}; there are {', '.join(plan.tier)}")
    if unknown := [name for name in config.runs if name not in plan.runs]:
        raise UserError(f"{config.recipe}: no run {', '.join(unknown)}; there are {', '.join(plan.runs)}")
    names = config.runs or tier.runs or tuple(plan.runs)
    page = config.page or _out(config) / f"{config.recipe.stem}.md"
    page = page if config.tier == 1 else page.with_stem(f"{page.stem}-tier{config.tier}")
    if "report" in config.do:
        pages.require(page)
    ended: dict[str, Ending] = {}
    if "data" in config.do:
        _make_data(config, plan, {plan.rows, *(plan.runs[name].data for name in names)} - {""})
    if "train" in config.do:
        for name in names:
            for seed in tier.seeds:
                ended[f"{name} (seed {seed})"] = _train(config, plan, tier, name, seed)
    last = (
        _report(config, plan, tier, page)
        if "report" in config.do
        else f"{' and '.join(config.do)} of {config.recipe} done"
    )
    if failed := [name for name, ending in ended.items() if ending == "failed"]:
        raise UserError(f"{last}; failed, as said above: {', '.join(failed)}")
    left_out = [name for name, ending in ended.items() if ending == "left out"]
    return last + (f"; left out: {', '.join(left_out)}" if left_out else "")


def _out(config: StudyConfig) -> Path:
    return config.out or Path("models/study") / config.recipe.stem


def _folder(config: StudyConfig, plan: Plan, data: str) -> Path:
    return Path(plan.data[data].folder) if plan.data[data].folder else config.data / data


def _make_data(config: StudyConfig, plan: Plan, wanted: set[str]) -> None:
    wanted = wanted | {plan.data[name].shards_of for name in wanted} - {""}
    for name, data in plan.data.items():  # in their order in the plan: shards are taken over from earlier ones
        folder = _folder(config, plan, name)
        if name not in wanted or data.generate is None:
            continue
        if data.shards_of:
            _take_over_shards(_folder(config, plan, data.shards_of), folder, data.games)
        flags = [*shlex.split(data.generate), "--games", str(data.games), "--out", str(folder)]
        if _command("distill.generate", flags):
            raise UserError(f"the games of {name} were not made, as said above")


def _take_over_shards(source: Path, folder: Path, count: int) -> None:
    """Copy the shards of finished games that a run of `count` games has too, byte for byte; `generate` checks them."""
    record = run_folder.read(source)
    if record is None or record.result is None or run_folder.read(folder):
        return
    run = reader.open_run(source)
    reader.verify([run])
    shards = [shard for shard in run.shards if shard.first_game + shard.games <= count]
    unfinished = record.model_copy(update={"result": None, "files": [shard.name for shard in shards]})
    write_json(folder / run_folder.RECORD, unfinished.model_dump())
    for shard in shards:
        write_atomically(folder / shard.name, shard.path.read_bytes())


Ending = Literal["done", "left out", "failed"]


def _flags(config: StudyConfig, plan: Plan, tier: Tier, name: str, seed: int) -> list[str]:
    """What a run is trained with."""
    settings = plan.runs[name]
    flags = ["--set", f"seed={seed}", *shlex.split(tier.train), *shlex.split(settings.train)]
    flags += ["--steps", str(tier.steps[name])] if name in tier.steps else []
    return [*flags, "--data", str(_folder(config, plan, settings.data)), "--out", str(_run_folder(config, name, seed))]


def _is_finished(folder: Path, flags: list[str], games: str | None) -> bool:
    """Whether a run was trained to its end as it would be now with these flags, on the games of this hash.

    Its games and its initial network may be gone.
    """
    from experiments.study import train

    record = run_folder.read(folder)
    if record is None or record.result is None or games not in (None, read_object(folder / RECORD).get("sha256")):
        return False
    try:
        config = parse(train.StudyTrainConfig, flags, PRESETS_OF_TRAIN, prog="experiments study")
        is_init_gone = config.init is not None and finding.find(config.init) is None
        ours = train.known_by(config.replace(init=None) if is_init_gone else config)
    except (UserError, SystemExit):  # `train` says why
        return False
    return all(record.identity.get(name) == value for name, value in ours.items() if name != "init" or not is_init_gone)


def _hash_of(folder: Path) -> str | None:
    """The hash of games, as `LC_ALL=C sha256sum shard-*.parquet | sha256sum` prints it; None: `train` says why."""
    try:
        run = reader.open_run(folder)
        reader.verify([run])
    except UserError:
        return None
    lines = "".join(f"{shard.sha256}  {shard.name}\n" for shard in sorted(run.shards, key=lambda shard: shard.name))
    return hashlib.sha256(lines.encode()).hexdigest()


def _train(config: StudyConfig, plan: Plan, tier: Tier, name: str, seed: int) -> Ending:
    """Train a run to its end, or go on with it; left out where its games are missing or another process is at it."""
    settings, out = plan.runs[name], _run_folder(config, name, seed)
    folder = _folder(config, plan, settings.data)
    if not run_folder.result_of(folder):
        say(f"{name} left out: {folder} holds no finished games")
        return "left out"
    flags = _flags(config, plan, tier, name, seed)
    games = _hash_of(folder)
    if games and _is_finished(out, flags, games):
        return "done"
    try:
        with run_folder.locked(out):  # the trainer takes it in a moment, and holds it where only this process is killed
            pass
    except UserError:
        say(f"{name} left out: another process trains in {out}")
        return "left out"
    if _command("experiments.study.train", flags):
        return "failed"
    run = reader.open_run(folder)
    write_json(out / RECORD, {"games": run.games, "rows": run.rows, "sha256": games})
    return "done"


def _run_folder(config: StudyConfig, name: str, seed: int) -> Path:
    return _out(config) / f"tier{config.tier}" / f"{name}-seed{seed}"


def _command(module: str, flags: Sequence[str]) -> int:
    """Run another command to its end and return its exit code; interrupted, so is it."""
    say(f"$ {shlex.join(['python', '-m', module, *flags])}")
    # A session of its own: Ctrl-C reaches this process alone, which hands it on below, once.
    child = subprocess.Popen([sys.executable, "-m", module, *flags], start_new_session=True)
    try:
        return child.wait()
    except BaseException:
        child.terminate()
        child.wait()
        raise


# The report -----------------------------------------------------------------------------------------------------------


def _report(config: StudyConfig, plan: Plan, tier: Tier, page: Path) -> str:
    boards = benchmark.read(half=config.half)
    if config.boards:
        boards = grading.sample(boards, config.boards, 0)
    names = tier.runs or tuple(plan.runs)
    finished: dict[str, list[int]] = {}
    for name in names:
        games = _hash_of(_folder(config, plan, plan.runs[name].data))
        for seed in tier.seeds:
            flags = _flags(config, plan, tier, name, seed)
            if _is_finished(_run_folder(config, name, seed), flags, games):
                finished.setdefault(name, []).append(seed)
    if not finished:
        raise UserError(f"{_out(config)}: no finished run of tier {config.tier} to report on")
    grades: dict[str, dict[int, graded.Grades]] = {}
    split = VALIDATION if plan.rows in plans.trained_on(plan) else None
    rows = reader.raw_rows([_folder(config, plan, plan.rows)], split, FRACTION) if plan.rows else None
    for name, seeds in finished.items():
        say(f"grading {name}")
        files = {seed: _run_folder(config, name, seed) / tier.network for seed in seeds}
        grades[name] = {seed: _grades_of_run(config, boards, rows, file) for seed, file in files.items()}
    results = [_result(config, plan, boards, name, grades) for name in finished]
    lines = [_line(config, boards, word) for word in plan.players]
    labelled = {
        data: _quality(config, plan, data)
        for data in dict.fromkeys(plan.runs[name].data for name in finished)
        if plan.labels and run_folder.result_of(_folder(config, plan, data))
    }
    main = boards.sets[0]
    graded_on = (
        f"{int((boards.set == main).sum()):,} boards of the set {main}, {config.half} half, as stored and mirrored"
    )
    if rows is not None:
        games = "games" if split is None else "validation games"
        graded_on += f", and `top1` on {len(rows):,} rows of {games} of `{plan.rows}`"
    histories = (
        {name: pd.read_csv(_run_folder(config, name, seeds[0]) / "history.csv") for name, seeds in finished.items()}
        if plan.over_time
        else {}
    )
    usual = StudyConfig()
    given = {name: getattr(config, name) for name in ("recipe", "tier", "half", "boards", "page")}
    changed = [f"--{name} {value}" for name, value in given.items() if name == "tier" or value != getattr(usual, name)]
    pages.write(page, plan, str(config.tier), graded_on, results, lines, labelled, histories, " ".join(changed))
    print("\n\n".join(filter(None, (graded.markdown(results, lines), graded.labels(labelled)))), end="\n\n")
    best = max(results, key=lambda result: result.shares["optimal"].mean)
    optimal = 100 * best.shares["optimal"].mean
    return f"{page}: {len(results)} of {len(names)} runs, {best.name} is best with {optimal:.1f} % optimal on {main}"


def _grades_of_run(
    config: StudyConfig, boards: benchmark.GradedBoards, rows: reader.RawRows | None, network: Path
) -> graded.Grades:
    key = f"{file_hash(network)} {_digest(boards.current, boards.mask, boards.scores)}"
    if rows is not None:
        key += f" {_digest(rows.current, rows.mask, rows.label)}"
    file = network.with_name(f"grades-{_which_boards(config)}.npz")
    return graded.grade(lambda: _network(network), boards, 0, file, key, rows)


def _which_boards(config: StudyConfig) -> str:
    """A part of file names, so that grades on a few boards do not replace those on all."""
    return f"{config.half}-{config.boards or 'all'}"


def _quality(config: StudyConfig, plan: Plan, data: str) -> dict[str, Estimate]:
    """What the solver says of a sample of the labels of a data set; it is asked once about the same rows."""
    rows = labels.sample(reader.raw_rows([_folder(config, plan, data)]), plan.labels, 0)
    file, key = _out(config) / "labels" / f"{data}.json", _digest(rows.game, rows.current, rows.mask, rows.label)
    if (stored := read_object(file)).get("key") != key:
        shares = labels.quality(rows, config.workers)
        stored = {"key": key, "shares": {name: dataclasses.asdict(share) for name, share in shares.items()}}
        write_json(file, stored)
    return {name: Estimate(**share) for name, share in stored["shares"].items()}


def _network(file: Path) -> player.Player:
    """A network of a run, which may be one of the study's shapes."""
    networks.start_backend()
    from experiments.study import shapes  # noqa: F401  their layers register themselves for loading

    return names.make(str(file))


def _line(config: StudyConfig, boards: benchmark.GradedBoards, word: str) -> graded.Line:
    file = _out(config) / "players" / f"{word.replace(':', '-')}-{_which_boards(config)}.npz"
    key = f"{' '.join(identity(word))} {_digest(boards.current, boards.mask, boards.scores)}"
    grades = graded.grade(lambda: names.make(word, config.workers), boards, 0, file, key)
    return graded.Line(name=word, shares=graded.shares(boards, grades))


def _digest(*arrays: NDArray[Any]) -> str:
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def _result(
    config: StudyConfig,
    plan: Plan,
    boards: benchmark.GradedBoards,
    name: str,
    grades: Mapping[str, Mapping[int, graded.Grades]],
) -> graded.Result:
    settings, ours = plan.runs[name], grades[name]
    theirs = grades.get(settings.against, {})
    common = sorted(set(ours) & set(theirs))
    against = settings.against or None
    if common and not len(common) == len(ours) == len(theirs):
        against = f"{against}, seed {' '.join(map(str, common))}"
    trained = [run_folder.result_of(_run_folder(config, name, seed)) for seed in ours]
    record = read_object(_run_folder(config, name, min(ours)) / RECORD)
    facts = {key: record.get(key) for key in ("games", "rows")}
    facts |= {key: trained[0].get(key) for key in ("parameters", "training_boards", "epochs", "steps")}
    facts["best_step"] = " ".join(str(result.get("best_step")) for result in trained)
    if plan.over_time:  # of runs with one table and one target
        facts["validation_loss"] = trained[0].get("validation_loss")
    mean, shares = graded.mean([*ours.values()]), [graded.shares(boards, one) for one in ours.values()]
    by_seed = {metric: tuple(one[metric].mean for one in shares) for metric in shares[0] if metric != "outcome"}
    return graded.Result(
        name=name,
        change=settings.change,
        confounded=settings.confounded,
        against=against,
        facts=facts,
        shares=graded.shares(boards, mean),
        gaps=graded.gaps(
            boards, graded.mean([ours[seed] for seed in common]), graded.mean([theirs[seed] for seed in common])
        )
        if common
        else {},
        by_seed=by_seed,
        tactics=graded.tactics(boards, mean),
    )


main = cli.Command("experiments study", StudyConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
