"""The folder of a run: its files, and the settings it stores before it starts and must meet again when resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distill import cli, folders, provenance
from distill.data.schema import SCHEMA_VERSION, write_atomically
from distill.game.encoding import ENCODING_VERSION

CONFIG, RUN, METRICS = "config.json", "run.json", "metrics.json"
"""The settings as `--config` reads them; what the run is; its result, written last: with it the run is finished."""
BEST, LAST = "best.keras", "last.keras"
"""The network with the smallest loss on validation boards, and the latest one."""
EXPORTED = "saved_model/1/saved_model.pb"
"""The exported network in a run's folder."""
REFERENCE = "reference"
"""The folder in `models/` of the networks that ship."""


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
        if self.restart or not run.is_file():
            return
        try:
            stored = json.loads(run.read_text(encoding="utf-8"))["identity"]
            names = sorted({*stored, *self.identity})
        except (ValueError, KeyError, TypeError):
            raise cli.UserError(f"{run}: cannot be read; --restart begins anew") from None
        here = self.identity
        changed = [f"{n}: {stored.get(n)} → {here.get(n)}" for n in names if stored.get(n) != here.get(n)]
        if changed:
            raise cli.UserError(
                f"{self.out} holds a run with other settings ({', '.join(changed)}); "
                "name another --out, or --restart begins anew"
            )

    def begin(self) -> None:
        """Store the settings where the run is new; with `restart` delete what is left of the one before first."""
        if self.restart:
            folders.clear(self.out, self.own)
        elif (self.out / RUN).is_file():
            return
        about = {
            "identity": dict(self.identity),
            "versions": provenance.versions("keras", "numpy", "tensorflow"),
            "commit": provenance.commit(),
            "schema_version": SCHEMA_VERSION,
            "encoding_version": ENCODING_VERSION,
        }
        write_json(self.out / CONFIG, self.settings)
        write_json(self.out / RUN, about)


def places(models: Path | None = None) -> list[Path]:
    """Folders in which networks are looked for by name: `models`, none: the working directory's, and what ships."""
    shipped = provenance.shipped(f"models/{REFERENCE}")
    return [models or Path("models"), *([shipped.parent] if shipped else [])]


def networks(folders: Sequence[Path], holding: Sequence[str] = (BEST, EXPORTED)) -> dict[str, Path]:
    """Name → folder of every network below these folders that holds one of the named files.

    A name is the path below the folder, such as `cnn` or `reference/column`; of equal names the first is taken.
    """
    found: dict[str, Path] = {}
    for top in folders:
        for folder in (*sorted(top.glob("*")), *sorted(top.glob(f"{REFERENCE}/*"))):
            if any((folder / file).is_file() for file in holding):
                found.setdefault(folder.relative_to(top).as_posix(), folder)
    return found


def called(name: str, known: Mapping[str, Path]) -> Path | None:
    """The folder that a name means among `networks`; the name of one that ships need not begin with `reference/`."""
    return known.get(name) or known.get(f"{REFERENCE}/{name}")


def find(word: str | Path) -> Path | None:
    """What a user's word for a network means: a path where it is one, else the network of that name; None: neither."""
    if os.path.exists(word):  # unlike Path's, False for a word that is too long to be a path
        return Path(word)
    return called(str(word).rstrip("/"), networks(places()))


def names() -> str:
    """The networks that have a name here, for a message."""
    return f"networks by name are {', '.join(networks(places())) or 'none'}"


def network_file(word: str | Path) -> Path:
    """The `.keras` file that a user's word means: itself, or the best network of a run's folder. Raises UserError."""
    path = find(word)
    if path is None:
        raise cli.UserError(f"{cli.shortened(word)}: no such path, and no network of that name; {names()}")
    file = path / BEST if path.is_dir() else path
    if file.suffix != ".keras" or not file.is_file():
        raise cli.UserError(f"{path}: {'no model in this folder' if path.is_dir() else 'no such .keras file'}")
    return file


def finished(out: Path, describe: Callable[[Mapping[str, Any]], str]) -> str | None:
    """The last line of a run whose metrics lie in its folder, in the words of `describe`; None of one still to be done.

    Raises UserError for metrics that cannot be read.
    """
    path = out / METRICS
    if not path.is_file():
        return None
    try:
        result = describe(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError):
        raise cli.UserError(f"{path}: cannot be read; --restart begins anew") from None
    return f"{result} (finished before, nothing to do; --restart begins anew)"


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a JSON file as a whole."""
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())
