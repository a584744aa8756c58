"""Nothing is deleted or overwritten before it is checked, and two processes never write in one folder.

* Every command with `--restart` refuses, in one line and with exit 1, a folder of another
  kind and a folder of documents; then nothing in it has changed by a bit, and nothing has been added.
* A bad argument beside `--restart` (data or network missing, damaged, of another kind) leaves the old run whole.
* Commands without `--restart` overwrite nothing that they have not written.
* A restart that is stopped between deleting and writing leaves a folder in which the same command resumes; the command
  that resumes has no `--restart`.
* While another process holds a folder, each writer is refused with one line; what only waits, waits.
"""

import dataclasses
import importlib
import json
import shutil
import signal
import threading
from pathlib import Path

import pytest
from helpers import SHIPPED, held, make_games, state, write_games
from selfplay_helpers import tiny

from distill import export, generate, prepare, selfplay
from distill.__main__ import COMMANDS as STAGES
from distill.common import Interrupted, UserError, cli, cluster, folders, provenance, write_json
from distill.games import shards
from distill.training import run_folder

TINY_GAMES = ["--games", "4", "--simulations", "20", "--votes", "1", "--shard-games", "2", "--workers", "1"]
TINY_PLAY = ["--games-only", "--games", "2", "--simulations", "2", "--shard-games", "1", "--workers", "1"]
TINY_WALK = ["random", "--replies", "all", "--most-stones", "2", "--workers", "1"]


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A folder of each kind, as the commands and the releases leave them, and one of documents."""
    root = tmp_path_factory.mktemp("there")
    assert generate.main([*TINY_GAMES, "--out", str(root / "teacher")]) == 0
    assert generate.main([*TINY_GAMES, "--games", "1", "--out", str(root / "one")]) == 0
    tiny().save(root / "net.keras")
    assert selfplay.main([*TINY_PLAY, "--init", str(root / "net.keras"), "--out", str(root / "network")]) == 0
    assert main("walk", *TINY_WALK, "--out", root / "walk") == 0
    write_games(root / "random", make_games(20, seed=1))
    assert prepare.main(["--data", str(root / "random"), "--out", str(root / "tables"), "--exclude"]) == 0
    shutil.copytree(shipped("models/reference/cnn"), root / "training", ignore=shutil.ignore_patterns("saved_model"))
    shutil.move(root / "training" / "evaluation", root / "evaluation")
    for kind, settings in SETTINGS.items():
        (root / kind / "iterations").mkdir(parents=True)
        for name in ("best.keras", "metrics.json", "iterations/1"):
            (root / kind / name).write_text("{}")
        write_json(root / kind / "config.json", folders.stored(KINDS[kind], settings))
        write_json(root / kind / "run.json", {"kind": KINDS[kind].name, "identity": cli.as_json(settings)})
    (root / "documents").mkdir()
    for name in ("notes.txt", "config.json", "metrics.json", "report.md", "best.keras", "shard-00000.parquet"):
        (root / "documents" / name).write_text('"mine"')
    (root / "network.damaged.keras").write_bytes((root / "net.keras").read_bytes()[:999])
    return root


def shipped(name: str) -> Path:
    found = provenance.shipped(name)
    assert found is not None
    return found


COMMANDS = {stage: importlib.import_module(f"distill.{stage}").main for stage in STAGES}
RESTARTING = {stage for stage, main in COMMANDS.items() if "restart" in main.config_class.__dataclass_fields__}
SETTINGS = {"loop": COMMANDS["selfplay"].config_class(), "reinforce": COMMANDS["reinforce"].config_class()}
KINDS = {
    "teacher": folders.GAMES,
    "network": folders.NETWORK_GAMES,
    "training": folders.TRAINING,
    "loop": folders.SELFPLAY,
    "reinforce": folders.REINFORCE,
    "evaluation": folders.EVALUATION,
    "walk": folders.WALK,
}


def main(stage: str, *words: object) -> int:
    return int(COMMANDS[stage]([*map(str, words)]))


def one_line(capsys: pytest.CaptureFixture[str], message: str) -> None:
    """The command's own line is one, and says this; before it may come progress and news."""
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("distill ", "experiments "))]
    assert len(lines) == 1
    assert message in lines[0]


