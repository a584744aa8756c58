"""A REINFORCE run (`alphazero/reinforce.py`). Properties:

- the learner's moves are those of its side, with the game's result for the side that made them;
- the published schedules; an opponent is replaced where a window of games shows the learner above the gate;
- a small network learns wins in one; a loss that is not finite is named;
- a run killed at any point ends with the weights, the opponents and the curve of an uninterrupted one.
"""

import keras
import numpy as np
import pytest
from network_helpers import WIN_IN_THE_MIDDLE, WIN_ON_THE_RIGHT, killed_at, policy_of, same, tiny_network

from distill.alphazero import reinforce
from distill.alphazero.presets import REINFORCE_PRESETS
from distill.alphazero.reinforce import LEARNER
from distill.alphazero.settings import ReinforceConfig
from distill.common import UserError
from distill.common.settings import build
from distill.game import encoding, rules
from distill.networks import saved
from distill.players.match import play_games, results_of
from distill.players.names import make
from distill.players.network import NetworkPlayer
from distill.players.player import seeds_for
from distill.training import checkpoint, history, policy_gradient, step

TINY = build(
    ReinforceConfig,
    {"steps": 4, "games": 6, "gate_games": 6, "eval_every": 2, "eval_games": 4, "baseline": "none", "seed": 5},
)


NO_GAMES = {"games": 0, "punisher_won": 0.0, "random_won": 0.0, "score": 0.0, "entropy": 0.0}


def make_player(core: keras.Model, mode: str) -> NetworkPlayer:
    return NetworkPlayer(name="network", predict=saved.predict_with(core), mode=mode)


def test_the_learners_moves_are_those_of_its_side_with_the_result_for_that_side():
    seats = [(pairing.first, pairing.second) for pairing in reinforce.both_sides(8, opponents=3)]
    assert seats == [(0, 1), (1, 0), (0, 2), (2, 0), (0, 3), (3, 0), (0, 1), (1, 0)], "opponents take turns"
    pairings = reinforce.both_sides(40)
    games = play_games([make("punisher"), make("random")], pairings, seed=1)
    own, left = reinforce.learner_moves(games, pairings)
    results = results_of(games, pairings, LEARNER)
    assert results.mean() > 0.5, "the punisher beats random play"
    np.testing.assert_array_equal(games.returns[own], results[games.game[own]])
    np.testing.assert_array_equal(games.returns[~own], -results[games.game[~own]])
    for number, pairing in enumerate(pairings):
        rows, starts = np.flatnonzero((games.game == number) & own), pairing.first == LEARNER
        line = games.lines[number]
        stones = np.count_nonzero(games.states[rows].reshape(-1, 42), axis=1)
        assert stones.tolist() == list(range(not starts, len(line), 2))
        assert (stones + left[rows] + 1 == len(line)).all()
        assert games.moves[rows].tolist() == list(line[not starts :: 2])


def test_the_published_learning_rates_and_entropy_weights_are_passed_through():
    config = build(ReinforceConfig, REINFORCE_PRESETS["published"].values)
    rates = [policy_gradient.stepwise(config.learning.lr, done / 300) for done in range(300)]
    assert rates == [1e-3] * 100 + [1e-4] * 100 + [1e-5] * 100
    assert policy_gradient.linear(*config.learning.entropy, 0.0) == 0.05
    assert policy_gradient.linear(*config.learning.entropy, 0.5) == pytest.approx(0.04)
    assert policy_gradient.linear(*config.learning.entropy, 1.0) == pytest.approx(0.03)
    assert (config.arch, config.opponents.gate, config.opponents.gate_rule, config.learning.baseline) == (
        "mk4",
        0.52,
        "mean",
        "none",
    )


