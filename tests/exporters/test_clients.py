"""The files that ship, float and in 8 bits, in the runtimes that read them. Property:

- in a fresh environment, with one runtime and NumPy and nothing else, the client of `examples/` answers
  64 boards with every network that ships: as its SavedModel where the file is a float one, and with nearly all of its
  moves where it is in 8 bits.

It needs the index: `pytest -m slow tests/exporters/test_clients.py -s` prints what the clients say.
"""

import json
import re
import shutil
import subprocess

import pytest
from helpers import FORMATS_SHIPPED, REFERENCE, SHIPPED

from distill.exporters import comparison
from distill.exporters.formats import FORMATS
from distill.networks import finding, saved
from tests import environments

BOARDS = 64
RUNTIMES = {"onnx": "onnxruntime", "litert": "ai-edge-litert"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """For each network the files that ship, and examples that are the SavedModel's answers."""
    made = []
    for name in SHIPPED:
        folder = tmp_path_factory.mktemp("models") / name
        folder.mkdir()
        for file in (REFERENCE / name / finding.PUBLISHED).glob("model.*"):
            shutil.copy(file, folder)
        boards = comparison.check_boards()[:BOARDS]
        outputs = saved.load(REFERENCE / name)(boards)
        examples = [
            {"board": boards[at].tolist(), **{key: array[at].tolist() for key, array in outputs.items()}}
            for at in range(BOARDS)
        ]
        (folder / "examples.json").write_text(json.dumps(examples))
        made.append(folder)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_files_that_ship_answer_as_the_saved_model_where_there_is_one_runtime_alone(tmp_path, folders, runtime):
    environments.linked(tmp_path / "env", RUNTIMES[runtime], "numpy")
    client = environments.ROOT / "examples" / f"{runtime}_client.py"
    for folder in folders:
        for name in {runtime, f"{runtime}-int8"} & FORMATS_SHIPPED[folder.name]:
            command = [tmp_path / "env" / "bin" / "python", "-I", client, folder, FORMATS[name].file]
            done = subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            first, second = done.stdout.splitlines()
            print(f"{folder.name} {FORMATS[name].file}: {first}; {second}")
            assert first == "the first board is empty: column 4 of 7"
            if name == runtime:
                assert second == f"{BOARDS} boards match examples.json"
            else:
                found = re.fullmatch(rf"differs by 0\.\d+; (\d+) of {BOARDS} moves are the same", second)
                assert found, second
                assert int(found[1]) >= 0.85 * BOARDS
