"""List the networks there are: those that ship with distill, and those in `models/`.

    python -m distill.models
    python -m distill.models --models elsewhere

In: folders of networks. Out: a line for each, with the sizes of its files and, once exported, what its card says of it.
Nothing is loaded; in Python

    predict = distill.load_pretrained("pillar")

is the function behind a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distill.common import UserError, cli
from distill.exporters.formats import FORMATS
from distill.networks import finding

FILES = {finding.BEST: "Keras"} | {f"{finding.PUBLISHED}/{each.file}": each.title for each in FORMATS.values()}
HEADER = ("name", "network", "parameters", "optimal", "outcome", *FILES.values())


@dataclass(frozen=True, kw_only=True)
class ModelsConfig(cli.Settings):
    """List the networks there are."""

    models: Path | None = cli.setting(None, "folder of networks, beside those that ship; none: models")


PRESETS = {"smoke": cli.smoke(models=cli.SMOKE_MODELS)}


def run(config: ModelsConfig) -> str:
    """The table."""
    if config.models and not config.models.is_dir():
        raise UserError(f"{config.models}: no such folder")
    found = finding.networks(finding.places(config.models))
    if not found:
        return "no network here; python -m distill.train --arch cnn makes one"
    rows = [HEADER, *(_row(name, folder) for name, folder in found.items())]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADER))]
    lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    files = "\n".join(f"{title.ljust(max(map(len, FILES.values())))}  {file}" for file, title in FILES.items())
    graded = "optimal, outcome: of its moves on the boards `midgame`, test half, as its card has them"
    return "\n".join([*lines, "", graded, "", "each in the network's folder:", files])


def _row(name: str, folder: Path) -> tuple[str, ...]:
    facts = finding.exported_facts(folder / finding.PUBLISHED) if finding.is_current(folder) else {}
    parameters = f"{facts['parameters']:,}" if "parameters" in facts else "–"
    graded = facts.get("grades", {}).get("sets", {}).get("midgame", {})
    grades = (f"{graded[metric]['mean']:.1%}" if metric in graded else "–" for metric in ("optimal", "outcome"))
    sizes = (finding.size(folder / file) if (folder / file).exists() else "–" for file in FILES)
    return name, facts.get("arch", "–"), parameters, *grades, *sizes


main = cli.Command("models", ModelsConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
