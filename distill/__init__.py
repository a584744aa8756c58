"""Teach a neural network to play Connect 4 as a tree search does, without searching when it plays.

The names of PUBLIC can be imported from here, and are loaded when they are first used:

    import distill
    predict = distill.load_pretrained("pillar")
    predict(distill.board(distill.from_moves("4453")))["move"]  # the column, 0-6

Importing `distill` alone loads neither NumPy nor Keras.
"""

from __future__ import annotations

import importlib
from typing import Any

from distill.common.plugins import watch_imports

watch_imports()  # now, because a program may import its own module, or Keras, before it uses the library

__version__ = "0.2.0"

PUBLIC = {
    "Choices": "distill.players.player:Choices",
    "Labeller": "distill.mcts.labeller:Labeller",
    "Labels": "distill.mcts.labeller:Labels",
    "Player": "distill.players.player:Player",
    "Position": "distill.game.rules:Position",
    "UserError": "distill.common.errors:UserError",
    "board": "distill.game.encoding:board",
    "boards": "distill.game.encoding:boards",
    "draw": "distill.game.rules:draw",
    "evaluate_players": "distill.evaluation.grading:evaluate_players",
    "from_moves": "distill.game.rules:from_moves",
    "generate_games": "distill.generate:generate_games",
    "load_keras": "distill.networks.predict:load_keras",
    "load_pretrained": "distill.networks.predict:load_pretrained",
    "parse_board": "distill.game.rules:parse_board",
    "train_network": "distill.train:train_network",
    "write_labels": "distill.datasets.packed:write_labels",
}
"""The library, "module:object" by name; `__init__.pyi` has the same for type checkers."""


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, path = PUBLIC[name].partition(":")
    return getattr(importlib.import_module(module), path)


def __dir__() -> list[str]:
    return [*globals(), *PUBLIC]
