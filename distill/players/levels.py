"""Named levels for people: the shipped network `pillar`, and a rule that makes the lower ones err as people do.

In: a policy, a position and a level. Out: the probability of each column, from which `LevelPlayer` draws a move.
The rule is deterministic, and `web/page/levels.js` has the same in JavaScript:

1. If columns win at once, the move is one of them, with equal probability. No level ever misses a win in one.
2. Otherwise two distributions are mixed. One is the policy, each probability to the power 1 / temperature; at
   temperature 0, the most probable column. The other ignores the board and prefers the centre (PRIOR). Its weight is
   `blindness`, or `trap_blindness` where a trap is on the board: a column in which a stone of either side would
   threaten to win whatever the single answer (`tactics.traps`), or one in which a stone lets the opponent win on top
   of it.
3. If the opponent threatens to win with its next stone, it is blocked with probability `block_straight`, or
   `block_diagonal` where all the lines it would complete are diagonal. Among blocking columns, and among the others,
   the proportions of step 2 stay.

              policy  a win in one  blocks a threat        sees a trap          other errors
    starter   none    never missed  10 %, a diagonal none  never                all its moves ignore the board
    beginner  pillar  never missed  70 %, a diagonal 40 %  never                80 % of its moves ignore the board
    casual    pillar  never missed  always, diagonal 85 %  never                35 % of its moves ignore the board
    regular   pillar  never missed  always                 seven times in ten   20 % of its moves ignore the board
    club      pillar  never missed  always                 as the network does  by its temperature, 1.7
    expert    pillar  never missed  always                 as the network does  as the network does; deterministic
    perfect   solver  never missed  always                 always               never

Without the solver `perfect` is the network's search of 800 simulations, deterministic. Where a trap is on the board,
all moves of the three lowest levels ignore it, except wins and blocks. The levels' Elo is that of `docs/benchmark.csv`,
which `python -m experiments.players` writes.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from distill.common import file_hash, provenance
from distill.game.rules import FULL_BOARD, Bitboards, best_columns, landing, legal_mask, winning_cells
from distill.game.tactics import Columns, traps, wins, wins_in
from distill.networks import finding
from distill.players.player import Choices, Player, Seeds, checked_choices, draw_by
from distill.players.solver import is_installed

Shares = NDArray[np.float64]

NETWORK = "reference/pillar"
"""The full name, so that a user's own network called `pillar` is not used."""
PRIOR = np.array([1, 2, 3, 4, 3, 2, 1], np.float64)
"""Weights of the columns for a move that ignores the board, before open columns are normalised."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """How a level chooses, by the rule above. All numbers but the temperature are between 0 and 1.

    `player` is the name of the player whose policy it uses.
    """

    player: str = NETWORK
    temperature: float = 1.0
    blindness: float = 0.0
    trap_blindness: float = 0.0
    block_straight: float = 1.0
    block_diagonal: float = 1.0


LEVELS: Mapping[str, Level] = {
    "starter": Level(blindness=1.0, trap_blindness=1.0, block_straight=0.1, block_diagonal=0.0),
    "beginner": Level(blindness=0.8, trap_blindness=1.0, block_straight=0.7, block_diagonal=0.4),
    "casual": Level(blindness=0.35, trap_blindness=1.0, block_diagonal=0.85),
    "regular": Level(blindness=0.2, trap_blindness=0.3),
    "club": Level(temperature=1.7),
    "expert": Level(temperature=0.0),
    "perfect": Level(player="solver"),
}
"""The weakest first."""
WITHOUT_SOLVER = Level(player=f"{NETWORK}@puct:800", temperature=0.0)
"""In place of `perfect` where the solver is not installed."""


def named(name: str) -> Level:
    """The level of this name, one of LEVELS."""
    return WITHOUT_SOLVER if name == "perfect" and not is_installed() else LEVELS[name]


def base_name(name: str) -> str:
    """The name of the player whose policy a level uses, with the path of the network that ships."""
    return named(name).player.replace(NETWORK, str(provenance.shipped(f"models/{NETWORK}") or NETWORK))


@dataclass(frozen=True, kw_only=True)
class LevelPlayer:
    """A named level: its move is drawn by the rule above from the policy of another player, `base`."""

    name: str
    base: Player

    def choose(self, current: Bitboards, mask: Bitboards, seeds: Seeds) -> Choices:
        policy = checked_choices(self.base, current, mask, seeds).policy
        assert policy is not None  # networks, searches and the solver have one
        shares = probabilities(named(self.name), policy, current, mask)
        return Choices(moves=draw_by(shares, seeds), policy=shares)


def probabilities(level: Level, policy: Shares, current: Bitboards, mask: Bitboards) -> Shares:
    """float64 (B, 7), the probability of each column on boards that are not over, 0 on full ones.

    Args:
      policy: (B, 7), of the level's network, 0 on full columns.
      current, mask: uint64 (B,) bitboards.
    """
    opponent = current ^ mask
    prior = _among(np.broadcast_to(PRIOR, policy.shape), legal_mask(mask))
    weight = np.full((len(mask), 1), level.blindness)
    if level.trap_blindness != level.blindness:
        weight[has_trap(current, mask)] = level.trap_blindness
    # Step 2: mix the policy with play that ignores the board.
    mixed = (1 - weight) * _at_temperature(policy.astype(np.float64), level.temperature) + weight * prior

    # Step 3: block, with a probability that depends on the direction.
    threats = wins(opponent, mask)
    straight = (wins_in(opponent, mask, "horizontal") | wins_in(opponent, mask, "vertical")).any(1)
    block = np.where(straight, level.block_straight, level.block_diagonal)
    block = np.where(threats.any(1), block, 0.0)
    others = legal_mask(mask) & ~threats
    block = np.where(others.any(1), block, 1.0)[:, None]
    answered = block * _among(mixed, threats, prior) + (1 - block) * _among(mixed, others, prior)

    # Step 1 overrules both.
    won = wins(current, mask)
    return np.where(won.any(1, keepdims=True), _among(won.astype(np.float64), won), answered)


def has_trap(current: Bitboards, mask: Bitboards) -> NDArray[np.bool_]:
    """bool (B,), whether a trap of step 2 is on the board, for the side to move or against it."""
    columns = lets_win_on_top(current, mask)
    # A threat that is there already is no trap: step 3 handles it.
    for stones in (current, current ^ mask):
        columns |= traps(stones, mask) & ~wins(stones, mask)
    return np.logical_or.reduce(columns, axis=1)


def lets_win_on_top(current: Bitboards, mask: Bitboards) -> Columns:
    """bool (B, 7), True where a stone of the side to move lets the opponent win on top of it."""
    above = landing(mask) << np.uint64(1) & np.uint64(FULL_BOARD)
    return above & winning_cells(current ^ mask)[:, None] != 0


def _at_temperature(policy: Shares, temperature: float) -> Shares:
    """Each share to the power 1 / temperature, normalised; at 0 the largest alone, of equal ones the centremost."""
    if temperature == 0:
        return np.eye(policy.shape[1])[best_columns(policy)]
    raised = policy ** (1 / temperature)
    return raised / raised.sum(1, keepdims=True)


def _among(shares: Shares, columns: Columns, instead: Shares | None = None) -> Shares:
    """The shares of these columns, normalised; `instead` where all are 0; 0 without any column."""
    kept = np.where(columns, shares, 0.0)
    if instead is not None:
        kept = np.where(kept.sum(1, keepdims=True) > 0, kept, np.where(columns, instead, 0.0))
    total = kept.sum(1, keepdims=True)
    return kept / np.where(total > 0, total, 1.0)


# Measured strength ----------------------------------------------------------------------------------------------------


@cache
def elo_table() -> dict[str, int]:
    """Player → Elo, `random` at 0; empty where the table is missing."""
    file = provenance.shipped("docs/benchmark.csv")
    if file is None:
        return {}
    with file.open(encoding="utf-8", newline="") as text:
        return {row["player"]: round(float(row["elo"])) for row in csv.DictReader(text)}


def elo_of(name: str, has_solver: bool) -> int | None:
    """A level's Elo; without the solver `perfect` is a search with the shipped network."""
    if name == "perfect" and not has_solver:
        name = WITHOUT_SOLVER.player.removeprefix("reference/")  # as the table names it
    return elo_table().get(name)


def elo_of_static_page(network: Path) -> dict[str, int]:
    """The levels' Elo on a page without a server; empty unless `network` is the one they were measured with."""
    measured = provenance.shipped(f"models/{NETWORK}")
    if measured is None or finding.facts(measured / finding.PUBLISHED).get("network_sha256") != file_hash(network):
        return {}
    return {name: elo for name in LEVELS if (elo := elo_of(name, has_solver=False)) is not None}
