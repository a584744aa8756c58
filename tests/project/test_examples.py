"""The examples. Properties:

- each client gets the outputs of `examples.json`, in an environment that holds its one package and what that needs, and
  nothing else: no distill, and no TensorFlow or Keras except for the SavedModel's;
- each is about twenty lines, and the browser's needs no other file than those it names;
- a client says so where the outputs differ;
- without an argument, TensorFlow's client plays the network that ships, which every clone has in its format; the others
  say in one line what to give them and how it is made, and exit with 2;
- README's six lines load the network that ships, which opens in the centre.

Here an environment is made in a moment, of links to the installed packages. By `pytest -m slow
tests/project/test_examples.py` it is made as an app developer does, by pip, and the page runs in Chromium with the
runtime that `--web` fetches.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import textwrap
import threading
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from helpers import REFERENCE

from distill.exporters import static_page
from tests import environments, pages

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PACKAGES = {"savedmodel_client": "tensorflow", "onnx_client": "onnxruntime", "litert_client": "ai-edge-litert"}


def run(environment: Path, client: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    """A client in an environment, from a folder without anything."""
    nowhere = environment / "nowhere"
    nowhere.mkdir(exist_ok=True)
    command = [environment / "bin" / "python", "-I", EXAMPLES / f"{client}.py", *arguments]
    return subprocess.run(list(map(str, command)), cwd=nowhere, capture_output=True, text=True)


def answer(environment: Path, client: str, *arguments: Path) -> str:
    """What a client prints that does its work."""
    ended = run(environment, client, *arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def can_import(environment: Path, module: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([environment / "bin" / "python", "-I", "-c", code]).returncode == 0


def check(printed: str, model: Path) -> None:
    """The client's two lines, against `examples.json`; columns that are equal up to rounding are equally right."""
    examples = json.loads((model / "examples.json").read_text())
    policy = np.array(examples[0]["policy"])
    assert not np.any(examples[0]["board"])
    first, second = printed.splitlines()
    said = re.fullmatch("the first board is empty: column ([1-7]) of 7", first)
    assert said
    assert policy[int(said[1]) - 1] >= policy.max() - 1e-5
    assert second == f"{len(examples)} boards match examples.json"


@pytest.fixture
def model(exported: Path) -> Path:
    """What the clients are given: the SavedModel of a network that ships, with other formats beside it."""
    return exported / "saved_model"


@pytest.mark.parametrize("client", PACKAGES)
@pytest.mark.parametrize("make", [environments.linked, pytest.param(environments.piped, marks=pytest.mark.slow)])
def test_a_client_answers_as_the_examples_say_in_a_clean_environment(
    tmp_path: Path, model: Path, client: str, make: Callable[[Path, str], None]
):
    make(tmp_path / "env", PACKAGES[client])
    assert not can_import(tmp_path / "env", "distill")
    for module in ("tensorflow", "keras", "onnxruntime", "ai_edge_litert"):
        wanted = {"tensorflow": {"tensorflow", "keras"}}.get(PACKAGES[client], {PACKAGES[client].replace("-", "_")})
        assert can_import(tmp_path / "env", module) == (module in wanted), module
    if client == "savedmodel_client" and make is environments.linked:  # it takes seconds, so not once more for this
        check(answer(tmp_path / "env", client), model)
    else:
        check(answer(tmp_path / "env", client, model), model)


def test_the_lines_of_the_readme_run_in_a_clone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    part = (ROOT / "README.md").read_text().split("## Load a network")[1]
    lines = re.findall("(?:^    .*\n)+", part, re.MULTILINE)[0]
    monkeypatch.chdir(ROOT)
    exec(textwrap.dedent(lines), {})
    assert len(lines.splitlines()) == 6
    assert capsys.readouterr().out.startswith("[3] ")


@pytest.mark.parametrize("client", ["onnx_client", "litert_client"])
def test_without_an_argument_one_line_says_what_is_wanted_and_how_it_is_made(tmp_path: Path, client: str):
    environments.linked(tmp_path / "env", PACKAGES[client])
    ended = run(tmp_path / "env", client)
    assert (ended.returncode, ended.stdout) == (2, "")
    said = re.fullmatch(rf"usage: {client}.py FOLDER \[FILE\]; to write app/saved_model: (.*)\n", ended.stderr)
    assert said
    assert said[1] in (EXAMPLES / f"{client}.py").read_text().split('"""')[1]


def test_a_client_says_so_where_the_outputs_differ(tmp_path: Path, model: Path):
    other = tmp_path / "model"
    shutil.copytree(model, other)
    examples = json.loads((other / "examples.json").read_text())
    examples[3]["policy"][2] += 0.01
    (other / "examples.json").write_text(json.dumps(examples))
    environments.linked(tmp_path / "env", PACKAGES["onnx_client"])
    assert "differs by 0.0" in answer(tmp_path / "env", "onnx_client", other)


@pytest.mark.parametrize("client", PACKAGES)
def test_a_client_is_twenty_lines_and_names_its_package(client: str):
    text = (EXAMPLES / f"{client}.py").read_text()
    assert len([line for line in text.split('"""')[2].splitlines() if line.strip()]) <= 20
    assert f"pip install {PACKAGES[client]}\n" in text


def test_the_page_takes_nothing_from_elsewhere():
    text = (EXAMPLES / "browser.html").read_text()
    code = text.split("-->")[1]
    assert "http" not in code
    runtime = {f"ort/{file}" for file in static_page.RUNTIME_FILES}
    assert set(re.findall(r'"(?:\./)?([\w./-]+\.\w+)"', code)) == {*runtime, "pillar.onnx", "examples.json"}


@pytest.mark.slow
def test_the_page_answers_as_the_examples_say_in_chromium(tmp_path: Path):
    shipped = REFERENCE / "pillar"
    static_page.write_static_page([shipped], tmp_path / "app")
    for file in (EXAMPLES / "browser.html", shipped / "saved_model" / "examples.json"):
        shutil.copy(file, tmp_path / "app")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path / "app")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/browser.html"
        with pages.browser() as running, pages.open_page(running, address) as page:
            check(page.inner_text("pre"), shipped / "saved_model")
        server.shutdown()
