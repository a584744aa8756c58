"""The players of the page: the models in folders, searches, the solver where it is installed, and your own.

In: a player's name and a position. Out: an `Analysis`. Names are those of `players/names.py`; a model is called by its
folder's name. Only folders that were found here are opened, and only modules that the command named are imported.
Boards for one network that arrive while it computes are evaluated together, those of a search in lock step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.common import OutputError, UserError
from distill.common.workers import WorkerError
from distill.datasets.benchmark import FULL_COLUMN
from distill.game import encoding
from distill.game.mixing import mix
from distill.game.rules import EMPTY, Position
from distill.networks import finding, pretrained
from distill.players import levels, names, network
from distill.players.player import Player, checked_choices, draw_by, draw_column
from distill.players.solver import is_installed, score_boards
from distill.web import work
from distill.web.messages import Analysis, Card, Catalogue, RequestError

if TYPE_CHECKING:
    from distill.networks.predict import Predict

MODES = ("policy", "value")
"""Modes of a network without search; `sample`, which draws, is for training."""

SOLVER_NOTICE = (
    "The player “solver” is the package bitbully, © Markus Thill, under the GNU AGPL-3.0; "
    "its source: https://github.com/MarkusThill/BitBully"
)
"""Section 13 of that licence: users over a network must be shown where the source is."""

LEVELS = {
    "beginner": "wins when it can, often forgets to block",
    "casual": "blocks nearly always, walks into traps",
    "club": "sees traps, but errs now and then",
    "expert": "the network’s best move, without search",
    "perfect": "perfect play, by the solver",
}
PERFECT_WITHOUT_SOLVER = "the network with a search of 800 simulations; the solver is not installed"
SEARCHES = {
    "uct": ("Search", "Monte-Carlo tree search with playouts"),
    "mcts-solver": ("Search with proofs", "the same, with proven wins and losses backed up"),
}
SIMPLE = {
    "punisher": ("Punisher", "wins if it can, blocks if it must, else random"),
    "random": ("Random", "any legal column"),
}
MOST_GUIDED = 2000
"""Largest number of simulations of a search guided by a network: about a second."""
SOLVER_QUEUE, SEARCH_QUEUE, NETWORK_QUEUE = 8, 32, 256
"""Calls that may wait or run: seconds of the solver's or of searches' work, tenths of a second of a network's."""
LOADED = 16
"""Networks in their modes kept in memory; the least recently used is dropped first."""


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
        self.custom = {name: names.make(name, fast=True, silent=True) for name in custom}
        self.has_solver = is_installed()
        self._searches = work.threads(workers, SEARCH_QUEUE, "search")
        self._network_thread = work.threads(1, NETWORK_QUEUE, "network")
        self._guided_thread = work.threads(1, NETWORK_QUEUE, "guided search")
        self._solver = work.process(SOLVER_QUEUE)
        self._found: dict[str, Path] = {}
        self._batcher = lru_cache(LOADED)(self._new_batcher)

    def models(self) -> dict[str, Path]:
        """Name → `saved_model` folder of every exported model; of equal names the first folder's."""
        found = finding.networks(self.folders, (finding.EXPORTED,))
        return {name: folder / finding.PUBLISHED for name, folder in found.items()}

    def catalogue(self) -> Catalogue:
        """All players there are now."""
        facts = {name: finding.exported_facts(model) for name, model in self.models().items()}
        cards = self._levels() if levels.NETWORK in facts else []
        cards += [Card(name=n, kind="custom", title=n.partition(":")[2], note=f"your own, {n}") for n in self.custom]
        cards += [Card(name=n, kind="network", title=n, note=_describe(f)) for n, f in facts.items()]
        cards += [
            Card(name=f"{n}@puct:N", kind="guided", title=f"{n} with search", note=f"N from 1 to {MOST_GUIDED:,}")
            for n, f in facts.items()
            if f.get("value_head")  # which a search needs
        ]
        cards += [Card(name=f"{n}:N", kind="search", title=t, note=d) for n, (t, d) in SEARCHES.items()]
        if self.has_solver:
            cards.append(Card(name="solver", kind="solver", title="Solver", note="perfect play"))
        cards += [Card(name=n, kind="simple", title=t, note=d) for n, (t, d) in SIMPLE.items()]
        notices = [SOLVER_NOTICE] if self.has_solver else []
        return Catalogue(players=cards, max_simulations=self.max_simulations, notices=notices)

    def _levels(self) -> list[Card]:
        notes = LEVELS if self.has_solver else LEVELS | {"perfect": PERFECT_WITHOUT_SOLVER}
        return [
            Card(name=name, kind="level", title=name.capitalize(), note=note)
            for name, note in notes.items()
            if names.parse(levels.named(name).player).simulations <= self.max_simulations
        ]

    async def analyse(self, name: str, position: Position, seed: int | None = None) -> Analysis:
        """A player's analysis of a position that is not over. Raises RequestError: no such player, or busy."""
        seed = random.getrandbits(63) if seed is None else seed
        try:
            parts = names.parse(name)
            if name in self.custom:
                return await self._searches.run(_choose, lambda: self.custom[name], position, seed)
            if name == "solver":
                return await self._by_solver(position, seed)
            if parts.player in LEVELS:
                return await self._by_level(name, position, seed)
            if parts.player in (*SIMPLE, *SEARCHES):
                self._check_search(name, parts)
                return await self._searches.run(_choose, partial(names.make, name, silent=True), position, seed)
            return await self._by_network(name, parts, position)
        except work.BusyError:
            raise RequestError(503, "too many requests wait already; try again in a moment", retry_after=1) from None
        except (OutputError, WorkerError) as error:
            raise RequestError(500, str(error)) from None
        except UserError as error:  # a model that was found and cannot be read
            raise RequestError(404, str(error)) from None

    async def warm_up(self) -> None:
        """Query every player once, so that no user waits for libraries and networks."""
        models = list(self.models())[:LOADED]
        searches = ["uct:1", *(f"{name}@puct:1" for name in models)]
        for name in [*models, *searches, *(["solver"] if self.has_solver else [])]:
            with suppress(RequestError):  # the next request for this player gets it
                await self.analyse(name, EMPTY)

    def close(self) -> None:
        """Drop waiting calls and stop the workers."""
        for queue in (self._searches, self._network_thread, self._guided_thread, self._solver):
            queue.close()

    def _check_search(self, name: str, parts: names.Name) -> None:
        """Check the number of simulations of a player that searches. Raises RequestError."""
        search = parts.player or parts.mode
        if search not in (*SEARCHES, *names.SEARCHING_MODES):
            return
        most = self.max_simulations if parts.player else min(MOST_GUIDED, self.max_simulations)
        if not parts.simulations:
            raise RequestError(422, f"player {name!r}: {search}:N needs a whole number of simulations from 1")
        if parts.simulations > most:
            raise RequestError(422, f"player {name!r}: from 1 to {most:,} simulations here")

    async def _by_solver(self, position: Position, seed: int) -> Analysis:
        if not self.has_solver:
            raise RequestError(404, "the solver is not installed here")
        scores: NDArray[np.int8] = await self._solver.run(score_boards, *_bits(position))
        best = scores.max()
        return Analysis(
            player="solver",
            move=int(draw_column(scores == best, mix(seed))[0]),
            value=float(np.sign(best)),
            scores=[None if score == FULL_COLUMN else score for score in scores[0].tolist()],
        )

    async def _by_level(self, name: str, position: Position, seed: int) -> Analysis:
        level = levels.named(name)
        base = await self.analyse(level.player, position, seed)
        if base.scores is None:
            shares = np.array([base.policy], np.float64)
        else:
            scores = np.array([FULL_COLUMN if score is None else score for score in base.scores])
            shares = (scores == scores.max())[None].astype(np.float64)
        policy = levels.probabilities(level, shares, *_bits(position))
        return Analysis(player=name, move=int(draw_by(policy, mix(seed))[0]), policy=policy[0].tolist())

    async def _by_network(self, name: str, parts: names.Name, position: Position) -> Analysis:
        model = self._model(parts.network)
        if model is None:
            raise RequestError(404, f"player {name!r} is unknown; /api/players lists those there are")
        self._check_search(name, parts)
        if parts.mode not in (*MODES, *names.SEARCHING_MODES):
            modes = ", ".join([*MODES, *(f"{search}:N" for search in names.SEARCHING_MODES)])
            raise RequestError(422, f"player {name!r}: modes are {modes}")
        batcher = self._batcher(model, _weights(model).stat().st_mtime_ns, parts)
        outputs = await batcher.evaluate(encoding.boards([position.current], [position.mask])[0])
        policy, value = outputs.get("policy"), outputs.get("value")
        return Analysis(
            player=name,
            move=int(outputs["move"]),
            policy=None if policy is None else policy.tolist(),
            # Six digits: on some processors the seventh depends on the other boards of the batch.
            value=None if value is None else round(float(np.clip(value, -1, 1)), 6),
        )

    def _model(self, name: str) -> Path | None:
        """The folder of a model that was found; folders are searched again only where it is new or gone."""
        model = finding.called(name, self._found)
        if model is None or not _weights(model).is_file():
            self._found = self.models()
            model = finding.called(name, self._found)
        return model

    def _new_batcher(self, model: Path, _changed: int, parts: names.Name) -> work.Batcher:
        """A network in a mode; it loads with the first board, and again when its file has changed."""
        if parts.mode == "policy":
            return work.Batcher(partial(pretrained.load, model.parent), self._network_thread)
        return work.Batcher(partial(_load_player, model.parent, parts), self._guided_thread, padded=False)


