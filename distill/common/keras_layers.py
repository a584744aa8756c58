"""Tell Keras the layers of our networks, so that `keras.models.load_model` reads a `.keras` file.

Keras looks up the classes that a file names in a registry. Their modules register them, and are imported as soon as
Keras is, before or after this package (`sources.watch_imports`).
This module is not in `distill.networks`, because `import distill` alone must not load NumPy.
"""

from __future__ import annotations

import importlib
from importlib.machinery import SourceFileLoader
from typing import Any

MODULES = ("distill.networks.pillar", "distill.networks.transformer")
"""The modules with a layer that is not Keras' own."""


class Loader(SourceFileLoader):
    """Imports Keras, and registers the layers."""

    def exec_module(self, module: Any) -> None:
        super().exec_module(module)
        register()


def register() -> None:
    """Register the layers with Keras, which is imported."""
    for name in MODULES:
        importlib.import_module(name)
