"""How much a search's label depends on the network that guides it: several networks search the same boards.

    python -m experiments.guides --networks models/hour models/reference/pillar
    python -m experiments.guides --networks models/hour models/reference/pillar --stones 6 22 --equal 0 0.25 0.5 0.8

For each search, and for the mean of the networks' visits: the share of boards where the most visited column is optimal
and keeps the outcome, with half of the 95 % interval; how often that column differs from the label and, in the mean
over pairs, between two networks; the entropy of the visits; and twice the Jensen-Shannon divergence of two networks'
visits, in nats. `--equal` mixes the root's priors with equal ones. Needs the extra `solver`.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.common import boundary
from distill.common.tables import table as markdown_table
from distill.datasets.grades import grade_moves
from distill.evaluation import labels, report
from distill.game.encoding import FULL_COLUMN
from distill.games import reader
from distill.networks import finding
from distill.players.intervals import share
from distill.players.solver import score_boards

MUCH = 1e4
"""A concentration at which Dirichlet noise is equal shares."""


def entropy(shares: NDArray[np.float64]) -> float:
    """Mean over boards of shares (B, 7), in nats."""
    return float(-(shares * np.log(np.maximum(shares, 1e-12))).sum(1).mean())


def grades(scores: NDArray[np.int8], games: NDArray[np.int64], moves: NDArray[np.int64]) -> str:
    optimal, outcome = (report.percent(share(each, 1, games)) for each in grade_moves(scores, moves))
    return f"{optimal} / {outcome}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/reference/labels-200"), help="[%(default)s]")
    parser.add_argument("--boards", type=int, default=1500, help="drawn from it [%(default)s]")
    parser.add_argument("--stones", type=int, nargs=2, default=(0, 41), help="of these, those with so many stones")
    parser.add_argument("--networks", nargs="+", required=True, help="two or more, by name, folder or file")
    parser.add_argument("--simulations", type=int, nargs="+", default=[200], help="[%(default)s]")
    parser.add_argument("--equal", type=float, nargs="+", default=[0.0], help="share of equal priors at the root")
    arguments = parser.parse_args()
    if len({*arguments.networks}) < 2:
        parser.error("--networks needs two or more")
    try:
        compare(arguments)
    except ValueError as error:
        parser.error(str(error))
    return 0


def compare(arguments: argparse.Namespace) -> None:
    """Search, grade and print. Raises UserError for networks, labels or a solver that are not there."""
    networks.start_backend()
    from distill.mcts import puct
    from distill.networks import saved
    from distill.networks.evaluator import NetworkEvaluator

    rows = labels.sample(reader.raw_rows([arguments.data]), arguments.boards, seed=0)
    rows = rows[(rows.ply >= arguments.stones[0]) & (rows.ply <= arguments.stones[1])]
    scores = score_boards(rows.current, rows.mask)
    grade = partial(grades, scores, rows.game)
    evaluators: dict[str, Any] = {
        name: NetworkEvaluator(saved.load_core(finding.network_file(name))) for name in arguments.networks
    }

    table = [["label", f"{len(rows):,} boards", grade(rows.label.astype(np.int64)), "", "", ""]]
    for name, network in evaluators.items():
        open_columns = scores != FULL_COLUMN
        best = np.where(open_columns, network(rows.current, rows.mask)[0], -np.inf).argmax(1)
        table.append([name, "one forward pass", grade(best), "", "", ""])
    for simulations in arguments.simulations:
        for equal in arguments.equal:
            settings = puct.PuctSettings(
                simulations=simulations, exploration=1.0, discount=0.98, noise_fraction=equal, dirichlet_alpha=MUCH
            )
            visits = []
            for network in evaluators.values():
                seeds = range(len(rows))
                record = puct.play(rows.current, rows.mask, network, settings, seeds=seeds, steps=1)
                found = record.visits[:, 0]
                visits.append(found / found.sum(1, keepdims=True))
            search = f"{simulations} simulations, {equal:.0%} equal"
            for name, one in zip(evaluators, visits, strict=True):
                other = f"{np.mean(one.argmax(1) != rows.label):.1%}"
                table.append([name, search, grade(one.argmax(1)), other, f"{entropy(one):.3f}", ""])
            pairs = list(combinations(visits, 2))
            other = f"{np.mean([np.mean(one.argmax(1) != two.argmax(1)) for one, two in pairs]):.1%}"
            apart = [2 * entropy((one + two) / 2) - entropy(one) - entropy(two) for one, two in pairs]
            mean = np.mean(visits, axis=0)
            table.append(
                [
                    "their mean",
                    search,
                    grade(mean.argmax(1)),
                    other,
                    f"{entropy(mean):.3f}",
                    f"{np.mean(apart):.3f}",
                ]
            )
    print(
        markdown_table(
            ["who", "how", "optimal / outcome", "another column than the label; of two", "entropy", "twice JSD"], table
        )
    )


if __name__ == "__main__":
    raise SystemExit(boundary.guarded(main, "experiments guides", sys.argv[1:]))
