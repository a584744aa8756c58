"""Where a teacher's Dirichlet noise acts: in the searches that label, or in the moves that are played."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from distill.games import checks, playing, runs
from distill.games.runs import RunSettings
from distill.mcts import uct
from distill.mcts.engine.record import GameRecord
from distill.mcts.textbook import source_hash

CLEAN = RunSettings(simulations=120, noise_fraction=0.0, seed=3)
AT_LABEL = dataclasses.replace(CLEAN, noise_fraction=0.25)
AT_MOVE = dataclasses.replace(AT_LABEL, noise_at="move")
GAMES = 12


def record_of(settings: RunSettings) -> GameRecord:
    starts = [runs.opening(settings, game) for game in range(GAMES)]
    current, mask = (np.array([getattr(start, name) for start in starts], np.uint64) for name in ("current", "mask"))
    return uct.play(current, mask, uct.draw(settings.seed, range(GAMES), 41, settings), settings)


@pytest.fixture(scope="module")
def at_move():
    return record_of(AT_MOVE)


def test_noise_changes_the_games_wherever_it_acts(at_move):
    clean, at_label = record_of(CLEAN), record_of(AT_LABEL)
    assert (clean.move == clean.label).all()
    assert (at_label.move == at_label.label).all()
    for record in (at_label, at_move):
        assert (record.mask != clean.mask).any(1).sum() > GAMES / 2, "most games differ"
    astray = (at_move.move != at_move.label)[at_move.label >= 0]
    assert 0.1 < astray.mean() < 0.3  # a quarter of the moves, less those that noise puts where the label is


def test_noise_at_the_move_leaves_labels_and_visits_clean(at_move):
    clean, at_label = record_of(CLEAN), record_of(AT_LABEL)
    assert (at_move.visits[:, 0] == clean.visits[:, 0]).all()  # of the positions that all games begin with
    assert (at_move.label[:, 0] == clean.label[:, 0]).all()
    assert (at_label.visits[:, 0] != clean.visits[:, 0]).any()


def test_rows_obey_the_law_of_where_the_noise_acts():
    table = playing.play_games(AT_MOVE, 0, GAMES)
    metadata = {"identity": runs.identity(AT_MOVE), "first_game": 0, "games": GAMES}
    assert metadata["identity"]["noise_at"] == "move"
    assert list(checks.faults(table, metadata)) == []
    at_label = metadata | {"identity": runs.identity(AT_LABEL)}
    found = [fault.what for fault in checks.faults(table, at_label)]
    assert found
    assert all("is not the label" in what for what in found)


def test_a_run_of_the_textbook_names_its_source():
    compiled, textbook = (runs.identity(RunSettings(engine=engine)) for engine in ("compiled", "reference"))
    assert textbook == compiled | {"engine": "reference", "reference": source_hash()}
