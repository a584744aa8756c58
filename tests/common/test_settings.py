"""Settings as flags, JSON and Python. Properties:

- precedence: default < preset < config file < flag; what `as_json` stores, `--config` reads back as the same config;
- a value has the same type from a flag, a file or Python, where NumPy's numbers, texts and paths will do;
- a wrong value is one line that names the flag, and exit 2;
- `--help` groups the flags that most people need, and lists the presets; `--help-all` lists the rest.
"""

import json
import re
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from distill.common import cli
from distill.common.cli import check, setting


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

    models: tuple[Path, ...] = setting((), "models to read", positional=True)
    games: int = setting(100, "games to play")
    rate: float = setting(0.5, "share, up to 100 %", group="learning")
    arch: Literal["cnn", "transformer"] = setting("cnn", "network")
    target: Literal["visits", "vote"] | None = setting(None, "what to learn")
    out: Path = setting(Path("data/games"), "folder")
    place: str = setting("data", "folder or URL")
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
    "apart": cli.Preset("a folder by arch", {"games": 3, "out": lambda settings: Path(f"{settings['arch']}-nets")}),
}


@pytest.fixture
def parse(tmp_path):
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


def same(one: Config, other: Config) -> None:
    assert one == other
    assert [type(value) for value in vars(one).values()] == [type(value) for value in vars(other).values()]
    assert json.dumps(cli.as_json(one)) == json.dumps(cli.as_json(other))


WORDS = (
    *("a", "b", "--games", "7", "--rate", "2", "--arch", "transformer", "--target", "vote", "--out", "there"),
    *("--savings", "--minutes", "1.5", "--openings", "2", "4", "--rivals", "uct:100", "random"),
)
MEANT = {"games": 7, "rate": 2.0, "arch": "transformer", "target": "vote", "out": Path("there"), "savings": True}
MEANT |= {"minutes": 1.5, "openings": (2, 4), "rivals": ("uct:100", "random"), "models": (Path("a"), Path("b"))}
FILE = {"minutes": 5, "target": "vote", "models": ["c"]}


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ([], {}),
        (WORDS, MEANT),
        (["--preset", "smoke", {"games": 3, "arch": "transformer"}], {"games": 3, "rate": 0.25, "arch": "transformer"}),
        ([{"games": 3}, "--games", "4", "--preset", "smoke"], {"games": 4, "rate": 0.25}),
        ([{"savings": True}, "--no-savings"], {}),
        (["d", FILE], {"minutes": 5.0, "target": "vote", "models": (Path("d"),)}),
        ([FILE, "--minutes", "none", "--target", "none"], {"models": (Path("c"),)}),
        (["--rivals"], {"rivals": ()}),
        ([{"openings": [[1, 2], [3, 4]]}], {"openings": ((1, 2), (3, 4))}),
        (["--preset", "apart", {"arch": "transformer"}, "--games", "4"],
         {"games": 4, "arch": "transformer", "out": Path("transformer-nets")}),  # it follows from another setting
        (["--preset", "apart", "--out", "here"], {"games": 3, "out": Path("here")}),
        (["--preset", "growing"], {"stages": (Stage(simulations=16), Stage(after=0.5, simulations=64))}),
        ([{"stages": [{"root": "gumbel", "simulations": 8}]}], {"stages": (Stage(root="gumbel", simulations=8),)}),
    ],
)  # fmt: skip
def test_a_preset_beats_the_default_a_file_the_preset_and_a_flag_the_file(parse, words, settings):
    same(parse(*words), Config(**settings))


def test_a_stored_config_reads_back_as_itself(parse):
    words = ("--out", "a b", "--rivals", "x", "y", "--minutes", "3", "--target", "visits", "--preset", "growing")
    config = parse(*words)
    stored = json.loads(json.dumps(cli.as_json(config)))
    assert stored["stages"][1] == {"after": 0.5, "root": "puct", "simulations": 64}
    assert (stored["out"], stored["rivals"]) == ("a b", ["x", "y"])
    same(parse(stored), config)
    assert hash(parse(stored)) == hash(config)


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
        ({"openings": np.array([2, 4])}, {"openings": (2, 4)}),
        ({"models": ["a", Path("b")]}, {"models": (Path("a"), Path("b"))}),
    ],
)
def test_a_config_made_in_python_is_the_one_that_flags_make(given, plain):
    same(Config(**given), Config(**plain))


