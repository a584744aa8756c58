"""One table of all players: Elo by games, grades by exact scores, time and size.

    python -m experiments.players                     # the shipped ladder: six minutes of two cores
    python -m experiments.players club uct:1000 cnn --out FILE --page PAGE    # other players, the weakest first

In: players in the order of their expected strength. Each meets those up to `--apart` places on, from random openings
in which neither side can win at once, both sides of each. Out: in the JSON file `--out` every pair, grade and time that
is finished, so that the same command resumes after an interruption; in `--page` the table between its two markers, and
the same as CSV beside it. Networks run as in `play` (`networks/predict.py`).

A measurement is repeated where the player, the openings or the boards differ from those in the file. The file of the
shipped ladder is tracked, so that a new network costs only its own games. Times are kept as measured: remove `times`
from the file to measure all of them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, model_validator

from distill.common import cli, run_folder, say
from distill.common.settings import CommandLine, Seed, Settings
from distill.datasets import benchmark
from distill.players import names
from distill.players.match import openings
from experiments.players import measure
from experiments.players import page as pages

LADDER = (
    "random", "starter", "beginner", "punisher", "casual", "uct:100", "regular", "transformer", "uct:1000",
    "transformer-strong", "cnn", "club", "uct:10000", "cnn-strong", "pillar", "expert", "pillar-large",
    "pillar@puct:50", "pillar@puct:200", "pillar@puct:800", "perfect",
)  # fmt: skip
SLOW = ("uct:10000", "pillar@puct:50", "pillar@puct:200", "pillar@puct:800", "perfect")
"""Players of the ladder that are graded on fewer boards."""
LADDER_PAGE = Path("docs/benchmark.md")


class PlayersConfig(Settings):
    """Measure players against their neighbours in strength, and write the table of all."""

    command_line: ClassVar[CommandLine] = CommandLine(
        words="players",
        flags=(
            "games",
            "apart",
            "opening_plies",
            "benchmark_set",
            "slow",
            "slow_boards",
            "boards",
            "seed",
            "out",
            "page",
        ),
    )
    players: tuple[str, ...] = Field(LADDER, title="PLAYER", description=f"the weakest first: {names.NAMES}")
    games: int = Field(200, ge=2, multiple_of=2, description="games of each pair, half of them from either side")
    apart: int = Field(2, ge=1, description="largest distance on the ladder at which two players meet")
    opening_plies: int = Field(6, ge=1, le=20, description="random stones before the players move (1–20)")
    benchmark_set: str = Field("heldout", description="set of the benchmark whose test half grades the moves")
    slow: tuple[str, ...] = Field(SLOW, description="players graded on fewer boards")
    slow_boards: int = Field(500, ge=1, description="boards for them")
    boards: int | None = Field(None, ge=1, description="largest number of boards per player; default: all")
    seed: Seed = Field(0, description="seed of openings, searches and random moves")
    out: Path = Field(
        Path(__file__).with_name("measured.json"), description="file of the measurements; that of the ladder is tracked"
    )
    page: Path = Field(LADDER_PAGE, description="the page that holds the table; a CSV lies beside it")

    @model_validator(mode="after")
    def _check_players(self) -> Self:
        if len(self.players) < 2 or len(set(self.players)) < len(self.players):
            raise ValueError("name at least two players, each once")
        fields = type(self).model_fields
        places = [name for name in ("out", "page") if getattr(self, name).resolve() == fields[name].default.resolve()]
        own = [name for name, field in fields.items() if getattr(self, name) != field.default]
        if places and {*own} - {"out", "page"}:
            flags = " and ".join(f"--{name}" for name in places)
            raise ValueError(f"{flags} must name other files: the usual ones hold the shipped ladder with its settings")
        for name in self.players:
            names.check(name)
        openings(self.games // 2, self.opening_plies, self.seed)
        return self

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The pairs that meet, neighbours first."""
        places = sorted(combinations(range(len(self.players)), 2), key=lambda pair: pair[1] - pair[0])
        for one, other in places:
            if other - one <= self.apart:
                yield self.players[one], self.players[other]


PRESETS = cli.smoke(
    players=("random", "beginner", "casual"),
    games=4,
    boards=20,
    out=cli.SMOKE_MODELS / "players" / "measured.json",
    page=cli.SMOKE_MODELS / "players" / "players.md",
)


def run(config: PlayersConfig) -> str:
    """Measure what is missing and write the table; returns the line that names the best player."""
    pages.require(config.page)
    with run_folder.locked(config.out.parent):
        rows = _measured(config)
    legend = pages.legend(config.games, config.apart, config.opening_plies, config.benchmark_set, config.slow_boards)
    pages.write(config.page, rows, legend)
    print(f"{pages.table(rows)}\n")
    best = rows[0]
    return f"{config.page}: {len(rows)} players, {best.player} is first with {best.elo.mean:+.0f}"


def _measured(config: PlayersConfig) -> list[measure.Row]:
    """The rows of the table, the strongest player first."""
    boards = benchmark.read(half="test", sets=[config.benchmark_set])
    starts = openings(config.games // 2, config.opening_plies, config.seed)
    times, grades = {}, {}
    for name in config.players:
        few = config.slow_boards if name in config.slow else config.boards
        times[name] = measure.time_alone(name, boards, config.out)
        grades[name] = measure.graded(name, boards, few, config.seed, config.out)
    pairs = list(config.pairs())
    met = {}
    for number, (one, other) in enumerate(pairs, 1):
        say(f"pair {number} of {len(pairs)}: {one} and {other}")
        met[one, other] = measure.met(one, other, starts, config.seed, config.out)
    return measure.rows(config.players, met, times, grades, config.seed)


main = cli.Command("experiments players", PlayersConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