def test_the_checkpoint_is_replaced_at_the_end_of_a_window_that_shows_the_learner_above_it(
    tmp_path, monkeypatch, eagerly
):
    batches = iter([[0.0] * 6, [1.0] * 6, [1.0] * 6, [1.0] * 6, [0.5] * 6])
    copies = []
    monkeypatch.setattr(reinforce, "results_of", lambda *_: 2 * np.array(next(batches)) - 1)
    monkeypatch.setattr(reinforce, "evaluate", lambda _predict, _config, state, _means: state.curve.append(NO_GAMES))
    monkeypatch.setattr(policy_gradient.WithOpponents, "replace_opponent", lambda _, number: copies.append(number))
    config = build(ReinforceConfig, dict(TINY), {"gate_games": 12, "steps": 5})  # windows of two batches
    state = trained(tmp_path, config)[1]
    # 0 and 1 make 50 %; the second 1 and the third are a window of their own, though a running mean had passed before.
    assert state.replaced == 1
    assert state.window == [0.5] * 6
    assert copies == [0]


def test_a_small_network_finds_wins_in_one():
    keras.utils.set_random_seed(6)
    core = tiny_network()
    model = policy_gradient.learner(core, "none", 0.5)
    player = make_player(model.core, "sample")
    positions = [rules.parse_board(drawing) for drawing in (WIN_ON_THE_RIGHT, WIN_IN_THE_MIDDLE)] * 32
    current, mask = (np.array([getattr(p, name) for p in positions], np.uint64) for name in ("current", "mask"))
    boards = encoding.boards(current, mask)
    for number in range(120):
        moves = player.choose(current, mask, seeds_for(number, np.arange(64))).moves
        won = [rules.is_won(rules.next_position(p, int(move))) for p, move in zip(positions, moves, strict=True)]
        target = policy_gradient.targets(moves, np.where(won, 1.0, -1.0), "none", 0.01)
        policy_gradient.step(model, boards, target, 3e-3)
    policy = policy_of(model.core, boards[:2])
    assert policy[0, 6] > 0.9
    assert policy[1, 3] > 0.9


def trained(folder, config=TINY):
    """The variables of learner, opponent and optimizer after a run of the tiny network, and where it got to."""
    folder.mkdir(exist_ok=True)
    step.make_repeatable(config.seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "write", lambda *_, **__: None)  # to draw the curves takes longer than the steps
        state = reinforce.train(tiny_network(config.learning.baseline == "value"), config, folder)
    return checkpoint.load(folder)[0], state


def test_a_run_interrupted_again_and_again_ends_with_the_weights_of_an_uninterrupted_one(tmp_path):
    """Of the tiny network, which replaces its opponents, and whose average is kept."""
    changes = {"gate": 0.05, "gate_games": 18, "lr": (1e-2, 1e-3), "opponents.number": 2, "ema": 0.5}
    config = build(ReinforceConfig, dict(TINY), changes)  # a window ends inside an interval
    expected, state = trained(tmp_path / "whole", config)
    assert state.replaced > 0
    for module, name, last_call in (
        (checkpoint, "save", 1),  # before the first checkpoint
        (policy_gradient, "step", 5),  # the third step: two calls make the graph
        (saved, "save_network", 1),  # before the second checkpoint
    ):
        with killed_at(module, name, last_call):
            trained(tmp_path / "cut", config)
    resumed, state_after = trained(tmp_path / "cut", config)
    assert same(expected, resumed)
    for row, after in zip(state.curve, state_after.curve, strict=True):
        assert row | {"seconds": 0} == after | {"seconds": 0}
    assert (state.window, state.replaced) == (state_after.window, state_after.replaced)
    assert len(state.window) == 6, "the last game of an open window counts, before and after"


def test_a_loss_that_is_not_finite_ends_the_run_with_one_line(tmp_path, eagerly):
    with pytest.raises(UserError, match="steps: learner: returned a policy that does not sum to 1 on") as caught:
        trained(tmp_path, build(ReinforceConfig, dict(TINY), {"lr": (1e30,)}))
    assert "\n" not in str(caught.value)
    assert "start from scratch with --restart and a smaller --lr" in str(caught.value)
