"""The UT Project's run beside its article, row by row; `pipelines/published.sh` makes the games and the networks.

    python -m experiments.published data/published/move-20000 models/published/move-20000/{cnn,transformer}

In: the games of a run and the networks trained on them. Out: a Markdown table. Top-1 accuracy is measured as the
article does, on the run's own validation games, and on the validation set that ships, which another run labelled. All
intervals are 95 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from distill.common import UserError, cores, provenance, run_folder
from distill.common.tables import table
from distill.datasets.canonical import board_keys
from distill.datasets.validation import VALIDATION_SET
from distill.evaluation import labels, report
from distill.games import reader
from distill.games.reader import RawRows
from distill.games.schema import TRAINING, VALIDATION
from distill.players import names
from distill.players.intervals import share
from distill.players.network import NetworkPlayer
from distill.training.accuracy import FIRST_ROWS, answers, is_early

FRACTION = 0.15
"""Share of the games in validation, as published."""
TRAINING_ROWS = 60_000
"""Training rows on which training accuracy is measured: about as many as there are validation rows."""
PUBLISHED = {"cnn": ("64.40", "not stated"), "transformer": ("55.82", "about 60")}
"""Top-1 accuracy on validation and on training rows, by arch, as the article states them."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row of the report: what was measured, what the article says, and ours."""

    what: str
    article: str
    ours: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("games", type=Path, metavar="GAMES", help="folder of the teacher's games")
    parser.add_argument("networks", nargs="+", metavar="NETWORK", help="run folders of networks trained on them")
    parser.add_argument("--ceiling-rows", type=int, default=1500, help="rows labelled nine more times [%(default)s]")
    arguments = parser.parse_args()
    try:
        lines = of_games(arguments.games, arguments.ceiling_rows)
        for network in arguments.networks:
            lines += of_network(network, arguments.games)
    except UserError as error:
        parser.error(str(error))
    print(table(["", "article", "here"], [[line.what, line.article, line.ours] for line in lines]))


def of_games(folder: Path, ceiling_rows: int) -> list[Line]:
    """What the games hold, and how far a network can follow their labels."""
    run, rows = reader.open_run(folder), reader.raw_rows([folder])
    mean, boards = run.rows / run.games, len(np.unique(board_keys(rows.current, rows.mask)))
    noise_at = run.identity.get("noise_at")
    lines = [
        Line(what="games", article="20,000", ours=f"{run.games:,}, noise on the {noise_at}"),
        Line(what="rows", article="348,844", ours=f"{run.rows:,}"),
        Line(what="rows a game", article="17.4; 19.0 of 15,000 games", ours=f"{mean:.1f}"),
        Line(what="distinct boards, with mirror images", article="697,603", ours=f"about {2 * boards:,}"),
    ]
    teacher = labels.teacher_of(run.identity)
    if teacher and ceiling_rows:
        ceiling = labels.noise_ceiling(labels.sample(rows, ceiling_rows, 0), teacher, 0, cores())
        lines.append(Line(what="noise ceiling of top-1, %", article="not stated", ours=report.percent(ceiling)))
    return lines


def of_network(network: str, games: Path) -> list[Line]:
    """Top-1 accuracy of a network on rows that it trained on, on held-out games, and on the set that ships."""
    player = names.make(network)
    record = run_folder.read(network)
    if not isinstance(player, NetworkPlayer) or record is None or record.result is None:
        raise UserError(f"{network}: not the folder of a finished training run")
    arch = str(record.result["arch"])
    article, article_training = PUBLISHED.get(arch, ("", ""))
    training = reader.raw_rows([games], TRAINING, FRACTION)[:TRAINING_ROWS]
    frozen = reader.raw_rows([Path(provenance.shipped(VALIDATION_SET) or VALIDATION_SET)])
    held_out = top1(player, reader.raw_rows([games], VALIDATION, FRACTION))
    early = f"{arch}, the first {FIRST_ROWS} rows of each game"
    of_training, of_frozen = top1(player, training), top1(player, frozen)
    history = pd.read_csv(Path(network) / "history.csv")
    minutes = history["seconds"].sum() / 60
    return [
        Line(what=f"{arch}, top-1 on held-out games, %", article=article, ours=held_out["all"]),
        Line(what=early, article=article, ours=held_out["early"]),
        Line(what=f"{arch}, top-1 on training rows, %", article=article_training, ours=of_training["all"]),
        Line(what=f"{early} of training", article=article_training, ours=of_training["early"]),
        Line(what=f"{arch}, top-1 on the set that ships, %", article="", ours=of_frozen["all"]),
        Line(what=f"{early} of that set", article="", ours=of_frozen["early"]),
        Line(what=f"{arch}, epochs and minutes", article="", ours=f"{record.result['epochs']:g} and {minutes:.0f}"),
    ]


def top1(player: NetworkPlayer, rows: RawRows) -> Mapping[str, str]:
    """The share of rows on which the network's move is the label, of `all` rows and of `early` ones, in percent."""
    given = answers(player.predict, rows)
    same = given.move == given.label
    return {name: report.percent(share(same[of], 1)) for name, of in (("all", slice(None)), ("early", is_early(rows)))}


if __name__ == "__main__":
    main()
