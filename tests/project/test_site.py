"""The documentation site (mkdocs.yml, docs/hooks.py), built with warnings as errors, and the code of docs/data.md and
docs/benchmark.md. The snippet with PyTorch: `pytest -m slow tests/project/test_site.py`.
"""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import distill
from distill.__main__ import COMMANDS
from distill.common import run_folder
from distill.common.settings import fields_of, flag_of
from tests import environments

ROOT = Path(__file__).parents[2]
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/data.md").read_text(encoding="utf-8"), re.DOTALL)


def test_the_site_builds_with_all_commands_settings_and_names_and_loads_nothing_from_another_host(tmp_path):
    site = tmp_path / "site"
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "REPOSITORY_URL": "https://host.invalid/owner/name"}
    ended = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-4000:]
    text = {page.relative_to(site).as_posix(): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    assert len(text) > 15

    commands = re.sub("<[^>]*>", "", text["commands/index.html"])
    for name in COMMANDS:
        command = importlib.import_module(f"distill.{name}").main
        part = commands.split(f"usage: python -m distill.{name}")[1]
        missing = [
            path
            for path, field in fields_of(command.config_class).items()
            if field.description and path not in part and flag_of(command.config_class, path) not in part
        ]
        assert missing in ([], [command.config_class.command_line.words])
        assert [preset for preset in command.presets or {} if f"Preset {preset}:" not in part] == []
    assert [name for name in distill.PUBLIC if name not in text["api/index.html"]] == []

    tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", "".join(text.values()))
    assert [tag for tag in tags if re.search(r'(?:src|href)="?(?:https?:)?//', tag)] == []
    (picture,) = set(re.findall(r'src="([^"]*time-to-strength.png)"', text["results/index.html"]))
    assert (site / "results" / picture).resolve().is_file()
    assert 'href="https://host.invalid/owner/name/blob/HEAD/dev/LOG.md"' in text["results/index.html"]


def test_a_player_of_ones_own_is_graded_with_the_packages_that_the_page_names(tmp_path):
    page = (ROOT / "docs/benchmark.md").read_text(encoding="utf-8")
    (tmp_path / "my_engine.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    packages = re.search("^    pip install ([^&]*) && pip install --no-deps", page, re.MULTILINE)[1].split()
    command = re.search(r"^    python -m (distill.evaluate .*)$", page, re.MULTILINE)[1].split()
    assert not {"tensorflow", "keras", "bitbully"} & environments.needs(*packages)
    environments.linked(tmp_path / "env", *packages)
    python = tmp_path / "env" / "bin" / "python"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    words = [python, "-m", *command, "--boards", "10"]
    ended = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    grades = run_folder.result_of(tmp_path / "models/evaluation")
    assert "my_engine:player" in json.dumps(grades)


def test_the_snippets_run_in_a_checkout():
    plain = [code for code in SNIPPETS if "torch" not in code]
    assert [word for word in ("pandas", "polars", "duckdb") if not any(word in code for code in plain)] == []
    run("\n".join(plain))


@pytest.mark.slow
def test_the_snippet_with_pytorch_runs(tmp_path):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tmp_path), "torch"]
    subprocess.run(command, check=True)
    first = next(code for code in SNIPPETS if "pandas" in code)
    (torch,) = [code for code in SNIPPETS if "torch" in code]
    path = f"import sys; sys.path.append({str(tmp_path)!r})"
    run(f"import warnings; warnings.simplefilter('error')\n{path}\n{first}\n{torch}")
    run(f"{path}\nimport runpy; runpy.run_path('examples/behaviour_cloning.py')")


def run(code: str) -> None:
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
