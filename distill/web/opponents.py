"""Who can be asked through the page: the models found in folders, searches, the solver where it is installed.

In: a player's word and a position. Out: an `Opinion`. Words are those of `players/names.py`; a model is called by its
folder's name, and only a folder that was found here is ever opened. Boards that are asked of the same network in the
same mode while it computes are answered together, those of a search in lock step.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill.common import OutputError, UserError, say
from distill.common.workers import WorkerError
from distill.datasets.benchmark import FULL_COLUMN
from distill.game import encoding
from distill.game.mixing import mix
from distill.game.rules import EMPTY, Position
from distill.mcts import cache
from distill.networks import finding, predict
from distill.players import levels, names, network, player
from distill.players.solver import Solver, is_installed
from distill.web import work
from distill.web.messages import Card, Catalogue, Opinion, RequestError

if TYPE_CHECKING:
    from distill.networks.predict import Predict

MODES = ("policy", "value")
"""Of a network, beside its searches; `sample` draws, which is for training."""

SOLVER_NOTICE = (
    "The player “solver” is the package bitbully, © Markus Thill, under the GNU AGPL-3.0; "
    "its source: https://github.com/MarkusThill/BitBully"
)
"""Section 13 of that licence: who uses the program over a network is told where its source is."""

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
COMPILING = "The searches are being compiled, which may take two minutes, but only once."
MOST_GUIDED = 2000
"""Simulations of a search guided by a network: about a second."""
SOLVER_QUEUE, SEARCH_QUEUE, NETWORK_QUEUE = 8, 32, 256
"""Calls that may wait or run: some seconds of the solver's or of searches' work, tenths of a second of a network's."""
LOADED = 16
"""Networks in their modes kept in memory; the one not asked for the longest goes first."""