def _weights(model: Path) -> Path:
    return model / "1" / "saved_model.pb"


def _describe(facts: Mapping[str, Any]) -> str:
    known = {"arch", "parameters"} <= facts.keys()
    return f"{facts['arch']}, {facts['parameters']:,} parameters" if known else "a network without search"


def _bits(position: Position) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    return np.array([position.current], np.uint64), np.array([position.mask], np.uint64)


def _load_player(folder: Path, parts: names.Name) -> Predict:
    """A network with search, or its value head alone, as `predict(boards)` of what it chooses."""
    evaluate = pretrained.load(folder, for_search=bool(parts.simulations))
    player = network.with_predict(parts.network, evaluate, parts.mode, parts.simulations)

    def choose(boards: ArrayLike) -> dict[str, NDArray[Any]]:
        current, mask = encoding.bitboards(np.asarray(boards, np.int8))
        seeds = np.zeros(len(current), np.uint64)  # these modes draw nothing
        choices = checked_choices(player, current, mask, seeds)
        found = {"move": choices.moves, "policy": choices.policy, "value": choices.value}
        return {name: array for name, array in found.items() if array is not None}

    return choose


def _choose(make: Callable[[], Player], position: Position, seed: int) -> Analysis:
    """A player's analysis, in a thread: to make the first search loads Numba."""
    player = make()
    choices = checked_choices(player, *_bits(position), mix(seed))
    return Analysis(
        player=player.name,
        move=int(choices.moves[0]),
        policy=None if choices.policy is None else choices.policy[0].tolist(),
        value=None if choices.value is None else float(choices.value[0]),
    )
