"""The players of the page: the models in folders, searches, the solver where it is installed, and your own.

In: a player's name and a position. Out: an `Analysis`. Names are those of `players/names.py`; a model is called by its
folder's name. Only folders that were found here are opened, and only modules that the command named are imported.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException

from distill.common import UserError
from distill.common.executors import Processes
from distill.game.encoding import FULL_COLUMN, bitboards_of
from distill.game.mixing import splitmix64
from distill.game.rules import CELLS, Position
from distill.networks import finding
from distill.players import levels, names, network
from distill.players.player import Player, checked_choices
from distill.players.solver import is_installed, score_boards
from distill.web import work
from distill.web.messages import Analysis, Card, Catalogue

SOLVER_NOTICE = (
    "The player “solver” is the package bitbully, © Markus Thill, under the GNU AGPL-3.0; "
    "its source: https://github.com/MarkusThill/BitBully"
)
"""Section 13 of that licence: users over a network must be shown where the source is."""

CARDS = TypeAdapter(list[Card]).validate_json(Path(__file__).with_name("cards.json").read_bytes())
"""The players that need no network of the user's, in the order in which the page lists them."""
BUILT_IN = ("uct", "mcts-solver", "punisher", "random")
"""Players that need neither a file nor the solver."""
MOST_GUIDED = 2000
"""Largest number of simulations of a search guided by a network: about a second."""
SOLVER_QUEUE, SEARCH_QUEUE, NETWORK_QUEUE = 8, 32, 256
"""Calls that may wait or run: seconds of the solver's or of searches' work, tenths of a second of a network's."""
GUIDED_BATCH = 8
"""Positions in a batch of searches with a network: a game takes 0.6 of the time, and others wait twice as long."""
LOADED = 16
"""Players with a network kept in memory; the least recently used is dropped first."""


