"""Train a network on games against itself alone, by REINFORCE.

    python -m distill.reinforce
    python -m distill.reinforce --init models/column --steps 100 --games 128 --lr 1e-4 --entropy 0.01 0.01

The learner plays batches of games, all in lock step, against a checkpoint of itself, half of them from either side;
each batch gives one step of policy gradient (`learn/policy_gradient.py`). After every `--gate-games` training games the
learner's score in them decides, by `--gate-rule`, whether the checkpoint becomes what the learner is. These games cost
nothing extra. Each is counted once: a learner as good as its checkpoint, tested after every batch, would soon pass by
chance. It goes on learning within a window, so the score is that of the learner as it was on the way, not at its end.

Both draw their moves from their policies, in training and in every measurement that does not say "greedy". Every
`--measure-every` steps the learner meets `punisher` and `random` from the empty board: logged, never used to choose.

In: nothing, or a network to begin from. Out, in `models/<arch>-reinforce/`: `best.keras` (the learner as it is),
`config.json`, `history.csv`, `curves.png`, `saved_model/1/`, and `metrics.json`, written last. An interrupted run goes
on from its last measurement with the same command, to the weights it would have had without the interruption.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from distill import nets
from distill.base import cli, folders
from distill.base.errors import UserError
from distill.base.files import file_hash, write_json
from distill.base.progress import Progress
from distill.game.rules import CELLS
from distill.learn import run_folder
from distill.nets import finding
from distill.players import players as roster
from distill.players.gate import GateRule, judged
from distill.players.intervals import share
from distill.players.match import Games, Pairing, play_games

if TYPE_CHECKING:
    import keras

    from distill.learn.policy_gradient import Learner

Mode = Literal["sample", "policy"]
"""Whether a network draws its move by its policy or plays the likeliest column."""

RIVALS = ("punisher", "random")
LEARNER, CHECKPOINT = 0, 1
"""Places of the two in a list of players."""

TRAINING_GAMES, CURVE_GAMES, FINAL_GAMES = range(3)
"""What games are for: one of the numbers their random draws are a function of."""


def _smoke_name(settings: Mapping[str, Any]) -> str:
    return str(settings["arch"] or (settings["init"].stem if settings["init"] else "mk4"))


PRESETS: dict[str, dict[str, Any]] = {
    "published": {
        "arch": "mk4",
        "lr": (1e-3, 1e-4, 1e-5),
        "entropy": (0.05, 0.03),
        "gate": 0.52,
        "gate_rule": "mean",
        "baseline": "none",
        "discount": 1.0,
    },
    "smoke": {
        "steps": 4,
        "games": 8,
        "gate_games": 16,
        "measure_every": 2,
        "measure_games": 8,
        "final_games": 20,
        "out": lambda settings: cli.SMOKE_MODELS / f"{_smoke_name(settings)}-reinforce",
    },
}
"""published: the series “Connect-Zero”, where it gives a number."""


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig:
    """Train a network on games against itself alone."""

    arch: nets.Arch | None = cli.setting(None, "the network to begin with from nothing; none: mk4, or that of --init")
    init: Path | None = cli.setting(None, "the network to begin from: the folder of a run, a .keras file or a name")
    steps: int = cli.setting(2000, "batches of games, each followed by one step of the gradient")
    games: int = cli.setting(256, "games of a batch, half of them from either side")
    lr: tuple[float, ...] = cli.setting((1e-3, 1e-4, 1e-5), "learning rates, each for an equal share of the steps")
    entropy: tuple[float, float] = cli.setting(
        (0.05, 0.03), "weight of the policy's entropy, in nats, at the start and at the end; linear between them"
    )
    baseline: Literal["none", "mean", "value"] = cli.setting(
        "none", "what is taken off a return: nothing, the batch's mean, or the network's own value of the position"
    )
    value_weight: float = cli.setting(0.5, "weight of the value's squared error, where the network has a value head")
    discount: float = cli.setting(1.0, "what a return is multiplied by for every ply between the move and the end")
    gate: float = cli.setting(0.52, "score against the checkpoint above which the learner takes its place")
    gate_games: int = cli.setting(2048, "training games, in whole batches, after which that is decided, by them alone")
    gate_rule: GateRule = cli.setting(
        "lower", "what must be above the gate: the lower bound of the score's 95 % interval, or the score, its mean"
    )
    measure_every: int = cli.setting(25, "steps between measurements; a killed run goes on from the last one")
    measure_games: int = cli.setting(400, "games against each rival in a measurement")
    final_games: int = cli.setting(4000, "games against each rival at the end")
    seed: int = cli.setting(0, "of initial weights and of every move drawn")
    out: Path | None = cli.setting(None, "folder of the run; none: models/<arch>-reinforce")
    restart: bool = cli.setting(False, "begin anew, in place of what the folder holds")

    def __post_init__(self) -> None:
        for name in ("steps", "gate_games", "measure_every"):
            cli.check(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        for name in ("games", "measure_games", "final_games"):
            number = getattr(self, name)
            cli.check(number >= 2 and number % 2 == 0, name, number, "an even number from 2")
        for name in ("value_weight", "seed"):
            cli.check(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
        cli.check(
            len(self.lr) > 0 and min(self.lr, default=0) > 0, "lr", _words(self.lr), "one positive number or more"
        )
        cli.check(min(self.entropy) >= 0, "entropy", _words(self.entropy), "0 or more")
        cli.check(0 < self.discount <= 1, "discount", self.discount, "above 0 and at most 1")
        cli.check(0 < self.gate <= 1, "gate", self.gate, "above 0 and at most 1")
        if self.arch and self.init:
            raise ValueError("--arch and --init exclude each other: the network of --init has its arch")


@dataclass(kw_only=True)
class State:
    """Where a run is: with the variables of both networks and the optimizer, all that the next step depends on."""

    step: int = 0
    replaced: int = 0
    window: list[float] = field(default_factory=list)
    """The learner's points in each game since the gate last decided: 1, ½, 0."""
    curve: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0


