"""The folder of a run: its files, and the settings it stores before it starts and must meet again when resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distill.common import UserError, file_hash, folders, provenance, write_json
from distill.game.encoding import ENCODING_VERSION
from distill.games.schema import SCHEMA_VERSION
from distill.networks import finding

CONFIG, RUN, METRICS = "config.json", "run.json", "metrics.json"
"""The settings as `--config` reads them; what the run is; its result, written last: with it the run is finished."""
ADDED = {"eval_every": None, "ema": 0.0, "loss_sampling": 0.0, "interpolate": 0.0}
"""Settings that runs which are kept are older than, with the value that changes nothing: so those runs went."""
LAST = "last.keras"
"""The latest network; the one with the smallest loss on validation boards is `networks.finding.BEST`."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A run's claim to the folder it writes, made while the folder is locked.

    Attributes:
      out: the folder.
      kind: of run.
      own: the files and folders that a restart deletes, beside CONFIG and RUN, which it replaces.
      settings: what `--config` would read.
      identity: what the weights depend on, without paths.
      restart: whether to begin anew where the folder holds a run of this kind.
    """

    out: Path
    kind: folders.Kind
    own: Sequence[str]
    settings: Mapping[str, Any]
    identity: Mapping[str, Any]
    restart: bool

    def check(self) -> None:
        """Raise UserError where the folder holds something else, or a run with other settings; nothing is changed."""
        folders.require(self.out, self.kind, own=(CONFIG, RUN, *self.own), restart=self.restart)
        run = self.out / RUN
        if self.restart:
            return
        if not run.is_file():  # it is written before these
            if any((self.out / name).exists() for name in self.own):
                raise UserError(
                    f"{run}: missing, so the settings of this run are not known; --restart starts from scratch"
                )
            return
        try:
            stored, here = json.loads(run.read_text(encoding="utf-8"))["identity"], self.identity
            older = ADDED | {"init": here.get("init")}  # which loops of before do not tell
            stored = {name: value for name, value in older.items() if name in here} | stored
            names = sorted({*stored, *here})
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{run}: cannot be read; --restart begins anew") from None
        changed = [f"{n}: {stored.get(n)} → {here.get(n)}" for n in names if stored.get(n) != here.get(n)]
        if changed:
            raise UserError(
                f"{self.out} holds a run with other settings ({', '.join(changed)}); "
                "name another --out, or --restart begins anew"
            )

    def begin(self) -> None:
        """Store the settings where the run is new; with `restart` delete what is left of the one before first."""
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
            folders.clear(self.out, self.own)
        write_json(self.out / CONFIG, self.settings)
        write_json(self.out / RUN, about)


def claim(
    out: Path, kind: folders.Kind, own: Sequence[str], config: Any, free: Sequence[str], also: Mapping[str, Any]
) -> Claim:
    """The claim of a command's config: weights depend on its settings but those in `free`, and on what is in `also`.

    `init`, the network to begin from, is one of the settings. Its contents are a part of the identity, and it must not
    be what a restart deletes: raises UserError.
    """
    init = finding.network_file(config.init) if config.init else None
    deleted = [out.resolve() / name for name in own] if config.restart and init else []
    if init and any(file.is_relative_to(each) for file in _with_links(init) for each in deleted):
        raise UserError(f"{init}: --restart would delete the network to begin from; name another --out")
    settings = folders.stored(kind, config)
    identity = {name: value for name, value in settings.items() if name not in (*free, "kind")}
    identity |= {"init": file_hash(init) if init else None, **also}
    return Claim(out=out, kind=kind, own=own, settings=settings, identity=identity, restart=config.restart)


def _with_links(file: Path) -> list[Path]:
    """A file as it is named, and as it is called behind the link that it may be."""
    return [file.parent.resolve() / file.name, file.resolve()]


def finished(out: Path, describe: Callable[[Mapping[str, Any]], str]) -> str | None:
    """The last line of a run whose metrics lie in its folder, in the words of `describe`; None of one still to be done.

    Raises UserError for metrics that cannot be read, and where the network is gone.
    """
    path = out / METRICS
    if not path.is_file():
        return None
    if not (out / finding.BEST).is_file():
        raise UserError(f"{out / finding.BEST}: missing, though the run is finished; restore it, or add --restart")
    try:
        result = describe(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path}: cannot be read; --restart begins anew") from None
    return f"{result} (finished before, nothing to do; --restart begins anew)"
