"""Write trained networks as SavedModels that other programs load with TensorFlow alone.

    python -m distill.export models/cnn

In: `.keras` files, or folders of training runs (their best network). Out: `saved_model/` beside each, or in
`--out`, with the model in `1/`, examples, card and checksums, after a check in a clean process (`nets/publish.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from distill import cli, nets


@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """Write trained networks as SavedModels."""

    models: tuple[Path, ...] = cli.setting(
        (), "the networks: .keras files or folders of training runs", positional=True
    )
    out: Path | None = cli.setting(None, "folder that receives saved_model/; none: the network's own folder")

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("needs a model: a .keras file or the folder of a training run")
        cli.check(self.out is None or len(self.models) == 1, "out", self.out, "left out where several models are given")


def run(config: ExportConfig) -> str:
    """Export each network; returns the line that says where they are."""
    nets.start_backend()
    from distill.nets import publish, saved

    lines = []
    for model in config.models:
        network = saved.network_file(model)
        folder = config.out or network.parent
        difference = publish.publish(saved.load_core(network), folder, publish.facts_of_run(network.parent))
        lines.append(f"{folder / 'saved_model' / '1'}: largest difference from the network {difference:.1e}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the return value is the exit code."""
    return cli.main("export", ExportConfig, run, arguments=arguments)


if __name__ == "__main__":
    raise SystemExit(main())
