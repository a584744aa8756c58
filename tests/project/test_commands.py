"""Commands that documents, docstrings and recipes show can be given as they stand: their flags exist and take these
words. Nothing is run: each command stops where its words are read.

The log and the changelog show commands of their day. What a shell fills in, `$…`, and what is left out, `…`, is not
read; `distill.mcts.compiling` has no flags.
"""

import argparse
import importlib
import os
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from distill.__main__ import COMMANDS as STAGES
from distill.common import command_line, plugins, settings
from tests.project.test_setup_scripts import Machine

ROOT = Path(__file__).parents[2]
HISTORY = ("CHANGELOG.md", "LOG.md")
SHOWN = re.compile(
    r'(?:^ *|`)(?:[A-Z_]+=\S+ )*(?:python|"\$python") '
    r"(-m (?:distill|experiments)\.(?!mcts)[a-z._]+|(?:benchmarks|pipelines)/\w+\.py)([^`#]*?)(?:$|`|#| && )",
    re.MULTILINE,
)
SHORT = re.compile(rf"({'|'.join(STAGES)}) ([^A-Z*]*--[^A-Z*]* [^-A-Z*][^A-Z*]*)")
"""A command of the package without its beginning: `train --arch cnn`."""


def pages() -> Iterator[Path]:
    beside = ("docs", "distill", "experiments", "pipelines", "benchmarks", "examples", "models", "data", "data/*")
    for folder in (".", *beside):
        for suffix in ("md", "py", "sh"):
            yield from (path for path in ROOT.glob(f"{folder}/*.{suffix}") if path.name not in HISTORY)
    yield from (ROOT / "distill").glob("*/*.py")


def shown(text: str) -> Iterator[list[str]]:
    """The words of every command in a text, without `python` and what cannot be read here."""
    text = re.sub(r" *\\\n\s*", " ", text)
    text = re.sub(r"(?<!`)`(?!`)[^`]{,300}`", lambda span: re.sub(r"\s+", " ", span[0]), text)  # prose breaks its lines
    spans = [part for span in re.findall(r"`([^`\n]*)`", text) for part in span.split("; ")]
    short = [(f"-m distill.{match[1]}", match[2]) for span in spans if (match := SHORT.fullmatch(span))]
    for command, words in [*SHOWN.findall(text), *short]:
        if not re.search(r"[$…\[<>|]|\.\.\.", words):
            yield [*command.split(), *shlex.split(words)]


COMMANDS = sorted({tuple(words) for page in pages() for words in shown(page.read_text(encoding="utf-8"))})
assert len(COMMANDS) > 100


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
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", reads(parse_args))  # of benchmarks
    monkeypatch.setattr(command_line._Parser, "parse_args", parse_args)
    monkeypatch.setattr(command_line, "build", reads(built))  # a command looks at files later
    plugin = plugins.Plugin(spec="my_engine:label", what="--labeller", folder="", source="")
    monkeypatch.setattr(plugins.Plugin, "named", lambda *_: plugin)  # readers write its module
    monkeypatch.setattr(os, "environ", os.environ.copy())


def built(*given: Any) -> None:
    """Check types and ranges of settings, but not the players and networks that they name, which prose may omit."""
    try:
        BUILD(*given)
    except ValueError as error:
        cause, allowed = error.__cause__, ("value_error", "missing")
        if not isinstance(cause, ValidationError) or any(each["type"] not in allowed for each in cause.errors()):
            raise


BUILD = settings.build


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


@pytest.mark.parametrize(
    "recipe",
    [
        "quickstart.sh",
        "hour.sh",
        "published.sh",
        "alphazero.sh connect4-zero",
        "reinforce_mk4.sh",
        "reference.sh",
        "large.sh",
        "large.sh --smoke",
    ],
)
def test_a_command_that_a_recipe_runs_can_be_given(recipe, tmp_path, only_read, monkeypatch):
    machine = Machine(tmp_path)
    machine.add("python3.12", "3.12")
    (machine.path / "tee").symlink_to(str(shutil.which("tee")))
    machine.run(*recipe.split())
    calls = [line.split()[1:] for line in [*machine.calls("-m distill."), *machine.calls("-m experiments.")]]
    assert len(calls) > 1
    for words in calls:
        with pytest.raises((Read, SystemExit)) as stop:
            give(tuple(words), monkeypatch)
        assert getattr(stop.value, "code", 0) == 0, words


@pytest.mark.parametrize("stage", STAGES)
def test_help_lists_at_most_20_flags_in_80_columns_and_no_class_of_settings_has_more_than_15(
    stage, monkeypatch, capsys
):
    def classes(kind: Any) -> Iterator[Any]:
        yield kind
        for field in kind.model_fields.values():
            if isinstance(field.annotation, type) and issubclass(field.annotation, settings.Settings):
                yield from classes(field.annotation)

    monkeypatch.setenv("COLUMNS", "80")
    main = importlib.import_module(f"distill.{stage}").main
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80, max(lines, key=len)
    assert sum(line.startswith("  --") for line in lines) <= 20
    assert max(len(kind.model_fields) for kind in classes(main.config_class)) <= 15
    for field in settings.fields_of(main.config_class).values():
        assert field.description or field.is_required() or settings._is_object(field)
