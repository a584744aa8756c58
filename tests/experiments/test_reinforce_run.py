"""A REINFORCE run (`experiments/reinforce/`): whose moves are learned, schedules, the gate, and kills at any point."""

import numpy as np
import pytest
from network_helpers import killed_at, same, tiny_network

from distill.common import UserError
from distill.common.settings import build
from distill.networks import saved
from distill.players.match import play_games, results_of
from distill.players.names import make
from distill.training import checkpoint, history, step
from experiments.reinforce import games as source
from experiments.reinforce import run
from experiments.reinforce.games import LEARNER
from experiments.reinforce.settings import ReinforceConfig

TINY = build(
    ReinforceConfig,
    {"steps": 4, "games": 6, "gate_games": 6, "eval_every": 2, "eval_games": 4, "baseline": "none", "seed": 5},
)

NO_GAMES = {"games": 0, "punisher_won": 0.0, "random_won": 0.0, "score": 0.0, "entropy": 0.0}
SCHEDULE = ((1e-2, 0.12), (1e-2, 0.10), (1e-3, 0.08), (1e-3, 0.06))
"""Learning rate and weight of the entropy of four steps."""


def test_the_learners_moves_are_those_of_its_side_with_the_result_for_that_side():
    seats = [(pairing.first, pairing.second) for pairing in source.both_sides(8, opponents=3)]
    assert seats == [(0, 1), (1, 0), (0, 2), (2, 0), (0, 3), (3, 0), (0, 1), (1, 0)], "opponents take turns"
    pairings = source.both_sides(40)
    games = play_games([make("punisher"), make("random")], pairings, seed=1)
    moved, left = source.learner_moves(games, pairings)
    results = results_of(games, pairings, LEARNER)
    assert results.mean() > 0.5, "the punisher beats random play"
    for number, pairing in enumerate(pairings):
        rows, starts = np.flatnonzero((games.game == number) & moved), pairing.first == LEARNER
        line = games.lines[number]
        stones = np.count_nonzero(games.states[rows].reshape(-1, 42), axis=1)
        assert stones.tolist() == list(range(not starts, len(line), 2))
        assert (stones + left[rows] + 1 == len(line)).all()
        assert games.moves[rows].tolist() == list(line[not starts :: 2])


def test_learning_rates_apply_for_equal_shares_and_the_entropy_weight_changes_evenly(tmp_path, monkeypatch, eagerly):
    steps, take = list[tuple[float, float]](), step.train_step

    def watched(model, batch):
        steps.append((float(model.optimizer.learning_rate), float(batch[1]["entropy_weight"][0])))
        return take(model, batch)

    monkeypatch.setattr(step, "train_step", watched)
    trained(tmp_path, build(ReinforceConfig, dict(TINY), {"lr": (1e-2, 1e-3), "entropy": (0.12, 0.04)}))
    assert steps[-4:] == [(pytest.approx(rate), pytest.approx(weight)) for rate, weight in SCHEDULE]


def test_the_checkpoint_is_replaced_at_the_end_of_a_window_that_shows_the_learner_above_it(
    tmp_path, monkeypatch, eagerly
):
    batches = iter([[0.0] * 6, [1.0] * 6, [1.0] * 6, [1.0] * 6, [0.5] * 6])
    monkeypatch.setattr(source, "results_of", lambda *_: 2 * np.array(next(batches)) - 1)
    monkeypatch.setattr(run, "evaluated", lambda *_: NO_GAMES)
    config = build(ReinforceConfig, dict(TINY), {"gate_games": 12, "steps": 5, "opponents.number": 2})
    variables, state = trained(tmp_path, config)  # windows of two batches
    # 0 and 1 make 50 %; the second 1 and the third are a window of their own, though a running mean had passed before.
    assert state.replaced == 1
    assert state.window == [0.5] * 6
    weights = len(tiny_network().weights)
    learner, first, second = variables[:weights], variables[-2 * weights : -weights], variables[-weights:]
    assert not any(same(*pair) for pair in ((learner, first), (learner, second), (first, second)))
    step.make_repeatable(config.seed)
    assert same(second, tiny_network().get_weights()), "only the oldest opponent is replaced"


def trained(folder, config=TINY):
    """The variables of learner, opponent and optimizer after a run of the tiny network, and where it got to."""
    folder.mkdir(exist_ok=True)
    step.make_repeatable(config.seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "write", lambda *_, **__: None)  # to draw the curves takes longer than the steps
        state = run.train(tiny_network(config.learning.baseline == "value"), config, folder)
    return checkpoint.load(folder)[0], state


def test_a_run_interrupted_again_and_again_ends_with_the_weights_of_an_uninterrupted_one(tmp_path):
    """Of the tiny network, which replaces its opponents, and whose average is kept."""
    changes = {"gate": 0.05, "gate_games": 18, "lr": (1e-2, 1e-3), "opponents.number": 2, "ema": 0.5}
    config = build(ReinforceConfig, dict(TINY), changes)  # a window ends inside an interval
    expected, state = trained(tmp_path / "whole", config)
    assert state.replaced > 0
    for module, name, last_call in (
        (checkpoint, "save", 1),  # before the first checkpoint
        (step, "train_step", 5),  # the third step: two calls make the graph
        (saved, "save_network", 1),  # before the second checkpoint
    ):
        with killed_at(module, name, last_call):
            trained(tmp_path / "cut", config)
    resumed, state_after = trained(tmp_path / "cut", config)
    assert same(expected, resumed)
    for row, after in zip(state.history, state_after.history, strict=True):
        assert row | {"seconds": 0} == after | {"seconds": 0}
    assert (state.window, state.replaced) == (state_after.window, state_after.replaced)
    assert len(state.window) == 6, "the last game of an open window counts, before and after"


def test_a_loss_that_is_not_finite_ends_the_run_with_one_line(tmp_path, eagerly):
    line = r"^after \d steps: learner: returned a policy that does not sum to 1 on .*; start .* and a smaller --lr$"
    with pytest.raises(UserError, match=line):
        trained(tmp_path, build(ReinforceConfig, dict(TINY), {"lr": (1e30,)}))
