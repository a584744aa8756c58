"""The names of players, and the player that each one makes.

    random                 any legal column
    punisher               wins if it can, blocks if it must, else random
    uct:N                  one search of N simulations without root noise
    mcts-solver:N          the same, with proven wins and losses backed up
    teacher:N              the labels' search: three votes of N simulations with root noise
    solver                 at random among the moves with the best exact score
    club                   a named level: starter, beginner, casual, regular, club, expert or perfect
                           (`players/levels.py`)
    NETWORK[@policy]       a trained network: the column with the highest probability, one forward pass
    NETWORK@sample         the network's column drawn by its probabilities, as REINFORCE trains it
    NETWORK@puct:N         a search of N simulations guided by the network (`mcts/puct.py`), without noise
    NETWORK@gumbel:N       the same with a Gumbel root, for few simulations, without its noise
    openspiel:mcts(N)      OpenSpiel's search of N simulations with random rollouts (`players/openspiel.py`)
    module:object          your own function or class (`players/player.py`, `as_player`)

NETWORK is the name of a network in `models/` or of one that ships, such as `pillar`, or else a path: the folder of a
run or of a SavedModel, or a `.keras` file. A name without a slash is a path only where no player or network is called
so; one with a slash is a path that exists first, and then a name (`networks/finding.py`).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distill.common import UserError, file_hash, plugins
from distill.common.executors import shared
from distill.game import outputs
from distill.mcts import compiling
from distill.mcts.settings import MOST_PUCT_SIMULATIONS, MOST_SIMULATIONS, MOST_SOLVER_SIMULATIONS, UctSettings
from distill.networks import finding, registry
from distill.players import levels, network, openspiel
from distill.players.player import Player, RandomPlayer, as_player, checked_choices, seeds_for
from distill.players.solver import SolverPlayer

NAMES = (
    "starter, beginner, casual, regular, club, expert, perfect, random, punisher, solver, uct:N, mcts-solver:N, "
    "teacher:N, a network's name or folder (optionally @policy, @sample, @puct:N or @gumbel:N), openspiel:mcts(N), "
    "your own module:object"
)
SIMPLE = ("random", "punisher", "solver")
SEARCHES: Mapping[str, Mapping[str, Any]] = {
    "uct": {"votes": 1, "noise_fraction": 0.0},
    "mcts-solver": {"votes": 1, "noise_fraction": 0.0, "mcts_solver": True},
    "teacher": {},
}
"""UCT players, each with the settings that differ from the defaults."""
OPENSPIEL = "openspiel"

MODES = ("policy", "sample")
"""Modes of a network without search."""
SEARCHING_MODES = ("puct", "gumbel")
"""Modes of a network that take a number of simulations."""
MOST = {
    "mcts-solver": MOST_SOLVER_SIMULATIONS,
    **dict.fromkeys(("uct", "teacher", OPENSPIEL), MOST_SIMULATIONS),
    **dict.fromkeys(SEARCHING_MODES, MOST_PUCT_SIMULATIONS),
}
"""Largest number of simulations of each search."""


@dataclass(frozen=True, kw_only=True)
class Name:
    """The parts of a name, whether or not there is such a player.

    Attributes:
      player: one of SIMPLE, `levels.LEVELS` or SEARCHES, or OPENSPIEL; empty for other players.
      network: the part before the @; empty for other players.
      mode: of a network.
      simulations: of a search, or of a searching mode; 0 without a valid number.
      custom: module:object; empty for other players.
    """

    player: str = ""
    network: str = ""
    mode: str = ""
    simulations: int = 0
    custom: str = ""


def parse(name: str) -> Name:
    """The parts of a name, whether or not there is such a player."""
    first, _, number = name.partition(":")
    if first == OPENSPIEL:
        number = "".join(re.findall(r"^mcts\((.*)\)$", number))
    if first in (*SEARCHES, OPENSPIEL) or name in (*SIMPLE, *levels.LEVELS):
        return Name(player=first, simulations=_simulations(number))
    if plugins.is_spec(name):
        return Name(custom=name)
    # What remains is a network, perhaps with a mode.
    match = re.fullmatch(r"(.*)@([^/\\@]*)", name)  # an @ before a slash is part of a path
    named, mode = match.groups() if match else (name, "")
    search, _, number = mode.partition(":")
    if search in SEARCHING_MODES:
        return Name(network=named, mode=search, simulations=_simulations(number))
    return Name(network=named, mode=mode or "policy")


def _simulations(number: str) -> int:
    return int(number) if re.fullmatch("[0-9]{1,9}", number) else 0


def shown(name: str) -> str:
    """A name as tables show it: without the slash with which shells complete a folder's."""
    return name.replace("/@", "@").rstrip("/") or name


def check(name: str) -> Name:
    """The parts of a player's name. Raises ValueError where there is no such player; none is made or imported."""
    parts = parse(name)
    if not (parts.player or parts.custom) and finding.find(parts.network) is None:
        unknown = f"player {name!r} is unknown and no such path"
        raise ValueError(f"{unknown}; {finding.names()}; players are {NAMES}")
    check_mode(name)
    return parts


def check_mode(name: str, most: int = MOST_SIMULATIONS) -> None:
    """Raises ValueError for an unknown mode of a network, and for a search without 1 to `most` simulations."""
    parts, player = parse(name), f"player {name!r}"
    search = parts.mode or parts.player
    if search in MOST:
        most = min(most, MOST[search])
        if not 1 <= parts.simulations <= most:
            form = f"{search}:mcts(N)" if search == OPENSPIEL else f"{search}:N"
            raise ValueError(f"{player}: {form} needs a whole number of simulations from 1 to {most:,}")
    elif parts.network and search not in MODES:
        modes = ", ".join([*MODES, *(f"{search}:N" for search in SEARCHING_MODES)])
        raise ValueError(f"{player}: unknown mode {search!r}; modes are {modes}")


