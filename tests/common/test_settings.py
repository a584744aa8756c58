"""Settings from flags, files and Python. Properties:

- precedence: default < preset < config file < `--set` < flag; what `as_json` stores, `--config` reads back as the same;
- a wrong value is one line that names its flag or its path, and exit 2; from Python it is a ValueError of one line;
- `--help` lists the flags by topic at 80 columns, and presets, examples and the page; `--show-config` prints the rest.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from pydantic import Field, model_validator

from distill.common import command_line, settings
from distill.common.command_line import Preset, smoke
from distill.common.settings import CommandLine, Settings


class Stage(Settings):
    """A row of a list."""

    after: float = Field(0.0, le=1)
    """share of the run"""
    simulations: int


class Net(Settings, extra="allow"):
    """A network: its name, and any arguments."""

    name: str = "cnn"
    """architecture"""


class Search(Settings):
    """How a position is searched."""

    votes: int = Field(3, ge=1)
    """searches of a position"""
    noise: float | None = Field(0.25, ge=0, le=1)
    """share of noise"""
    stages: tuple[Stage, ...] = ()
    """searches, in order"""


class Config(Settings):
    """Settings of a command for these tests."""

    command_line: ClassVar[CommandLine] = CommandLine(
        words="models",
        flags=(
            *("games", "rate", "arch", "target", "out", "minutes", "savings", "export", "openings", "rivals"),
            "search.votes",
        ),
        examples=("a --games 3",),
        page="docs/train.md",
    )
    models: tuple[settings.NameOrPath, ...] = Field((), title="MODEL ...")
    """models to read"""
    games: int = Field(100, ge=1)
    """games to play"""
    rate: float = 0.5
    """share, up to 100 %"""
    arch: Net = Field(Net(), title="NETWORK")
    """network"""
    target: Literal["visits", "vote"] | None = None
    """what to learn"""
    out: Path = Path("data/games")
    """folder"""
    minutes: float | None = Field(None, gt=0)
    """time limit"""
    savings: bool = False
    """stop early"""
    export: bool = True
    """write the model"""
    openings: tuple[int, int] | tuple[tuple[int, int], ...] = (1, 8)
    """fewest and most moves"""
    rivals: tuple[str, ...] = Field(("random",), title="PLAYER")
    """players to meet"""
    search: Search = Search(votes=4)

    @model_validator(mode="after")
    def _check(self) -> "Config":
        if self.savings and self.minutes is None:
            raise ValueError("--savings needs --minutes")
        return self


PRESETS = {
    **smoke(games=2, rate=0.25, votes=1),
    "growing": Preset("searches that grow", {"search": {"stages": [{"simulations": 16}]}}),
    "apart": Preset("a folder by arch", {"games": 3, "out": lambda config: Path(f"{config.arch.name}-nets")}),
}


@pytest.fixture
def parse(tmp_path):
    """Parses words; a dict among them becomes `--config` with a file that holds it."""

    def parse(*words: Any) -> Config:
        line: list[str] = []
        for word in words:
            if isinstance(word, dict):
                (tmp_path / "config.json").write_text(json.dumps(word), encoding="utf-8")
                word = f"--config={tmp_path / 'config.json'}"
            line.append(word)
        return command_line.parse(Config, line, PRESETS, prog="distill stage")

    return parse


WORDS = shlex.split(
    "a b --games 7 --rate 2 --arch transformer --target vote --out there --savings --no-export --minutes 1.5 "
    "--openings 2 4 --rivals uct:100 random --votes 5"
)
MEANT = {"games": 7, "rate": 2.0, "arch": "transformer", "target": "vote", "out": Path("there"), "savings": True}
MEANT |= {"export": False, "minutes": 1.5, "openings": (2, 4), "rivals": ("uct:100", "random"), "models": ("a", "b")}
MEANT |= {"votes": 5}
FILE = {"minutes": 5, "target": "vote", "models": ["c"], "search": {"votes": 6}}


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ([], {}),
        (WORDS, MEANT),
        (["--preset", "smoke", {"games": 3, "arch": "mk4"}], {"games": 3, "rate": 0.25, "votes": 1, "arch": "mk4"}),
        ([{"search": {"noise": 1}}, "--set", "search.votes=2", "--preset", "smoke"],
         {"games": 2, "rate": 0.25, "search": {"votes": 2, "noise": 1.0}}),
        (["--set", "search.votes=2", "--votes", "9"], {"search.votes": 9}),
        (["d", FILE], FILE | {"models": ["d"]}),
        ([FILE, "--minutes", "none", "--target", "none"], FILE | {"minutes": None, "target": None}),
        ([{"settings": FILE, "kind": "games"}], FILE),
        (["--rivals"], {"rivals": ()}),
        (["--set", "search.noise=none"], {"search": {"noise": None}}),
        (["--set", "openings=[[1,2],[3,4]]"], {"openings": ((1, 2), (3, 4))}),
        (["--preset", "apart", "--arch", "mk4"], {"games": 3, "arch": "mk4", "out": Path("mk4-nets")}),
        (["--preset", "apart", "--out", "here"], {"games": 3, "out": Path("here")}),
        (["--preset", "growing"], {"search": Search(votes=4, stages=(Stage(simulations=16),))}),
        (["--set", 'arch={"name": "mk4", "layers": 8}'], {"arch": {"name": "mk4", "layers": 8}}),
        (["--arch", "mk4", "--set", "arch.layers=8"], {"arch": {"name": "mk4", "layers": 8}}),
        (["--set", 'search.stages=[{"simulations": 8}]'], {"search": {"stages": ({"simulations": 8},)}}),
    ],
)  # fmt: skip
def test_a_preset_beats_the_default_a_file_the_preset_a_path_the_file_and_a_flag_the_path(parse, words, values):
    parsed, built = parse(*words), settings.build(Config, values)
    assert parsed == built
    assert repr(parsed) == repr(built)  # types, too


def test_stored_settings_read_back_as_themselves(parse):
    config = parse(*WORDS, "--preset", "growing", "--set", "arch.layers=8")
    stored = json.loads(json.dumps(settings.as_json(config)))
    assert stored["search"] == {"votes": 5, "noise": 0.25, "stages": [{"after": 0.0, "simulations": 16}]}
    assert stored["arch"] == {"name": "transformer", "layers": 8}
    assert (parse(stored), hash(parse(stored))) == (config, hash(config))


def test_python_takes_numbers_of_numpy_paths_and_lists():
    given = {"games": np.int64(5), "rate": np.float64(0.25), "out": "models/x", "models": ["a", Path("b")]}
    plain = {"games": 5, "rate": 0.25, "out": Path("models/x"), "models": ("a", "./b")}
    assert repr(Config(**given)) == repr(Config(**plain))


WRONG: list[tuple[Any, str]] = [
    ({"games": -5}, "--games -5 must be greater than or equal to 1"),
    ({"games": "many"}, "--games many must be a valid integer"),
    ({"rate": "nan"}, "--rate nan must be a finite number"),
    ({"out": "s3://bucket/games"}, "--out s3://bucket/games must be a path on this machine, not a URL"),
    ({"target": "both"}, "--target both must be 'visits' or 'vote'"),
    ({"rivals": "random"}, "--rivals random must be a valid list"),
    ({"search": {"noise": 2}}, "--set search.noise 2 must be less than or equal to 1"),
    ({"search": {"stages": [{"after": 2, "simulations": 1}]}}, "--set search.stages 2 must be less than or equal to"),
    ({"search": {"stages": [{"after": 0.5}]}}, "--set search.stages: simulations is missing"),
    ({"votes": 0}, "--votes 0 must be greater than or equal to 1"),
    ({"search": {"vote": 1}}, "no setting search.vote; --show-config prints all settings"),
    ({"gmaes": 5}, "no setting gmaes; --show-config prints all settings"),
    ({"savings": True}, "--savings needs --minutes"),
    (["--games"], "argument --games: expected one argument"),
    (["--preset", "huge"], "argument --preset: invalid choice: 'huge'"),
    (["--game", "5"], "unrecognized arguments: --game"),
    (["--set", "search=1"], "search 1: must be an object of settings"),
    (["--set", "search.noise=x"], "--set search.noise x must be a valid number"),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_a_wrong_value_is_one_line_that_names_it(parse, capsys, words, message):
    if isinstance(words, dict):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}.*$"):
            settings.build(Config, words)
        words = [words]
    with pytest.raises(SystemExit, match="2"):
        parse(*words)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"distill stage: {message}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff", None, b"[" * 100_000])
def test_a_file_that_holds_no_settings_is_named(parse, capsys, tmp_path, content):
    path = tmp_path / "broken.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit):
        parse("--config", str(path))
    assert capsys.readouterr().err.startswith(f"distill stage: --config {path}: ")
    path.write_bytes(b'\xef\xbb\xbf{\r\n"games": 7\r\n}\r\n')  # as editors on Windows write it
    assert parse("--config", str(path)).games == 7


HELP = """\
usage: python -m distill.stage MODEL ... [flags]
arguments:
  MODEL ...               models to read
