"""Commands that documents, docstrings and recipes show can be given as they stand.

* Every command of the package, of the experiments and of the benchmarks that a page, a docstring or a recipe shows has
  flags that there are, with words that they take. Nothing is run: each stops where its words are read.
* Every script of `benchmarks/` and `pipelines/` shows at least one.
* `--help` of a command lists at most 20 flags, in 80 columns.
* No command takes nan or infinity for a number, as a flag or from Python.
* A command that is none, of each kind, is found.

The log and the changelog show commands of their day. What a shell fills in, `$…`, and what is left out, `…`, is not
read; `distill.mcts.compiling` has no flags.
"""

import argparse
import dataclasses
import importlib
import math
import os
import re
import runpy
import shlex
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from distill.__main__ import COMMANDS as STAGES
from distill.common import cli

ROOT = Path(__file__).parents[2]
HISTORY = ("CHANGELOG.md", "LOG.md")
SHOWN = re.compile(
    r'(?:^ *|`)(?:[A-Z_]+=\S+ )*(?:python|"\$python") '
    r"(-m (?:distill|experiments)\.(?!mcts)[a-z._]+|(?:benchmarks|pipelines)/\w+\.py)([^`#]*?)(?:$|`|#| && )",
    re.MULTILINE,
)


def pages() -> Iterator[Path]:
    beside = ("docs", "distill", "experiments", "pipelines", "benchmarks", "examples", "models", "data", "data/*")
    for folder in (".", *beside):
        for suffix in ("md", "py", "sh"):
            yield from (path for path in ROOT.glob(f"{folder}/*.{suffix}") if path.name not in HISTORY)
    yield from (ROOT / "distill").glob("*/*.py")


def shown(text: str) -> Iterator[list[str]]:
    """The words of every command in a text, without `python` and what cannot be read here."""
    text = re.sub(r" *\\\n\s*", " ", text)
    text = re.sub(r"`python [^`]*`", lambda found: re.sub(r"\s+", " ", found[0]), text)  # prose breaks its lines
    for command, words in SHOWN.findall(text):
        if not re.search(r"[$…\[<>|]|\.\.\.", words):
            yield [*command.split(), *shlex.split(words)]


COMMANDS = sorted({tuple(words) for page in pages() for words in shown(page.read_text(encoding="utf-8"))})


class Read(BaseException):
    """Raised where the words of a command have been read."""


@pytest.fixture
def only_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def reads(read: Callable[..., Any]) -> Callable[..., Any]:
        def stopped(*given: Any, **more: Any) -> Any:
            read(*given, **more)
            raise Read

        return stopped

    parse_args = argparse.ArgumentParser.parse_args
    monkeypatch.setattr(cli._Parser, "parse_args", parse_args)
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", reads(parse_args))  # of benchmarks
    # The types of all values are checked before a command looks at files.
    monkeypatch.setattr(cli.Settings, "__post_init__", reads(cli.Settings.__post_init__))
    monkeypatch.setattr(sys, "path", [*sys.path])  # benchmarks add to it
    monkeypatch.setattr(os, "environ", os.environ.copy())


def give(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Start a command in this process."""
    if words[0] != "-m":
        monkeypatch.setattr(sys, "argv", [*words])
        runpy.run_path(str(ROOT / words[0]), run_name="__main__")
    module = f"{words[1]}.__main__" if (ROOT / words[1].replace(".", "/")).is_dir() else words[1]
    main = importlib.import_module(module).main
    monkeypatch.setattr(sys, "argv", [*words[1:]])
    raise SystemExit(main())


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_that_is_shown_can_be_given(words, only_read, monkeypatch):
    with pytest.raises((Read, SystemExit)) as stop:
        give(words, monkeypatch)
    assert getattr(stop.value, "code", 0) == 0  # --help ends a command


def test_every_script_shows_how_it_is_run():
    folders = (ROOT / "benchmarks", ROOT / "pipelines")
    scripts = {path.relative_to(ROOT).as_posix() for folder in folders for path in folder.glob("*.py")}
    assert scripts == {words[0] for words in COMMANDS if words[0] != "-m"}
    assert len(COMMANDS) > 100


@pytest.mark.parametrize("stage", STAGES)
def test_help_lists_at_most_20_flags_in_80_columns(stage, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert importlib.import_module(f"distill.{stage}").main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("  --") for line in lines) <= 20


def numbers() -> Iterator[tuple[str, str, int]]:
    """Every command of the package with every setting that is a number, or of how many numbers it is."""
    for file in sorted((ROOT / "distill").rglob("*.py")):
        if "\nmain = cli.Command(" in file.read_text(encoding="utf-8"):
            stage = ".".join(file.relative_to(ROOT / "distill").with_suffix("").parts)
            hints = typing.get_type_hints(importlib.import_module(f"distill.{stage}").main.config_class)
            for name, hint in hints.items():
                if found := [kind for kind in typing.get_args(hint) or (hint,) if kind is float]:
                    yield stage, name, len(found)


@pytest.mark.parametrize(("stage", "name", "number"), list(numbers()))
def test_no_setting_is_nan_or_infinite(stage, name, number, capsys):
    command = importlib.import_module(f"distill.{stage}").main
    config, flag = command.config_class(), f"--{name.replace('_', '-')}"
    for value in (math.nan, math.inf):
        several = isinstance(getattr(config, name), tuple)
        with pytest.raises(ValueError, match=f"{flag} .*must be"):
            dataclasses.replace(config, **{name: (value,) * number if several else value})
        assert command([flag, *[str(value)] * number]) == 2
        assert re.search(rf"{flag} .*must be", capsys.readouterr().err)


@pytest.mark.parametrize(
    "text",
    [
        "    python benchmarks/train.py --archs column",
        "by `python -m distill.train --arch\npillar --steps many`",
        "python -m distill.evaluate models/cnn \\\n  --fast",
        "PRECISION=float32 python -m distill.generate --gmes 5  # games",
    ],
)
def test_one_that_cannot_is_found(text, only_read, monkeypatch):
    (words,) = shown(text)
    with pytest.raises(SystemExit):
        give(tuple(words), monkeypatch)
