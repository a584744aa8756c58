"""A REINFORCE run: games of the learner against its opponents, a training step after each batch, gate, evaluations.

`training/policy_gradient.py` has the training step. All random draws are functions of the run's seed, their purpose and
the number of the step, so a run that resumes from its checkpoint plays the games that it would have played.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from distill.alphazero.settings import ReinforceConfig
from distill.common import Progress, UserError, say
from distill.game.rules import CELLS
from distill.networks import finding
from distill.players.intervals import share
from distill.players.match import Games, Pairing, decide, play_games, results_of
from distill.players.names import make
from distill.players.network import NetworkPlayer
from distill.players.player import Player, seeds_for

if TYPE_CHECKING:
    import keras

    from distill.networks.predict import Predict
    from distill.training.policy_gradient import WithOpponents

ARCH = "mk4"
"""The network of a run that starts from scratch without --arch."""

FILES = ("checkpoint.npz", finding.BEST, "history.csv", "curves.png")
"""What --restart deletes."""

Mode = Literal["sample", "policy"]
"""Whether a network draws its move from its policy, or plays the most likely column."""

RIVALS = ("punisher", "random")
"""The players that a network is evaluated against."""
LEARNER = 0
"""The learner's index in a list of players; its opponents, or its rival, follow."""

TRAINING_GAMES, CURVE_GAMES, FINAL_GAMES = range(3)
"""What the seed of a match is for."""

PANELS = {
    "games won": ["punisher_won", "random_won"],
    "score against the opponent": ["score"],
    "entropy of the policy, nats": ["entropy"],
}
"""Titles and columns of `curves.png`."""


@dataclass(kw_only=True)
class State:
    """What the next step depends on, besides the variables of the networks and the optimizer.

    Attributes:
      replaced: how often the learner has become one of its opponents.
      window: the learner's points in each game since the last decision of the gate: 1, ½, 0.
      curve: the evaluations so far.
    """

    step: int = 0
    replaced: int = 0
    window: list[float] = field(default_factory=list)
    curve: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0


def train(core: keras.Model, config: ReinforceConfig, out: Path) -> State:
    """Play and learn until all steps are done, or resume from the folder's checkpoint.

    `core` takes the averaged weights. Raises UserError where the loss or the policy stops being finite.
    """
    from distill.networks import saved
    from distill.training import checkpoint, history, policy_gradient, step

    values, state = checkpoint.load(out, State) or (None, State())
    if state.step == config.steps:  # interrupted after the last step: BEST is its result
        core.set_weights(saved.load_core(out / finding.BEST).get_weights())
        return state
    say("compiling the training step")
    model = policy_gradient.learner(
        core,
        config.learning.baseline,
        config.learning.value_weight,
        config.opponents.number,
        config.precision,
        config.learning.ema,
    )
    if values:
        checkpoint.restore(model, values, out)
        step.copy_learned(model, core)
    predict = saved.predict_with(core)  # follows later changes of the weights
    players = [sampler(saved.predict_with(network)) for network in (model.core, *model.opponents)]
    if not state.curve:
        games = config.evaluation.eval_games
        say(f"evaluating the initial network: {games:,} games against each of {', '.join(RIVALS)}")
        evaluate(predict, config, state, {})
    total = config.steps * config.games
    with Progress(total, "games", done=state.step * config.games, warm_up=True) as progress:
        while state.step < config.steps:
            began = time.monotonic()
            latest: list[dict[str, float]] = []
            try:
                for _ in range(min(config.evaluation.eval_every, config.steps - state.step)):
                    latest.append(take_step(model, players, config, state))
                    progress.reach((state.step - 1) * config.games, _note(state))  # the last one: once it is evaluated
                step.copy_learned(model, core)
                state.seconds += time.monotonic() - began
                means = {name: float(np.mean([row[name] for row in latest])) for name in latest[0]}
                evaluate(predict, config, state, means)
            except UserError as error:
                hint = "start from scratch with --restart and a smaller --lr"
                raise UserError(f"after {state.step} steps: {error}; {hint}") from None
            saved.save_network(core, out / finding.BEST)
            history.write(out, state.curve, PANELS, over="games")
            checkpoint.save(out, model, dataclasses.asdict(state))  # last, because it marks these steps as done
            progress.reach(state.step * config.games, _note(state))
    return state


