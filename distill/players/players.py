"""Who plays: every player answers a batch of positions, so that networks and searches meet on equal terms.

In: a word (`players/words.py`). Out: the player that `make` makes of it.

Every random draw is a function of the seed that comes with the position, so a player's move does not
depend on what else is in the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distill import networks
from distill.common import OutputError, UserError
from distill.common.workers import spread
from distill.datasets.benchmark import FULL_COLUMN
from distill.game import outputs
from distill.game.encoding import boards
from distill.game.mixing import mix
from distill.game.rules import COLUMNS, COLUMNS_FROM_CENTRE, FULL_BOARD, ROWS, Position, has_four, landing, legal_mask
from distill.game.tactics import wins
from distill.mcts import cache
from distill.networks import finding, predict
from distill.players import levels
from distill.players.words import LEVELS, SEARCHES, Word, check

if TYPE_CHECKING:
    import keras

    from distill.mcts.puct import Evaluate, PuctSettings
    from distill.mcts.teacher import SearchResult, SearchSettings
    from distill.networks.predict import Predict

Boards = NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What a player answers to B positions.

    Attributes:
      moves: int64 (B,), the column it plays.
      policy: float64 (B, 7), probability of each column, 0 on full ones; a search's share of visits. None where the
        player has no opinion on the columns.
      value: float64 (B,), expected outcome in [−1, 1] for the side to move; None where it has no opinion.
    """

    moves: NDArray[np.int64]
    policy: NDArray[np.float64] | None = None
    value: NDArray[np.float64] | None = None


class Player(Protocol):
    """Anything that plays."""

    @property
    def name(self) -> str:
        """The word it was named by, short enough for a table."""

    def play(self, current: Boards, mask: Boards, seeds: Boards) -> Choices:
        """Its moves in B positions that are not over; bitboards and seeds are uint64 (B,)."""


def checked_choices(player: Player, current: Boards, mask: Boards, seeds: Boards) -> Choices:
    """A player's checked answers to B positions that are not over; all code that uses an answer calls this.

    Raises OutputError, which names the player, for an illegal move, and for a policy or a value that is none.
    """
    legal = legal_mask(mask)
    with outputs.named(player.name):
        found = player.play(current, mask, seeds)
        if not isinstance(found, Choices):
            raise OutputError(f"returned {type(found).__name__}, not Choices")
        moves = outputs.moves(found.moves, legal)
        policy = None if found.policy is None else outputs.policy(found.policy, legal)
        value = None if found.value is None else outputs.values(found.value, len(mask))
    return Choices(moves=moves, policy=policy, value=value)


def make(word: str, workers: int = 1, *, quick: bool = False, announced: bool = False) -> Player:
    """The player that a word names; searches and the solver may use `workers` processes.

    With `quick` an exported network is evaluated as `networks.predict.load` finds it, ready at once and equal up to
    rounding. Figures are taken without it. With `announced` the caller has the searches compiled and tells its user
    what takes long; without, both happen here.

    Raises ValueError for a word that names nobody, DataError for a folder without a model, and UserError where the
    solver is not installed.
    """
    named = check(word)
    if named.player in ("random", "punisher"):
        return RandomPlayer(name=word, tactical=named.player == "punisher")
    if named.player == "solver":
        return SolverPlayer(workers=workers)
    if named.player in LEVELS:
        asked = make(levels.asked(word), workers, quick=quick, announced=announced)
        return LevelPlayer(name=word, asked=asked, level=levels.named(word))
    if named.player:
        if not announced:
            cache.prepare("teacher")
        from distill.mcts.teacher import SearchSettings

        settings = SearchSettings(simulations=named.simulations, **SEARCHES[named.player])
        return SearchPlayer(name=word, settings=settings, workers=workers)
    player = _of_network(word, named, quick, announced)
    if named.simulations and not announced:
        cache.prepare("puct")
    return player


def _of_network(word: str, named: Word, quick: bool, announced: bool) -> Player:
    folder = finding.find(named.network)
    assert folder is not None  # by `check`
    shown = word.replace("/@", "@").rstrip("/")
    if quick and predict.onnx_to_run(folder):
        network = predict.load(folder, for_search=bool(named.simulations))
        return with_predict(shown, network, named.mode, named.simulations)
    networks.start_backend(aloud=not announced)
    from distill.networks import saved

    if named.simulations:
        return guided(shown, saved.load_core(finding.network_in(folder)), named.mode, named.simulations)
    return NetworkPlayer(name=shown, predict=saved.load(folder), mode=named.mode)