class Opponents:
    """Finds players and queries them.

    Args:
      folders: where models are, each in a folder of its own with `saved_model/1/`.
      max_simulations: largest number of simulations of one search.
      workers: searches at a time.
      custom: players module:object, imported now.
    """

    def __init__(self, folders: Sequence[Path], max_simulations: int, workers: int, custom: Sequence[str] = ()) -> None:
        self.folders, self.max_simulations = tuple(folders), max_simulations
        self.custom = {name: names.make(name) for name in custom}
        self.has_solver = is_installed()
        self._searches = work.Queue(ThreadPoolExecutor(workers), SEARCH_QUEUE)
        # One thread for each kind: a network, the evaluations that its search keeps, and user code serve one at a time.
        self._networks = work.Queue(ThreadPoolExecutor(1), NETWORK_QUEUE, CELLS)  # a whole game is one batch
        self._guided = work.Queue(ThreadPoolExecutor(1), NETWORK_QUEUE, GUIDED_BATCH)  # and user code
        # The solver holds the interpreter lock while it computes, so it has a process of its own.
        self._solver = work.Queue(Processes(1), SOLVER_QUEUE)
        self._load = lru_cache(LOADED)(_load)

    def models(self) -> dict[str, Path]:
        """Name → folder of every exported model; of equal names the first folder's, and none with a player's name."""
        folders = finding.networks(self.folders, (finding.EXPORTED,))
        return {name: folder for name, folder in folders.items() if not names.parse(name).player}

    def catalogue(self) -> Catalogue:
        """The players and the limits."""
        models = self.models()
        others = [card for card in CARDS if card.kind != "level" and (self.has_solver or card.kind != "solver")]
        cards, guided = self._levels() if levels.NETWORK in models else [], []
        cards += [Card(name=n, kind="custom", title=n.partition(":")[2], note=f"your own, {n}") for n in self.custom]
        for name, folder in models.items():
            facts, short = finding.facts(folder / finding.PUBLISHED), name.rpartition("/")[2]
            title = name if short in models else short
            note = f"{facts['arch']}, {facts['parameters']:,} parameters" if facts else "a network without search"
            cards.append(Card(name=name, kind="network", title=title, note=note))
            if facts.get("value_head"):  # which a search needs
                note = f"N from 1 to {MOST_GUIDED:,}"
                guided.append(Card(name=f"{name}@puct:N", kind="guided", title=f"{title} with search", note=note))
        notices = [SOLVER_NOTICE] if self.has_solver else []
        return Catalogue(players=cards + guided + others, max_simulations=self.max_simulations, notices=notices)

    def _levels(self) -> list[Card]:
        cards = []
        for card in CARDS:
            if card.kind == "level" and names.parse(levels.named(card.name).player).simulations <= self.max_simulations:
                cards.append(card.model_copy(update={"elo": levels.elo_of(card.name, self.has_solver)}))
                if card.name == "perfect" and not self.has_solver:
                    cards[-1].note = "The network with a search of 800 simulations; the solver is not installed"
        return cards

    async def analyse(self, name: str, positions: Sequence[Position], seed: int | None = None) -> list[Analysis]:
        """A player's analyses of positions that are not over. Raises HTTPException: no such player, or busy."""
        seed = random.getrandbits(63) if seed is None else seed
        queue, make = self._resolve(name)
        starts = range(0, len(positions), queue.batch)
        parts = (positions[start : start + queue.batch] for start in starts)
        try:
            batches = await queue.run(partial(_choose, make, part, seed) for part in parts)
            return [analysis for batch in batches for analysis in batch]
        except UserError as error:
            raise HTTPException(500, str(error)) from error

    def close(self) -> None:
        """Drop waiting calls and stop the workers."""
        for queue in (self._searches, self._networks, self._guided, self._solver):
            queue.executor.shutdown(wait=False, cancel_futures=True)

    def _resolve(self, name: str) -> tuple[work.Queue, Callable[[], Player]]:
        """Where a player computes, and the function that makes it there.

        The first search loads Numba, so it is made in the thread in which it computes. Raises HTTPException for an
        unknown player, and for too many simulations.
        """
        if name in self.custom:
            return self._guided, lambda: self.custom[name]
        parts = names.parse(name)
        if parts.player in levels.LEVELS:
            queue, base = self._resolve(levels.named(name).player)
            return queue, lambda: levels.LevelPlayer(name=name, base=base())
        if name == "solver":
            if not self.has_solver:
                raise HTTPException(404, "the solver is not installed here")
            return self._solver, partial(names.make, name)
        # A name is only looked up: nothing that a request names is opened or imported.
        folder = finding.called(parts.network, self.models()) if parts.network else None
        if parts.player not in BUILT_IN and not folder:
            raise HTTPException(404, f"player {name!r} is unknown; /api/v1/players lists those there are")
        try:
            names.check_mode(name, self.max_simulations if parts.player else min(MOST_GUIDED, self.max_simulations))
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        if folder is None:
            return self._searches if parts.simulations else self._networks, partial(names.make, name)
        files = (folder / finding.EXPORTED, folder / finding.BEST)
        changed = [file.stat().st_mtime_ns for file in files if file.is_file()]
        return self._guided if parts.simulations else self._networks, partial(self._load, name, folder, *changed)


def _load(name: str, folder: Path, *_changed: int) -> Player:
    """The network in a folder, in the mode of the name; loaded again when it or its export has changed."""
    parts = names.parse(name)
    return network.load(name, folder, parts.mode, parts.simulations, fast=True, int8=True)


def _choose(make: Callable[[], Player], positions: Sequence[Position], seed: int) -> list[Analysis]:
    """The analyses by a player; the solver's process runs this, too."""
    player, count, bits = make(), len(positions), bitboards_of(positions)
    choices = checked_choices(player, *bits, splitmix64([seed] * count))
    policies = [None] * count if choices.policy is None else choices.policy.tolist()
    # Rounding may leave a value of 1.0000001.
    values = [None] * count if choices.value is None else np.clip(choices.value, -1, 1).tolist()
    scores: list[list[int | None] | None] = [None] * count
    if player.name == "solver":  # which has just scored the positions: the second time takes no time
        policies = [None] * count
        scores = [[None if score == FULL_COLUMN else score for score in row] for row in score_boards(*bits).tolist()]
    return [
        Analysis(player=player.name, move=move, policy=policy, value=value, scores=row)
        for move, policy, value, row in zip(choices.moves.tolist(), policies, values, scores, strict=True)
    ]