def take_step(
    model: WithOpponents, players: Sequence[Player], config: ReinforceConfig, state: State
) -> dict[str, float]:
    """One batch of games, one training step, and a new opponent if the gate says so; returns means over the batch."""
    from distill.training import policy_gradient

    # Play.
    done = state.step / config.steps
    pairings = both_sides(config.games, config.opponents.number)
    games = play_games(players, pairings, _seed(config, TRAINING_GAMES, state.step))
    # Learn from the learner's own moves.
    own, plies_left = learner_moves(games, pairings)
    returns = games.returns[own] * config.learning.discount ** plies_left[own]
    entropy_weight = policy_gradient.linear(*config.learning.entropy, done)
    target = policy_gradient.targets(games.moves[own], returns, config.learning.baseline, entropy_weight)
    means = policy_gradient.step(model, games.states[own], target, policy_gradient.stepwise(config.learning.lr, done))
    state.step += 1
    # Decide whether the learner replaces its oldest opponent.
    points = (results_of(games, pairings, LEARNER) + 1) / 2
    state.window, passed = decide(
        state.window,
        points.tolist(),
        games=config.opponents.gate_games,
        gate=config.opponents.gate,
        rule=config.opponents.gate_rule,
    )
    if passed:
        model.replace_opponent(state.replaced % config.opponents.number)
        state.replaced += 1
    return means | {"score": float(np.mean(points)), "plies": len(games.moves) / config.games}


def sampler(predict: Predict, mode: Mode = "sample") -> NetworkPlayer:
    """The player that draws its moves from a network's policy."""
    return NetworkPlayer(name="learner", predict=predict, mode=mode)


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


def evaluate(predict: Predict, config: ReinforceConfig, state: State, latest: dict[str, float]) -> None:
    """Add a row to the curve: the means of the latest steps, and the games won and drawn against each rival."""
    row: dict[str, float] = {"step": state.step, "games": state.step * config.games, "seconds": round(state.seconds, 1)}
    row |= {name: round(value, 5) for name, value in latest.items()} | {"checkpoints": state.replaced}
    for rival in RIVALS:
        found = against(predict, rival, config.evaluation.eval_games, _seed(config, CURVE_GAMES, state.step))
        row |= {f"{rival}_won": float((found > 0).mean()), f"{rival}_drawn": float((found == 0).mean())}
    state.curve.append(row)


def against(predict: Predict, rival: str, games: int, seed: int, mode: Mode = "sample") -> NDArray[np.float32]:
    """float32 (games,), the network's results against a rival from the empty board, half of them from either side."""
    pairings = both_sides(games)
    return results_of(play_games([sampler(predict, mode), make(rival)], pairings, seed), pairings, LEARNER)


def final_evaluation(predict: Predict, config: ReinforceConfig) -> dict[str, Any]:
    """By rival, the games won of `final_games`, with a 95 % interval, and drawn; with sampled and with greedy moves."""
    modes: dict[str, Mode] = {"": "sample", "_greedy": "policy"}
    say(f"evaluating the result: {len(RIVALS) * len(modes)} matches of {config.evaluation.final_games:,} games")
    report: dict[str, Any] = {}
    for number, rival in enumerate(RIVALS):
        for suffix, mode in modes.items():
            found = against(predict, rival, config.evaluation.final_games, _seed(config, FINAL_GAMES, number), mode)
            won = dataclasses.asdict(share(found > 0, trials=1))
            # The interval of the games won; a draw counts as not won.
            report[f"{rival}{suffix}"] = {"games": len(found), "won": won, "drawn": float((found == 0).mean())}
    return report


def _seed(config: ReinforceConfig, purpose: int, number: int) -> int:
    return int(seeds_for(config.seed, purpose, number)[0])


def _note(state: State) -> str:
    last = state.curve[-1]
    score = f"{np.mean(state.window):.1%}" if state.window else "new"
    return f"opponent {state.replaced}: {score} · punisher {last['punisher_won']:.1%} · random {last['random_won']:.1%}"
