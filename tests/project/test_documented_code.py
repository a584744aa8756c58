"""The examples of docs/extending.md and docs/ecosystem.md, run in their order in one empty folder, as a reader would.

* A block of Python that begins with `# my_name.py` is that file.
* Every other block runs; those of a page in one process, which also loads the SavedModels that it writes, and those
  that ask for JAX in another one.
* `my_match.py` runs in Kaggle's package (slow, needs the index), `my_torch.py` where onnx2torch is installed.
"""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTENDING, ECOSYSTEM = (
    re.findall(r"```(python|sh)\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    for page in ("extending.md", "ecosystem.md")
)
ON_JAX = [code for _, code in ECOSYSTEM if "KERAS_BACKEND" in code]
START = f"""
import runpy, sys
from distill.__main__ import main
if __name__ == "__main__":
    sys.path[:] = ["", *sys.path, {str(ROOT / "tests")!r}]
    from network_helpers import check_here
    check_here()
"""


def file_name(code: str) -> str | None:
    named = re.match(r"# (my_\w+\.py)", code)
    return named[1] if named else None


def run(code: str, folder: Path, kind: str = "python", more: str = "") -> str:
    command = ["bash", "-ec", code] if kind == "sh" else [sys.executable, "-c", code]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": f"{ROOT}{os.pathsep}{more}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{code}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def step(words: list[str]) -> str:
    """A command line of Python, as code for a process that has started Keras."""
    _, *words = words
    if words[0] == "-m" and words[1].startswith("distill."):
        return f"assert main({[words[1].removeprefix('distill.'), *words[2:]]}) == 0\n"
    if words[0] == "-m":
        return f"import subprocess; subprocess.run([sys.executable, *{words}], check=True)\n"
    script, *flags = words
    return f"""
sys.argv = {[script, *flags]}
try: runpy.run_path({script!r}, run_name="__main__")
except SystemExit as end: assert not end.code
"""


def run_page(blocks: list[tuple[str, str]], folder: Path) -> int:
    """Write the files of a page into a folder, then run its other blocks in one process; returns how many steps."""
    steps = []
    for kind, code in blocks:
        if kind == "sh":
            steps += [step(shlex.split(line, comments=True)) for line in code.replace("\\\n", "").splitlines()]
        elif name := file_name(code):
            (folder / name).write_text(code, encoding="utf-8")
        else:
            steps.append(code)
    body = "\n".join(f"    exec({code!r}, globals() | {{'__name__': 'step'}})" for code in steps)
    (folder / "run.py").write_text(START + body, encoding="utf-8")
    run(f"{shlex.quote(sys.executable)} run.py", folder, "sh")
    return len(steps)


def test_the_examples_of_extending_it_run(tmp_path):
    assert run_page(EXTENDING, tmp_path) > 12


@pytest.fixture(scope="module")
def ecosystem(tmp_path_factory) -> Path:
    """A folder in which the examples with other libraries have run."""
    folder = tmp_path_factory.mktemp("ecosystem")
    assert run_page([block for block in ECOSYSTEM if block[1] not in ON_JAX], folder) == 10
    return folder


def test_the_examples_with_other_libraries_run(ecosystem):
    assert (ecosystem / "my_export/saved_model/submission.py").is_file()


MOVES = """  # after the example with pgx, which names `env` and `choose`
import numpy as np
predict = distill.load_pretrained("pillar")
turn = jax.jit(lambda state: (jax.vmap(env.step)(state, choose(state.observation)), choose(state.observation)))
state = jax.vmap(env.init)(jax.random.split(jax.random.PRNGKey(0), 7))
state = jax.vmap(env.step)(state, np.arange(7))
while not state.terminated.all():
    planes = np.asarray(state.observation, np.int8)
    state, columns = turn(state)
    assert (columns == predict(planes[..., 0] - planes[..., 1])["move"]).all()
print(int(state._step_count.min()))
"""


def test_the_examples_on_jax_run_without_tensorflow_and_a_network_moves_inside_jit_as_it_does_elsewhere(tmp_path):
    assert len(ON_JAX) == 2
    said = run("".join(["import sys; sys.modules['tensorflow'] = None\n", *ON_JAX, MOVES]), tmp_path)
    assert int(said.splitlines()[-1]) >= 7
    assert (tmp_path / "my_copy.keras").is_file()


@pytest.mark.slow
def test_the_match_runs_in_kaggles_package(ecosystem, tmp_path):
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path)]
    subprocess.run([*pip, "kaggle-environments==1.33.2"], check=True)
    assert run((ecosystem / "my_match.py").read_text(), ecosystem, more=str(tmp_path)).splitlines()[-1] == "1"


@pytest.mark.skipif(not importlib.util.find_spec("onnx2torch"), reason="onnx2torch is not installed")
def test_the_module_runs_in_pytorch(ecosystem):
    assert run((ecosystem / "my_torch.py").read_text(), ROOT).startswith("3 ")
