"""How players play: openings, horizontal threes, strength by stones, the centre, threats, and stacking.

    python -m experiments.habits cnn transformer pillar
    python -m experiments.habits models/cnn-1000 random uct:1000 --out models/habits

In: players by name, as `distill/players/names.py` reads them, and the shipped graded boards. Out: one table for each
habit, the table of what the article about the UT Project says of its two networks, and in the folder `--out` the same
figures as `habits.json` and four pictures. A rate stands beside its chance level: how often a legal column drawn at
random would do the same on the same boards. Intervals are 95 %.

`measured.json` in this folder has the figures of docs/results.md, and `docs/figures.py` draws two pictures from it.

The habits of games are those of games against `punisher` from the empty board, half of them from either side.

Dimensions: B boards, A = 7 columns.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from distill.common import UserError, boundary, listed, read_object, write_json
from distill.players.names import make
from experiments.habits.measure import habits_of
from experiments.habits.report import draw, tables


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("players", nargs="+", metavar="PLAYER", help="a network's name, folder or file, or a player")
    parser.add_argument("--games", type=int, default=400, help="games of each player, an even number [%(default)s]")
    parser.add_argument("--out", type=Path, default=Path("models/habits"), help="[%(default)s]")
    arguments = parser.parse_args()
    if arguments.games < 2 or arguments.games % 2:
        parser.error(f"--games {arguments.games} must be an even number, at least 2")
    file = arguments.out / "habits.json"
    try:
        players = [make(name) for name in arguments.players]
        if (known := read_object(file)) == {} and file.exists():
            raise UserError(f"{file}: not the habits of players; delete it, or name another --out")
        if others := sorted({*known} - {player.name for player in players}):
            raise UserError(f"{file}: has the habits of {listed(others)} and would be replaced; name another --out")
        arguments.out.mkdir(parents=True, exist_ok=True)
        habits = {player.name: habits_of(player, arguments.games) for player in players}
    except ValueError as error:
        parser.error(str(error))
    stored = {name: dataclasses.asdict(one) for name, one in habits.items()}
    write_json(file, stored)
    draw(arguments.out, habits)
    print(tables(habits))
    print(f"{arguments.out}: habits.json and four pictures")
    return 0


if __name__ == "__main__":
    raise SystemExit(boundary.guarded(main, "experiments habits", sys.argv[1:]))
