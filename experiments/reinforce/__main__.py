"""Train a network on games against itself by REINFORCE, without any search.

    python -m experiments.reinforce
    python -m experiments.reinforce --init models/pillar --steps 100 --games 128 --lr 1e-4 --entropy 0.01 0.01

The learner plays batches of games, all in lock step, against its opponents, earlier copies of itself, half of them from
either side; each batch gives one step of policy gradient. After every `--gate-games` training games the learner's score
in them decides, by `gate_rule`, whether it replaces its oldest opponent. Every game counts in one decision only: tested
after every batch, a learner as good as its opponent would soon pass by chance. The learner changes while the games are
played, so the score is that of the learner on the way.

Players draw their moves from their policies, but in what is called "greedy". Every `--eval-every` steps the learner
plays `punisher` and `random` from the empty board: logged, never used to choose.

In: nothing, or a network to start from. Out, in `models/<arch>-reinforce/`: `best.keras` (the learner as it is),
`history.csv`, `curves.png`, `saved_model/1/`, and the record `_run.json` with the settings and the result. The same
command resumes an interrupted run from its last evaluation, to the weights that it would have had without the
interruption.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distill import networks
from distill.common import cli
from distill.networks import finding
from distill.training import identity
from experiments.reinforce import RIVALS
from experiments.reinforce.settings import ReinforceConfig

ARCH = "mk4"
"""The network of a run that starts from scratch without --arch."""

FILES = ("checkpoint.npz", finding.BEST, "history.csv", "curves.png")
"""What --restart deletes."""

KIND = "REINFORCE run"
"""The kind of folder, in its record."""

PRESETS: cli.Presets = {
    "steady": cli.Preset(
        "mk4, trained to beat `punisher` at a steady rate",
        {
            "arch": ARCH,
            "steps": 2400,
            "lr": (1e-3, 5e-4, 2e-4, 1e-4),
            "entropy": (0.12, 0.01),
            "baseline": "value",
            "discount": 0.97,
            "precision": lambda _: networks.fast_precision(),
            "ema": 0.99,
            "opponents.number": 4,
            "eval_every": 60,
            "eval_games": 2000,
        },
    ),
    "published": cli.Preset(
        "the Connect-Zero articles, where they give a number",
        {
            "arch": ARCH,
            "arch.initializer": "pytorch",
            "steps": 20_000,
            "games": 50,
            "lr": (1e-3, 1e-3, 1e-4, 1e-5),
            "entropy": (0.05, 0.03),
            "gate": 0.52,
            "gate_rule": "mean",
            "gate_games": 5000,
            "baseline": "none",
            "discount": 0.9**0.5,  # 0.9 for each move of the learner, which makes every other move
            "eval_every": 400,
        },
    ),
    **cli.smoke(
        steps=4, games=8, gate_games=16, eval_every=2, eval_games=8, final_games=20, out=cli.SMOKE_MODELS / "reinforce"
    ),
}


def run(config: ReinforceConfig) -> str:
    """Train one network; returns the line that says where it is and how often it beats its rivals."""
    networks.trust(config.arch.name)
    config = identity.with_arch(config, ARCH)
    out = config.out or Path(f"models/{config.arch.name.replace(':', '-')}-reinforce")
    with identity.opened(config, out, KIND, FILES, ("out", "restart")) as folder:
        if folder.result is not None:
            return identity.finished_line(out, _result(out, folder.result))
        networks.start_backend(aloud=True)
        from distill.exporters import card, publish
        from distill.networks import saved
        from distill.training import step
        from experiments.reinforce import run as policy_gradient

        wanted, sha256 = config.learning.baseline == "value", folder.ours.identity["init"]
        core = step.initial_network(config.arch, config.init, wanted, config.seed, sha256)
        folder.begin()
        state = policy_gradient.train(core, config, out)
        facts = {
            "arch": networks.arch_of(core),
            "parameters": core.count_params(),
            "steps": state.step,
            "training_games": state.step * config.games,
            "training_seconds": round(state.seconds),
            "checkpoints": state.replaced,
        }
        metrics = facts | policy_gradient.final_evaluation(saved.predict_with(core), config)
        publish.publish_if_possible(out, card.results(out, {"trained by": "REINFORCE"} | facts))
        folder.finish(metrics | {"curve": state.history})
        return _result(out, metrics)


def _result(out: Path, metrics: dict[str, Any]) -> str:
    won = {rival: metrics[rival]["won"] for rival in RIVALS}
    parts = [
        f"{share['mean']:.1%} ({share['low']:.1%}–{share['high']:.1%}) of its games against {rival}"
        for rival, share in won.items()
    ]
    return f"{out}: after {metrics['training_games']:,} games it wins {', '.join(parts)}"


main = cli.Command("experiments reinforce", ReinforceConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
