"""Networks by name: the built-in ones, and a user's own as "module:function".

A model is named after its arch; TensorFlow takes no colon in a name, so that of `my_nets:build` is `my_nets>build`.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from distill.common import UserError, first_line, plugins
from distill.common.settings import Settings
from distill.game import encoding, outputs
from distill.networks import backend

if TYPE_CHECKING:
    import keras

ARCHS = ("cnn", "transformer", "pillar", "pillar-plain", "pillar-large", "mk4", "resnet")
ARCH_HELP = f"architecture: {', '.join(ARCHS)}, or module:function, your own build(value_head) -> keras.Model"
ARCH_RULE = f"one of {', '.join(ARCHS)}, or module:function"


IMPORT = "DISTILL_IMPORT"
"""Environment variable that names networks, as "module:function", whose modules have the layers of `.keras` files;
separated by commas."""


def trust(arch: str) -> None:
    """Let this process and its workers import the module of a user's own network, for the layers of `.keras` files."""
    if plugins.is_spec(arch):
        backend.start_backend(aloud=True)  # before the module imports Keras
        _trust(arch, "--arch")


def _trust(spec: str, what: str) -> None:
    """Import a module, and let workers, which inherit the environment, import this version of it and no other."""
    others = [entry for entry in os.environ.get(IMPORT, "").split(",") if entry.partition("@")[0] not in ("", spec)]
    os.environ[IMPORT] = ",".join([*others, f"{spec}@{plugins.Plugin.named(spec, what).source}"])


def trusted_source(arch: str) -> str | None:
    """The hash of the source of a user's own network that this process may import; None for any other network."""
    entries = os.environ.get(IMPORT, "").split(",")
    return dict(entry.partition("@")[::2] for entry in entries).get(arch)


def import_trusted() -> list[str]:
    """Import the modules that IMPORT names; returns each with the hash of its source, as "module:function@hash".

    Raises UserError where one is missing or has another version here.
    """
    for entry in filter(None, os.environ.get(IMPORT, "").split(",")):
        backend.start_backend()  # before the module imports Keras
        spec, _, source = entry.partition("@")
        if source:
            plugins.Plugin(spec=spec, what=IMPORT, folder=os.getcwd(), source=source).load()
        else:
            _trust(spec, IMPORT)
    return sorted(filter(None, os.environ.get(IMPORT, "").split(",")))


def is_arch(text: str) -> bool:
    """Whether a text names a built-in network or looks like "module:function"."""
    return text in ARCHS or plugins.is_spec(text)


class Architecture(Settings, extra="allow"):
    """A network: its name, and arguments of the function that builds it, such as `layers`."""

    name: str = "cnn"
    """name of a network, or module:function"""

    @model_validator(mode="after")
    def _decides_no_value_head(self) -> Self:
        if "value_head" in self.arguments:
            raise ValueError("--set arch.value_head: the value target decides whether there is a value head")
        return self

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `build` besides the value head."""
        return dict(self.model_extra or {})


def build(arch: str, value_head: bool = False, **arguments: Any) -> keras.Model:
    """A new network with random weights from Keras' global seed; `resnet` always has a value head.

    Args:
      arguments: of the network's function `build`, such as layers=8; default: those of the published network.

    Raises UserError for "module:function" that gives no network, and for arguments that the function does not take or
    cannot use.
    """
    is_custom = plugins.is_spec(arch)
    function = plugins.load(arch, "--arch") if is_custom else builder(arch)
    core: keras.Model = plugins.call(partial(function, **arguments), f"--arch {arch}", value_head)
    return _tried(core, arch, value_head) if is_custom else core


def builder(arch: str) -> Any:
    """The function that builds a built-in network, in the module with the first part of its name."""
    module, _, size = arch.partition("-")
    return getattr(importlib.import_module(f"distill.networks.{module}"), f"build_{size}" if size else "build")


def _tried(core: Any, spec: str, value_head: bool) -> keras.Model:
    """A user's network under the name by which it can be loaded again.

    Raises UserError or OutputError now for what would fail after hours of training: wrong outputs, or no way back from
    a `.keras` file.
    """
    import keras

    from distill.networks import copies, heads

    source = f"--arch {spec}"
    if spec.startswith("_"):
        raise UserError(f"{source}: TensorFlow takes no underscore at the start of a network's name; rename the module")
    heads.require_network(core, source)
    if heads.has_value(core) != value_head:
        expected = "logits and value" if value_head else "logits alone"
        raise UserError(f"{source}: with value_head={value_head} the outputs must be {expected}")
    named = keras.Model(core.inputs[0], core.output, name=spec.replace(":", ">"))  # a class may take other arguments
    boards = encoding.boards(*outputs.TRIAL)
    played = plugins.call(heads.played(named), source, boards)
    arrays = {name: keras.ops.convert_to_numpy(output) for name, output in played.items()}
    if core.losses:
        raise UserError(f"{source}: training would ignore its regularizers or own losses; set weight_decay instead")
    with outputs.named(source):
        outputs.logits(arrays["logits"], boards[:, 0] == 0)
        if value_head:
            outputs.values(arrays["value"], len(boards))
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "network.keras"
            named.save(file)
            keras.models.load_model(file, compile=False, safe_mode=True)
    except Exception as error:  # Keras raises many types
        raise UserError(
            f"{source}: cannot be saved and loaded again ({first_line(error)}); put "
            "@keras.saving.register_keras_serializable() before your own layers, and use no Lambda layer"
        ) from error
    plugins.call(copies.fast_copy, source, named)
    return named


def arch_of(core: keras.Model) -> str:
    """The arch of a network."""
    return str(core.name).replace(">", ":")
