"""The examples. Properties:

- each client computes the outputs of `examples.json` in an environment that holds only its package and what that needs;
- each has at most twenty lines; the browser's needs no other files than those it names;
- a client reports differing outputs;
- without an argument, TensorFlow's client takes the shipped network; the others print their usage and exit with 2,
  as for a folder without examples;
- README's five lines load the shipped network, which answers a board.

`pytest -m slow tests/project/test_examples.py` runs the page in Chromium with the runtime that `--web` fetches.
"""

import json
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import numpy as np
import pytest
from helpers import REFERENCE

from distill.exporters import static_page
from tests import environments, pages

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PACKAGES = {"savedmodel_client": "tensorflow", "onnx_client": "onnxruntime", "litert_client": "ai-edge-litert"}
MODULES = ("distill", "tensorflow", "keras", "onnxruntime", "ai_edge_litert")


def run(environment: Path, client: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    """Run a client in an environment, from an empty folder."""
    nowhere = environment / "nowhere"
    nowhere.mkdir(exist_ok=True)
    command = [environment / "bin" / "python", "-I", EXAMPLES / f"{client}.py", *arguments]
    return subprocess.run(list(map(str, command)), cwd=nowhere, capture_output=True, text=True)


def importable(environment: Path) -> set[str]:
    """The modules of interest that an environment has."""
    code = f"import importlib.util as u; print(*[name for name in {MODULES} if u.find_spec(name)])"
    command = [environment / "bin" / "python", "-I", "-c", code]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def check(printed: str, model: Path) -> None:
    """The two lines of a client fit `examples.json`; of columns equal up to rounding any may be named."""
    examples = json.loads((model / "examples.json").read_text())
    policy = np.array(examples[0]["policy"])
    assert not np.any(examples[0]["board"])
    first, second = printed.splitlines()
    said = re.fullmatch("the first board is empty: column ([1-7]) of 7", first)
    assert said
    assert policy[int(said[1]) - 1] >= policy.max() - 1e-5
    assert second == f"{len(examples)} boards match examples.json"


@pytest.fixture
def model(exported) -> Path:
    """The SavedModel of a shipped network, with the other formats beside it."""
    return exported / "saved_model"


@pytest.mark.parametrize("client", PACKAGES)
def test_a_client_matches_the_examples_in_a_clean_environment(tmp_path, model, client):
    environments.linked(tmp_path / "env", PACKAGES[client])
    own = PACKAGES[client].replace("-", "_")
    assert importable(tmp_path / "env") == ({own, "keras"} if own == "tensorflow" else {own})
    ended = run(tmp_path / "env", client, *([] if own == "tensorflow" else [model]))
    assert ended.returncode == 0, ended.stderr
    check(ended.stdout, model)


def test_the_lines_of_the_readme_run_in_a_clone(monkeypatch, capsys):
    part = (ROOT / "README.md").read_text().split("## Use a network")[1]
    lines = re.findall("(?:^    .*\n)+", part, re.MULTILINE)[0]
    monkeypatch.chdir(ROOT)
    exec(textwrap.dedent(lines), {})
    assert len(lines.splitlines()) == 5
    move, policy = re.match(r"(\d) \[(.*?)\] ", capsys.readouterr().out).groups()
    assert int(move) == np.argmax([float(share) for share in policy.split()])


@pytest.mark.parametrize("folder", [[], ["nowhere"]])
@pytest.mark.parametrize("client", ["onnx_client", "litert_client"])
def test_without_a_folder_one_line_says_what_to_give_and_how_to_make_it(tmp_path, client, folder):
    environments.linked(tmp_path / "env", PACKAGES[client])
    ended = run(tmp_path / "env", client, *map(Path, folder))
    assert (ended.returncode, ended.stdout) == (2, "")
    said = re.fullmatch(rf"usage: {client}.py FOLDER \[FILE\]; to write app/saved_model: (.*)\n", ended.stderr)
    assert said
    assert said[1] in (EXAMPLES / f"{client}.py").read_text().split('"""')[1]


def test_a_client_reports_differing_outputs(tmp_path, model):
    other = tmp_path / "model"
    shutil.copytree(model, other)
    examples = json.loads((other / "examples.json").read_text())
    examples[3]["policy"][2] += 0.01
    (other / "examples.json").write_text(json.dumps(examples))
    environments.linked(tmp_path / "env", PACKAGES["onnx_client"])
    assert "differs by 0.0" in run(tmp_path / "env", "onnx_client", other).stdout


@pytest.mark.parametrize("client", PACKAGES)
def test_a_client_has_twenty_lines_and_names_its_package(client):
    text = (EXAMPLES / f"{client}.py").read_text()
    assert len([line for line in text.split('"""')[2].splitlines() if line.strip()]) <= 20
    assert f"pip install {PACKAGES[client]}\n" in text


def test_the_page_loads_nothing_from_other_hosts():
    code = (EXAMPLES / "browser.html").read_text().split("-->")[1]
    assert "http" not in code
    runtime = {f"ort/{file}" for file in static_page.RUNTIME_FILES.values()}
    assert set(re.findall(r'"(?:\./)?([\w./-]+\.\w+)"', code)) == {*runtime, "cnn-strong.onnx", "examples.json"}


@pytest.mark.slow
def test_the_page_matches_the_examples_in_chromium(tmp_path):
    shipped = REFERENCE / "cnn-strong"
    static_page.write_static_page([shipped], tmp_path / "app")
    for file in (EXAMPLES / "browser.html", shipped / "saved_model" / "examples.json"):
        shutil.copy(file, tmp_path / "app")
    with (
        pages.hosted(tmp_path / "app") as address,
        pages.browser() as running,
        pages.open_page(running, f"{address}browser.html") as page,
    ):
        check(page.inner_text("pre"), shipped / "saved_model")
