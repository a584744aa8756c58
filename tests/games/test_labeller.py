"""Labellers: `generate --labeller module:object`, and labels of the user's own. Properties:

- a user's labeller makes rows that `inspect` accepts and `prepare` reads, the same for any number of workers; another
  source, with the same name, is another run
- wrong output and a failing labeller are each one line that names the object, and nothing is written or deleted
- `generate_games` plays from Python; `write_labels` stores labels that `prepare` reads
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import bits, random_positions, shard_hashes, state

import distill
from distill import generate, inspect
from distill.common import OutputError, UserError
from distill.datasets import preparation
from distill.game import encoding, rules
from distill.game.rules import canonical_keys
from distill.games import playing, reader, schema, shards
from distill.games.settings import RunSettings
from distill.mcts.labeller import Labels, check_labels

ENGINE = """
import numpy as np
from distill import Labels

def label(boards, seeds):
    legal = boards[:, 0] == 0
    drawn = [np.random.default_rng(seed).integers(1, 50, 7) for seed in seeds]
    return Labels(visits=np.array(drawn) * legal, value=np.linspace(-1, 1, len(boards)))

_label = label
"""
SMALL = ["--games", "6", "--shard-games", "2", "--labeller", "my_engine:label"]


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A user's module in the working directory, imported afresh by each test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_engine.py").write_text(ENGINE)
    return tmp_path / "my_engine.py"


def test_a_users_labeller_makes_games(engine, capsys, complaint):
    assert generate.main([*SMALL, "--workers", "2", "--out", "two"]) == 0
    assert generate.main([*SMALL, "--workers", "1", "--out", "one"]) == 0
    assert shard_hashes(Path("one")) == shard_hashes(Path("two"))
    assert inspect.main(["one", "--labels", "0"]) == 0
    identity = reader.open_run(Path("one")).identity
    assert identity["labeller"] == "my_engine:label"
    assert "simulations" not in identity
    assert schema.read_table(Path("one/shard-00000.parquet"))[1]["identity"].items() <= identity.items()
    for row in schema.read_table(Path("one/shard-00001.parquet"))[0].to_pylist():
        assert row["visits"][row["label"]] == max(row["visits"])
        assert (row["votes"], row["move"], row["simulations"]) == ([row["label"]], row["label"], sum(row["visits"]))
    settings = preparation.TableSettings(data=["one"], validation_fraction=0.3, exclude=())
    tables = preparation.prepare(settings, Path("prepared"))
    assert len(preparation.load(tables.folder, schema.TRAINING))
    assert generate.main([*SMALL, "--out", "one"]) == 0
    assert "finished before" in capsys.readouterr().out
    engine.write_text(ENGINE + "# changed\n")
    assert "my_engine.py: changed after this process imported it" in complaint(generate, *SMALL, "--out", "one")
    del sys.modules["my_engine"]
    assert "labeller_source" in complaint(generate, *SMALL, "--out", "one")


def test_an_edit_during_a_run_changes_neither_its_games_nor_its_identity(engine):
    settings = RunSettings(labeller="my_engine:label", shard_games=2)
    run, task = settings.games_identity(), shards.Task(index=0, games=2)
    before = shards.play_shards(settings, run, [task])
    engine.write_text("an edit that is not finished")
    assert shards.play_shards(settings, run, [task]) == before
    assert settings.games_identity() == run


def test_a_labeller_is_tried_before_a_run_is_deleted(engine, complaint):
    (engine.parent / "fails.py").write_text('def label(boards, seeds):\n    raise ValueError("no weights")\n')
    assert generate.main([*SMALL, "--workers", "1", "--out", "run"]) == 0
    run = state(Path("run"))
    line = complaint(generate, *SMALL, "--restart", "--labeller", "fails:label", "--workers", 1, "--out", "run")
    assert line.startswith("distill generate: fails:label: ValueError: no weights (")
    assert state(Path("run")) == run


LEGAL = np.array([[True] * 7, [False] + [True] * 6])
ZEROS = np.zeros(2)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "returned NoneType, not distill.Labels"),
        (Labels(visits=[[1], [1, 2]], value=ZEROS), "returned visits that NumPy cannot convert ("),
        (Labels(visits=LEGAL * 1.0, value=ZEROS), "returned visits of type float64, not whole numbers"),
        (Labels(visits=LEGAL[:, :6] * 1, value=ZEROS), "returned visits of shape (2, 6), not (2, 7)"),
        (Labels(visits=LEGAL * -1, value=ZEROS), "returned visits that are negative or of a full column on 2"),
        (Labels(visits=LEGAL * 0 + 1, value=ZEROS), "returned visits that are negative or of a full column on 1"),
        (Labels(visits=LEGAL * 1, value=ZEROS + 2), "returned a value outside [-1, 1] on "),
        (Labels(visits=LEGAL * 1, value=ZEROS, label=np.full(2, 7)), "returned an illegal label on "),
        (Labels(visits=LEGAL * 1, value=ZEROS, votes=np.full((2, 2), 9)), "returned a vote for an illegal column"),
    ],
)
def test_wrong_labels_are_one_line(returned, message):
    with pytest.raises(OutputError) as caught:
        check_labels(returned, LEGAL)
    assert message in str(caught.value)


def test_visits_of_any_type_are_labelled_by_the_column_with_most():
    for kind in (np.uint8, np.uint64, np.int8):
        visits = np.array([[0, 2, 5, 0, 1, 0, 0]], kind)
        labels: Any = check_labels(Labels(visits=visits, value=np.zeros(1)), visits > 0)
        assert labels.label.tolist() == [2]


def test_games_are_generated_from_python(engine):
    run = distill.generate_games("mine", games=3, simulations=30, workers=1)
    assert isinstance(run, reader.GamesRun)
    assert run.games == 3
    assert distill.generate_games("mine", games=3, simulations=30) == run
    assert distill.generate_games("own", games=2, labeller="my_engine:_label", workers=1).games == 2
    with pytest.raises(ValueError, match="--simulations 0 must be"):
        distill.generate_games("mine", games=3, simulations=0)
    with pytest.raises(ValueError, match="out memory://games: name a folder"):
        distill.generate_games("memory://games", games=3)


def labelled(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At most so many random boards, distinct up to mirror, with visits and values."""
    current, mask = bits(*random_positions(number, seed=3))
    _, distinct = np.unique(canonical_keys(current, mask), return_index=True)
    current, mask = current[distinct], mask[distinct]
    # Doubled on a board that is its own mirror, they fit a byte.
    visits = np.random.default_rng(1).integers(1, 128, (len(mask), 7)) * rules.legal_mask(mask)
    return encoding.boards(current, mask), visits, np.random.default_rng(2).uniform(-1, 1, len(mask))


