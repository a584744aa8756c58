"""The frame of every command.

* Every field of a config dataclass is a flag of its type, with its sentence and default in `--help`.
* Precedence: default < preset < config file < flag. What `as_json` stores, `--config` reads back as the same config.
* Wrong values exit 2 with one line that names the flag or the setting; nothing runs.
* Exit codes: 0 done, 1 data or environment, 2 a wrong flag, 130 Ctrl-C, 143 SIGTERM with the command that resumes.
* Progress is a plain line now and then where there is no terminal.
* In Python, NumPy's numbers, texts and paths do as settings; another kind of value is refused by its flag's name.
* A command works in a thread, twice in a process, with streams that are closed, replaced or no longer read.
* Memory that runs out is one line.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from distill import generate
from distill.__main__ import COMMANDS as STAGES
from distill.common import Progress, UserError, cli, duration
from distill.common.cli import check, setting
from distill.common.errors import Interrupted
from distill.games import runs


@dataclass(frozen=True, kw_only=True)
class Stage(cli.Settings):
    """A row of a table."""

    after: float = setting(0.0, "share of the run")
    root: Literal["puct", "gumbel"] = setting("puct", "selection at the root")
    simulations: int = setting(MISSING, "simulations")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.after <= 1, "after", self.after, "at most 1")


@dataclass(frozen=True, kw_only=True)
class Search(cli.Settings, group="search", shown=("votes",)):
    """Settings that commands share."""

    votes: int = setting(3, "searches of a position")
    noise: float = setting(0.25, "share of noise")


@dataclass(frozen=True, kw_only=True)
class Config(Search):
    """Settings of a stage made up for these tests."""

    games: int = setting(100, "games to play")
    rate: float = setting(0.5, "share, up to 100 %", group="learning")
    arch: Literal["cnn", "transformer"] = setting("cnn", "network")
    target: Literal["visits", "vote"] | None = setting(None, "what to learn")
    out: Path = setting(Path("data/games"), "folder")
    minutes: float | None = setting(None, "time limit, or none")
    savings: bool = setting(False, "stop early")
    openings: tuple[int, int] | tuple[tuple[int, int], ...] = setting((1, 8), "fewest and most random moves")
    rivals: tuple[str, ...] = setting(("random",), "players to meet", advanced=True)
    stages: tuple[Stage, ...] = cli.table((), "searches, in order")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.games > 0, "games", self.games, "positive")


PRESETS = {
    "smoke": cli.smoke(games=2, rate=0.25),
    "growing": cli.Preset("searches that grow", {"stages": ({"simulations": 16}, {"after": 0.5, "simulations": 64})}),
    "apart": cli.Preset(
        "a folder by arch and games",
        {"games": 3, "out": lambda settings: Path(f"{settings['arch']}-{settings['games']}")},
    ),
}


@pytest.fixture
def parse(tmp_path: Path):
    """Parses a line of words; a dict among them becomes `--config` with a file that holds it."""

    def parse(*words: Any) -> Config:
        line: list[str] = []
        for word in words:
            if isinstance(word, dict):
                path = tmp_path / "config.json"
                path.write_text(json.dumps(word), encoding="utf-8")
                line += ["--config", str(path)]
            else:
                line.append(word)
        return cli.parse(Config, line, PRESETS, prog="distill stage")

    return parse


@pytest.fixture
def complaint(parse, capsys: pytest.CaptureFixture[str]):
    """The one line that a wrong command line is answered with."""

    def complaint(*words: Any) -> str:
        with pytest.raises(SystemExit) as stop:
            parse(*words)
        assert stop.value.code == 2
        output = capsys.readouterr()
        assert output.out == ""
        (line,) = output.err.splitlines()
        assert line.startswith("distill stage: ")
        return line

    return complaint


WORDS = (
    *("--games", "7", "--rate", "2", "--arch", "transformer", "--target", "vote", "--out", "there", "--savings"),
    *("--minutes", "1.5", "--openings", "2", "4", "--rivals", "uct:100", "random"),
)
MEANT = {"games": 7, "rate": 2.0, "arch": "transformer", "target": "vote", "out": Path("there"), "savings": True}
MEANT |= {"minutes": 1.5, "openings": (2, 4), "rivals": ("uct:100", "random")}
FILE = {"minutes": 5, "target": "vote"}


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ([], {}),
        (WORDS, MEANT),
        (["--preset", "smoke"], {"games": 2, "rate": 0.25}),
        (["--preset", "smoke", {"games": 3, "arch": "transformer"}], {"games": 3, "rate": 0.25, "arch": "transformer"}),
        ([{"games": 3}, "--games", "4", "--preset", "smoke"], {"games": 4, "rate": 0.25}),
        ([{"savings": True}, "--no-savings"], {}),
        ([FILE], {"minutes": 5.0, "target": "vote"}),
        ([FILE, "--minutes", "none", "--target", "none"], {}),
        (["--rivals"], {"rivals": ()}),
        ([{"rivals": []}], {"rivals": ()}),
        ([{"openings": [[1, 2], [3, 4]]}], {"openings": ((1, 2), (3, 4))}),
        (["--preset", "apart"], {"games": 3, "out": Path("cnn-3")}),  # a setting that follows from others
        (
            ["--preset", "apart", {"arch": "transformer"}, "--games", "4"],
            {"games": 4, "arch": "transformer", "out": Path("transformer-4")},
        ),
        (["--preset", "growing"], {"stages": (Stage(simulations=16), Stage(after=0.5, simulations=64))}),
        ([{"stages": [{"root": "gumbel", "simulations": 8}]}], {"stages": (Stage(root="gumbel", simulations=8),)}),
        (["--preset", "apart", "--out", "here"], {"games": 3, "out": Path("here")}),
    ],
)
def test_a_preset_beats_the_default_a_file_the_preset_and_a_flag_the_file(parse, words: list[Any], settings):
    config = parse(*words)
    assert config == Config(**settings)
    assert [type(value) for value in vars(config).values()] == [
        type(value) for value in vars(Config(**settings)).values()
    ]


def test_a_stored_config_reads_back_as_itself(parse):
    words = ("--out", "a b", "--rivals", "x", "y", "--minutes", "3", "--target", "visits", "--preset", "growing")
    config = parse(*words)
    stored = json.loads(json.dumps(cli.as_json(config)))
    assert stored["stages"][1] == {"after": 0.5, "root": "puct", "simulations": 64}
    assert hash(config) == hash(parse(stored))
    assert stored["out"] == "a b"
    assert stored["rivals"] == ["x", "y"]
    assert parse(stored) == config
    assert parse(cli.as_json(Config())) == Config()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--games", "-5"], "--games -5 must be positive"),
        (["--games", "0"], "--games 0 must be positive"),
        (["--games", "1.5"], "argument --games: invalid whole number value: '1.5'"),
        (["--games", "none"], "argument --games: invalid whole number value: 'none'"),
        (["--games"], "argument --games: expected one argument"),
        (["--rate", "fast"], "argument --rate: invalid number value: 'fast'"),
        (["--rate", "nan"], "argument --rate: invalid number value: 'nan'"),
        (["--minutes", "inf"], "argument --minutes: invalid number value: 'inf'"),
        (["--rate", "1e999"], "argument --rate: invalid number value: '1e999'"),
        (["--arch", "mlp"], "--arch mlp must be one of cnn, transformer"),
        (["--target", "luck"], "--target luck must be one of visits, vote"),
        (["--openings", "1"], "argument --openings: expected 2 arguments"),
        (["--openings", "1", "x"], "argument --openings: invalid whole number value: 'x'"),
        (["--preset", "huge"], "argument --preset: invalid choice: 'huge'"),
        (["--game", "5"], "unrecognized arguments: --game 5"),
        (["5"], "unrecognized arguments: 5"),
        ([{"gmaes": 5, "arhc": 1}], "no such setting: arhc, gmaes"),
        ([{"games": "many"}], "--games many must be a whole number"),
        ([{"games": True}], "--games True must be a whole number"),
        ([{"games": 1.5}], "--games 1.5 must be a whole number"),
        ([{"games": None}], "--games None must be a whole number"),
        ([{"rate": "x"}], "--rate x must be a number"),
        ([{"rate": float("nan")}], "--rate nan must be a number"),
        ([{"minutes": float("-inf")}], "--minutes -inf must be a number"),
        ([{"arch": "mlp"}], "--arch mlp must be one of cnn, transformer"),
        ([{"savings": 1}], "--savings 1 must be true or false"),
        ([{"out": 3}], "--out 3 must be a path"),
        ([{"rivals": "random"}], "--rivals random must be a list"),
        ([{"openings": [1, "x"]}], "--openings [1, 'x'] must be a whole number"),
        ([{"openings": [1]}], "--openings [1] must be a list of 2"),
        ([{"rate": 10**400}], "000 must be a number"),
        ([{"games": -1}], "--games -1 must be positive"),
        ([{"stages": 3}], "--stages 3 must be a list"),
        ([{"stages": [3]}], "must be a list of rows with after, root, simulations"),
        ([{"stages": [{"simulations": "x"}]}], "simulations (simulations x must be a whole number)"),
        ([{"stages": [{"simulations": 1, "after": 2}]}], "simulations (after 2.0 must be at most 1)"),
        ([{"stages": [{"simulation": 1}]}], "unexpected keyword argument 'simulation'"),
        ([{"stages": [{"root": "puct"}]}], "'simulations')"),
        (["--stages", "3"], "unrecognized arguments: --stages 3"),
    ],
)
def test_a_wrong_value_is_named_in_one_line(complaint, words: list[Any], named: str):
    assert named in complaint(*words)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"{", "Expecting"),
        (b"[1]", "not a JSON object"),
        (b"\xff", "decode"),
        (None, "No such"),
        (b"[" * 100_000, "recursion"),
    ],
    ids=["half", "list", "bytes", "missing", "deep"],
)
def test_a_file_that_is_no_config_is_named(complaint, tmp_path: Path, content: bytes | None, named: str):
    path = tmp_path / "broken.json"
    if content is not None:
        path.write_bytes(content)
    line = complaint("--config", str(path))
    assert str(path) in line
    assert named in line


HELP = """\
usage: distill stage [flags]

