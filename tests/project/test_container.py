"""The container image of `serve`, as far as it can be tested without a daemon that builds it. Slow: with its packages
alone the page opens and players move.
"""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from pages import fetched, listening

from tests import environments

ROOT = Path(__file__).parents[2]
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
STEPS = [line.split(maxsplit=1) for line in DOCKERFILE if line and not line.startswith("#")]
"""Each instruction with the rest of its line."""


def those(instruction: str) -> list[str]:
    return [rest for name, rest in STEPS if name == instruction]


(COMMAND,) = map(json.loads, those("CMD"))
COPIED = [source for rest in those("COPY") if "--from" not in rest for source in rest.split()[:-1]]
(PACKAGES,) = (rest.split("requirements.lock")[1].split() for rest in those("RUN") if "requirements.lock" in rest)


def test_the_wheel_is_made_of_what_is_copied():
    built = SETUP["tool"]["hatch"]["build"]
    named = ["pyproject.toml", SETUP["project"]["readme"], *SETUP["project"]["license-files"], "requirements.lock"]
    named += [built["hooks"]["custom"]["path"], *built["targets"]["wheel"]["only-include"]]
    assert sorted(COPIED) == sorted(named)


def test_its_packages_are_dependencies_without_tensorflow():
    project = SETUP["project"]
    known, extra = (
        {re.match(r"[\w-]+", text)[0] for text in texts}
        for texts in (project["dependencies"], project["optional-dependencies"]["serve"])
    )
    assert extra <= set(PACKAGES) <= known | extra
    page = (ROOT / "docs" / "networks.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"^    pip install (numpy .*)$", page, re.MULTILINE)
    assert sorted(named.split()) == sorted(PACKAGES)
    assert not {"tensorflow", "keras"} & environments.needs(*PACKAGES)


@pytest.mark.slow
def test_with_its_packages_alone_the_server_plays(tmp_path):
    environments.linked(tmp_path / "env", *PACKAGES)
    python = tmp_path / "env" / "bin" / "python"
    code = "import importlib.util as u, sys; sys.exit(any(map(u.find_spec, ('tensorflow', 'keras', 'pandas'))))"
    subprocess.run([python, "-c", code], check=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    words = [python, "-m", "distill", *COMMAND[1:], "--port", "0"]
    with listening(subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=env)) as address:
        assert b"<html" in fetched(address)
        for player in ("pillar", "uct:200", "pillar@puct:20"):
            assert json.loads(fetched(f"{address}api/v1/analysis", player=player, moves="44"))["move"] in range(7)


def test_a_network_answers_and_plays_with_numpy_onnx_runtime_and_pydantic_alone(tmp_path):
    environments.linked(tmp_path / "env", "numpy", "onnxruntime", "pydantic")
    code = "import distill, numpy as np; print(distill.load_pretrained('pillar')(np.zeros((6, 7), np.int8))['move'])"
    typed = {("-c", code): "", ("-m", "distill", "play", "club", "--first", "machine"): "4\nq\n"}
    said = [
        subprocess.run(
            [tmp_path / "env" / "bin" / "python", *words],
            input=text, capture_output=True, text=True, check=True, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)},
        ).stdout
        for words, text in typed.items()
    ]  # fmt: skip
    assert said[0] == "3\n"
    assert "club played column" in said[1]
