"""REINFORCE, the run: games of the learner against its opponents, steps of the gradient, the gate, measurements.

What one step of the gradient is stands in `training/policy_gradient.py`; all else that a run does is here. Everything
drawn is a function of the run's seed, what it is for, and the number of the step; so a run that goes on from its
folder's checkpoint plays the games it would have played.
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

from distill import networks
from distill.alphazero.settings import ReinforceConfig
from distill.common import Progress, UserError, folders, say
from distill.game.rules import CELLS
from distill.networks import finding
from distill.players.gate import decide
from distill.players.intervals import share
from distill.players.match import Games, Pairing, play_games
from distill.players.names import make
from distill.players.network import NetworkPlayer
from distill.players.player import Player, seeds_for
from distill.training import run_folder

if TYPE_CHECKING:
    import keras

    from distill.networks.predict import Predict
    from distill.training.policy_gradient import WithOpponents

ARCH: networks.Arch = "mk4"
"""The network to begin with where neither --arch nor --init names one."""

OWN_FILES = (run_folder.METRICS, "checkpoint.npz", finding.BEST, "history.csv", "curves.png", "events")
"""What a restart deletes, in this order."""

Mode = Literal["sample", "policy"]
"""Whether a network draws its move by its policy or plays the likeliest column."""

RIVALS = ("punisher", "random")
LEARNER = 0
"""Its place in a list of players; its opponents, or its rival, follow."""

TRAINING_GAMES, CURVE_GAMES, FINAL_GAMES = range(3)
"""What games are for: one of the numbers their random draws are a function of."""

PANELS = {
    "games won": ["punisher_won", "random_won"],
    "score against the opponent": ["score"],
    "entropy of the policy, nats": ["entropy"],
}
"""What the curves show, by title."""


@dataclass(kw_only=True)
class State:
    """Where a run is: with the variables of both networks and the optimizer, all that the next step depends on."""

    step: int = 0
    replaced: int = 0
    window: list[float] = field(default_factory=list)
    """The learner's points in each game since the gate last decided: 1, ½, 0."""
    curve: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0


def name_of(config: ReinforceConfig) -> str:
    """The name of the network to begin with, as identities tell it: known before Keras is loaded."""
    if config.init is None:
        return config.arch or ARCH
    return finding.model_name(finding.network_file(config.init))


def network(config: ReinforceConfig) -> keras.Model:
    """The network to begin with. Raises UserError for one without the value head that the baseline needs."""
    networks.start_backend(aloud=True)
    from distill.networks import heads, saved
    from distill.training import step

    step.make_repeatable(config.seed)
    if config.init is None:
        return networks.build(config.arch or ARCH, value_head=config.baseline == "value")
    core = saved.load_core(finding.network_file(config.init))
    if config.baseline == "value" and not heads.has_value(core):
        raise UserError(f"{config.init}: no value head, which --baseline value needs; take mean or none")
    return core


def claim(out: Path, config: ReinforceConfig, name: str) -> run_folder.Claim:
    """The run's claim to its folder; `name` is that of its network."""
    free = ("out", "init", "restart")
    return run_folder.claim(out, folders.REINFORCE, OWN_FILES, config, free, {"arch": name})


def train(core: keras.Model, config: ReinforceConfig, out: Path) -> State:
    """Play and learn until all steps are done, going on from the folder's checkpoint where there is one.

    `core` becomes the average of what was learned. Raises UserError where the loss or the policy stops being a number.
    """
    from distill.networks import saved
    from distill.training import checkpoint, policy_gradient

    found = checkpoint.load(out)
    state = State(**found[1]) if found else State()
    if state.step == config.steps:  # interrupted after the last step: BEST is its result
        core.set_weights(saved.load_core(out / finding.BEST).get_weights())
        return state
    say("compiling the training step")
    model = policy_gradient.learner(
        core, config.baseline, config.value_weight, config.opponents, config.precision, config.ema
    )
    if found:
        checkpoint.restore(model, found[0])
        core.set_weights(model.average.get_weights())
    predict = saved.predict_with(core)  # it sees later changes of the weights
    players = [_player("learner", saved.predict_with(model.core))]
    players += [_player("opponent", saved.predict_with(opponent)) for opponent in model.opponents]
    if not state.curve:
        say(f"measuring the network that begins: {config.eval_games:,} games against each of {', '.join(RIVALS)}")
        _measure(predict, config, state, {})
    total = config.steps * config.games
    with Progress(total, "games", done=state.step * config.games, warm_up=True) as progress:
        while state.step < config.steps:
            began = time.monotonic()
            latest: list[dict[str, float]] = []
            try:
                for _ in range(min(config.eval_every, config.steps - state.step)):
                    latest.append(_step(model, players, config, state))
                    progress.reach((state.step - 1) * config.games, _note(state))  # all done: once it is measured
                core.set_weights(model.average.get_weights())
                state.seconds += time.monotonic() - began
                means = {name: float(np.mean([row[name] for row in latest])) for name in latest[0]}
                _measure(predict, config, state, means)
            except UserError as error:
                hint = "begin anew with --restart and a smaller --lr"
                raise UserError(f"after {state.step} steps: {error}; {hint}") from None
            saved.save_network(core, out / finding.BEST)
            _save(out, model, state)
            progress.reach(state.step * config.games, _note(state))
    return state