def test_own_labels_become_a_folder_that_prepare_reads(tmp_path):
    boards, visits, value = labelled(300)
    for nowhere in ("", "s3://bucket/mine"):
        with pytest.raises(UserError, match="must be a folder of this machine"):
            distill.write_labels(boards, visits, value, nowhere)
    out = distill.write_labels(boards, visits, value, tmp_path / "mine")
    assert distill.write_labels(boards, visits, value, str(out)) == out, "the same labels again"
    assert inspect.main([str(out), "--labels", "0"]) == 0
    (run,) = reader.open_runs([out])
    rows = reader.read(run.shards[0], ("current", "mask", "visits", "value", "outcome"))
    current, mask, mirrored = rules.canonicalise(*encoding.bitboards(boards))
    order = np.argsort(current + mask)
    np.testing.assert_array_equal(rows["mask"], mask[order])
    visits = np.where(mirrored[:, None], visits[:, ::-1], visits)
    own_mirror = rules.is_own_mirror(current, mask)
    visits[own_mirror] += visits[own_mirror][:, ::-1]
    np.testing.assert_array_equal(rows["visits"], visits[order])
    np.testing.assert_allclose(rows["value"], value[order], atol=0.5 / 127 + 1e-6)  # half a step of an int8
    np.testing.assert_array_equal(rows["outcome"], np.rint(value)[order])
    settings = preparation.TableSettings(data=[out], validation_fraction=0.0, exclude=())
    tables = preparation.prepare(settings, tmp_path / "prepared")
    assert len(preparation.load(tables.folder, schema.TRAINING)) == len(boards)
    with pytest.raises(UserError, match="holds packed boards with other settings"):
        distill.write_labels(boards[:9], visits[:9], value[:9], out)


def test_labels_of_a_board_and_its_mirror_are_merged(tmp_path):
    boards, visits, _ = (part[:1] for part in labelled(1))
    out = distill.write_labels(
        np.concatenate([boards, boards[:, :, ::-1]]),
        np.concatenate([visits, visits[:, ::-1]]),
        [1.0, 0.5],
        tmp_path / "mine",
    )
    rows = reader.read(reader.open_run(out).shards[0], ("visits", "value"))
    assert rows["visits"].max() == min(255, 2 * visits.max())
    assert abs(rows["value"][0] - 0.75) < 0.5 / 127 + 1e-6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b, v, w: (b[0], v, w), r"visits of shape \(\d+, 7\), not \(1, 7\)"),
        (lambda b, v, w: (-b, v, w), "the stone counts do not fit"),
        (lambda b, v, w: (b[:0], v[:0], w[:0]), "there are no boards"),
        (lambda b, v, w: (b, v / 200, w), "multiply probabilities by 1000 and round"),
        (lambda b, v, w: (b, v, ["won"] * 20), "could not convert string to float"),
        (lambda b, v, w: (b, v, w + 3), r"a value outside \[-1, 1\]"),
    ],
)
def test_own_labels_that_cannot_be_stored_are_one_line(tmp_path, change, message):
    with pytest.raises(UserError, match=message) as caught:
        distill.write_labels(*change(*labelled(20)), tmp_path / "mine")
    assert str(caught.value).startswith("write_labels: ")
    assert not (tmp_path / "mine").exists()


def plays_low(boards, seeds):
    visits = np.eye(7, dtype=int)[(boards[:, 0] == 0).argmax(axis=1)]
    return Labels(visits=visits, value=np.zeros(len(boards)))


def scribbles(boards, seeds):
    labels = plays_low(boards, seeds)
    boards[:], seeds[:] = 0, 0
    return labels


def test_a_labeller_may_use_its_boards_as_scratch():
    one, other = (RunSettings(labeller=f"{__name__}:{name}") for name in ("scribbles", "plays_low"))
    assert playing.play_games(one, 0, 8).equals(playing.play_games(other, 0, 8))