flags:
  --games N               games to play [100]
  --target {visits,vote}  what to learn
  --no-export             do not write the model
  --openings N N          fewest and most moves [1 8]
  --rivals [PLAYER ...]   players to meet [random]
search:
  --votes N               searches of a position [4]
presets:
  smoke    a test of seconds, on data/smoke and models/smoke
examples:
  python -m distill.stage a --games 3
documentation:
  docs/train.md
"""


def test_help_lists_the_flags_by_topic_and_show_config_prints_what_config_reads(parse, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="0"):
        parse("--help")
    lines = iter(capsys.readouterr().out.splitlines())
    assert [line for line in HELP.splitlines() if line not in lines] == [], "in this order"
    words = ("a", "--set", "search.noise=0")
    with pytest.raises(SystemExit, match="0"):
        parse(*words, "--show-config")
    assert parse(json.loads(capsys.readouterr().out)) == parse(*words)


class Outer(Settings):
    """Settings whose objects have other defaults than their classes."""

    config: Config = Config(games=7, search=Search(votes=9, noise=0.5))


@pytest.mark.parametrize("values", [{"config": {"search": {"noise": 0}}}, {"noise": 0}, {"config.search.noise": 0}])
def test_a_value_of_an_object_leaves_the_other_defaults_of_its_field(values):
    changed = settings.build(Outer, values)
    assert changed == Outer(config=Config(games=7, search=Search(votes=9, noise=0.0)))
    assert settings.default_of(Outer, "config.search.votes") == 9