def _step(model: WithOpponents, players: Sequence[Player], config: ReinforceConfig, state: State) -> dict[str, float]:
    """One batch of games, one step of the gradient, and a new opponent if the gate says so."""
    from distill.training import policy_gradient

    done = state.step / config.steps
    rate = policy_gradient.stepwise(config.lr, done)
    entropy_weight = policy_gradient.linear(*config.entropy, done)
    pairings = both_sides(config.games, config.opponents)
    games = play_games(players, pairings, _seed(config, TRAINING_GAMES, state.step))
    own = moves_of(LEARNER, games, pairings)
    returns = games.returns[own] * config.discount ** plies_left(games)[own]
    target = policy_gradient.targets(games.moves[own], returns, config.baseline, entropy_weight)
    measured = policy_gradient.step(model, games.states[own], target, rate)
    state.step += 1
    scored = points(games, pairings).tolist()
    state.window, passed = decide(
        state.window, scored, games=config.gate_games, gate=config.gate, rule=config.gate_rule
    )
    if passed:
        model.replace_opponent(state.replaced % config.opponents)  # the one that has stood longest
        state.replaced += 1
    plies = len(games.moves) / config.games
    return measured | {"score": float(np.mean(scored)), "plies": plies}


def _player(name: str, predict: Predict, mode: Mode = "sample") -> NetworkPlayer:
    return NetworkPlayer(name=name, predict=predict, mode=mode)


def both_sides(games: int, opponents: int = 1) -> list[Pairing]:
    """Games from the empty board, the learner with the first stone in every other one, its opponents in turn."""
    pairs = [1 + pair % opponents for pair in range(games // 2)]
    return [Pairing(first=a, second=b) for other in pairs for a, b in ((LEARNER, other), (other, LEARNER))]


def moves_of(player: int, games: Games, pairings: Sequence[Pairing]) -> NDArray[np.bool_]:
    """bool (N,), which of the games' states this player was to move in."""
    began = np.array([pairing.first == player for pairing in pairings])[games.game]
    first_to_move = np.count_nonzero(games.states.reshape(-1, CELLS), axis=1) % 2 == 0
    mine: NDArray[np.bool_] = began == first_to_move
    return mine


def plies_left(games: Games) -> NDArray[np.int64]:
    """int64 (N,), how many plies followed the move in each of the games' states: 0 for the last one."""
    lengths = np.array([len(line) for line in games.lines])
    left: NDArray[np.int64] = lengths[games.game] - 1 - np.count_nonzero(games.states.reshape(-1, CELLS), axis=1)
    return left


def results(games: Games, pairings: Sequence[Pairing]) -> NDArray[np.float32]:
    """float32 (G,), each game's result for the learner: +1, 0, −1."""
    sides = np.array([1 if pairing.first == LEARNER else -1 for pairing in pairings], np.float32)
    return sides * games.results


def points(games: Games, pairings: Sequence[Pairing]) -> NDArray[np.floating[Any]]:
    """(G,), the learner's points: 1, ½, 0."""
    return (results(games, pairings) + 1) / 2


def _measure(predict: Predict, config: ReinforceConfig, state: State, latest: dict[str, float]) -> None:
    """Add a row to the curve: the means of the latest steps, and how the learner does against its rivals."""
    row: dict[str, float] = {"step": state.step, "games": state.step * config.games, "seconds": round(state.seconds, 1)}
    row |= {name: round(value, 5) for name, value in latest.items()} | {"checkpoints": state.replaced}
    for rival in RIVALS:
        found = against(predict, rival, config.eval_games, _seed(config, CURVE_GAMES, state.step))
        row |= {f"{rival}_won": float((found > 0).mean()), f"{rival}_drawn": float((found == 0).mean())}
    state.curve.append(row)


def against(predict: Predict, rival: str, games: int, seed: int, mode: Mode = "sample") -> NDArray[np.float32]:
    """float32 (games,), the network's results against a rival from the empty board, half of them from either side."""
    pairings = both_sides(games)
    return results(play_games([_player("learner", predict, mode), make(rival)], pairings, seed), pairings)


def final_measurement(predict: Predict, config: ReinforceConfig) -> dict[str, Any]:
    """By rival, how many of `final_games` games the network wins, with 95 % intervals, drawing and greedy."""
    modes: dict[str, Mode] = {"": "sample", "_greedy": "policy"}
    say(f"measuring the result: {len(RIVALS) * len(modes)} matches of {config.final_games:,} games")
    report: dict[str, Any] = {}
    for number, rival in enumerate(RIVALS):
        for suffix, mode in modes.items():
            found = against(predict, rival, config.final_games, _seed(config, FINAL_GAMES, number), mode)
            won = dataclasses.asdict(share(found > 0, trials=1))
            report[f"{rival}{suffix}"] = {"games": len(found), "won": won, "drawn": float((found == 0).mean())}
    return report


def _seed(config: ReinforceConfig, purpose: int, number: int) -> int:
    return int(seeds_for(config.seed, purpose, number)[0])


def _note(state: State) -> str:
    last = state.curve[-1]
    score = f"{np.mean(state.window):.1%}" if state.window else "new"
    return f"opponent {state.replaced}: {score} · punisher {last['punisher_won']:.1%} · random {last['random_won']:.1%}"


def _save(out: Path, model: WithOpponents, state: State) -> None:
    from distill.training import checkpoint, history

    history.write(out, state.curve, PANELS, over="games")
    checkpoint.save(out, model, dataclasses.asdict(state))  # last: with it these steps count as done