@dataclasses.dataclass(frozen=True)
class Restart:
    """A command with `--restart`: its flags beside `--out` (ROOT is the folder of `there`), and what it works on."""

    stage: str
    flags: list[str]
    own: str
    bad: list[list[str]]
    """Flags with which it must be refused, and leave its own run as it is."""


NETWORKS = [["--init", "ROOT/nope"], ["--init", "ROOT/network.damaged.keras"]]
NO_CLUSTER = [["--cluster", "tcp://127.0.0.1:1"]]
CASES = {
    "generate": Restart("generate", TINY_GAMES, "teacher", NO_CLUSTER),
    "prepare": Restart("prepare", ["--data", "ROOT/random", "--exclude"], "tables", [["--data", "ROOT/nope"]]),
    "train": Restart(
        "train",
        ["--data", "ROOT/random", "--prepared", "ROOT/tables", "--exclude", "--arch", "cnn"],
        "training",
        [["--data", "ROOT/nope"], ["--data", "ROOT/one"], ["--init", "ROOT/net.keras"], *NETWORKS],
    ),
    "selfplay": Restart(
        "selfplay",
        ["--init", "ROOT/net.keras"],
        "loop",
        [["--preset", "hour", "--init", "none", "--plan", "ROOT/nope"], *NETWORKS, *NO_CLUSTER],
    ),
    "selfplay --games-only": Restart(
        "selfplay", [*TINY_PLAY, "--init", "ROOT/net.keras"], "network", [*NETWORKS, *NO_CLUSTER]
    ),
    "reinforce": Restart("reinforce", ["--init", "ROOT/net.keras"], "reinforce", NETWORKS),
    "walk": Restart("walk", TINY_WALK, "walk", []),  # its player is no flag: test_walk
}


def flags(case: Restart, root: Path, out: Path, more: list[str]) -> list[str]:
    return [word.replace("ROOT", str(root)) for word in [*case.flags, *more, "--out", str(out)]]


def test_every_command_with_restart_is_tried_here():
    assert {case.stage for case in CASES.values()} == RESTARTING


FOREIGN = [
    (name, kind)
    for name, case in CASES.items()
    for kind in (*KINDS, "tables", "documents")
    if name != "prepare" and kind != case.own
]


@pytest.mark.parametrize(("name", "kind"), FOREIGN)
@pytest.mark.parametrize("restart", [["--restart"], []], ids=["restart", "begin"])
def test_a_folder_of_another_kind_is_refused_and_stays_as_it_is(name, kind, restart, there, tmp_path, capsys):
    case, out = CASES[name], tmp_path / "out"
    shutil.copytree(there / kind, out)
    if kind == "tables":
        [out] = out.glob("[0-9a-f]*")
    before = state(out)
    assert main(case.stage, *flags(case, there, out, restart)) == 1
    one_line(capsys, f"{out}: holds ")
    assert state(out) == before


