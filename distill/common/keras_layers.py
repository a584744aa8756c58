"""Tell Keras where the layers of our networks are, so that `keras.models.load_model` reads a `.keras` file.

Keras looks up the classes that a file names in a registry. Here the registry learns their names when Keras is imported,
before or after this package; a class is imported when a file needs it. Neither import becomes slower.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader
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


class _Loader(SourceFileLoader):
    def exec_module(self, module: Any) -> None:
        super().exec_module(module)
        _register(module)


class _Finder:
    """Finds Keras as Python's own finder does, and has the layers registered when it is imported."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        spec = PathFinder.find_spec(name, path, target) if name == "keras" else None
        if spec and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(name, spec.loader.path)
        return spec


def _register(keras: Any) -> None:
    for name in LAYERS:
        keras.saving.get_custom_objects().setdefault(f"distill>{name}", _Layer(name))


def register_with_keras() -> None:
    """Register the layers now, if Keras is imported, or else when it is."""
    if "keras" in sys.modules:
        _register(sys.modules["keras"])
    else:
        sys.meta_path.insert(0, _Finder)