Settings of a stage made up for these tests.

flags:
  --preset NAME           a set of values, listed below
  --games N               games to play [100]
  --arch {cnn,transformer}
                          network [cnn]
  --target {visits,vote}  what to learn
  --out PATH              folder [data/games]
  --minutes X             time limit, or none
  --[no-]savings          stop early [off]
  --openings N N          fewest and most random moves [1 8]
  --config PATH           a JSON file of values, as stored beside outputs
  --help, -h              show this
  --help-all              show 3 more settings

search:
  --votes N               searches of a position [3]

learning:
  --rate X                share, up to 100 % [0.5]

presets:
  smoke    a run of seconds, in data/smoke and models/smoke
  growing  searches that grow
  apart    a folder by arch and games
"""


def test_help_lists_the_flags_that_most_people_need_in_groups_and_the_presets(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.Command("stage", Config, lambda _config: "", PRESETS)(["--help"]) == 0
    assert capsys.readouterr().out == HELP


def test_help_all_lists_the_other_flags_and_the_columns_of_tables(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.Command("stage", Config, lambda _config: "", PRESETS)(["--help-all"]) == 0
    text = capsys.readouterr().out
    assert "--rivals [NAME ...]     players to meet [random]" in text
    assert "--noise X               share of noise [0.25]" in text
    assert "--help-all" not in text
    rows = '{"after": X, "root": {puct,gumbel}, "simulations": N}'
    assert f"as a list of objects:\n  stages  searches, in order: {rows}" in text.replace("\n          ", " ")


@dataclass(frozen=True, kw_only=True)
class Needy(cli.Settings):
    """Settings with a field that has no default."""

    model: Path = setting(MISSING, "the model")
    games: int = setting(1, "games")


def test_a_field_without_a_default_must_come_from_a_flag_or_from_the_file(tmp_path: Path, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.parse(Needy, ["--games", "2"], prog="distill stage")
    assert stop.value.code == 2
    assert capsys.readouterr().err == "distill stage: needs --model (--help lists the flags)\n"
    assert cli.parse(Needy, ["--model", "a"]) == Needy(model=Path("a"))
    file = tmp_path / "config.json"
    file.write_text('{"model": "b"}', encoding="utf-8")
    assert cli.parse(Needy, ["--config", str(file)]) == Needy(model=Path("b"))


@dataclass(frozen=True, kw_only=True)
class Words(cli.Settings):
    """Settings with words that need no flag."""

    models: tuple[Path, ...] = setting((), "models to read", positional=True)
    games: int = setting(1, "games")


def test_a_positional_field_takes_the_words_without_a_flag(tmp_path: Path):
    assert cli.parse(Words, ["a", "b", "--games", "3"]) == Words(models=(Path("a"), Path("b")), games=3)
    assert cli.parse(Words, []) == Words()
    file = tmp_path / "config.json"
    file.write_text('{"models": ["c"]}', encoding="utf-8")
    assert cli.parse(Words, ["--config", str(file)]) == Words(models=(Path("c"),))
    assert cli.parse(Words, ["d", "--config", str(file)]) == Words(models=(Path("d"),))


def run_main(run, *words: str) -> int:
    return cli.Command("stage", Config, run, PRESETS)(words)


def test_the_last_line_is_what_the_command_reports_and_the_exit_code_is_0(capsys: pytest.CaptureFixture[str]):
    assert run_main(lambda config: f"{config.games} games in {config.out}", "--games", "3") == 0
    assert capsys.readouterr().out == f"3 games in {Path('data/games')}\n"


def test_a_wrong_flag_exits_2_and_nothing_runs(capsys: pytest.CaptureFixture[str]):
    def run(_config: Config) -> str:
        raise AssertionError("must not run")

    assert run_main(run, "--games", "0") == 2
    assert capsys.readouterr().err == "distill stage: --games 0 must be positive (--help lists the flags)\n"


def test_a_users_mistake_and_a_failing_disk_exit_1_with_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    def mistaken(_config: Config) -> str:
        raise UserError("data/games: empty; generate some")

    assert run_main(mistaken) == 1
    assert capsys.readouterr().err == "distill stage: data/games: empty; generate some\n"
    missing = tmp_path / "gone"
    assert run_main(lambda _config: missing.read_text(encoding="utf-8")) == 1
    assert capsys.readouterr().err == f"distill stage: {missing}: No such file or directory\n"


def test_a_bug_is_not_hidden():
    def run(_config: Config) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_main(run)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_command_unwinds_and_says_how_to_go_on(number: int, code: int, capsys: pytest.CaptureFixture[str]):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    unwound = []

    def run(_config: Config) -> str:
        try:
            os.kill(os.getpid(), number)
            time.sleep(5)  # the handler raises here at the latest
        finally:
            unwound.append(True)
        return "not reached"

    assert run_main(run, "--out", "a b") == code
    assert unwound == [True]
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.strip() == (
        f"stopped by {signal.Signals(number).name}; to resume: python -m distill.stage --out 'a b'"
    )
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


ENDING = """
import os, signal, time
from dataclasses import MISSING, dataclass
from distill.common import cli