def run(config: ReinforceConfig) -> str:
    """Train one network; returns the line that says where it is and how often it beats the punisher."""
    nets.start_backend()
    from distill.learn import training

    training.make_repeatable(config.seed)
    core = _network(config)
    out = config.out or Path("models") / f"{core.name}-reinforce"
    with folders.locked(out):
        return _run(config, core, out)


def _run(config: ReinforceConfig, core: keras.Model, out: Path) -> str:
    from distill.nets import saved
    from distill.ship import publish

    claim = _claim(config, core, out)
    claim.check()
    if publish.possible():
        publish.check_place(out)
    claim.begin()
    if before := run_folder.finished(out, partial(_result, out)):
        return before
    state = train(core, config, out)
    metrics = {
        "arch": core.name,
        "parameters": core.count_params(),
        "steps": state.step,
        "training_games": state.step * config.games,
        "training_seconds": round(state.seconds),
        "checkpoints": state.replaced,
    } | final_measurement(saved.predict_with(core), config)
    if publish.possible():
        facts = {k: v for k, v in metrics.items() if not isinstance(v, dict)}
        publish.publish(core, out, {"trained by": "REINFORCE"} | cli.as_json(config) | facts)
    else:
        print(f"no SavedModel from this backend; KERAS_BACKEND=tensorflow python -m distill.export {out} writes it")
    write_json(out / run_folder.METRICS, metrics | {"curve": state.curve})
    return _result(out, metrics)


def _network(config: ReinforceConfig) -> keras.Model:
    from distill.nets import heads, saved

    if config.init is None:
        return nets.build(config.arch or "mk4", value_head=config.baseline == "value")
    core = saved.load_core(finding.network_file(config.init))
    if config.baseline == "value" and not heads.has_value(core):
        raise UserError(f"{config.init}: no value head, which --baseline value needs; take mean or none")
    return core


def _identity(config: ReinforceConfig, core: keras.Model) -> dict[str, Any]:
    settings = cli.as_json(config)
    identity = {name: value for name, value in settings.items() if name not in ("out", "init", "restart")}
    identity["arch"] = core.name
    identity["init"] = file_hash(finding.network_file(config.init)) if config.init else None
    return identity


def _claim(config: ReinforceConfig, core: keras.Model, out: Path) -> run_folder.Claim:
    """The run's claim to its folder."""
    from distill.learn import checkpoint, history

    return run_folder.Claim(
        out=out,
        kind=folders.REINFORCE,
        own=(run_folder.METRICS, checkpoint.FILE, finding.BEST, *history.FILES),
        settings=cli.as_json(dataclasses.replace(config, restart=False)),
        identity=_identity(config, core),
        restart=config.restart,
    )


def train(core: keras.Model, config: ReinforceConfig, out: Path) -> State:
    """Play and learn until all steps are done, going on from the folder's checkpoint where there is one.

    Raises UserError where the loss or the policy stops being a number.
    """
    from distill.learn import checkpoint, policy_gradient
    from distill.nets import saved

    model = policy_gradient.learner(core, config.baseline, config.value_weight)
    state = State()
    if found := checkpoint.load(out):
        checkpoint.restore(model, found[0])
        state = State(**found[1])
    predict = saved.predict_with(core)  # it sees later changes of the weights
    players = [_player("learner", predict), _player("checkpoint", saved.predict_with(model.opponent))]
    if not state.curve:
        _measure(predict, config, state, {})
    total = config.steps * config.games
    with Progress(total, "games", done=state.step * config.games) as progress:
        while state.step < config.steps:
            began = time.monotonic()
            latest: list[dict[str, float]] = []
            try:
                for _ in range(min(config.measure_every, config.steps - state.step)):
                    latest.append(_step(model, players, config, state))
                    progress.advance(config.games, _note(state))
                state.seconds += time.monotonic() - began
                means = {name: float(np.mean([row[name] for row in latest])) for name in latest[0]}
                _measure(predict, config, state, means)
            except UserError as error:
                hint = "begin anew with --restart and a smaller --lr"
                raise UserError(f"after {state.step} steps: {error}; {hint}") from None
            _save(out, model, state)
    return state


