"""The data card: what `distill.describe` counts, and what it writes.

- every count is the one that plain Python finds row by row, with boards and their mirrors as one
- the digest is what `sha256sum` prints
- one command on the card makes the same run again, the other writes the same card again
- labels are graded where the solver is installed; without it the card says so in one line, and the teacher labels again
  all the same, but not for a network's games
- a damaged file, a folder without games, an unfinished and an empty run are one line each
- a folder with its card in it is read as before
"""

import hashlib
import shlex
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from helpers import SIMULATIONS, VOTES, make_games, write_games

from distill import describe, prepare, validate
from distill.common import cli, folders, write_json
from distill.evaluation import data_card, labels, report
from distill.game.rules import Position, mirror, play
from distill.games import census, reader, runs, schema, shards
from distill.games.selfplay import SelfPlaySettings
from distill.games.selfplay import identity as selfplay_identity
from distill.generate import GenerateConfig

TEACHER = runs.RunSettings(simulations=SIMULATIONS, votes=VOTES, opening_moves=(1, 2), shard_games=10, seed=5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty finished games in four shards, with the identity of a small teacher's run."""
    write_games(tmp_path / "games", make_games(40, seed=1), identity=runs.identity(TEACHER))
    return tmp_path / "games"


def described(folder: Path, *flags: str) -> str:
    """The card of a folder, where it was asked for."""
    page = folder.parent / "card.md"
    assert describe.main([str(folder), "--out", str(page), "--workers", "1", "--top1-rows", "100", *flags]) == 0
    return page.read_text(encoding="utf-8")


def commands(card: str) -> list[list[str]]:
    """The words of the commands on a card: the one that makes the games, and the one that writes the card."""
    found = [line for line in card.replace("\\\n", " ").splitlines() if line.startswith("    python -m distill.")]
    return [shlex.split(line) for line in found]


def canonical(row: dict[str, Any]) -> Position:
    position = Position(row["current"], row["mask"])
    return min(position, mirror(position), key=lambda each: (each.current, each.mask))


def test_every_count_is_that_of_plain_python(folder):
    rows = make_games(40, seed=1).to_pylist()
    found = census.count(reader.open_run(folder))
    by_board = Counter(map(canonical, rows))
    for ply, counted in found.plies.to_dict("index").items():
        here = [canonical(row) for row in rows if row["ply"] == ply]
        repeated = sum(by_board[board] > 1 for board in here)
        assert counted == {"rows": len(here), "boards": len(set(here)), "repeated": repeated}
    totals = found.plies.sum()
    assert (totals["rows"], totals["boards"]) == (len(rows), len(by_board))
    assert totals["repeated"] > 0
    by_game = [[row for row in rows if row["game_id"] == game] for game in range(40)]
    assert found.lengths.tolist() == [game[-1]["ply"] + 1 for game in by_game]
    assert found.results == {result: sum(first_player(game) == result for game in by_game) for result in (1, 0, -1)}


def first_player(game: list[dict[str, Any]]) -> int:
    """The result of a game for its first player, from the last move on the board."""
    last = game[-1]
    if not play(Position(last["current"], last["mask"]), last["move"]).mask or not last["outcome"]:
        return 0
    return 1 if last["ply"] % 2 == 0 else -1


def test_both_commands_on_a_card_make_what_they_are_beside(folder, undrawn, capsys):
    generate_config = folders.stored(folders.GAMES, GenerateConfig(**cli.as_json(TEACHER), games=40, out=str(folder)))
    write_json(folder / "config.json", generate_config)
    first = described(folder, "--preset", "smoke", "--use", "It's for --no games -- but tests.")
    make, write = commands(first)
    config = cli.parse(GenerateConfig, make[3:])
    assert make[2] == "distill.generate"
    assert runs.identity(config) == runs.identity(TEACHER)
    assert (config.games, config.out) == (40, str(folder))
    assert "opening_moves [1, 2], seed 5, shard_games 10" in first, "a card may be kept without its games"
    assert describe.main(write[3:]) == 0
    assert (folder.parent / "card.md").read_text(encoding="utf-8") == first
    (folder / "config.json").unlink()
    assert f"    the command that made {folder}\n" in described(folder)


def test_the_labels_of_a_network_are_not_measured_again(tmp_path, undrawn):
    settings = SelfPlaySettings(simulations=7, fpu_reduction=None, noise_fraction=0.0, opening_moves=(1, 2), seed=3)
    write_games(tmp_path / "games", make_games(12, seed=3), identity=selfplay_identity(settings, "0123abcd-bfloat16"))
    text = described(tmp_path / "games", "--preset", "smoke")
    assert "each label is from a search of 7 simulations guided by a network" in text
    assert "two fresh labels agree" not in text


def test_the_card_tells_counts_and_hashes(folder, capsys):
    text = described(folder, "--label-rows", "0", "--use", "For tests alone.")
    run = reader.open_run(folder)
    boards = census.count(run).plies["boards"].sum()
    assert text.startswith("# Games `games`\n")
    votes = "each label is the majority of 3 votes, each by a search of 30"
    assert f"40 games, {run.rows:,} labelled positions; {votes}" in text
    assert "For tests alone." in text
    assert f"| distinct boards | {boards:,} up to mirror; " in text
    files = sorted(folder.glob("shard-*.parquet"))
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    assert hashlib.sha256(sums.encode()).hexdigest() in text
    wide = [line for line in text.splitlines() if len(line) > 120 and line[:1] not in ("|", " ")]
    assert not wide, "but for tables and commands"
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.endswith(f"card.md: 40 games, {run.rows:,} rows, {boards:,} distinct boards; labels not graded")


def test_without_the_solver_the_card_says_so_in_one_line(folder, undrawn, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "bitbully", None)
    (folder.parent / "card.md").write_text(data_card.TITLE)
    text = described(folder)
    section = text.split("## Label quality\n\n")[1].split("\n\n")[0]
    assert section == 'Not graded: the solver is not installed (`python -m pip install "bitbully>=0.0.70"`).'
    assert f"{folder}: {section}" in capsys.readouterr().err.splitlines()
    assert "critical" not in text
    assert "| two fresh labels agree |" in text, "labelling again needs no solver"
    assert census.bytes_digest(reader.open_run(folder)) in text


def test_labels_are_graded_by_the_solver_and_the_teacher_labels_again(tmp_path):
    pytest.importorskip("bitbully", reason="the solver is an optional extra")
    folder, table = tmp_path / "games", make_games(120, seed=1)
    late = table.filter(pa.array(table["ply"].to_numpy() >= 28))  # which the solver scores at once
    write_games(folder, late, identity=runs.identity(TEACHER))
    text = described(folder, "--label-rows", "40")
    assert f"Labels: 40 of {len(late)} labels graded\n\n{report.by_stones(labels.quality(folder, 40, seed=0))}" in text
    rows = labels.sample(folder, 100, seed=0)
    teacher = labels.teacher_of(folder)
    assert teacher is not None
    assert report.by_stones(labels.noise_ceiling(rows, teacher, seed=0)) in text
    manifest = schema.read_manifest(folder)
    for other in ({"search_version": 0}, {"engine": "reference", "reference": "edited"}, {"votes": 10**9}):
        schema.write_manifest(folder, manifest | {"identity": manifest["identity"] | other})
        assert labels.teacher_of(folder) is None, other


def test_a_folder_with_its_card_is_read_as_before(folder, undrawn, capsys):
    assert describe.main([str(folder), "--label-rows", "0", "--top1-rows", "0"]) == 0
    assert {"README.md"} <= {path.name for path in folder.iterdir()}
    assert validate.main([str(folder)]) == 0
    assert prepare.main(["--data", str(folder), "--exclude", "--out", str(folder.parent / "prepared")]) == 0
    assert len(shards.plan(TEACHER, 40, folder).done) == 4, "generate has nothing left to make"
    assert "violation" in capsys.readouterr().out


def test_a_folder_that_is_no_finished_and_sound_run_is_one_line(folder, tmp_path, complaint):
    empty, damaged = tmp_path / "empty", Path(shutil.copytree(folder, tmp_path / "damaged"))
    empty.mkdir()
    content = bytearray((damaged / "shard-00002.parquet").read_bytes())
    content[300] ^= 1
    (damaged / "shard-00002.parquet").write_bytes(content)
    write_games(tmp_path / "rowless", make_games(1, seed=1).slice(0, 0))
    (folder / "manifest.json").unlink()
    manifest = write_games(tmp_path / "strange", make_games(1, seed=1))
    schema.write_manifest(tmp_path / "strange", manifest | {"identity": None})
    manifest = write_games(tmp_path / "merged", make_games(1, seed=1))
    schema.write_manifest(tmp_path / "merged", manifest | {"kind": "packed", "inputs": [{}]})
    (tmp_path / "file").touch()
    for place, message in (
        (tmp_path / "nowhere", "no games here"),
        (empty, "no games here"),
        (tmp_path, "holds other files, not games; name a folder that generate has finished"),
        (folder, "no manifest.json, so the run that writes it is not finished"),
        (tmp_path / "rowless", "holds no rows"),
        (damaged, "shard-00002.parquet: "),
        (tmp_path / "file", "is a file; a folder is needed here"),
        (tmp_path / "merged", "does not say how the run was made"),
        (tmp_path / "strange", "does not say how the run was made"),
    ):
        line = complaint(describe, place)
        assert line.startswith(f"distill describe: {place}")
        assert message in line
        assert not (place / "README.md").exists()
