"""The presets of `selfplay`, read from `presets.json`: descriptions and values.

A preset extends the one that it is `like`. Its value `"precision": "auto"` stands for bfloat16 on a processor that
multiplies it, else for float32.

connect4-zero, connect-4-ai-1 and connect-4-ai-2 are published systems; they hold what their sources state
(docs/sources.md). The latter two have the normalised `mk4`, because at a learning rate of 0.2 the value head of an
unnormalised network is stuck at 1 or −1. night extends hour by longer searches and by openings that are wide but for
one game in six: what a long run lacks is boards that it has not learned from yet.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distill import networks
from distill.common import cli

STORED = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def _presets(command: str, smoke_out: Callable[[Any], Path]) -> dict[str, cli.Preset]:
    """The presets of a command; `smoke_out` gives the folder of `smoke` by the other settings."""
    presets: dict[str, cli.Preset] = {}
    for name, stored in STORED[command].items():
        values = {**presets[stored["like"]].values} if "like" in stored else {}
        values |= stored["values"]
        if values.get("precision") == "auto":
            values["precision"] = lambda _settings: networks.fast_precision()
        smoke = name == "smoke"
        presets[name] = cli.smoke(**values, out=smoke_out) if smoke else cli.Preset(stored["description"], values)
    return presets


PRESETS: cli.Presets = _presets(
    "selfplay", lambda config: (cli.SMOKE_DATA if config.games_only else cli.SMOKE_MODELS) / "selfplay"
)