ROWS = "must be a list of rows with after, root, simulations"
WRONG = [
    ({"games": -5}, "--games -5 must be positive"),
    ({"games": "many"}, "--games many must be a whole number"),
    ({"games": True}, "--games True must be a whole number"),
    ({"games": None}, "--games None must be a whole number"),
    ({"rate": "x"}, "--rate x must be a number"),
    ({"rate": float("nan")}, "--rate nan must be a number"),
    ({"arch": "mlp"}, "--arch mlp must be one of cnn, transformer"),
    ({"savings": 1}, "--savings 1 must be true or false"),
    ({"out": 3}, "--out 3 must be a path"),
    ({"out": "s3://bucket/games"}, "--out s3://bucket/games must be a path on this machine, not a URL"),
    ({"rivals": "random"}, "--rivals random must be a list"),
    ({"openings": [1]}, "--openings [1] must be a list of 2"),
    ({"stages": 3}, "--stages 3 must be a list"),
    ({"stages": [3]}, ROWS),
    ({"stages": [{"simulations": "x"}]}, f"{ROWS} (simulations x must be a whole number)"),
    ({"stages": [{"simulations": 1, "after": 2}]}, f"{ROWS} (after 2.0 must be at most 1)"),
    ({"stages": [{"simulation": 1}]}, "unexpected keyword argument 'simulation'"),
]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(([given], message) for given, message in WRONG),
        (["--games", "1.5"], "--games 1.5 must be a whole number"),
        (["--games"], "argument --games: expected one argument"),
        (["--rate", "1e999"], "--rate 1e999 must be a number"),
        (["--openings", "1"], "argument --openings: expected 2 arguments"),
        (["--preset", "huge"], "argument --preset: invalid choice: 'huge'"),
        (["--game", "5"], "unrecognized arguments: --game"),
        (["--stages", "3"], "unrecognized arguments: --stages"),
        ([{"gmaes": 5, "arhc": 1}], "no such setting: arhc, gmaes"),
    ],
)
def test_a_wrong_value_is_named_in_one_line_and_in_python(parse, capsys, words, message):
    if (words[0], message) in WRONG:
        with pytest.raises(ValueError, match=re.escape(message)):
            Config(**words[0])
    with pytest.raises(SystemExit) as stop:
        parse(*words)
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("distill stage: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff", None, b"[" * 100_000])
def test_a_file_that_is_no_config_is_named(parse, capsys, tmp_path, content):
    path = tmp_path / "broken.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit):
        parse("--config", str(path))
    assert capsys.readouterr().err.startswith(f"distill stage: --config {path}: ")
    path.write_bytes(b'\xef\xbb\xbf{\r\n"games": 7\r\n}\r\n')  # as editors on Windows write it
    assert parse("--config", str(path)).games == 7


def test_a_field_without_a_default_must_be_given(capsys):
    with pytest.raises(SystemExit):
        cli.parse(Stage, ["--root", "gumbel"], prog="distill stage")
    assert capsys.readouterr().err == "distill stage: needs --simulations (--help lists the flags)\n"
    assert cli.parse(Stage, ["--simulations", "3"]) == Stage(simulations=3)


HELP = """\
usage: distill stage [MODELS ...] [flags]

Settings of a stage made up for these tests.

flags:
  --preset NAME           a set of values, listed below
  MODELS                  models to read
  --games N               games to play [100]
  --arch {cnn,transformer}
                          network [cnn]
  --target {visits,vote}  what to learn
  --out PATH              folder [data/games]
  --place NAME            folder or URL [data]
  --minutes X             time limit, or none
  --savings, --no-savings
                          stop early [off]
  --openings N N          fewest and most random moves [1 8]
  --config PATH           a JSON file of values, such as a run's _run.json
  --help, -h              show this
  --help-all              show 3 more settings

search:
  --votes N               searches of a position [3]

learning:
  --rate X                share, up to 100 % [0.5]

presets:
  smoke    a test of seconds, on data/smoke and models/smoke
  growing  searches that grow
  apart    a folder by arch
"""


def test_help_lists_the_flags_that_most_people_need_and_help_all_the_others(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.Command("stage", Config, lambda _config: "", PRESETS)(["--help"]) == 0
    assert capsys.readouterr().out == HELP
    assert cli.Command("stage", Config, lambda _config: "", PRESETS)(["--help-all"]) == 0
    text = capsys.readouterr().out
    assert "--rivals [NAME ...]     players to meet [random]" in text
    assert "--noise X               share of noise [0.25]" in text
    assert "--help-all" not in text
    assert "  stages  searches, in order: after, root, simulations" in text