@dataclass(frozen=True, kw_only=True)
class Config(cli.Settings):
    pass

def run(config):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)  # the handler raises here at the latest

code = cli.Command("stage", Config, run)()
for number in (signal.SIGTERM, signal.SIGINT):  # while threads and libraries end
    os.kill(os.getpid(), number)
raise SystemExit(code)
"""


def test_a_process_that_is_stopped_ends_in_its_own_time_whatever_is_sent_again():
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, check=False)
    assert ended.returncode == 143
    assert ended.stderr == "\nstopped by SIGTERM; to resume: python -m distill.stage\n"


def test_what_a_file_asked_for_and_was_done_is_not_asked_for_again(capsys: pytest.CaptureFixture[str]):
    def run(_config: Config) -> str:
        cli.omit_when_resuming("--restart")
        raise Interrupted(signal.SIGINT)

    assert run_main(run, "--games", "3") == 130
    assert capsys.readouterr().err.strip().endswith("--games 3 --no-restart")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 05 min"),
        (float("inf"), "unknown time"),
        (float("nan"), "unknown time"),
    ],
)
def test_durations_read_as_people_say_them(seconds: float, words: str):
    assert duration(seconds) == words


@dataclass(frozen=True, kw_only=True)
class Typed(cli.Settings):
    """The same kinds of settings, for who makes a config in Python."""

    games: int = setting(100, "games")
    rate: float = setting(0.5, "share")
    arch: Literal["cnn", "transformer"] = setting("cnn", "network")
    out: Path | None = setting(None, "folder")
    place: str = setting("data", "folder or URL")
    savings: bool = setting(False, "stop early")
    openings: tuple[int, int] = setting((1, 8), "random moves")
    rivals: tuple[Path, ...] = setting((), "players")


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"games": np.int64(5)}, {"games": 5}),
        ({"rate": np.float64(0.25)}, {"rate": 0.25}),
        ({"rate": 1}, {"rate": 1.0}),
        ({"savings": np.bool_(True)}, {"savings": True}),
        ({"arch": np.str_("transformer")}, {"arch": "transformer"}),
        ({"out": "models/x"}, {"out": Path("models/x")}),
        ({"place": Path("models/x")}, {"place": str(Path("models/x"))}),
        ({"openings": [np.int32(2), 4]}, {"openings": (2, 4)}),
        ({"openings": np.array([2, 4])}, {"openings": (2, 4)}),
        ({"rivals": ["a", Path("b")]}, {"rivals": (Path("a"), Path("b"))}),
    ],
)
def test_a_config_made_in_python_is_the_one_that_flags_make(given: dict[str, Any], plain: dict[str, Any]):
    config, wanted = Typed(**given), Typed(**plain)
    assert config == wanted
    assert json.dumps(cli.as_json(config)) == json.dumps(cli.as_json(wanted))
    assert [type(value) for value in vars(config).values()] == [type(value) for value in vars(wanted).values()]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"games": "5"}, "--games 5 must be a whole number"),
        ({"games": 5.0}, "--games 5.0 must be a whole number"),
        ({"games": True}, "--games True must be a whole number"),
        ({"games": None}, "--games None must be a whole number"),
        ({"rate": "fast"}, "--rate fast must be a number"),
        ({"arch": "mlp"}, "--arch mlp must be one of cnn, transformer"),
        ({"out": 3}, "--out 3 must be a path"),
        ({"savings": 1}, "--savings 1 must be true or false"),
        ({"openings": (1,)}, "--openings (1,) must be a list of 2"),
        ({"rivals": "random"}, "--rivals random must be a list"),
    ],
)
def test_a_config_made_in_python_with_a_value_of_another_kind_is_refused(given: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Typed(**given)


def test_every_command_has_a_config_that_takes_values_of_python():
    for stage in STAGES:
        assert issubclass(importlib.import_module(f"distill.{stage}").main.config_class, cli.Settings), stage


def test_numpy_numbers_and_paths_leave_the_identity_of_a_run_as_it_is():
    given = generate.GenerateConfig(games=np.int64(5), simulations=np.int32(30), exploration=1, out=Path("x"))
    plain = generate.GenerateConfig(games=5, simulations=30, exploration=1.0, out="x")
    assert json.dumps(runs.identity(given)) == json.dumps(runs.identity(plain))


def test_a_config_file_may_begin_with_a_byte_order_mark(tmp_path: Path):
    file = tmp_path / "config.json"
    file.write_bytes(b'\xef\xbb\xbf{\r\n"games": 7\r\n}\r\n')
    assert cli.parse(Config, ["--config", str(file)]).games == 7


def test_a_command_works_in_a_thread_and_more_than_once(capsys: pytest.CaptureFixture[str]):
    with ThreadPoolExecutor(1) as thread:
        for _ in range(2):
            assert thread.submit(run_main, lambda config: f"{config.games} games").result() == 0
    assert capsys.readouterr().out == "100 games\n" * 2


def test_streams_of_other_kinds_will_do(monkeypatch: pytest.MonkeyPatch):
    """Notebooks and dashboards put objects of their own in place of the streams, or None."""

    class Written(list[str]):
        write = list.append

        def flush(self) -> None:
            pass

    def run(_config: Config) -> str:
        with Progress(1, "games") as progress:
            progress.advance(1)
        return "done"

    out, err = Written(), Written()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    assert run_main(run) == 0
    assert "".join(out) == "done\n"
    assert "".join(err).startswith("1/1 games")
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert run_main(run) == 0
    sys.stdout.close()
    sys.stderr.close()


class ResourceExhaustedError(Exception):
    """By its name, one of TensorFlow's."""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        ImportError("libx.so: cannot allocate memory in static TLS block"),
        ImportError("libx.so: failed to map segment from shared object"),
        ResourceExhaustedError("OOM when allocating tensor"),
    ],
)
def test_the_end_of_the_memory_is_one_line(error: Exception, capsys: pytest.CaptureFixture[str]):
    def run(_config: Config) -> str:
        raise error

    assert run_main(run) == 1
    line = capsys.readouterr().err
    assert line.startswith(f"distill stage: not enough memory ({type(error).__name__}: ")
    assert line.count("\n") == 1


