"""The names of players: they are parsed, a wrong one is refused with the known ones, and a record names the file
that is evaluated, its hash and its precision.
"""

import importlib.util
import zipfile

import pytest
from helpers import REFERENCE

from distill.common import UserError, file_hash
from distill.players.names import Name, check, evaluated, parse, recorded


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("punisher", Name(player="punisher")),
        ("teacher:30", Name(player="teacher", simulations=30)),
        ("models/cnn", Name(network="models/cnn", mode="policy")),
        ("cnn@sample", Name(network="cnn", mode="sample")),
        ("cnn@gumbel:8", Name(network="cnn", mode="gumbel", simulations=8)),
        ("/home/me@work/models/cnn", Name(network="/home/me@work/models/cnn", mode="policy")),
        ("openspiel:mcts(100)", Name(player="openspiel", simulations=100)),
        ("mine:player", Name(custom="mine:player")),
        ("/home/me@work/cnn@puct:5", Name(network="/home/me@work/cnn", mode="puct", simulations=5)),
    ],
)
def test_a_name_is_parsed(name, parts):
    assert parse(name) == parts


def test_a_record_names_the_file_that_is_evaluated_its_hash_and_its_precision(monkeypatch, tmp_path):
    def record(name, **how):
        (entry,) = evaluated([name, "random"], **how).values()
        assert entry["sha256"] == file_hash(folder / entry["file"])
        return entry["file"], entry["precision"], entry["network_sha256"] == network

    folder = REFERENCE / "pillar-large"
    network, name = file_hash(folder / "best.keras"), str(folder)
    assert record(name) == record(f"{name}@puct:5") == record(name, fast=True) == ("best.keras", "float32", True)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tensorflow" else find(name))
    assert record(name, fast=True) == ("saved_model/model.int8.onnx", "int8", True)
    folder, network = REFERENCE / "pillar", file_hash(REFERENCE / "pillar" / "best.keras")
    assert record("club", fast=True) == ("saved_model/model.onnx", "float32", True)
    with zipfile.ZipFile(tmp_path / "half.keras", "w") as archive:
        archive.writestr("config.json", '{"dtype": "mixed_bfloat16"}')
    (entry,) = evaluated([str(tmp_path / "half.keras")]).values()
    assert (entry["file"], entry["precision"]) == ("half.keras", "bfloat16")


def test_a_network_that_is_replaced_while_it_is_loaded_is_refused(tmp_path):
    network = tmp_path / "best.keras"
    network.write_bytes(b"one")
    loaded, records = recorded([str(tmp_path)], lambda name: (name, network.read_bytes()))
    assert loaded == [(str(tmp_path), b"one")]
    assert records[str(tmp_path)]["sha256"] == file_hash(network)
    with pytest.raises(UserError, match="was replaced while it was loaded"):
        recorded([str(tmp_path)], lambda _: network.write_bytes(b"two"))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("uct", "uct:N needs"),
        ("uct:0", "uct:N needs"),
        ("teacher:many", "teacher:N needs"),
        *(
            (f"uct:{wrong}", "uct:N needs a whole number of simulations from 1 to 10,000,000")
            for wrong in ("10000001", "\u0661\u0662", "1e3")
        ),
        ("mcts-solver:250001", "mcts-solver:N needs a whole number of simulations from 1 to 250,000"),
        *((f"openspiel:{bot}", r"openspiel:mcts\(N\) needs") for bot in ("mcts", "mcts(0)", "100", "uct(5)")),
        ("nobody", "unknown and no such path; networks by name are .*reference/cnn"),
        (".@puct", "puct:N needs a whole number of simulations from 1 to 16,384"),
        (".@gumbel:20000", "gumbel:N needs a whole number"),
        (".@mcts:100", "unknown mode 'mcts:100'; modes are policy, sample, puct:N, gumbel:N"),
    ],
)
def test_a_wrong_name_is_refused_with_the_known_ones(name, problem):
    with pytest.raises(ValueError, match=problem) as caught:
        check(name)
    assert repr(name) in str(caught.value)