@pytest.mark.parametrize(("name", "bad"), [(name, bad) for name, case in CASES.items() for bad in case.bad])
def test_a_bad_argument_beside_restart_leaves_the_old_run_whole(name, bad, there, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    case, out = CASES[name], tmp_path / "out"
    shutil.copytree(there / case.own, out)
    before = state(out)
    assert main(case.stage, *flags(case, there, out, [*bad, "--restart"])) == 1
    one_line(capsys, "")
    assert state(out) == before


@pytest.mark.parametrize("stage", ["train", "selfplay", "reinforce"])
def test_a_restart_does_not_delete_the_network_it_begins_from(stage, there, tmp_path, capsys):
    out = tmp_path / "out"
    shutil.copytree(there / CASES[stage].own, out)
    shutil.copy(shipped("models/reference/pillar") / "best.keras", out)
    before = state(out)
    arch = ["--arch", "pillar-lines", "--value-target", "blend"] if stage == "train" else []
    assert main(stage, *flags(CASES[stage], there, out, ["--init", str(out), *arch, "--restart"])) == 1
    one_line(capsys, "--restart would delete the initial network")
    assert state(out) == before


@pytest.mark.parametrize("linked", ["best.keras", "iterations/0001/candidate.keras"])
def test_nor_by_a_link_or_deeper_in_the_folder(linked, tmp_path):
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    for file in (out / linked, elsewhere / "best.keras"):
        file.parent.mkdir(parents=True)
        file.touch()
    (elsewhere / "link.keras").symlink_to(out / linked)
    (out / "last.keras").symlink_to(elsewhere / "best.keras")
    (tmp_path / "alias").symlink_to(out)

    def claim(init: Path) -> None:
        config = cli.parse(selfplay.SelfPlayConfig, ["--init", str(init), "--restart"])
        run_folder.claim(out, folders.SELFPLAY, ("iterations", "best.keras", "last.keras"), config, (), {})

    for init in (out / linked, elsewhere / "link.keras", tmp_path / "alias" / linked, out / "last.keras"):
        with pytest.raises(UserError, match="--restart would delete the initial network"):
            claim(init)
    claim(elsewhere / "best.keras")


@pytest.mark.parametrize("name", CASES)
def test_what_systems_put_into_folders_is_in_nobodys_way(name, there, tmp_path):
    case, out, volume = CASES[name], tmp_path / "out", tmp_path / "volume"
    shutil.copytree(there / case.own, out)
    places = [volume, *(out.glob("[0-9a-f]" * 16) if name == "prepare" else [out])]
    names = ("lost+found/0001", ".DS_Store", "Thumbs.db", ".gitkeep", ".ipynb_checkpoints/notes.ipynb")
    for file in (place / each for place in places for each in names):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    litter = state(volume)
    kind = folders.TABLES if name == "prepare" else KINDS[case.own]
    for place in places:
        folders.require(place, kind, own=("lost+found",), restart=True)
    if name in ("generate", "prepare", "selfplay --games-only"):  # the others would train
        assert main(case.stage, *flags(case, there, out, ["--restart"])) == 0
        assert main(case.stage, *flags(case, there, volume, [])) == 0  # there was no run in it
    assert all(litter.items() <= state(place).items() for place in places)


def test_prepare_makes_only_its_own_folder_anew_among_documents(there, tmp_path, capsys):
    out = tmp_path / "out"
    shutil.copytree(there / "documents", out)
    (out / ".browser.partial").mkdir()
    before = state(out)
    case = CASES["prepare"]
    for _ in range(2):
        assert main("prepare", *flags(case, there, out, ["--restart"])) == 0
        assert before.items() <= state(out).items()
    [tables] = out.glob("[0-9a-f]" * 16)
    (tables / "notes.txt").write_text("mine")
    before = state(out)
    assert main("prepare", *flags(case, there, out, ["--restart"])) == 1
    one_line(capsys, "holds files that are no prepared tables")
    assert state(out) == before


def test_each_folder_is_known_as_one_kind_and_so_is_what_ships(there):
    assert {name: folders.kind_of(there / name) for name in KINDS} == KINDS
    assert {model.name for model in shipped("models/reference").iterdir()} == {*SHIPPED}
    for name in SHIPPED:
        model = shipped("models/reference") / name
        folders.require(model, folders.TRAINING, own=(), restart=True)
        folders.require(model / "evaluation", folders.EVALUATION, own=(), restart=True)
    shards.require(shipped("data/reference") / "validation", folders.GAMES)
    assert folders.kind_of(shipped("data/reference") / "labels-200") == folders.PACKED_BOARDS


# Commands without --restart -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "files", "message"),
    [
        ("evaluate random --preset smoke --out .", {"report.md": "mine"}, ".: holds "),
        ("arena random punisher --games 2 --out .", {"arena.json": "mine"}, ".: holds files that no run"),
        ("arena random punisher --games 2 --out ROOT/teacher", {}, "teacher: holds games of the teacher"),
        ("export ROOT/net.keras --out .", {"saved_model/saved_model.pb": "mine"}, "saved_model: was not written"),
        ("export ROOT/net.keras --web page", {"page/model.json": "{}"}, "page: was not written by this program"),
        ("export best.keras last.keras", {"best.keras": None, "last.keras": None}, "two networks of one folder"),
        ("prepare --data ROOT/random --packed .", {"shard-00000.parquet": "mine"}, ".: holds files that no run of"),
        ("generate --games 4 --out .", {"config.json": '{"theme": "dark"}'}, ".: holds "),
        ("generate --games 4 --out .", {"manifest.json": '{"icons": []}'}, ".: holds "),
    ],
)
def test_a_command_overwrites_nothing_of_others(line, files, message, there, tmp_path, monkeypatch, capsys):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((there / "net.keras").read_bytes() if text is None else text.encode())
    monkeypatch.chdir(tmp_path)
    before = state(tmp_path)
    assert main(*line.replace("ROOT", str(there)).split()) == 1
    one_line(capsys, message)
    assert state(tmp_path) == before


