"""Write trained networks for other programs: SavedModel, LiteRT, ONNX, or a web page that plays by itself.

    python -m distill.export models/cnn
    python -m distill.export models/cnn --formats savedmodel,litert,onnx
    python -m distill.export models/cnn --web site

In: `.keras` files, or folders of training runs (their best network). Out: `saved_model/` beside each, or in
`--out`, with the model in `1/`, other formats beside it, examples, card and checksums, each file after a check in a
clean process (`nets/publish.py`). With `--web` instead a static folder that any file host can serve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from distill import cli, nets

FORMATS = ("savedmodel", "litert", "onnx")


@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """Write trained networks for other programs."""

    models: tuple[Path, ...] = cli.setting(
        (), "the networks: .keras files or folders of training runs", positional=True
    )
    formats: str = cli.setting(
        "savedmodel", f"with commas between them: {', '.join(FORMATS)}; the SavedModel is written in any case"
    )
    out: Path | None = cli.setting(None, "folder that receives saved_model/; none: the network's own folder")
    web: Path | None = cli.setting(None, "folder that receives a page which plays in the browser, instead of the rest")

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("needs a model: a .keras file or the folder of a training run")
        cli.check(self.out is None or len(self.models) == 1, "out", self.out, "left out where several models are given")
        cli.check(self.web is None or len(self.models) == 1, "web", self.web, "left out where several models are given")
        cli.check(
            self.web is None or self.out is None, "out", self.out, "left out beside --web, which names the folder"
        )
        cli.check(set(self.formats.split(",")) <= set(FORMATS), "formats", self.formats, f"of {', '.join(FORMATS)}")

    @property
    def others(self) -> tuple[str, ...]:
        """The formats beside the SavedModel, each once."""
        asked = self.formats.split(",")
        return tuple(name for name in FORMATS[1:] if name in asked)


PRESETS = {"smoke": {"models": (cli.SMOKE_MODELS / "cnn",)}}


def run(config: ExportConfig) -> str:
    """Export each network; returns the line that says where they are."""
    nets.start_backend()
    from distill.nets import publish, run_facts, run_folder, saved

    if config.web:
        from distill.nets.static_page import write_static_page

        write_static_page(config.models[0], config.web)
        return f"{config.web}: a static page; any file server shows it: python -m http.server --directory {config.web}"
    lines = []
    for model in config.models:
        network = run_folder.network_file(model)
        folder = config.out or network.parent
        facts = run_facts.facts_of_run(network.parent)
        differences = publish.publish(saved.load_core(network), folder, facts, config.others)
        worst = max(differences.values())
        lines.append(
            f"{folder / publish.PLACE}: {', '.join(differences)}; largest difference from the network {worst:.1e}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the return value is the exit code."""
    return cli.main("export", ExportConfig, run, PRESETS, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
