"""The arena that decides who plays next (`judge/gate.py`). Properties:

- the score is the challenger's;
- a killed arena goes on after its last block with the same games.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from distill.judge import gate
from distill.judge.players import RandomPlayer


def meet(path: Path, challenger: Any = None, champion: Any = None, **more: Any) -> dict[str, Any]:
    players = challenger or RandomPlayer(name="punisher", tactical=True), champion or RandomPlayer()
    return gate.meet(*players, games=60, plies=4, seed=2**63 + 5, path=path, **more)


def test_the_score_is_the_challengers(tmp_path: Path):
    strong = meet(tmp_path / "a.json")
    assert strong["score"] > 0.8
    weak = meet(tmp_path / "b.json", RandomPlayer(), RandomPlayer(name="punisher", tactical=True))
    assert weak["score"] < 0.2
    assert strong["distinct_games"] == 60
    stored = json.loads((tmp_path / "a.json").read_text())
    assert len(stored["results"]) == len(stored["lines"]) == 60


def test_an_interrupted_arena_goes_on_after_its_last_block(tmp_path: Path):
    whole = meet(tmp_path / "whole.json")
    told: list[int] = []

    def dies(number: int) -> None:
        told.append(number)
        if sum(told) > 45:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        meet(tmp_path / "cut.json", advance=dies)
    assert len(json.loads((tmp_path / "cut.json").read_text())["results"]) == gate.BLOCK
    assert meet(tmp_path / "cut.json") == whole
    assert (tmp_path / "cut.json").read_text() == (tmp_path / "whole.json").read_text()
