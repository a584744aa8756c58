"""Train a network on games against itself alone, by REINFORCE.

    python -m distill.reinforce
    python -m distill.reinforce --init models/pillar --steps 100 --games 128 --lr 1e-4 --entropy 0.01 0.01

The learner plays batches of games, all in lock step, against its opponent, an earlier copy of itself, half of them from
either side; each batch gives one step of policy gradient (`training/policy_gradient.py`). After every `--gate-games`
training games the learner's score in them decides, by `--gate-rule`, whether the opponent becomes what the learner is.
These games cost nothing extra. Each is counted once: a learner as good as its opponent, tested after every batch, would
soon pass by chance. It goes on learning within a window, so the score is that of the learner as it was on the way, not
at its end.

Both draw their moves from their policies, in training and in every measurement that does not say "greedy". Every
`--eval-every` steps the learner meets `punisher` and `random` from the empty board: logged, never used to choose.

In: nothing, or a network to begin from. Out, in `models/<arch>-reinforce/`: `best.keras` (the learner as it is),
`config.json`, `history.csv`, `curves.png`, `saved_model/1/`, and `metrics.json`, written last. An interrupted run goes
on from its last measurement with the same command, to the weights it would have had without the interruption.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from distill import networks
from distill.alphazero import reinforce
from distill.alphazero.presets import REINFORCE_PRESETS as PRESETS
from distill.alphazero.settings import ReinforceConfig
from distill.common import cli, folders, write_json
from distill.training import run_folder


def run(config: ReinforceConfig) -> str:
    """Train one network; returns the line that says where it is and how often it beats the punisher."""
    name = reinforce.name_of(config)
    out = config.out or Path("models") / f"{name.replace(':', '-')}-reinforce"
    with folders.locked(out):
        return _run(config, out, name)


def _run(config: ReinforceConfig, out: Path, name: str) -> str:
    claim = reinforce.claim(out, config, name)
    claim.check()
    if not config.restart and (before := run_folder.finished(out, partial(_result, out))):
        return before
    core = reinforce.network(config)
    from distill.exporters import publish
    from distill.networks import saved

    publish.check_place(out)
    claim.begin()
    state = reinforce.train(core, config, out)
    metrics = {
        "arch": networks.arch_of(core),
        "parameters": core.count_params(),
        "steps": state.step,
        "training_games": state.step * config.games,
        "training_seconds": round(state.seconds),
        "checkpoints": state.replaced,
    } | reinforce.final_measurement(saved.predict_with(core), config)
    facts = {k: v for k, v in metrics.items() if not isinstance(v, dict)}
    publish.publish_if_possible(core, out, {"trained by": "REINFORCE"} | cli.as_json(config) | facts)
    write_json(out / run_folder.METRICS, metrics | {"curve": state.curve})
    return _result(out, metrics)


def _result(out: Path, metrics: dict[str, Any]) -> str:
    parts = []
    for rival in reinforce.RIVALS:
        won = metrics[rival]["won"]
        parts.append(f"{won['mean']:.1%} ({won['low']:.1%}–{won['high']:.1%}) of its games against {rival}")
    return f"{out}: after {metrics['training_games']:,} games it wins {', '.join(parts)}"


main = cli.Command("reinforce", ReinforceConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
