"""The UT Project's run beside its article, row by row; `pipelines/published.sh` makes the games and the networks.

    python -m experiments.published data/published/move-20000 models/published/move-20000/{cnn,transformer}

In: the games of a run and the networks trained on them. Out: a Markdown table. Top-1 accuracy is measured as the
article does, on the run's validation games, on those of their boards that no training game has, because the article
keeps every board once, and on the validation set that ships, which another run labelled; also on the first 19 rows of
each game, about as long as the article's games are. All intervals are 95 %.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from distill import train
from distill.common import UserError, boundary, cores, provenance, run_folder
from distill.common.settings import by_path
from distill.common.tables import table
from distill.datasets.validation import VALIDATION_SET
from distill.evaluation import labels, report
from distill.game.rules import canonical_keys, mirror_bits
from distill.games import reader
from distill.games.schema import TRAINING, VALIDATION
from distill.players import names
from distill.players.intervals import share
from distill.players.network import NetworkPlayer
from distill.training.accuracy import FIRST_ROWS, answers, is_early

TRAINING_ROWS = 60_000
"""Training rows on which training accuracy is measured: about as many as there are validation rows."""
NEW_BOARDS = "their boards that no training game has"
PUBLISHED = {"cnn": ("64.40", "not stated"), "transformer": ("55.82", "about 60")}
"""Top-1 accuracy on validation and on training rows, by arch, as the article states them."""

Line = tuple[str, str, str]
"""A row of the report: what was measured, what the article says, and ours."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("games", type=Path, metavar="GAMES", help="folder of the teacher's games")
    parser.add_argument("networks", nargs="+", metavar="NETWORK", help="run folders of networks trained on them")
    parser.add_argument("--ceiling-rows", type=int, default=1500, help="rows labelled nine more times [%(default)s]")
    arguments = parser.parse_args()
    try:
        # The networks first: the ceiling takes longest, and a network may be refused.
        of_networks = [line for network in arguments.networks for line in of_network(network, arguments.games)]
        lines = [*of_games(arguments.games, arguments.ceiling_rows), *of_networks]
    except ValueError as error:
        parser.error(str(error))
    print(table(["", "article", "here"], lines))
    return 0


def of_games(folder: Path, ceiling_rows: int) -> list[Line]:
    """What the games hold, and how far a network can follow their labels."""
    run, rows = reader.open_run(folder), reader.raw_rows([folder])
    mean, noise_at = run.rows / run.games, run.identity.get("noise_at")
    # current + mask names a board; that of a board and that of its mirror image are counted together.
    as_played, mirrored = (np.unique(side(rows.current) + side(rows.mask)) for side in (np.asarray, mirror_bits))
    both = len(np.union1d(as_played, mirrored))
    lines = [
        ("games", "20,000", f"{run.games:,}, noise on the {noise_at}"),
        ("rows", "348,844", f"{run.rows:,}"),
        ("rows a game", "17.4; 19.0 of 15,000 games", f"{mean:.1f}"),
        ("distinct boards", "not stated", f"{len(as_played):,}"),
        ("distinct boards, with mirror images", "697,603", f"{both:,}"),
    ]
    teacher = labels.teacher_of(run.identity)
    if teacher and ceiling_rows:
        ceiling = labels.noise_ceiling(labels.sample(rows, ceiling_rows, 0), teacher, 0, cores())
        lines.append(("noise ceiling of top-1, %", "not stated", report.percent(ceiling)))
    return lines


def of_network(network: str, games: Path) -> list[Line]:
    """Top-1 accuracy of a network on held-out games, on rows that it trained on, and on the set that ships."""
    player = names.make(network)
    record = run_folder.finished(network, train.KIND)
    result, fraction = record.result or {}, float(by_path(record.settings)["validation_fraction"])
    if not isinstance(player, NetworkPlayer):
        raise UserError(f"{network}: not the folder of a network")
    arch = str(result["arch"])
    run = reader.open_run(games)
    if (run.identity, run.games) not in [(one["settings"], one["games"]) for one in result["training_games"]]:
        raise UserError(f"{network}: was not trained on the games in {games}")
    article, article_training = PUBLISHED.get(arch, ("", ""))
    training, held_out = (reader.raw_rows([games], split, fraction) for split in (TRAINING, VALIDATION))
    shipped = reader.raw_rows([Path(provenance.shipped(VALIDATION_SET) or VALIDATION_SET)])
    new = ~np.isin(canonical_keys(held_out.current, held_out.mask), canonical_keys(training.current, training.mask))
    minutes = pd.read_csv(Path(network) / "history.csv")["seconds"].sum() / 60
    lines = []
    for rows, where, figure in (
        (held_out, "held-out games", article),
        (held_out[new], NEW_BOARDS, article),
        (training[:TRAINING_ROWS], "training rows", article_training),
        (shipped, "the set that ships", ""),
    ):
        answered = answers(player.predict, rows)
        same, early = answered.move == answered.label, is_early(rows)
        ours = report.percent(share(same, 1, rows.game))
        lines.append((f"{arch}, top-1 on {where}, %", figure, ours))
        if where != NEW_BOARDS:  # there a game has gaps
            what = f"{arch}, the same on the first {FIRST_ROWS} rows of each game, %"
            ours = report.percent(share(same[early], 1, rows.game[early]))
            lines.append((what, figure, ours))
    trained = f"{result['epochs']:g} and {minutes:.0f}"
    return [*lines, (f"{arch}, epochs and minutes", "", trained)]


if __name__ == "__main__":
    raise SystemExit(boundary.guarded(main, "experiments published", sys.argv[1:]))
