"""Write a trained network for other programs: SavedModel, LiteRT, ONNX, or a web page that plays by itself.

    python -m distill.export models/cnn
    python -m distill.export models/cnn --formats savedmodel litert onnx litert-int8 onnx-int8
    python -m distill.export models/cnn --web site
    python -m distill.export pillar cnn-strong transformer-strong pillar-large --web site

In: a `.keras` file, the folder of a training run (its best network), or the name of a network (`networks/finding.py`).
Out: `saved_model/` beside it, or in `--out`, with the model in `1/`, other formats beside it, examples, card and
checksums; each file is checked in a clean process (`exporters/publish.py`). With `--web` instead a static folder
that any file host can serve, with all of the networks that are named (`exporters/static_page.py`).
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("export")

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, field_validator, model_validator

from distill import networks
from distill.common import UserError, cli, provenance, run_folder
from distill.common.settings import CommandLine, NameOrPath, Settings
from distill.exporters.formats import FORMATS, SAVED_MODEL
from distill.networks import finding


class ExportConfig(Settings):
    """Write a trained network for other programs."""

    command_line: ClassVar[CommandLine] = CommandLine(
        words="models",
        flags=("formats", "out", "web"),
        examples=("models/cnn --formats savedmodel litert onnx", "pillar cnn-strong --web site"),
        page="docs/networks.md",
    )
    models: tuple[NameOrPath, ...] = Field((), title="MODEL")
    """the network: a .keras file, the folder of a training run, or a name; for --web also several"""
    formats: tuple[str, ...] = Field(
        (SAVED_MODEL,),
        title="FORMAT",
        description=f"formats: {', '.join(FORMATS)}; the SavedModel and earlier exports' formats are always written",
    )
    out: Path | None = None
    """folder that receives saved_model/; default: the network's own folder"""
    web: Path | None = None
    """folder for a page that plays in the browser; nothing else is written"""

    @field_validator("formats")
    @classmethod
    def _check_formats(cls, formats: tuple[str, ...]) -> tuple[str, ...]:
        if not formats or not {*formats} <= FORMATS.keys():
            raise ValueError(f"must be of {', '.join(FORMATS)}")
        return formats

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        if not self.models:
            raise ValueError("needs a model: a .keras file or the folder of a training run")
        if len(self.models) > 1 and not self.web:
            raise ValueError("several models are for one page: --web FOLDER")
        if self.web and (self.out or self.formats != (SAVED_MODEL,)):
            raise ValueError("--out and --formats must be left out with --web")
        return self


def run(config: ExportConfig) -> str:
    """Export a network, or write a page; returns the lines that say where the result is."""
    files = [finding.network_file(model) for model in config.models]  # errors show before the backend takes its seconds
    if config.web:
        return _write_page(files, config.web)
    [model], [file], shipped = config.models, files, provenance.shipped("models/reference")
    by_name = finding.find(model) != Path(model)  # whoever gives the path of a network that ships means to replace it
    if config.out is None and by_name and shipped and file.resolve().is_relative_to(shipped.resolve()):
        raise UserError(f"{model} ships with distill and is not overwritten; --out says where its export goes")
    networks.start_backend(aloud=True)
    from distill.exporters import card, conversion, publish, quantized

    folder = config.out or file.parent
    with run_folder.locked(folder):  # the run in it must not replace the network meanwhile
        results = card.results(file.parent if file.name == finding.BEST else None)
        earlier = finding.facts(folder / finding.PUBLISHED).get("files", {})
        others = [name for name, format in FORMATS.items() if name in config.formats or format.file in earlier]
        written = publish.publish(file, folder, results, others)
    worst = max(checked.difference for checked in written.values() if not checked.losses)
    difference = f"largest difference from the network {worst:.1e} ({conversion.MEASURE})"
    losses = [
        f"{name} loses {quantized.in_words(checked.losses)}" for name, checked in written.items() if checked.losses
    ]
    return "\n".join([f"{folder / finding.PUBLISHED}: {', '.join(written)}; {difference}", *losses])


def _write_page(files: Sequence[Path], folder: Path) -> str:
    """Write the page with the networks in these files; returns the line that says how to see it."""
    networks.start_backend(aloud=True)
    from distill.exporters.static_page import write_static_page
    from distill.players import levels, names

    for file in files:
        if names.parse(called := file.parent.resolve().name).player:
            raise UserError(f"{file}: the page has another player called {called}; rename the folder")
    write_static_page(files, folder, levels.elo_of_static_page(files[0]))
    return f"{folder}: a static page; any file server shows it: python -m http.server --directory {folder}"


main = cli.Command("distill export", ExportConfig, run, cli.smoke(models=(str(cli.SMOKE_MODELS / "cnn"),)))