# Cut off between deleting and writing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["training", "loop", "reinforce"])
def test_a_restart_that_is_cut_off_leaves_an_unfinished_run_of_its_kind(kind, there, tmp_path, monkeypatch):
    out = tmp_path / "out"
    shutil.copytree(there / kind, out)
    stored = json.loads((out / "run.json").read_text())["identity"]
    claim = run_folder.Claim(
        out=out,
        kind=KINDS[kind],
        own=("metrics.json", "iterations", "best.keras"),
        settings={},
        identity=stored | {"seed": 99},
        restart=True,
    )
    claim.check()
    with monkeypatch.context() as patched:
        patched.setattr(run_folder, "write_json", interrupt)
        with pytest.raises(Interrupted):
            claim.begin()
    assert not (out / "metrics.json").exists()
    assert not (out / "best.keras").exists()
    assert not (out / "iterations").exists()
    resumed = dataclasses.replace(claim, restart=False)
    resumed.check()
    resumed.begin()
    resumed.check()
    with pytest.raises(UserError, match="seed: 99 → 0"):
        dataclasses.replace(resumed, identity=stored).check()


def interrupt(*_: object, **__: object) -> None:
    raise Interrupted(signal.SIGTERM)


@pytest.mark.parametrize("name", ["generate", "selfplay --games-only"])
def test_a_restart_that_is_stopped_is_resumed_without_restart(name, there, tmp_path, monkeypatch, capsys):
    case, out = CASES[name], tmp_path / "out"
    shutil.copytree(there / case.own, out)
    expected = {path.name: state(out)[path.name] for path in out.glob("shard-*")}
    with monkeypatch.context() as patched:
        patched.setattr(shards, "plan", interrupt)
        assert main(case.stage, *flags(case, there, out, ["--restart"])) == 143
    assert "--restart" not in capsys.readouterr().err.rpartition(": python -m")[2]
    assert not list(out.glob("shard-*"))
    assert main(case.stage, *flags(case, there, out, [])) == 0
    assert expected.items() <= state(out).items()


# Two at once ----------------------------------------------------------------------------------------------------------


def test_what_another_process_writes_is_left_to_it(there, tmp_path, capsys):
    """By name: where the command writes, and its flags."""
    out, network = tmp_path / "out", str(there / "net.keras")
    with held(out):
        before = state(out)
        for case in CASES.values():
            if case.stage == "prepare":
                continue  # it waits
            for more in ([], ["--restart"]):
                assert main(case.stage, *flags(case, there, out, more)) == 1
                one_line(capsys, f"{out}: another process is writing here")
        for words in (["export", network], ["arena", "random", "punisher", "--games", "2"]):
            assert main(*words, "--out", out) == 1
            one_line(capsys, f"{out}: another process is writing here")
        assert state(out) == before
    with held(tmp_path / ".site.lock"):
        assert export.main([network, "--web", str(tmp_path / "site")]) == 1
        one_line(capsys, ".site.lock: another process is writing here")


def test_a_reader_needs_no_lock(there, tmp_path):
    out = tmp_path / "games"
    shutil.copytree(there / "teacher", out)
    with held(out):
        assert main("inspect", out, "--labels", "0") == 0


@pytest.mark.parametrize("stage", ["prepare", "evaluate"])
def test_who_writes_for_a_moment_waits_for_its_turn(stage, there, tmp_path, undrawn):
    out = tmp_path / "out"
    words = {"prepare": ["--data", str(there / "random"), "--exclude"], "evaluate": ["random", "--boards", "5"]}[stage]
    ended = []
    place = out
    if stage == "prepare":
        first = tmp_path / "first"
        assert main(stage, *words, "--out", first) == 0
        [tables] = first.iterdir()
        place = out / tables.name
    with held(place) as process:
        work = threading.Thread(target=lambda: ended.append(main(stage, *words, "--out", out)))
        work.start()
        work.join(3)
        assert work.is_alive()
        assert not ended
        process.kill()
        work.join(120)
    assert ended == [0]