def make(name: str, workers: int = 1, *, fast: bool = False) -> Player:
    """The player of a name; a search is compiled here, and a line says so.

    Args:
      name: one of the names above.
      workers: processes for searches and the solver.
      fast: evaluate an exported network with ONNX Runtime where it is installed: ready at once and equal up to
        rounding. Published figures are measured without it.

    Raises ValueError for an unknown name, DataError for a folder without a model, and UserError where the solver or
    OpenSpiel is not installed or a custom player cannot be imported or fails on a few boards.
    """
    parts = check(name)
    if parts.custom:
        player: Player = as_player(plugins.load(name, "player"), name)
        current, mask = outputs.TRIAL
        checked_choices(player, current, mask, seeds_for(0, mask))  # before anything is deleted or written
        return player
    if parts.player in ("random", "punisher"):
        return RandomPlayer(name=name, tactical=parts.player == "punisher")
    if parts.player == "solver":
        return SolverPlayer(workers=workers)
    if parts.player == OPENSPIEL:
        return as_player(openspiel.player(lambda seat, seed: openspiel.mcts(parts.simulations, seed)), name)
    # A level needs the player whose policy it changes.
    if parts.player in levels.LEVELS:
        return levels.LevelPlayer(name=name, base=make(levels.base_name(name), workers, fast=fast))
    if parts.player:
        compiling.prepare("uct")
        settings = UctSettings(simulations=parts.simulations, **SEARCHES[parts.player])
        return network.SearchPlayer(name=name, settings=settings, workers=shared(workers))
    player = network.load(shown(name), finding.required(parts.network), parts.mode, parts.simulations, fast=fast)
    if parts.simulations:
        compiling.prepare("puct")
    return player


# Identities -----------------------------------------------------------------------------------------------------------


def identity(name: str) -> list[str]:
    """What a player's moves depend on, as texts that tell whether a stored measurement still holds.

    The name, a level's numbers, the versions of the searches, and the hashes of the network's file and custom source.
    """
    from distill.mcts.puct import PUCT_VERSION  # only now, because a network alone plays without Numba
    from distill.mcts.uct import SEARCH_VERSION

    known, base = [name], _base(name)
    if name in levels.LEVELS:
        known.append(repr(levels.named(name)))
    if base.player == OPENSPIEL:
        openspiel.pyspiel()
        known.append(f"open-spiel {importlib.metadata.version('open-spiel')}")
    elif base.simulations:
        known.append(f"searches {SEARCH_VERSION}, {PUCT_VERSION}")
    if base.custom:
        known.append(plugins.Plugin.named(name, "player").source)
    networks = evaluated([name], fast=True).values()
    return [*known, *(text for network in networks for text in (network["sha256"], *network.get("code", ())))]


@functools.cache
def loaded(name: str, known: tuple[str, ...]) -> Player:
    """The player of this identity, one a process: a network takes longer to load than to evaluate a batch.

    Raises UserError where the player's files have changed since they were hashed.
    """
    player = make(name, fast=True)
    if tuple(identity(name)) != known:
        raise UserError(f"{name}: its files have changed since the start; start the command again")
    return player


def network_of(name: str) -> Path | None:
    """The path of a player's network; None for players without one."""
    network = _base(name).network
    return finding.find(network) if network else None


def _base(name: str) -> Name:
    """The parts of a player's name, of a level's those of the player whose policy it changes."""
    return parse(levels.base_name(name) if name in levels.LEVELS else name)


def recorded(players: Sequence[str], load: Callable[[str], Any], *, fast: bool = False) -> tuple[Any, dict[str, Any]]:
    """`load` of each of these players, and `evaluated` of all. Raises UserError where a file changes meanwhile."""
    before, loaded = evaluated(players, fast=fast), [*map(load, players)]
    if evaluated(players, fast=fast) != before:
        raise UserError("a network was replaced while it was loaded; start the command again")
    return loaded, before


def evaluated(players: Sequence[str], *, fast: bool = False) -> dict[str, dict[str, Any]]:
    """For a record: what is evaluated for each of these players that has a network, by the player's name.

    `file` is its path in the network's folder, `sha256` its hash, `precision` float32, bfloat16 or int8, and
    `network_sha256` the hash of the `.keras` file that it is or was exported from; None: unknown. `code` names the
    modules that a network may take its own layers from, with their hashes. `fast` as `make` takes it.
    """
    records = {}
    for name in players:
        if path := network_of(name):
            file = finding.evaluated_in(path, fast=fast)
            # A SavedModel is a folder; its hash is that of its files' hashes.
            files = sorted(part for part in file.rglob("*") if part.is_file())
            digest = hashlib.sha256("".join(map(file_hash, files)).encode()).hexdigest() if files else file_hash(file)
            is_known = file.suffix != ".onnx" or finding.is_listed(file)
            exported = finding.facts(file.parent).get("network_sha256") if is_known else None
            records[shown(name)] = {
                "file": file.name if file == path else file.relative_to(path).as_posix(),
                "sha256": digest,
                "precision": finding.precision(file),
                "network_sha256": digest if file.suffix == ".keras" else exported,
            }
            if finding.has_own_layers(file):
                records[shown(name)]["code"] = registry.import_trusted()
    return records
