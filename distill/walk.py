"""Enumerate every game of a player that moves first: against best replies, or against all legal ones.

    python -m distill.walk pillar                   # against every best reply of the exact solver: minutes
    python -m distill.walk pillar --replies all     # against every legal reply, in models/walk: hours, resumable

In: a player whose move depends on the position alone, such as a network. Out: positions by number of stones, the moves
that give the win away with the lines that lead there, and `walk.json` in `--out`. With `--replies all` no solver is
used, and `--out` also holds each layer's positions and moves and, in `blunders.npz`, the positions where another move
would have won inside the tree. If that enumeration is complete and has no game that is lost or drawn, the player weakly
solves the game. Networks run in ONNX Runtime where it is installed, in batches of fixed size, so that a move does not
depend on what else is in the batch.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from distill import common
from distill.common import UserError, cli, cores, folders, provenance, say, write_json
from distill.evaluation import walk
from distill.game.rules import CELLS
from distill.players import names
from distill.players.identity import identity
from distill.players.solver import check_installed

MOST_LINES = 20
"""Lines to blunders that are printed and kept in `walk.json`; `blunders.npz` has all positions."""
OWN = (
    "walk.json",
    "blunders.npz",
    *(f"{what}-{s:02}.npy" for s in range(0, CELLS + 1, 2) for what in ("keys", "moves")),
)


@dataclass(frozen=True, kw_only=True)
class WalkConfig(cli.Settings):
    """Enumerate every game of a player that moves first."""

    player: tuple[str, ...] = cli.setting((), f"the player: {names.NAMES}", positional=True)
    replies: Literal["best", "all"] = cli.setting(
        "best", "the opponent's moves: every best one by the solver, or every legal one"
    )
    most_stones: int = cli.setting(CELLS, "stones of the last layer enumerated with --replies all (0–42)")
    workers: int = cli.setting(cores(), "processes that choose the player's moves, or solve")
    out: Path | None = cli.setting(None, "folder for walk.json and the layers; none: models/walk for --replies all")
    restart: bool = cli.setting(False, "delete what the folder holds of a walk and start again")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.player) != 1:
            raise ValueError(f"name one player: {names.NAMES}")
        names.check(self.player[0])
        cli.check(0 <= self.most_stones <= CELLS, "most_stones", self.most_stones, f"from 0 to {CELLS}")
        cli.check_least(self, workers=1)


PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {
        "player": (str(cli.SMOKE_MODELS / "cnn"),),
        "replies": "all",
        "most_stones": 4,
        "out": cli.SMOKE_MODELS / "walk",
    }
}


def run(config: WalkConfig) -> str:
    """Walk; returns the line that says whether every game is won."""
    out = config.out or (Path("models/walk") if config.replies == "all" else None)
    if config.replies == "best":
        check_installed()
    walk.player(config.player[0])  # a network that cannot be loaded shows before anything is deleted
    who = {"player": config.player[0], "replies": config.replies, "identity": identity(config.player[0])}
    if out is None:
        return _best(config, who, None)
    with folders.locked(out):
        folders.require(out, folders.WALK, own=OWN, restart=config.restart)
        before = common.read_object(out / "config.json").get("identity", who)
        if before != who and not config.restart:
            raise UserError(f"{out}: holds the walk of another player ({before}); name another --out, or add --restart")
        if config.restart:
            folders.clear(out, OWN)
        write_json(out / "config.json", cli.as_json(dataclasses.replace(config, restart=False)) | {"identity": who})
        return _best(config, who, out) if config.replies == "best" else _all(config, who, out)


# Reports --------------------------------------------------------------------------------------------------------------


def _best(config: WalkConfig, who: dict[str, Any], out: Path | None) -> str:
    word = config.player[0]

    def report(so_far: walk.BestWalk) -> None:
        count = len(so_far.positions)
        say(f"{2 * count - 2} stones: {so_far.positions[-1]:,} positions, {len(so_far.given_away)} wins given away")

    found = walk.best_replies(walk.chooser(word, config.workers), config.workers, report=report)
    total = sum(found.positions)
    print(_table(("stones", "positions"), [(2 * n, f"{count:,}") for n, count in enumerate(found.positions)]))
    for line in found.given_away:
        print(f"the last move of {line} gives the win away")
    if out:
        totals = {"positions_in_all": total, "commit": provenance.commit()}
        write_json(out / "walk.json", who | dataclasses.asdict(found) | totals)
    return (
        f"{word} moving first, every best reply: {total:,} positions, the win is given away in "
        f"{len(found.given_away)}; {found.share_won:.2%} of lines won" + (f" · {out / 'walk.json'}" if out else "")
    )


def _all(config: WalkConfig, who: dict[str, Any], out: Path) -> str:
    word = config.player[0]
    tree = walk.Enumeration(out, walk.chooser(word, config.workers))
    layers = []
    for layer in tree.run(config.most_stones):
        layers.append(layer)
        say(f"{layer.stones} stones: {layer.positions:,} positions, {layer.losing_replies:,} losing replies")
    complete = not len(tree.keys(layers[-1].stones + 2))
    say("backing up the results through the tree")
    failed, blunders = dict[int, int](), dict[int, walk.Keys]()
    for stones, not_won, keys in tree.back_up(layers[-1].stones):
        failed[stones], blunders[stones] = len(not_won), keys
    first = [(key, each.stones) for each in layers for key in blunders[each.stones].tolist()][:MOST_LINES]
    lines = [(tree.line_to(key, stones), stones) for key, stones in first]
    content = io.BytesIO()
    np.savez(content, **{f"stones_{stones:02}": keys for stones, keys in blunders.items()})  # type: ignore[arg-type]
    common.write_atomically(out / "blunders.npz", content.getvalue())
    rows = [
        (f"{each.stones}", f"{each.positions:,}", f"{each.won:,}", f"{each.losing_replies:,}", f"{each.draws:,}",
         f"{failed[each.stones]:,}", f"{len(blunders[each.stones]):,}")
        for each in layers
    ]  # fmt: skip
    heads = ("stones", "positions", "won", "losing replies", "draws", "not won", "blunders")
    print(_table(heads, rows))
    for line, stones in lines:
        print(f"after {line or 'no move'} ({stones} stones) another move would win in this tree")
    sums = {
        name: sum(getattr(each, name) for each in layers) for name in ("positions", "won", "losing_replies", "draws")
    }
    write_json(
        out / "walk.json",
        who
        | {"complete": complete, "last_stones": layers[-1].stones, "sums": sums}
        | {"layers": [dataclasses.asdict(each) | {"not_won": failed[each.stones]} for each in layers]}
        | {"blunders": sum(map(len, blunders.values())), "blunder_lines": [line for line, _ in lines]}
        | {"commit": provenance.commit()},
    )
    games_not_won = sums["losing_replies"] + sums["draws"]
    if complete and not games_not_won:
        verdict = "every game is won: this player weakly solves Connect 4"
    else:
        verdict = f"{sums['losing_replies']:,} replies win for the opponent, {sums['draws']:,} draw"
    extent = "complete" if complete else f"up to {layers[-1].stones} stones, not complete"
    return (
        f"{word}, first stone against every legal reply, {extent}: {sums['positions']:,} positions, {verdict} · {out}"
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    cells = [heads, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    return "\n".join(
        "  ".join(str(cell).rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells
    )


main = cli.Command("walk", WalkConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
