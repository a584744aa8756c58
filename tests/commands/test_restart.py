"""Commands and the folders that they write.

Each command refuses a folder of another kind, files of others and a folder that another process is writing, in one
line, with --restart as without it. --restart deletes nothing before every other argument is checked.
"""

import importlib
import shutil
from pathlib import Path

import pytest
from helpers import held, make_games, state, write_games
from selfplay_helpers import tiny

from distill import train
from distill.__main__ import COMMANDS as STAGES
from distill.alphazero import run_files
from distill.common import UserError, cluster, provenance, run_folder
from distill.games import schema

COMMANDS = {stage: importlib.import_module(f"distill.{stage}").main for stage in STAGES}
TINY_PLAY = ["--games-only", "--games", "2", "--simulations", "2", "--set", "shard_games=1", "--workers", "1"]
NETWORK = ["--init", "ROOT/net.keras"]
NETWORKS = [["--init", "ROOT/nope"], ["--init", "ROOT/damaged.keras"]]
NO_CLUSTER = [["--cluster", "tcp://127.0.0.1:1"]]
CASES: dict[str, tuple[str, str, list[str], list[list[str]]]] = {
    # command with --restart: the kind that it writes, its flags, and flags with which it must leave the run as it is
    "generate": ("generate", schema.GAMES, ["--games", "4", "--simulations", "20", "--workers", "1"], NO_CLUSTER),
    "train": (
        "train", train.KIND, ["--data", "ROOT/random", "--prepared", "ROOT/tables", "--exclude"],
        [["--data", "ROOT/nope"], NETWORK, *NETWORKS],
    ),
    "selfplay": (
        "selfplay", run_files.KIND, NETWORK,
        [["--preset", "hour", "--init", "none", "--repeat", "ROOT/nope"], *NETWORKS, *NO_CLUSTER],
    ),
    "games-only": ("selfplay", schema.GAMES, [*TINY_PLAY, *NETWORK], [*NETWORKS, *NO_CLUSTER]),
    "walk": ("walk", "walk against all replies", ["random", "--replies", "all", "--most-stones", "2"], []),
}  # fmt: skip
OTHERS = ("games", "training run", "self-play run", "REINFORCE run", "evaluation", "prepared tables", "packed boards")
ALL_IDS = [(name, bad) for name, case in CASES.items() for bad in case[3]]


def record(out: Path, *files: str, kind: str) -> None:
    """A finished run of a kind, with these files."""
    with run_folder.opened(out, kind, {"seed": 1}, settings={}, files=files) as folder:
        folder.begin()
        for name in files:
            (out / name).write_text("ours")
        folder.finish({"loss": 1})


def main(stage: str, *words: object) -> int:
    return int(COMMANDS[stage]([*map(str, words)]))


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """What the commands are to work on: games, tables, networks, and documents."""
    root = tmp_path_factory.mktemp("given")
    write_games(root / "random", make_games(20, seed=1))
    assert main("prepare", "--data", root / "random", "--out", root / "tables", "--exclude") == 0
    tiny().save(root / "net.keras")
    (root / "damaged.keras").write_bytes((root / "net.keras").read_bytes()[:999])
    return root


def command(name: str, root: Path, out: Path, *more: str) -> list[str]:
    stage, _, flags, _ = CASES[name]
    return [stage, *(word.replace("ROOT", str(root)) for word in (*flags, *more)), "--out", str(out)]


@pytest.fixture
def refusal(capsys):
    """The one line with which a command fails; before it may come progress."""

    def refusal(*words: str) -> str:
        capsys.readouterr()
        assert main(*words) == 1
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("distill ")]
        return line

    return refusal


def test_every_command_with_restart_is_tried_here():
    restarting = {stage for stage, main in COMMANDS.items() if "restart" in main.config_class.model_fields}
    assert {case[0] for case in CASES.values()} == restarting - {"prepare"}


