"""Commands: settings, and a function that does the work and returns the last line to print.

    class PlayConfig(Settings):
        "Play a game."
        games: int = Field(100, ge=1)
        "games to play"

    main = cli.Command("distill play", PlayConfig, run, cli.smoke(games=2))

`common/command_line.py` parses the words, and `common/boundary.py` turns errors and signals into lines and exit codes:
0 success; 2 a wrong flag value; 1 data or environment; 130, 143 or 129 after Ctrl-C, SIGTERM or a closed terminal, with
the command that continues.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic

from distill.common import boundary
from distill.common.command_line import Preset, Presets, parse, smoke
from distill.common.settings import Config

__all__ = ["SMOKE_DATA", "SMOKE_MODELS", "Command", "Preset", "Presets", "smoke"]

SMOKE_DATA, SMOKE_MODELS = Path("data/smoke"), Path("models/smoke")
"""Where `--preset smoke` reads and writes in every command, so that real runs stay untouched."""


@dataclass(frozen=True)
class Command(Generic[Config]):
    """A command: `main` of a module. Called with words, it returns the exit code.

    Attributes:
      name: package and module, such as "distill play".
      config_class, presets: what the words are parsed into.
      run: does the work and returns the last line to print.
    """

    name: str
    config_class: type[Config]
    run: Callable[[Config], str]
    presets: Presets | None = None

    def __call__(self, arguments: Sequence[str] | None = None) -> int:
        """Parse, run and report; the default words are those of this process."""
        words = list(sys.argv[1:] if arguments is None else arguments)
        return boundary.guarded(partial(self.call, words), self.name, words)

    def call(self, words: Sequence[str]) -> int:
        """The same inside a boundary; errors and signals are the caller's."""
        try:
            config = parse(self.config_class, words, self.presets, prog=self.name)
        except SystemExit as stop:
            return int(stop.code or 0)
        print(self.run(config), flush=True)
        return 0