class Opponents:
    """Finds players and asks them.

    Args:
      folders: where models lie, each in a folder of its own with `saved_model/1/`.
      max_simulations: of one search.
      workers: searches that run at a time.
    """

    def __init__(self, folders: Sequence[Path], max_simulations: int, workers: int) -> None:
        self.folders, self.max_simulations = tuple(folders), max_simulations
        self.has_solver = is_installed()
        self._searches = work.threads(workers, SEARCH_QUEUE, "search")
        self._network_thread = work.threads(1, NETWORK_QUEUE, "network")
        self._guided_thread = work.threads(1, NETWORK_QUEUE, "guided search")
        self._solver = work.process(SOLVER_QUEUE)
        self._waiting, self._compiled = "", asyncio.Event()
        self._compiled.set()
        self._found: dict[str, Path] = {}
        self._loaded: dict[tuple[Path, int, str, int], work.Batcher] = {}

    def models(self) -> dict[str, Path]:
        """Name → `saved_model` folder of every exported model there is now; of equal names the first folder's."""
        found = finding.networks(self.folders, (finding.EXPORTED,))
        return {name: folder / "saved_model" for name, folder in found.items()}

    def catalogue(self) -> Catalogue:
        """Everybody who can be asked now."""
        models = {name: finding.exported_facts(model) for name, model in self.models().items()}
        cards = self._levels() if levels.NETWORK in models else []
        cards += [Card(name=n, kind="network", title=n, note=_describe(m)) for n, m in models.items()]
        cards += [
            Card(name=f"{n}@puct:N", kind="guided", title=f"{n} with search", note=f"N from 1 to {MOST_GUIDED:,}")
            for n, m in models.items()
            if m.get("value_head")  # which a search needs
        ]
        cards += [Card(name=f"{n}:N", kind="search", title=t, note=d) for n, (t, d) in SEARCHES.items()]
        if self.has_solver:
            cards.append(Card(name="solver", kind="solver", title="Solver", note="perfect play"))
        cards += [Card(name=n, kind="simple", title=t, note=d) for n, (t, d) in SIMPLE.items()]
        notices = [SOLVER_NOTICE] if self.has_solver else []
        return Catalogue(players=cards, max_simulations=self.max_simulations, notices=notices, waiting=self._waiting)

    def _levels(self) -> list[Card]:
        notes = LEVELS if self.has_solver else LEVELS | {"perfect": PERFECT_WITHOUT_SOLVER}
        return [
            Card(name=name, kind="level", title=name.capitalize(), note=note)
            for name, note in notes.items()
            if names.parse(levels.named(name).player).simulations <= self.max_simulations
        ]

    async def ask(self, word: str, position: Position, seed: int | None = None) -> Opinion:
        """A player's opinion on a position that is not over. Raises RequestError: no such player, or busy."""
        seed = random.getrandbits(63) if seed is None else seed
        try:
            if word == "solver":
                return await self._ask_solver(position, seed)
            named = names.parse(word)
            if named.player in LEVELS:
                return await self._ask_level(word, position, seed)
            if named.player in SEARCHES:
                self._check_simulations(word, named)
                await self._compiled.wait()
            if named.player in (*SIMPLE, *SEARCHES):
                return await self._searches.run(_play, word, position, seed)
            return await self._ask_network(word, named, position)
        except work.BusyError:
            raise RequestError(503, "too many requests wait already; try again in a moment", retry_after=1) from None
        except (OutputError, WorkerError) as error:
            raise RequestError(500, str(error)) from None
        except UserError as error:  # a model that was found and cannot be read
            raise RequestError(404, str(error)) from None

    async def warm_up(self) -> None:
        """Ask everybody for a first move, so that nobody waits for libraries, networks and compiled code later."""
        names = list(self.models())
        guided = [f"{name}@puct:1" for name in names]
        async with asyncio.TaskGroup() as group:
            if missing := [module for module in cache.COMPILED_LAST if not cache.holds(module)]:
                group.create_task(self._compile(missing))  # first: whoever asks for a search meanwhile waits for it
            group.create_task(self._try(names[:LOADED]))
        await self._try(["uct:1", *guided[:LOADED], *(["solver"] if self.has_solver else [])])

    async def _compile(self, modules: Sequence[str]) -> None:
        """Searches wait until processes of their own have compiled them: this one answers on, and may be ended."""
        self._waiting = COMPILING
        self._compiled.clear()
        say(COMPILING)
        command = [sys.executable, "-m", "distill.mcts.cache"]
        compilers = [await asyncio.create_subprocess_exec(*command, module) for module in modules]
        try:
            for compiler in compilers:
                await compiler.wait()
            say("The searches are compiled.")
        finally:
            for compiler in compilers:
                with suppress(ProcessLookupError):  # it has ended
                    compiler.terminate()
            self._waiting = ""
            self._compiled.set()

    async def _try(self, players: Sequence[str]) -> None:
        for word in players:
            with suppress(RequestError):  # it is told to whoever asks
                await self.ask(word, EMPTY)

    def close(self) -> None:
        """Drop what waits and stop the workers."""
        for queue in (self._searches, self._network_thread, self._guided_thread, self._solver):
            queue.close()

    def _check_simulations(self, word: str, named: names.Name) -> None:
        most = self.max_simulations if named.player else min(MOST_GUIDED, self.max_simulations)
        if not named.simulations:
            search = named.player or named.mode
            raise RequestError(422, f"player {word!r}: {search}:N needs a whole number of simulations from 1")
        if named.simulations > most:
            raise RequestError(422, f"player {word!r}: from 1 to {most:,} simulations here")

    async def _ask_solver(self, position: Position, seed: int) -> Opinion:
        if not self.has_solver:
            raise RequestError(404, "the solver is not installed here")
        scores: list[int] = await self._solver.run(_scores, position.current, position.mask)
        best = max(scores)
        allowed = np.array([scores]) == best
        return Opinion(
            player="solver",
            column=int(player.draw_column(allowed, mix(seed))[0]),
            policy=None,
            value=float(np.sign(best)),
            scores=[None if score == FULL_COLUMN else score for score in scores],
        )

    async def _ask_level(self, word: str, position: Position, seed: int) -> Opinion:
        level = levels.named(word)
        asked = await self.ask(level.player, position, seed)
        if asked.scores is not None:
            open_scores = [FULL_COLUMN if score is None else score for score in asked.scores]
            shares = np.array([open_scores]) == max(open_scores)
        else:
            shares = np.array([asked.policy])
        current, mask = np.array([position.current], np.uint64), np.array([position.mask], np.uint64)
        chances = levels.probabilities(level, shares.astype(np.float64), current, mask)
        return Opinion(
            player=word,
            column=int(player.draw_by(chances, mix(seed))[0]),
            policy=chances[0].tolist(),
            value=None,
            scores=None,
        )

    async def _ask_network(self, word: str, named: names.Name, position: Position) -> Opinion:
        model = self._model(named.network)
        if model is None:
            raise RequestError(404, f"player {word!r} is unknown; /api/players lists those there are")
        if named.mode in names.SEARCHING_MODES:
            self._check_simulations(word, named)
            await self._compiled.wait()
        elif named.mode not in MODES:
            modes = ", ".join([*MODES, *(f"{search}:N" for search in names.SEARCHING_MODES)])
            raise RequestError(422, f"player {word!r}: modes are {modes}")
        batcher = self._batcher(model, named)
        answer = await batcher.ask(encoding.boards([position.current], [position.mask])[0])
        policy, value = answer.get("policy"), answer.get("value")
        return Opinion(
            player=word,
            column=int(answer["move"]),
            policy=None if policy is None else policy.tolist(),
            # To six digits: the seventh depends, on some processors, on who else asks at the same time.
            value=None if value is None else round(float(np.clip(value, -1, 1)), 6),
            scores=None,
        )

    def _model(self, word: str) -> Path | None:
        """The folder of a model that was found; folders are searched again only where it is new, or gone."""
        model = finding.called(word, self._found)
        if model is None or not _weights(model).is_file():
            self._found = self.models()
            model = finding.called(word, self._found)
        return model

    def _batcher(self, model: Path, named: names.Name) -> work.Batcher:
        """A network in a mode, loaded when it is first asked, and again when its file has changed."""
        key = (model, _weights(model).stat().st_mtime_ns, named.mode, named.simulations)
        batcher = self._loaded.pop(key, None)
        if batcher is None and named.mode == "policy":
            batcher = work.Batcher(partial(predict.load, model.parent), self._network_thread)
        elif batcher is None:
            batcher = work.Batcher(partial(_load_player, model.parent, named), self._guided_thread, padded=False)
        self._loaded[key] = batcher  # last: the one asked for most recently
        while len(self._loaded) > LOADED:
            del self._loaded[next(iter(self._loaded))]
        return batcher


