"""Enumerate every game of a player that moves first: against best replies, or against all legal ones.

    python -m distill.walk pillar                   # against every best reply of the exact solver: minutes
    python -m distill.walk pillar --replies all     # against every legal reply: hours, resumable

In: a player whose move depends on the position alone, such as a network. Out: positions by number of stones, and
a record in `--out`, by default `models/walk-best` or `models/walk-all`. `--replies best` also lists the moves that
give the win away, with the lines that lead there. `--replies all` uses no solver. Its record lists a game for each
reply that wins for the opponent or draws, and `--out` holds each layer's moves. If that enumeration is complete and has
no game that is lost or drawn, the player weakly solves the game. `--symmetric` halves the time for a network that
mirrors its moves with the board by design, as `pillar` does. Networks run in ONNX Runtime where it is installed, in
batches of fixed size, so that a move does not depend on the rest of the batch.
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("walk")

from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from distill.common import UserError, cli, cores, run_folder, say
from distill.common.settings import CommandLine, NameOrPath, Settings, as_json
from distill.common.tables import table
from distill.evaluation import walk
from distill.game.rules import CELLS
from distill.players import names
from distill.players.names import identity
from distill.players.solver import engine


class WalkConfig(Settings):
    """Enumerate every game of a player that moves first."""

    command_line: ClassVar[CommandLine] = CommandLine(
        words="player",
        flags=("replies", "most_stones", "symmetric", "workers", "out", "restart"),
        examples=("pillar", "pillar --replies all --symmetric"),
        page="docs/benchmark.md",
    )
    player: NameOrPath = Field(title="PLAYER")
    """the player, such as a network or your own module:object; its draws follow from the position"""
    replies: Literal["best", "all"] = "best"
    """the opponent's moves: best ones by the solver, or all legal ones"""
    most_stones: int = Field(CELLS, ge=0, le=CELLS)
    """number of stones at which --replies all stops (0–42)"""
    symmetric: bool = False
    """with --replies all, evaluate a board and its mirror image once; for networks such as pillar"""
    workers: int = Field(cores(), ge=1)
    """processes for the player's moves and the solver"""
    out: Path | None = None
    """folder of the walk; default: models/walk-REPLIES"""
    restart: bool = False
    """delete what the folder holds of a walk and start from scratch"""

    @model_validator(mode="after")
    def _check_player(self) -> Self:
        names.check(self.player)
        if self.replies == "best" and (self.symmetric or self.most_stones != CELLS):
            raise ValueError("--symmetric and --most-stones need --replies all")
        return self


PRESETS = cli.smoke(player=str(cli.SMOKE_MODELS / "cnn"), replies="all", most_stones=4, out=cli.SMOKE_MODELS / "walk")


def run(config: WalkConfig) -> str:
    """Walk; returns the line that says whether every game is won."""
    out, best = config.out or Path(f"models/walk-{config.replies}"), config.replies == "best"
    if best:
        engine()  # where the solver is missing, an error now
    # A network that cannot be loaded shows before anything is deleted.
    name, load = config.player, partial(walk.chooser, workers=config.workers, symmetric=config.symmetric)
    [choose], networks = names.recorded([name], load, fast=True)
    network, path = networks.get(names.shown(name)), names.network_of(name)
    if network and path and path.is_dir() and network["precision"] == "int8":  # no TensorFlow, no file in float32
        problem = f"{name}: only its 8-bit copy {network['file']} can be evaluated here"
        raise UserError(f"{problem}; install TensorFlow, or name that file itself to walk it")
    who = {"player": name, "replies": config.replies, "identity": identity(name), "networks": networks}
    inferred = {"symmetric": True} if config.symmetric else {}  # moves in mirrored boards
    kind, files = f"walk against {config.replies} replies", () if best else [*walk.MOVES.values()]
    settings = as_json(config.replace(restart=False))
    with run_folder.opened(out, kind, who | inferred, settings=settings, files=files, restart=config.restart) as folder:
        before = folder.result
        if before and (best or before["complete"] or before["last_stones"] >= config.most_stones):
            return f"finished before: {before['line']} · {out}"
        folder.begin()
        walked, line = _best(config, choose) if best else _all(config, out, choose)
        of = f" ({network['file']}, {network['precision']})" if network else ""
        line = f"{name}{of} moving first, {line}"
        folder.finish(walked | {"line": line})
    return f"{line} · {out}"


def _best(config: WalkConfig, choose: walk.Choose) -> tuple[dict[str, Any], str]:
    """Walk against best replies; returns what the record holds, and the result in words."""
    positions, given_away = list[int](), list[str]()
    for count, lines in walk.best_replies(choose, config.workers):
        say(f"{2 * len(positions)} stones: {count:,} positions, {len(lines)} wins given away")
        positions.append(count)
        given_away += lines
    total = sum(positions)
    print(table(["stones", "positions"], [[f"{2 * i}", f"{count:,}"] for i, count in enumerate(positions)]))
    for line in given_away:
        print(f"the last move of {line} gives the win away")
    outcome = {"positions": positions, "given_away": given_away, "positions_in_all": total}
    return outcome, f"every best reply: {total:,} positions, the win is given away in {len(given_away)}"


def _all(config: WalkConfig, out: Path, choose: walk.Choose) -> tuple[dict[str, Any], str]:
    """Enumerate every legal reply; returns what the record holds, and the result in words."""
    layers, positions = [], {0: np.zeros(1, np.uint64)}
    for layer, following in walk.all_replies(out, choose, config.most_stones):
        layers.append(layer)
        positions[layer["stones"] + 2] = following
        say(f"{layer['stones']} stones: {layer['positions']:,} positions, {layer['losing_replies']:,} losing replies")
    last = layers[-1]["stones"]
    complete = not len(positions.pop(last + 2))
    lost, drawn = walk.not_won(out, positions)
    print(table(list(layers[0]), [[f"{count:,}" for count in layer.values()] for layer in layers]))
    sums = {name: sum(layer[name] for layer in layers) for name in layers[0] if name != "stones"}
    if complete and not sums["losing_replies"] + sums["draws"]:
        result = "every game is won: this player weakly solves Connect 4"
    else:
        result = f"{sums['losing_replies']:,} replies win for the opponent, {sums['draws']:,} draw"
    extent = "complete" if complete else f"up to {last} stones, not complete"
    outcome = {"complete": complete, "last_stones": last, "sums": sums, "layers": layers, "lost": lost, "drawn": drawn}
    return outcome, f"every legal reply: {extent}: {sums['positions']:,} positions, {result}"


main = cli.Command("distill walk", WalkConfig, run, PRESETS)
