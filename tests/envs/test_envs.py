"""The environments of Gymnasium, PettingZoo, OpenSpiel and pgx: their checkers pass, games follow the rules, and equal
seeds give equal moves. (A network in pgx: `test_documented_code`.)
"""

import sys

import numpy as np
import pettingzoo
import pyspiel
import pytest
from gymnasium.utils.env_checker import check_env

import distill
from distill import envs
from distill.common import UserError
from distill.envs import openspiel, pgx
from distill.game import rules
from distill.players import names
from distill.players.player import checked_choices, seeds_for


def leftmost(boards, seeds):
    return np.argmax(boards[:, 0] == 0, axis=1)


@pytest.mark.filterwarnings("ignore:Observation numpy array is all zeros")  # the empty board
@pytest.mark.parametrize("mode", [None, "rgb_array"])
def test_gymnasiums_checker_passes(mode):
    check_env(envs.make("punisher", render_mode=mode))


def test_agents_play_in_pettingzoos_environment():
    game = pettingzoo.make("aec", "classic/connect_four_v3")
    agents = {"player_0": envs.agent(leftmost), "player_1": envs.agent(lambda boards, seeds: np.array([6]))}
    rewards = {}
    game.reset()
    for name in game.agent_iter():
        observation, reward, over, _, _ = game.last()
        rewards[name] = reward
        game.step(None if over else agents[name](observation))
    assert rewards == {"player_0": 1, "player_1": -1}


def test_an_agent_sees_the_opponents_stone_in_every_type_of_planes_and_refuses_what_is_no_observation():
    agent = envs.agent(lambda boards, seeds: np.array([0 if boards[0, 5, 0] == -1 else 6]))
    planes = np.zeros((6, 7, 2), np.int8)
    planes[5, 0, 1] = 1
    for dtype in (np.int8, np.uint8, np.bool_, np.float32):
        assert agent({"observation": planes.astype(dtype)}) == 0
    with pytest.raises(ValueError, match="boards have shape"):
        agent({"observation": planes.transpose(2, 0, 1)})
    for wrong in (255 * planes.astype(np.uint8), np.ones((6, 7, 2), np.int8)):
        with pytest.raises(ValueError, match="two planes of 0 and 1"):
            agent({"observation": wrong})
    planes[3, 3, 0] = 1
    with pytest.raises(ValueError, match="a stone floats"):
        agent({"observation": planes})
    env = envs.make("random")
    env.reset()
    with pytest.raises(TypeError):
        env.step(3.9)


def test_a_game_is_won_lost_and_forfeited():
    env = envs.make(leftmost, first=True, render_mode="rgb_array")
    observation, info = env.reset()
    assert not observation.any()
    assert info["action_mask"].all()
    rewards = [env.step(column)[1:3] for column in (1, 2, 3, 4)]
    assert rewards == [(0, False)] * 3 + [(1, True)]
    assert env.render().shape[2] == 3

    env = envs.make(leftmost, first=False)
    observation, _ = env.reset()
    assert observation[5, 0].tolist() == [0, 1]
    rewards = [env.step(column)[1:3] for column in (1, 1, 2)]
    assert rewards == [(0, False)] * 2 + [(-1, True)]


def test_a_full_column_is_masked_and_forfeits(caplog):
    env = envs.make(lambda boards, seeds: np.where(boards[:, 0, 3] == 0, 3, 0), first=True)
    env.reset()
    for _ in range(3):
        _, _, _, _, info = env.step(3)
    assert env.action_masks().tolist() == [True] * 3 + [False] + [True] * 3
    assert info["action_mask"].tolist() == [1, 1, 1, 0, 1, 1, 1]
    assert env.step(3)[1:3] == (-1, True)
    assert "Illegal move" in caplog.text


def test_the_same_seed_gives_the_same_game():
    def game(seed):
        env, columns = envs.make("random"), np.random.default_rng(0)
        seen = [env.reset(seed=seed)[0].tobytes()]
        for _ in range(4):
            seen.append(env.step(columns.choice(np.flatnonzero(env.action_masks())))[0].tobytes())
        return seen

    assert game(1) == game(1) != game(2)


def test_a_player_and_openspiels_search_play_each_other():
    start = pyspiel.load_game("connect_four").new_initial_state()
    bots = [openspiel.bot("punisher"), openspiel.mcts(300, seed=0)]
    assert sum(pyspiel.evaluate_bots(start.clone(), bots, 0)) == 0
    assert sum(pyspiel.evaluate_bots(start.clone(), bots[::-1], 0)) == 0


@pytest.mark.parametrize("moves", ["", "4453", "1212125"])
def test_a_bot_gets_the_position_and_the_seed(moves):
    states, position = [], rules.from_moves(moves)

    class Bot:
        def __init__(self, seat, seed):
            self.seat, self.seed = seat, seed

        def step(self, state):
            states.append(state)
            assert self.seat == state.current_player()
            return self.seed % 7

    board = distill.board(position)
    assert openspiel.player(Bot)(board[None], np.array([2**64 - 1], np.uint64)) == [(2**31 - 1) % 7]
    assert rules.parse_board(str(states[0]).upper()) == position
    assert states[0].current_player() == position.ply % 2


def test_openspiels_search_is_a_player_that_wins_where_it_can_and_repeats_its_moves():
    player = names.make("openspiel:mcts(200)")
    position = rules.from_moves("121212")
    current, mask = (np.full(8, bits, np.uint64) for bits in (position.current, position.mask))
    assert (checked_choices(player, current, mask, seeds_for(0, np.arange(8))).moves == 0).all()
    empty, seeds = np.zeros(8, np.uint64), seeds_for(0, np.arange(8))
    first, again = (checked_choices(player, empty, empty, seeds).moves.tolist() for _ in range(2))
    assert first == again
    assert "open-spiel" in names.identity("openspiel:mcts(200)")[1]


def test_a_wrong_backend_and_a_missing_package_cost_one_line(monkeypatch):
    with pytest.raises(UserError, match="needs KERAS_BACKEND=jax in the environment, not tensorflow"):
        pgx.moves("pillar")
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(UserError, match=r"needs the extra openspiel: python -m pip install .*openspiel"):
        names.make("openspiel:mcts(5)")
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "distill.envs.connect4", raising=False)
    monkeypatch.delattr(envs, "connect4", raising=False)
    with pytest.raises(UserError, match=r"distill.envs needs the extra envs: python -m pip install"):
        envs.make("club")