def _weights(model: Path) -> Path:
    return model / "1" / "saved_model.pb"


def _describe(facts: Mapping[str, Any]) -> str:
    known = {"arch", "parameters"} <= facts.keys()
    return f"{facts['arch']}, {facts['parameters']:,} parameters" if known else "a network without search"


def _load_player(folder: Path, named: names.Name) -> Predict:
    """A network in a mode that plays by more than one pass, as `predict(boards)` of what it chooses."""
    loaded = predict.load(folder, for_search=bool(named.simulations))
    asked = network.with_predict(named.network, loaded, named.mode, named.simulations)

    def choose(boards: ArrayLike) -> dict[str, NDArray[Any]]:
        current, mask = encoding.bitboards(np.asarray(boards, np.int8))
        choices = player.checked_choices(
            asked, current, mask, np.zeros(len(current), np.uint64)
        )  # no mode of MODES draws
        found = {"move": choices.moves, "policy": choices.policy, "value": choices.value}
        return {name: array for name, array in found.items() if array is not None}

    return choose


def _play(word: str, position: Position, seed: int) -> Opinion:
    current, mask = np.array([position.current], np.uint64), np.array([position.mask], np.uint64)
    made = names.make(word, fast=True, silent=True)
    choice = player.checked_choices(made, current, mask, mix(seed))
    return Opinion(
        player=word,
        column=int(choice.moves[0]),
        policy=None if choice.policy is None else choice.policy[0].tolist(),
        value=None if choice.value is None else float(choice.value[0]),
        scores=None,
    )


@lru_cache(maxsize=1)
def _the_solver() -> Solver:
    """One a process: its opening book takes a moment to load."""
    return Solver()


@lru_cache(maxsize=20_000)
def _scores(current: int, mask: int) -> list[int]:
    """The seven scores, in the solver's process; a position is asked about again whenever somebody steps back to it."""
    return _the_solver().scores(Position(current, mask))
