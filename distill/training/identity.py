"""The folder of a training, which holds all that its weights depend on in its record."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from distill import networks
from distill.common import UserError, file_hash, run_folder
from distill.common.settings import as_json, by_path
from distill.game.encoding import ENCODING_VERSION
from distill.games.schema import SCHEMA_VERSION
from distill.networks import backend, finding, registry

BEST, LAST = finding.BEST, "last.keras"
"""The network that a run gives, and the latest one."""
AUTO = "auto"
"""The arch of --init; without that, the command's own."""


def with_arch(config: Any, default: str) -> Any:
    """The config with the arch of --init, or else with the default, where --arch is `auto`.

    Raises UserError where --arch asks for another network than that of --init.
    """
    init, asked = config.init, config.arch.name
    if init:
        networks.start_backend(aloud=True)
        from distill.networks import saved

        default = networks.arch_of(saved.load_core(finding.network_file(init)))
        if asked not in (AUTO, default):
            raise UserError(f"--init {init} is a network {default}; --arch {asked} asks for another")
    return config.replace(arch=config.arch.replace(name=default)) if asked == AUTO else config


def identity(config: Any, free: Sequence[str], **also: Any) -> dict[str, Any]:
    """All settings of a command's config by path, except the paths `free`, and `also`.

    The initial network and the source of a custom arch count by their hashes, and the Keras backend counts, because
    another one draws other random numbers.
    """
    settings = {path: value for path, value in by_path(as_json(config)).items() if path not in free}
    settings |= {
        "init": file_hash(finding.network_file(config.init)) if config.init else None,
        "backend": backend.backend_name(),
        "schema_version": SCHEMA_VERSION,
        "encoding_version": ENCODING_VERSION,
    }
    if source := registry.trusted_source(settings["arch.name"]):
        settings["arch source"] = source
    return settings | also


def opened(
    config: Any, out: Path, kind: str, files: Sequence[str], free: Sequence[str], **also: Any
) -> AbstractContextManager[run_folder.Run]:
    """Hold the folder of a training with this config; the other arguments are those of `Record` and `identity`.

    Raises UserError if --restart would delete the network of --init.
    """
    if config.restart and config.init:
        init = finding.network_file(config.init)
        if any(init.resolve().is_relative_to(out.resolve() / name) for name in files):
            raise UserError(f"{init}: --restart would delete the initial network; name another --out")
    known, settings = identity(config, free, **also), as_json(config.replace(restart=False))
    return run_folder.opened(out, kind, known, settings=settings, files=files, restart=config.restart)


def finished_line(out: Path, line: str) -> str:
    """The last line of a finished run. Raises UserError if its network is missing."""
    if not (out / BEST).is_file():
        raise UserError(f"{out / BEST}: missing, though the run is finished; restore it, or add --restart")
    return f"{line} (finished before, nothing to do; --restart starts from scratch)"
