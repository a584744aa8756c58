"""Train a network on games against itself by REINFORCE, without any search.

    python -m distill.reinforce
    python -m distill.reinforce --init models/pillar --steps 100 --games 128 --lr 1e-4 --entropy 0.01 0.01

The learner plays batches of games, all in lock step, against its opponents, earlier copies of itself, half of them from
either side; each batch gives one step of policy gradient (`training/policy_gradient.py`). After every `--gate-games`
training games the learner's score in them decides, by `gate_rule`, whether it replaces its oldest opponent. Every game
counts in one decision only: tested after every batch, a learner as good as its opponent would soon pass by chance. The
learner changes while the games are played, so the score is that of the learner on the way.

Players draw their moves from their policies, but in what is called "greedy". Every `--eval-every` steps the learner
plays `punisher` and `random` from the empty board: logged, never used to choose.

In: nothing, or a network to start from. Out, in `models/<arch>-reinforce/`: `best.keras` (the learner as it is),
`history.csv`, `curves.png`, `saved_model/1/`, and the record `_run.json` with the settings and the result. The same
command resumes an interrupted run from its last evaluation, to the weights that it would have had without the
interruption.
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("reinforce")

from pathlib import Path
from typing import Any

from distill import networks
from distill.alphazero import reinforce
from distill.alphazero.presets import REINFORCE_PRESETS as PRESETS
from distill.alphazero.settings import ReinforceConfig
from distill.common import cli, run_folder
from distill.common.settings import as_json, by_path
from distill.networks import finding
from distill.training import identity

KIND = "REINFORCE run"
"""The kind of folder, in its record."""


def run(config: ReinforceConfig) -> str:
    """Train one network; returns the line that says where it is and how often it beats its rivals."""
    networks.trust(config.arch or "")
    init = config.init and finding.network_file(config.init)
    name = finding.model_name(init) if init else config.arch or reinforce.ARCH
    out = config.out or Path("models") / f"{name.replace(':', '-')}-reinforce"
    identity.require_safe_init(config, out, reinforce.FILES)
    known = identity.identity(config, ("out", "restart"), arch=name)
    settings = as_json(config.replace(restart=False))
    with run_folder.opened(
        out, KIND, known, settings=settings, files=reinforce.FILES, restart=config.restart
    ) as folder:
        if folder.result is not None:
            return identity.finished_line(out, _result(out, folder.result))
        networks.start_backend(aloud=True)
        from distill.exporters import card, publish
        from distill.networks import saved
        from distill.training import step

        core = step.initial_network(
            networks.Architecture(name=name), config.init, config.learning.baseline == "value", config.seed
        )

        publish.require_ours(out / finding.PUBLISHED)
        folder.begin()
        state = reinforce.train(core, config, out)
        facts = {
            "arch": networks.arch_of(core),
            "parameters": core.count_params(),
            "steps": state.step,
            "training_games": state.step * config.games,
            "training_seconds": round(state.seconds),
            "checkpoints": state.replaced,
        }
        metrics = facts | reinforce.final_evaluation(saved.predict_with(core), config)
        publish.publish_if_possible(
            core, out, card.results({"trained by": "REINFORCE"} | by_path(as_json(config)) | facts)
        )
        folder.finish(metrics | {"curve": state.curve})
        return _result(out, metrics)


def _result(out: Path, metrics: dict[str, Any]) -> str:
    parts = []
    for rival in reinforce.RIVALS:
        won = metrics[rival]["won"]
        parts.append(f"{won['mean']:.1%} ({won['low']:.1%}–{won['high']:.1%}) of its games against {rival}")
    return f"{out}: after {metrics['training_games']:,} games it wins {', '.join(parts)}"


main = cli.Command("reinforce", ReinforceConfig, run, PRESETS)
