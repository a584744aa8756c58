"""Named settings of self-play and, below them, of REINFORCE.

connect4-zero: “Connect4-Zero: Architecture & Design”. connect-4-ai-1, connect-4-ai-2: the two configurations of
“Connect 4 AI”, 2021, with the PUCT of the paper that it cites; the second also with the selection term that it prints,
and with leaves valued by playouts whose moves the network chooses. All where their sources give a number. improve: from
a network that plays well already.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distill import networks
from distill.common import cli

CONNECT_4_AI_1: dict[str, Any] = {
    "arch": "mk4",  # normalised, as theirs: at a rate of 0.2 the value of an unnormalised one is stuck at 1 or -1
    "root": "puct",
    "rule": "growing",
    "exploration": 2.5,
    "fpu_reduction": None,
    "mcts_solver": False,
    "simulations": 200,
    "games": 4,
    "shard_games": 4,
    "iterations": 1080,
    "sampling_plies": 12,
    "dirichlet_alpha": 0.4,
    "noise_fraction": 0.2,
    "opening_moves": (0, 0),
    "optimizer": "sgd",
    "lr": 0.2,
    "weight_decay": 1e-4,
    "epochs": 3,
    "batch_size": 32,
    "train_boards": 256,
    "replay_rows": None,
    "replay_games": 16,
    "count_weights": "count",
    "value_target": "outcome",
    "gate": None,
}
CONNECT_4_AI_2: dict[str, Any] = {
    "simulations": 110,
    "games": 16,
    "shard_games": 16,
    "iterations": 2000,
    "sampling_plies": 10,
    "dirichlet_alpha": 0.3,
    "noise_fraction": 0.25,
    "double_noise_iterations": 100,
    "epochs": 20,
    "train_boards": 480,
    "replay_games": 48,
    "lr_drops": ("50:2e-2", "150:2e-3", "250:2e-4"),
}
"""In which it differs from the first."""

HOUR: dict[str, Any] = {
    "arch": "pillar-lines",
    "minutes": 60.0,
    "teacher_share": 0.04,
    "stages": ("0:gumbel:16", "0.3:puct:64"),
    "exploration": 1.0,
    "opening_moves": (0, 20),
    "sampling_plies": 16,
    "discount": 0.98,
    "gate": None,
    "shard_games": 64,
    "precision": lambda _settings: networks.fast_precision(),
    "optimizer": "muon",
    "lr": 3e-3,
    "value_weight": 0.5,
    "ema": 0.997,
    "replay_rows": 200_000,
    "replay_share": 0.5,
    "eval_boards": 500,
}
NIGHT = HOUR | {
    "minutes": 480.0,
    "teacher_share": 0.005,
    "stages": ("0:gumbel:16", "0.04:puct:64", "0.5:puct:200"),
    "opening_moves": ((0, 1), (0, 12), (2, 16), (4, 20), (4, 20), (4, 28)),
    "sampling_plies": 24,
    "replay_rows": 1_000_000,
    "keep_games": False,
}
"""Searches grow further. One game in six begins at the empty board or with one stone; the others begin wide, up to 28
random stones, since what a long run lacks is boards that it has not learned from yet. Of its games are kept those that
are still learned from."""

PRESETS: cli.Presets = {
    "gumbel": cli.Preset("our own defaults: Gumbel search from scratch", {}),
    "hour": cli.Preset("a strong network in an hour on two cores", HOUR),
    "night": cli.Preset("eight hours: longer searches, more varied openings", NIGHT),
    "improve": cli.Preset(
        "fine-tune a network that plays well already",
        {"simulations": 64, "opening_moves": (0, 8), "lr": 3e-4, "games": 1000},
    ),
    "connect4-zero": cli.Preset(
        "Connect4-Zero: ResNet, PUCT with 600 simulations",
        {
            "arch": "resnet",
            "root": "puct",
            "simulations": 600,
            "fpu_reduction": None,
            "mcts_solver": False,
            "sampling_plies": 10,
            "opening_moves": (0, 0),
            "count_weights": "count",
            "value_target": "outcome",
            "replay_rows": 200_000,
            "train_boards": None,
        },
    ),
    "connect-4-ai-1": cli.Preset("Connect 4 AI (2021), first configuration", CONNECT_4_AI_1),
    "connect-4-ai-2": cli.Preset("Connect 4 AI (2021), second configuration", CONNECT_4_AI_1 | CONNECT_4_AI_2),
    "connect-4-ai-2-printed": cli.Preset(
        "the second, with the selection formula as printed", CONNECT_4_AI_1 | CONNECT_4_AI_2 | {"rule": "printed"}
    ),
    "connect-4-ai-2-playouts": cli.Preset(
        "the second, with leaves evaluated by rollouts", CONNECT_4_AI_1 | CONNECT_4_AI_2 | {"leaves": "playout"}
    ),
    "smoke": cli.smoke(
        iterations=2,
        games=6,
        shard_games=3,
        simulations=8,
        arena_games=4,
        train_boards=64,
        batch_size=16,
        eval_boards=20,
        opening_moves=(1, 2),
        lanes=8,
        out=lambda settings: (cli.SMOKE_DATA if settings["games_only"] else cli.SMOKE_MODELS) / "selfplay",
    ),
}


def _smoke_name(settings: Mapping[str, Any]) -> str:
    return str(settings["arch"] or (Path(settings["init"]).stem if settings["init"] else "mk4"))


REINFORCE_PRESETS: cli.Presets = {
    "steady": cli.Preset(
        "mk4, trained to beat `punisher` at a steady rate",
        {
            "arch": "mk4",
            "steps": 2400,
            "lr": (1e-3, 5e-4, 2e-4, 1e-4),
            "entropy": (0.12, 0.01),
            "baseline": "value",
            "discount": 0.97,
            "precision": lambda _settings: networks.fast_precision(),
            "ema": 0.99,
            "opponents": 4,
            "eval_every": 60,
            "eval_games": 2000,
        },
    ),
    "published": cli.Preset(
        "the Connect-Zero articles, where they give a number",
        {
            "arch": "mk4",
            "lr": (1e-3, 1e-4, 1e-5),
            "entropy": (0.05, 0.03),
            "gate": 0.52,
            "gate_rule": "mean",
            "baseline": "none",
            "discount": 1.0,
        },
    ),
    "smoke": cli.smoke(
        steps=4,
        games=8,
        gate_games=16,
        eval_every=2,
        eval_games=8,
        final_games=20,
        out=lambda settings: cli.SMOKE_MODELS / f"{_smoke_name(settings)}-reinforce",
    ),
}
