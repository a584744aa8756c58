"""The presets of `selfplay`, read from `presets.json`: descriptions and values.

A preset extends the one that it is `like`. Its value `"precision": "auto"` stands for bfloat16 on a processor that
multiplies it, else for float32.

connect4-zero, connect-4-ai-1 and connect-4-ai-2 are published systems; they hold what their sources state
(docs/sources.md). night extends hour by longer searches and by openings that are wide but for
one game in six: what a long run lacks is boards that it has not learned from yet.
"""

from __future__ import annotations

import json
from pathlib import Path

from distill import networks
from distill.common import cli

PRESETS: dict[str, cli.Preset] = {}
for _name, _stored in json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8")).items():
    _values = (dict(PRESETS[_stored["like"]].values) if "like" in _stored else {}) | _stored["values"]
    if _values.get("precision") == "auto":
        _values["precision"] = lambda _: networks.fast_precision()
    PRESETS[_name] = cli.Preset(_stored["description"], _values)

PRESETS |= cli.smoke(
    **{"arena.games": 4, "replay.boards": 64},
    iterations=2,
    games=6,
    shard_games=3,
    simulations=8,
    batch_size=16,
    eval_boards=20,
    opening_moves=(1, 2),
    lanes=8,
    out=lambda config: (cli.SMOKE_DATA if config.games_only else cli.SMOKE_MODELS) / "selfplay",
)
