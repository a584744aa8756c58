"""Tell Keras where the layers of our networks are, so that `keras.models.load_model` reads a `.keras` file.

Keras looks up the classes that a file names in a registry. The registry learns their names when Keras is imported,
before or after this package (`plugins.watch_imports`); a class is imported when a file needs it. Neither import becomes
slower.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from typing import Any

LAYERS = {
    "BoardEmbedding": "distill.networks.transformer",
    "Lines": "distill.networks.pillar",
    "MirrorConv": "distill.networks.pillar",
}
"""The module of every layer that is not Keras' own."""


@dataclass(frozen=True)
class _Layer:
    """Stands for a layer in Keras' registry until its module is imported, which registers the class itself."""

    name: str

    def from_config(self, config: dict[str, Any]) -> Any:
        return getattr(importlib.import_module(LAYERS[self.name]), self.name).from_config(config)


class Loader(SourceFileLoader):
    """Imports Keras, and registers the layers."""

    def exec_module(self, module: Any) -> None:
        super().exec_module(module)
        register(module)


def register(keras: Any) -> None:
    """Register the layers with Keras."""
    for name in LAYERS:
        keras.saving.get_custom_objects().setdefault(f"distill>{name}", _Layer(name))