def with_predict(name: str, predict: Predict, mode: str, simulations: int) -> Player:
    """The player in a mode of `words` that asks this network; for searching modes it has a value head, or UserError."""
    if not simulations:
        return NetworkPlayer(name=name, predict=predict, mode=mode)
    if "value" not in predict(np.zeros((1, ROWS, COLUMNS), np.int8)):
        raise UserError(f"{name}: this network has no value head, which a search needs")

    def evaluate(current: Boards, mask: Boards) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        answer = predict(boards(current, mask))
        return answer["logits"], answer["value"]

    return GuidedPlayer(name=name, predict=evaluate, settings=_guided_settings(mode, simulations))


def guided(name: str, core: keras.Model, root: str, simulations: int) -> GuidedPlayer:
    """A search by a network in memory, `root` one of SEARCHING_MODES. Raises UserError where it has no value head."""
    from distill.networks.evaluator import Evaluator

    return GuidedPlayer(name=name, predict=Evaluator(core), settings=_guided_settings(root, simulations))


def _guided_settings(root: str, simulations: int) -> PuctSettings:
    from distill.mcts.puct import PuctSettings

    return PuctSettings(simulations=simulations, root="gumbel" if root == "gumbel" else "puct")


@dataclass(frozen=True, kw_only=True)
class RandomPlayer:
    """Any legal column; `tactical` wins if it can and blocks if it must before that."""

    name: str = "random"
    tactical: bool = False

    def play(self, current: Boards, mask: Boards, seeds: Boards) -> Choices:
        allowed = legal_mask(mask)
        if self.tactical:
            for stones in (current ^ mask, current):  # own wins are asked last, so they come before blocks
                urgent = wins(stones, mask)
                allowed = np.where(urgent.any(1, keepdims=True), urgent, allowed)
        return Choices(moves=draw_column(allowed, seeds), policy=allowed / allowed.sum(1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class SolverPlayer:
    """At random among the moves with the best exact score; its value is the outcome of perfect play."""

    name: str = "solver"
    workers: int = 1

    def __post_init__(self) -> None:
        from distill.players.solver import check_installed

        check_installed()

    def play(self, current: Boards, mask: Boards, seeds: Boards) -> Choices:
        from distill.players.solver import score_boards

        scores = score_boards(current, mask, self.workers)
        best = scores.max(1, keepdims=True, initial=FULL_COLUMN)
        allowed = (scores == best) & legal_mask(mask)
        policy = allowed / allowed.sum(1, keepdims=True)
        return Choices(moves=draw_column(allowed, seeds), policy=policy, value=np.sign(best[:, 0]).astype(np.float64))


@dataclass(frozen=True, kw_only=True)
class LevelPlayer:
    """A named level: its move is drawn by the rule of `levels` over the policy of the player that it asks."""

    name: str
    asked: Player
    level: levels.Level

    def play(self, current: Boards, mask: Boards, seeds: Boards) -> Choices:
        policy = checked_choices(self.asked, current, mask, seeds).policy
        assert policy is not None  # only players that have one are asked
        shares = levels.probabilities(self.level, policy, current, mask)
        return Choices(moves=draw_by(shares, seeds), policy=shares)


@dataclass(frozen=True, kw_only=True)
class SearchPlayer:
    """A tree search with playouts; its policy is the share of root visits."""

    name: str
    settings: SearchSettings
    workers: int = 1

    def play(self, current: Boards, mask: Boards, seeds: Boards) -> Choices:
        results = self.search(current, mask, seeds)
        visits = np.array([result.visits for result in results], np.float64).reshape(-1, COLUMNS)
        return Choices(
            moves=np.array([result.label for result in results], np.int64),
            policy=visits / visits.sum(1, keepdims=True),
            value=np.array([result.value for result in results], np.float64),
        )

    def search(self, current: Boards, mask: Boards, seeds: Boards) -> list[SearchResult]:
        """What the search of each position found; bitboards and seeds are uint64 (B,)."""
        from distill.mcts.teacher import search

        positions = [Position(*bits) for bits in zip(current.tolist(), mask.tolist(), strict=True)]
        numbers = [int(seed) for seed in seeds]
        work = len(positions) * self.settings.simulations * self.settings.votes
        if self.workers <= 1 or work < _WORTH_PROCESSES:
            return search(positions, self.settings, numbers)
        size = -(-len(positions) // (4 * self.workers))  # several parts a worker: searches end at different times
        parts = range(0, len(positions), size)
        tasks = ((positions[p : p + size], self.settings, numbers[p : p + size]) for p in parts)
        return [result for part in spread(search, tasks, self.workers) for result in part]


@dataclass(frozen=True, kw_only=True)
class GuidedPlayer:
    """A tree search guided by a network, without chance; its policy is the share of root visits."""

    name: str
    predict: Evaluate = field(repr=False)
    settings: PuctSettings

    def play(self, current: Boards, mask: Boards, seeds: Boards) -> Choices:
        from distill.mcts.puct import quiet, search

        lanes = max(1, min(len(current), _LANES))
        record = search(current, mask, quiet(self.settings), self.predict, seeds.tolist(), lanes)
        visits = record.visits[:, 0].astype(np.float64)
        return Choices(
            moves=record.label[:, 0].astype(np.int64),
            policy=visits / visits.sum(1, keepdims=True),
            value=record.value[:, 0],
        )


_LANES = 512
"""Searches side by side."""

_WORTH_PROCESSES = 20_000_000
"""Simulations from which sharing a batch pays: some seconds of one core, against starting workers once."""


@dataclass(frozen=True, kw_only=True)
class NetworkPlayer:
    """A saved network, `predict` as `networks.saved.load` returns it.

    Mode `policy` plays the likeliest column and `sample` one drawn by the policy. Mode `value` looks one move ahead: it
    plays the move to the position that the value head likes least for the opponent, a win counts 1 and a full board 0.
    """

    name: str
    predict: Predict = field(repr=False)
    mode: str = "policy"

    def __post_init__(self) -> None:
        if self.mode == "value" and "value" not in self.predict(np.zeros((1, 6, 7), np.int8)):
            raise UserError(f"{self.name}: this network has no value head, which mode value needs")

    def play(self, current: Boards, mask: Boards, seeds: Boards) -> Choices:
        if self.mode == "value":
            return self._play_by_value(current, mask)
        answer = self.predict(boards(current, mask))
        policy = answer["policy"].astype(np.float64)
        value = answer.get("value")
        return Choices(
            moves=draw_by(policy, seeds) if self.mode == "sample" else answer["move"].astype(np.int64),
            policy=policy,
            value=None if value is None else value.astype(np.float64),
        )

    def _play_by_value(self, current: Boards, mask: Boards) -> Choices:
        cells = landing(mask)
        after_mask = mask[:, None] | cells
        won = has_four(current[:, None] | cells)
        open_ended = (cells != 0) & ~won & (after_mask != FULL_BOARD)
        worth = np.where(cells == 0, -np.inf, won.astype(np.float64))
        opponent = np.broadcast_to((current ^ mask)[:, None], cells.shape)
        if open_ended.any():
            worth[open_ended] = -self.predict(boards(opponent[open_ended], after_mask[open_ended]))["value"]
        order = np.array(COLUMNS_FROM_CENTRE)
        return Choices(moves=order[worth[:, order].argmax(1)], value=worth.max(1))


def draw_column(allowed: NDArray[np.bool_], seeds: Boards) -> NDArray[np.int64]:
    """int64 (B,), for each row a column drawn evenly among those allowed, bool (B, 7), by its seed, uint64 (B,)."""
    number = np.floor(_fraction(seeds) * allowed.sum(1)).astype(np.int64)
    return np.argmax(allowed.cumsum(1) > number[:, None], 1)


def draw_by(policy: NDArray[np.float64], seeds: Boards) -> NDArray[np.int64]:
    """int64 (B,), for each row a column drawn by its probabilities, (B, 7), with its seed, uint64 (B,)."""
    reached = policy.cumsum(1)
    return np.argmax(reached > _fraction(seeds)[:, None] * reached[:, -1:], 1)


def _fraction(seeds: Boards) -> NDArray[np.float64]:
    """float64 (B,), in [0, 1), even for unlike seeds."""
    fraction: NDArray[np.float64] = (mix(seeds) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return fraction


def seeds_for(seed: int, *numbers: ArrayLike) -> Boards:
    """uint64 (B,) seeds, a function of a run's seed and numbers such as game and ply, each an integer or (B,)."""
    seeds = mix(seed)
    for number in numbers:
        seeds = mix(seeds ^ mix(number))
    return seeds
