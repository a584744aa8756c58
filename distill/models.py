"""List the networks there are: those that ship with distill, and those in `models/`.

    python -m distill.models
    python -m distill.models --models elsewhere

In: folders of networks. Out: a line for each exported one, with what its card says of it. Nothing is loaded; in Python

    predict = distill.load_pretrained("pillar")

is the function behind a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distill.base import cli
from distill.nets import finding

HEADER = ("name", "network", "parameters", "exact", "class", "files")
FILES = {"1/saved_model.pb": "SavedModel", "model.onnx": "ONNX", "model.tflite": "LiteRT"}


@dataclass(frozen=True, kw_only=True)
class ModelsConfig:
    """List the networks there are."""

    models: Path | None = cli.setting(None, "folder of networks, beside those that ship; none: models")


PRESETS = {"smoke": {"models": cli.SMOKE_MODELS}}


def run(config: ModelsConfig) -> str:
    """The table."""
    found = finding.networks(finding.places(config.models), (finding.EXPORTED,))
    if not found:
        return "no exported network here; python -m distill.train --arch cnn makes one"
    rows = [HEADER, *(_row(name, folder / "saved_model") for name, folder in found.items())]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADER))]
    lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(
        [*lines, "", "exact, class: of its moves on the boards `midgame`, test half, as its card has them"]
    )


def _row(name: str, model: Path) -> tuple[str, ...]:
    card = finding.read_card(model)
    files = ", ".join(title for file, title in FILES.items() if (model / file).is_file())
    return name, card.network, card.parameters, card.exact, card.right_class, files


main = cli.Command("models", ModelsConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
