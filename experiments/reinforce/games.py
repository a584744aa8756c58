"""The stream of REINFORCE: games of the learner against its opponents, as batches of the learner's own moves.

The opponents are earlier copies of the learner. After every window of games the gate decides, from the learner's score
in them, whether the learner replaces the oldest opponent. All random draws are functions of the run's seed, their
purpose and the number of the step, so a run that resumes from its checkpoint plays the games that it would have played.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import keras
import numpy as np
from numpy.typing import NDArray

from distill.game.rules import CELLS
from distill.networks import saved
from distill.networks.copies import copy, copy_weights
from distill.players.intervals import share
from distill.players.match import Games, Pairing, play_games, results_of
from distill.players.network import NetworkPlayer
from distill.players.player import seeds_for
from distill.training.schedule import State
from distill.training.step import TrainingModel
from distill.training.streams import Batch
from experiments.reinforce.settings import OpponentSettings, ReinforceConfig

LEARNER = 0
"""The learner's index in a list of players; its opponents, or its rival, follow."""

TRAINING_GAMES, CURVE_GAMES, FINAL_GAMES = range(3)
"""What the seed of a match is for."""


@dataclass(kw_only=True)
class GamesState(State):
    """Progress of a REINFORCE run.

    Attributes:
      replaced: how often the learner has become one of its opponents.
      window: the learner's points in each game since the last decision of the gate: 1, ½, 0.
      seconds: the time spent on games and steps.
    """

    replaced: int = 0
    window: list[float] = field(default_factory=list)
    seconds: float = 0.0


class GamesStream(Iterator[Batch]):
    """Batches of the learner's own moves in new games: one batch for each step.

    The targets of a move are its `return` and what else `run.policy_gradient_loss` takes.
    """

    def __init__(self, model: TrainingModel, core: keras.Model, config: ReinforceConfig, state: GamesState) -> None:
        self.config, self.state, self.step = config, state, state.step
        self.learner = model.core
        self.opponents = [copy(core, config.precision) for _ in range(config.opponents.number)]
        predicts = map(saved.predict_with, (model.core, *self.opponents))
        self.players = [NetworkPlayer(name="learner", predict=predict, mode="sample") for predict in predicts]
        self.scores: list[dict[str, float]] = []

    def __next__(self) -> Batch:
        config, learning, (first, last) = self.config, self.config.learning, self.config.learning.entropy
        pairings = both_sides(config.games, config.opponents.number)
        games = play_games(self.players, pairings, match_seed(config, TRAINING_GAMES, self.step))
        results = results_of(games, pairings, LEARNER)
        self.points = (results + 1) / 2
        self.scores.append({"score": float(np.mean(self.points)), "plies": len(games.moves) / config.games})
        moved, plies_left = learner_moves(games, pairings)
        returns = results[games.game[moved]] * learning.discount ** plies_left[moved]
        constants = {
            "baseline": float(np.mean(returns)) if learning.baseline == "mean" else 0.0,
            "entropy_weight": first + (last - first) * (self.step / config.steps),
        }
        targets = {"move": games.moves[moved].astype(np.int32), "return": returns.astype(np.float32)}
        targets |= {name: np.full(len(returns), value, np.float32) for name, value in constants.items()}
        self.step += 1
        return games.states[moved], targets, np.ones(len(returns), np.float32)

    def after_step(self) -> None:
        """Let the learner replace its oldest opponent, if the gate says so."""
        settings, state = self.config.opponents, self.state
        state.window, passed = decide(state.window, self.points.tolist(), settings)
        if passed:
            copy_weights(self.learner, self.opponents[state.replaced % settings.number])
            state.replaced += 1


def both_sides(games: int, opponents: int = 1) -> list[Pairing]:
    """Games from the empty board; the learner starts every other one, and its opponents take turns."""
    pairs = [1 + pair % opponents for pair in range(games // 2)]
    return [Pairing(first=a, second=b) for other in pairs for a, b in ((LEARNER, other), (other, LEARNER))]


def learner_moves(games: Games, pairings: Sequence[Pairing]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which of the N states the learner moves in, bool (N,), and the plies after each move, int64 (N,): 0 is last."""
    ply = np.count_nonzero(games.states.reshape(-1, CELLS), axis=1)
    starts = np.array([pairing.first == LEARNER for pairing in pairings])[games.game]
    lengths = np.array([len(line) for line in games.lines])[games.game]
    return starts == (ply % 2 == 0), lengths - 1 - ply


def match_seed(config: ReinforceConfig, purpose: int, number: int) -> int:
    """The seed of a match for one of the purposes above."""
    return int(seeds_for(config.seed, purpose, number)[0])


def decide(window: Sequence[float], points: Sequence[float], settings: OpponentSettings) -> tuple[list[float], bool]:
    """The window after a batch of games, and whether the candidate is above the gate.

    Windows are disjoint: each is evaluated once, when it holds enough games, and the next starts empty. Evaluated after
    every batch, a sliding window would sooner or later pass a candidate no better than the champion by chance.

    Args:
      window: the candidate's points in the games since the last decision, 1, ½ or 0 each.
      points: the same for the batch, against the same champion. Batches are not split.
      settings: `gate_rule` "lower" passes with a lower bound above the gate, "mean" with a score that reaches it.
    """
    whole = [*window, *points]
    if len(whole) < settings.gate_games:
        return whole, False
    score = share(whole)
    return [], score.low > settings.gate if settings.gate_rule == "lower" else score.mean >= settings.gate