PRINTS = """
import sys
from dataclasses import MISSING, dataclass
from distill.common import cli, say

@dataclass(frozen=True)
class Config(cli.Settings):
    "Settings of a stage made up for this test."

def run(config):
    say("news")
    sys.stderr.flush()
    return "result\\n" * 100_000

sys.exit(cli.Command("stage", Config, run)())
"""


@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("stage 2>&-", 0, "result\n" * 100_000 + "\n", ""),
        ("stage >&- <&-", 0, "", "news\n"),
        ("stage >&- 2>&- <&-", 0, "", ""),
        ("stage | head -1; exit ${PIPESTATUS[0]}", 141, "result\n", "news\n"),
        ("PYTHONUNBUFFERED=1 stage | head -1; exit ${PIPESTATUS[0]}", 141, "result\n", "news\n"),
        ("stage 2>&1 >/dev/null | true; exit ${PIPESTATUS[0]}", 141, "", ""),
        ("stage --help | true; exit ${PIPESTATUS[0]}", 141, "", ""),
        ("distill | true; exit ${PIPESTATUS[0]}", 141, "", ""),
        ("stage >/dev/full", 1, "", "news\ndistill stage: No space left on device\n"),
    ],
)
def test_closed_streams_and_broken_pipes_are_no_errors(line: str, code: int, out: str, err: str):
    # Wait a moment, so that the reader has closed the pipe before the command writes.
    define = f"stage() {{ sleep 0.2; {sys.executable} -c '{PRINTS}' \"$@\"; }}; "
    define += f"distill() {{ sleep 0.2; {sys.executable} -m distill; }}; "
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(["bash", "-c", define + line], env=buffered, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)
