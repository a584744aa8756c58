"""The words that name players, and the one place that reads them.

    random                 any legal column
    punisher               wins if it can, blocks if it must, else random
    uct:N                  one search of N simulations without root noise
    mcts-solver:N          the same, with proven wins and losses backed up
    teacher:N              the labels' search: three votes of N simulations with root noise
    quiet-teacher:N        the same without noise, as `generate --noise-at move` labels
    solver                 at random among the moves with the best exact score
    club                   a named level: beginner, casual, club, expert or perfect (`players/levels.py`)
    NETWORK[@policy]       a trained network: the column with the highest probability, one forward pass
    NETWORK@value          its value head alone: the best of the positions one move on, no tree
    NETWORK@sample         the network's column drawn by its probabilities, as REINFORCE trains it
    NETWORK@puct:N         a search of N simulations guided by the network (`mcts/puct.py`), without noise
    NETWORK@gumbel:N       the same with a Gumbel root, for few simulations, its draws silent

NETWORK is the name of a network in `models/` or of one that ships, such as `pillar`, or else a path: the folder of a
run or of a SavedModel, or a `.keras` file. A word without a slash is a path only where no player or network is called
so; one with a slash is a path that exists first, and then a name (`networks/finding.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distill.common import shortened
from distill.networks import finding

NAMES = (
    "beginner, casual, club, expert, perfect, random, punisher, solver, uct:N, mcts-solver:N, teacher:N, "
    "quiet-teacher:N, or a network's folder or name, with @policy, @value, @sample, @puct:N or @gumbel:N after it"
)
SIMPLE = ("random", "punisher", "solver")
LEVELS = ("beginner", "casual", "club", "expert", "perfect")
"""The weakest first."""
SEARCHES: Mapping[str, Mapping[str, Any]] = {
    "uct": {"votes": 1, "noise_fraction": 0.0},
    "mcts-solver": {"votes": 1, "noise_fraction": 0.0, "mcts_solver": True},
    "teacher": {},
    "quiet-teacher": {"noise_fraction": 0.0},
}
"""Players that search, and what sets each apart from the default settings."""

MODES = ("policy", "value", "sample")
SEARCHING_MODES = ("puct", "gumbel")
"""Modes of a network, and those that take a number of simulations."""
MOST_GUIDED = 16_384
"""Simulations of such a mode."""


@dataclass(frozen=True, kw_only=True)
class Word:
    """A word in its parts; whether there is such a network or mode, `check` says.

    Attributes:
      player: one of SIMPLE, of LEVELS or of SEARCHES; empty for a network.
      network: what stands before the @; empty for other players.
      mode: of a network.
      simulations: of a search, or of a searching mode; 0 where no such number stands there.
    """

    player: str = ""
    network: str = ""
    mode: str = ""
    simulations: int = 0


def read(word: str) -> Word:
    """The parts of a word, whether or not it names anybody."""
    name, _, number = word.partition(":")
    if name in SEARCHES:
        return Word(player=name, simulations=_simulations(number))
    if word in (*SIMPLE, *LEVELS):
        return Word(player=word)
    found = re.fullmatch("(.*)@([^/@]*)", word)  # what stands before a slash is a path, whatever it holds
    network, mode = found.groups() if found else (word, "")
    search, _, number = mode.partition(":")
    if search in SEARCHING_MODES:
        return Word(network=network, mode=search, simulations=_simulations(number))
    return Word(network=network, mode=mode or "policy")


def _simulations(number: str) -> int:
    return int(number) if re.fullmatch("[0-9]{1,9}", number) else 0


def check(word: str) -> Word:
    """The parts of a word that names a player. Raises ValueError for one that does not; no player is made."""
    named, shown, most = read(word), repr(shortened(word)), MOST_GUIDED
    if named.player in SEARCHES:
        from distill.mcts.teacher import MOST_SIMULATIONS as most  # noqa: N811  not at once: it loads Numba
    elif not named.player and finding.find(named.network) is None:
        raise ValueError(f"player {shown} is unknown and no such path; {finding.names()}; players are {NAMES}")
    search = named.player if named.player in SEARCHES else named.mode
    if search in (*SEARCHES, *SEARCHING_MODES):
        if not 1 <= named.simulations <= most:
            raise ValueError(f"player {shown}: {search}:N needs a whole number of simulations from 1 to {most:,}")
    elif search and search not in MODES:
        modes = ", ".join([*MODES, *(f"{search}:N" for search in SEARCHING_MODES)])
        raise ValueError(f"player {shown}: unknown mode {shortened(search)!r}; modes are {modes}")
    return named