def _step(model: Learner, players: Sequence[roster.Player], config: ReinforceConfig, state: State) -> dict[str, float]:
    """One batch of games, one step of the gradient, and a new checkpoint if the gate says so."""
    from distill.learn import policy_gradient

    done = state.step / config.steps
    rate = policy_gradient.stepwise(config.lr, done)
    entropy_weight = policy_gradient.linear(*config.entropy, done)
    pairings = both_sides(config.games)
    games = play_games(players, pairings, _seed(config, TRAINING_GAMES, state.step))
    own = moves_of(LEARNER, games, pairings)
    returns = games.returns[own] * config.discount ** plies_left(games)[own]
    target = policy_gradient.targets(games.moves[own], returns, config.baseline, entropy_weight)
    measured = policy_gradient.step(model, games.states[own], target, rate)
    state.step += 1
    scored = points(games, pairings).tolist()
    state.window, passed = judged(
        state.window, scored, games=config.gate_games, gate=config.gate, rule=config.gate_rule
    )
    if passed:
        model.replace_opponent()
        state.replaced += 1
    plies = len(games.moves) / config.games
    return measured | {"score": float(np.mean(scored)), "plies": plies}


def _player(name: str, predict: roster.Predict, mode: Mode = "sample") -> roster.NetworkPlayer:
    return roster.NetworkPlayer(name=name, predict=predict, mode=mode)


def both_sides(games: int) -> list[Pairing]:
    """Games from the empty board, the learner with the first stone in every other one."""
    seats = ((LEARNER, CHECKPOINT), (CHECKPOINT, LEARNER))
    return [Pairing(first=first, second=second) for first, second in seats] * (games // 2)


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


def _measure(predict: roster.Predict, config: ReinforceConfig, state: State, latest: dict[str, float]) -> None:
    """Add a row to the curve: the means of the latest steps, and how the learner does against its rivals."""
    row: dict[str, float] = {"step": state.step, "games": state.step * config.games, "seconds": round(state.seconds, 1)}
    row |= {name: round(value, 5) for name, value in latest.items()} | {"checkpoints": state.replaced}
    for rival in RIVALS:
        found = against(predict, rival, config.measure_games, _seed(config, CURVE_GAMES, state.step))
        row |= {f"{rival}_won": float((found > 0).mean()), f"{rival}_drawn": float((found == 0).mean())}
    state.curve.append(row)


def against(predict: roster.Predict, rival: str, games: int, seed: int, mode: Mode = "sample") -> NDArray[np.float32]:
    """float32 (games,), the network's results against a rival from the empty board, half of them from either side."""
    pairings = both_sides(games)
    return results(play_games([_player("learner", predict, mode), roster.make(rival)], pairings, seed), pairings)


def final_measurement(predict: roster.Predict, config: ReinforceConfig) -> dict[str, Any]:
    """By rival, how many of `final_games` games the network wins, with 95 % intervals, drawing and greedy."""
    modes: dict[str, Mode] = {"": "sample", "_greedy": "policy"}
    report: dict[str, Any] = {}
    for number, rival in enumerate(RIVALS):
        for suffix, mode in modes.items():
            found = against(predict, rival, config.final_games, _seed(config, FINAL_GAMES, number), mode)
            won = dataclasses.asdict(share(found > 0, trials=1))
            report[f"{rival}{suffix}"] = {"games": len(found), "won": won, "drawn": float((found == 0).mean())}
    return report


def _seed(config: ReinforceConfig, purpose: int, number: int) -> int:
    return int(roster.seeds_for(config.seed, purpose, number)[0])


def _note(state: State) -> str:
    last = state.curve[-1]
    score = f"{np.mean(state.window):.1%}" if state.window else "new"
    return (
        f"checkpoint {state.replaced}: {score} · punisher {last['punisher_won']:.1%} · random {last['random_won']:.1%}"
    )


def _save(out: Path, model: Learner, state: State) -> None:
    from distill.learn import checkpoint, history, training

    training.save_network(model.core, out / finding.BEST)
    history.write(out, state.curve, PANELS, over="games")
    checkpoint.save(out, model, dataclasses.asdict(state))  # last: with it these steps count as done


PANELS = {
    "games won": ["punisher_won", "random_won"],
    "score against the checkpoint": ["score"],
    "entropy of the policy, nats": ["entropy"],
}
"""What the curves show, by title."""


def _words(values: Sequence[float]) -> str:
    return " ".join(f"{value:g}" for value in values)


def _result(out: Path, metrics: dict[str, Any]) -> str:
    parts = []
    for rival in RIVALS:
        won = metrics[rival]["won"]
        parts.append(f"{won['mean']:.1%} ({won['low']:.1%}–{won['high']:.1%}) of its games against {rival}")
    return f"{out}: after {metrics['training_games']:,} games it wins {', '.join(parts)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the return value is the exit code."""
    return cli.main("reinforce", ReinforceConfig, run, PRESETS, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
