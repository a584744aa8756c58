"""The examples: in an environment that holds only its package and what that needs, a client computes the outputs of
`examples.json` and reports others.

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
MODEL = REFERENCE / "pillar" / "saved_model"
PACKAGES = {"savedmodel_client": "tensorflow", "onnx_client": "onnxruntime", "litert_client": "ai-edge-litert"}
IMPORTABLE = """
import importlib.util as u
print(*[name for name in ("distill", "tensorflow", "keras", "onnxruntime", "ai_edge_litert") if u.find_spec(name)])
"""


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


@pytest.mark.parametrize("client", PACKAGES)
def test_a_client_matches_the_examples_in_a_clean_environment_and_reports_what_does_not_match(tmp_path, client):
    package, text = PACKAGES[client], (EXAMPLES / f"{client}.py").read_text()
    assert f"pip install {package}\n" in text
    environments.linked(tmp_path / "env", package)
    (tmp_path / "nowhere").mkdir()

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        command = [tmp_path / "env" / "bin" / "python", "-I", *words]
        return subprocess.run(list(map(str, command)), cwd=tmp_path / "nowhere", capture_output=True, text=True)

    assert set(run("-c", IMPORTABLE).stdout.split()) - {"keras"} == {package.replace("-", "_")}
    if package == "tensorflow":
        ended = run(EXAMPLES / f"{client}.py")
        assert ended.returncode == 0, ended.stderr
        return check(ended.stdout, MODEL)

    check(run(EXAMPLES / f"{client}.py", MODEL).stdout, MODEL)
    shutil.copytree(MODEL, tmp_path / "other")
    examples = json.loads((MODEL / "examples.json").read_text())
    examples[3]["policy"][2] += 0.01
    (tmp_path / "other" / "examples.json").write_text(json.dumps(examples))
    assert "differs by 0.0" in run(EXAMPLES / f"{client}.py", tmp_path / "other").stdout
    for folder in ([], ["nowhere"]):
        ended = run(EXAMPLES / f"{client}.py", *folder)
        assert (ended.returncode, ended.stdout) == (2, "")
        usage = re.fullmatch(rf"usage: {client}.py FOLDER \[FILE\]; to write app/saved_model: (.*)\n", ended.stderr)
        assert usage
        assert usage[1] in text.split('"""')[1]


def test_the_lines_of_the_readme_run_in_a_clone(monkeypatch, capsys):
    part = (ROOT / "README.md").read_text().split("## Use a network")[1]
    lines = re.findall("(?:^    .*\n)+", part, re.MULTILINE)[0]
    monkeypatch.chdir(ROOT)
    exec(textwrap.dedent(lines), {})
    move, policy = re.match(r"(\d) \[(.*?)\] ", capsys.readouterr().out).groups()
    assert int(move) == np.argmax([float(share) for share in policy.split()])


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
