"""The folder of a run: its files, and its settings, which are stored before it starts and compared when it resumes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distill.common import UserError, file_hash, folders, plugins, provenance, write_json
from distill.game.encoding import ENCODING_VERSION
from distill.games.schema import SCHEMA_VERSION
from distill.networks import finding

CONFIG, RUN, METRICS = "config.json", "run.json", "metrics.json"
"""The settings as `--config` reads them; the run's identity and versions; its result, which marks it as finished."""
LAST = "last.keras"
"""The latest network; `networks.finding.BEST` is the one with the smallest loss on validation boards."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A run's claim to its output folder, made while the folder is locked.

    Attributes:
      out: the folder.
      kind: of run.
      own: the files and folders that a restart deletes, besides CONFIG, which it replaces, and RUN.
      settings: the content of CONFIG.
      identity: everything the weights depend on, without paths (but `exclude` as it was written).
      restart: whether to delete a run of this kind in the folder and start from scratch.
    """

    out: Path
    kind: folders.Kind
    own: Sequence[str]
    settings: Mapping[str, Any]
    identity: Mapping[str, Any]
    restart: bool

    def check(self) -> None:
        """Raise UserError if the folder holds something else, or a run with other settings; change nothing."""
        folders.require(self.out, self.kind, own=(CONFIG, RUN, *self.own), restart=self.restart)
        run = self.out / RUN
        if self.restart:
            return
        if not run.is_file():  # it is written before the other files
            if any((self.out / name).exists() for name in self.own):
                raise UserError(
                    f"{run}: missing, so the settings of this run are unknown; --restart starts from scratch"
                )
            return
        try:
            stored, here = dict(json.loads(run.read_text(encoding="utf-8"))["identity"]), self.identity
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{run}: cannot be read; --restart starts from scratch") from None
        # Name every setting that differs.
        names = sorted({*stored, *here})
        changed = [f"{n}: {stored.get(n)} → {here.get(n)}" for n in names if stored.get(n) != here.get(n)]
        if changed:
            raise UserError(
                f"{self.out} holds a run with other settings ({', '.join(changed)}); "
                "name another --out, or --restart to start from scratch"
            )

    def begin(self) -> None:
        """Store the settings of a new run; with `restart` delete the files of the previous run first."""
        if not self.restart and (self.out / RUN).is_file():
            return
        about = {
            "kind": self.kind.name,
            "identity": dict(self.identity),
            "versions": provenance.versions("keras", "numpy", "tensorflow", "jax"),
            "commit": provenance.commit(),
            "schema_version": SCHEMA_VERSION,
            "encoding_version": ENCODING_VERSION,
        }
        if self.restart:
            folders.clear(self.out, (*self.own, RUN))  # RUN too: it must not stand beside another CONFIG
        # RUN last: it marks a run that has begun.
        write_json(self.out / CONFIG, self.settings)
        write_json(self.out / RUN, about)


def claim(
    out: Path, kind: folders.Kind, own: Sequence[str], config: Any, free: Sequence[str], also: Mapping[str, Any]
) -> Claim:
    """The claim of a command's config: weights depend on all settings except `free`, and on `also`.

    The content of `init`, the initial network, and the source of a user's own arch are part of the identity. Raises
    UserError if a restart would delete `init`.
    """
    init = finding.network_file(config.init) if config.init else None
    # A restart must not delete the network that it would start from.
    deleted = [out.resolve() / name for name in own] if config.restart and init else []
    if init and any(file.is_relative_to(each) for file in _with_links(init) for each in deleted):
        raise UserError(f"{init}: --restart would delete the initial network; name another --out")
    settings = folders.stored(kind, config)
    identity = {name: value for name, value in settings.items() if name not in (*free, "kind")}
    identity |= {"init": file_hash(init) if init else None, **also}
    if plugins.is_spec(config.arch or ""):
        identity["arch source"] = plugins.Plugin.named(config.arch, "--arch").source
    return Claim(out=out, kind=kind, own=own, settings=settings, identity=identity, restart=config.restart)


def _with_links(file: Path) -> list[Path]:
    """A file by its own path, and by that of its target if it is a link."""
    return [file.parent.resolve() / file.name, file.resolve()]


def finished(out: Path, describe: Callable[[Mapping[str, Any]], str]) -> str | None:
    """The last line of a finished run, its metrics as text by `describe`; None for a run without metrics.

    Raises UserError for metrics that cannot be read, and if the network is missing.
    """
    path = out / METRICS
    if not path.is_file():
        return None
    if not (out / finding.BEST).is_file():
        raise UserError(f"{out / finding.BEST}: missing, though the run is finished; restore it, or add --restart")
    try:
        result = describe(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path}: cannot be read; --restart starts from scratch") from None
    return f"{result} (finished before, nothing to do; --restart starts from scratch)"