@pytest.mark.parametrize("more", [["--restart"], []], ids=["restart", "start"])
@pytest.mark.parametrize("name", CASES)
def test_no_command_writes_over_runs_of_another_kind_and_files_of_others(name, more, given, tmp_path, refusal):
    out, kind = tmp_path / "out", CASES[name][1]
    for other in {*OTHERS} - {kind}:
        record(out, "best.keras", "shard-00000.parquet", kind=other)
        before = state(out)
        assert f"{out}: holds {other}, not {kind}" in refusal(*command(name, given, out, *more))
        assert state(out) == before
        shutil.rmtree(out)
    out.mkdir()
    for file in ("best.keras", "shard-00000.parquet", "moves-02.npy"):
        (out / file).write_text("mine")
    assert f"{out}: holds files that no run recorded" in refusal(*command(name, given, out, *more))
    assert state(out).keys() == {"best.keras", "shard-00000.parquet", "moves-02.npy"}


@pytest.mark.parametrize(("name", "bad"), ALL_IDS)
def test_a_bad_argument_beside_restart_leaves_the_old_run_whole(name, bad, given, tmp_path, monkeypatch, refusal):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    record(tmp_path / "out", "best.keras", "shard-00000.parquet", kind=CASES[name][1])
    before = state(tmp_path / "out")
    refusal(*command(name, given, tmp_path / "out", *bad, "--restart"))
    assert state(tmp_path / "out") == before


@pytest.mark.parametrize("name", ["train", "selfplay"])
def test_a_run_is_not_resumed_under_another_keras_backend(name, given, tmp_path, monkeypatch, refusal):
    out, begin = tmp_path / "out", run_folder.Run.begin
    words = command(name, given, out, *(["--arch", "mk4"] if name == "train" else []))

    def begin_alone(folder: run_folder.Run) -> None:
        begin(folder)
        raise UserError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(run_folder.Run, "begin", begin_alone)
        assert main(*words) == 1
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    before = state(out)
    assert "other settings (backend tensorflow there, jax here)" in refusal(*words)
    assert state(out) == before


@pytest.mark.parametrize("name", ["train", "selfplay"])
def test_a_restart_does_not_delete_the_network_it_begins_from(name, given, tmp_path, refusal):
    out, pillar = tmp_path / "out", provenance.shipped("models/reference/pillar")
    record(out, "best.keras", kind=CASES[name][1])
    assert pillar
    shutil.copy(pillar / "best.keras", out)
    (tmp_path / "alias").symlink_to(out)
    before = state(out)
    arch = ["--arch", "pillar", "--value-target", "blend"] if name == "train" else []
    for init in (out, tmp_path / "alias" / "best.keras"):
        words = command(name, given, out, "--init", str(init), *arch, "--restart")
        assert "--restart would delete the initial network" in refusal(*words)
    assert state(out) == before


@pytest.mark.parametrize(
    ("line", "files", "message"),
    [
        ("evaluate random --preset smoke --out .", {"report.md": "mine"}, ".: holds files that no run recorded"),
        ("evaluate random --preset smoke --out .", {"_run.json": "{}"}, "_run.json: damaged"),
        (
            "export ROOT/net.keras --out .",
            {"saved_model/README.md": "mine"},
            "saved_model: holds files that no run recorded",
        ),
        ("export ROOT/net.keras --web page", {"page/index.html": "mine"}, "page: holds files that no run recorded"),
        ("prepare --data ROOT/random --packed .", {"shard-00000.parquet": "mine"}, ".: holds files that no run"),
    ],
)
def test_a_command_overwrites_nothing_of_others(line, files, message, given, tmp_path, monkeypatch, refusal):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(given)  # where `prepare` has its tables already
    before = state(tmp_path)
    assert message in refusal(*line.replace("ROOT", str(given)).split())
    assert before.items() <= state(tmp_path).items()


def test_what_another_process_writes_is_left_to_it(given, tmp_path, refusal):
    out = tmp_path / "out"
    commands = [command(name, given, out, *more) for name in CASES for more in ([], ["--restart"])]
    commands.append(["export", f"{given}/net.keras", "--web", str(out)])
    with held(out):
        before = state(out)
        for words in commands:
            assert f"{out}: another process is writing here" in refusal(*words)
        assert state(out) == before
