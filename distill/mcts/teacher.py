"""The teacher: UCT with playouts, root noise and a majority of independent searches.

A position goes in, a `SearchResult` comes out; `play` goes on with the majority's move to the end of
the game, for many games side by side. Each lane works on one game and holds one search at a time, so
a game's record is a function of its own draws, whichever other games are in flight.

The score of a child is mean return + c * w * sqrt(ln N / n), with w = 1 below the root and, at the
root, w = n_legal * ((1 - f) / n_legal + f * Dirichlet(alpha)) for a noise fraction f. Choice of a
search: most visits, then higher mean, then nearest the centre, then lower column (with `mcts_solver` a
proven win first, and proven losses last). Majority: most
votes, then most summed visits, then nearest the centre, then lower column.

So it is with `noise_at` "label". With "move" every w is 1, and the noise acts on the move that is played instead: it is
drawn from (1 - f) * [the majority's column] + f * Dirichlet(alpha). Labels and visits are then of searches without
noise, and games differ all the same. The move does not depend on single votes or visits, which `savings` may leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distill.common.cli import Settings, check, setting
from distill.game.rules import COLUMNS, Position, is_over
from distill.mcts import playout_trees
from distill.mcts.compiled import SLOTS, inline, jit
from distill.mcts.playout_trees import CENTRE_FIRST, TOTAL, UNVISITED, PlayoutTrees, root_noise, root_row
from distill.mcts.rollout import FULL, has_four, landing, open_columns

SEARCH_VERSION = 1
"""Raised whenever the same settings and seed give other searches."""

LANES = 32
"""Searches in flight: enough to fill the vectors and hide memory latency, small enough for the caches."""

MOVE_STREAM = 2**32
"""Of a game's random numbers, for the noise of its moves; 0 is the opening's, and vote k has 1 + k."""

MOST_SIMULATIONS = 10_000_000
"""Of one search."""

MOST_NODES = 2**25
"""Nodes that all searches in flight may have room for: 4 GiB of addresses, of which they fill about a quarter."""

AT_A_TIME = 1_000_000
"""Simulations, some tenths of a second, between two moments at which compiled code lets Python look at the games."""

CHECK_EVERY = 250
"""Simulations between two looks at whether a search is already decided (`savings` "exact")."""


@dataclass(frozen=True, kw_only=True)
class SearchSettings(Settings, group="search", shown=("simulations", "votes", "rollout", "mcts_solver")):
    """What a search does; everything that its result depends on, besides position and seed."""

    simulations: int = setting(10_000, "simulations of each search")
    votes: int = setting(3, "independent searches of each position")
    rollout: Literal["heuristic", "random"] = setting("heuristic", "policy of the playouts")
    exploration: float = setting(1.0, "constant c of UCB1")
    noise_fraction: float = setting(
        0.25, "share of Dirichlet noise in the root's exploration weights, or in what moves are drawn from"
    )
    noise_at: Literal["label", "move"] = setting(
        "label", "where it acts: in the searches that label, or in the moves played, which leaves the labels clean"
    )
    dirichlet_alpha: float = setting(1.0, "concentration of that noise")
    mcts_solver: bool = setting(False, "back up proven wins and losses")
    savings: Literal["off", "exact"] = setting(
        "off", "exact: leave out simulations that cannot change the label (they do change the visits)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        most = f"from 1 to {MOST_SIMULATIONS:,}"
        check(1 <= self.simulations <= MOST_SIMULATIONS, "simulations", self.simulations, most)
        check(1 <= self.votes <= 100, "votes", self.votes, "from 1 to 100")
        most_votes = (2**31 - 1) // self.simulations
        range_here = f"from 1 to {most_votes}, with --simulations {self.simulations}"
        check(self.votes <= most_votes, "votes", self.votes, range_here)
        check(0 <= self.exploration <= 100, "exploration", self.exploration, "from 0 to 100")
        check(0 <= self.noise_fraction <= 1, "noise_fraction", self.noise_fraction, "from 0 to 1")
        exact = self.savings == "off" or not self.mcts_solver
        check(exact, "savings", self.savings, "off with --mcts-solver: a late proof may change a decided label")
        check(0 < self.dirichlet_alpha <= 1e6, "dirichlet_alpha", self.dirichlet_alpha, "above 0, at most 1e6")


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """What K searches of one position found.

    Args:
      votes: column each search chose; -1 for one that was skipped.
      label: column of the majority.
      visits: int32 (7,), root visits summed over the searches.
      value: mean root return in [-1, 1] for the side to move.
      simulations: executed, all searches together.
    """

    votes: tuple[int, ...]
    label: int
    visits: NDArray[np.int32]
    value: float
    simulations: int


class Draws(NamedTuple):
    """All that chance decides for G games, S positions each, K votes a position."""

    key: NDArray[np.uint64]  # (G, S, K) seeds of the playouts
    order: NDArray[np.float32]  # (G, S, K, 8) scores of unvisited children
    gamma: NDArray[np.float64]  # (G, S, K, 7) standard gamma variates; over their sum, Dirichlet
    move: NDArray[np.float64]  # (G, S, 8) the same for the move played, and a uniform number


class TeacherRecord(NamedTuple):
    """What was played and found in G games of at most S positions. A = 7 columns."""

    current: NDArray[np.uint64]  # (G, S)
    mask: NDArray[np.uint64]  # (G, S)
    votes: NDArray[np.int8]  # (G, S, K)
    label: NDArray[np.int8]  # (G, S)
    move: NDArray[np.int8]  # (G, S) the column played: the label, or with noise at the move one drawn around it
    visits: NDArray[np.int32]  # (G, S, A)
    simulations: NDArray[np.int32]  # (G, S)
    value: NDArray[np.float64]  # (G, S) summed over the votes until the position is settled, then the mean
    length: NDArray[np.int64]  # (G,) positions recorded
    result: NDArray[np.int8]  # (G,) 1 if the last move won, else 0


class Lanes(NamedTuple):
    """Where the games in flight are, L at a time; game, step, vote and saving are those of each lane."""

    game: NDArray[np.int64]  # (L,)
    step: NDArray[np.int64]  # (L,)
    vote: NDArray[np.int64]  # (L,)
    saving: NDArray[np.bool_]  # (L,)
    live: NDArray[np.int64]  # (L,) the lanes that have a game come first
    counts: NDArray[np.int64]  # (2,) lanes that have a game, and games begun
    ended: NDArray[np.bool_]  # (G,) whether each game has ended


def generator(seed: int, game: int, stream: int) -> np.random.Generator:
    """Independent random numbers for each (run seed, game, stream): Philox, counter-based, no state shared."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, game], np.uint64), counter=[0, 0, 0, stream]))


def draw(seed: int, games: Sequence[int], steps: int, settings: SearchSettings) -> Draws:
    """The draws of these games; vote k of game g depends on (seed, g, k) alone, its moves on (seed, g)."""
    shape = (len(games), settings.votes, steps)
    key = np.empty(shape, np.uint64)
    order = np.zeros((*shape, SLOTS), np.float32)
    gamma = np.empty((*shape, COLUMNS), np.float64)
    move = np.zeros((len(games), steps, COLUMNS + 1))
    for i, game in enumerate(games):
        for vote in range(settings.votes):
            random = generator(seed, game, 1 + vote)
            key[i, vote] = random.integers(0, 2**64, steps, np.uint64)
            order[i, vote, :, :COLUMNS] = UNVISITED + random.random((steps, COLUMNS)).argsort(-1)
            gamma[i, vote] = random.standard_gamma(settings.dirichlet_alpha, (steps, COLUMNS))
        if settings.noise_at == "move":
            random = generator(seed, game, MOVE_STREAM)
            move[i, :, :COLUMNS] = random.standard_gamma(settings.dirichlet_alpha, (steps, COLUMNS))
            move[i, :, COLUMNS] = random.random(steps)
    return Draws(key.swapaxes(1, 2).copy(), order.swapaxes(1, 2).copy(), gamma.swapaxes(1, 2).copy(), move)


def play(
    current: NDArray[np.uint64],
    mask: NDArray[np.uint64],
    draws: Draws,
    settings: SearchSettings,
    lanes: int = LANES,
    ended: Callable[[TeacherRecord, NDArray[np.int64]], None] | None = None,
) -> TeacherRecord:
    """Play G games on from the positions (current, mask), uint64 (G,), none of them over.

    A game ends by the rules or after the S positions there are draws for. `lanes` has no influence
    on the result. `ended(record, games)` is told now and then which games, int64, have ended so far.
    """
    games, steps, votes = draws.key.shape
    record = TeacherRecord(votes=np.full((games, steps, votes), -1, np.int8), **blank_record(current, mask, steps))
    at_label = settings.noise_fraction if settings.noise_at == "label" else 0.0
    lanes = max(1, min(lanes, games, MOST_NODES // settings.simulations))
    trees = playout_trees.new_trees(lanes, settings.simulations, settings.exploration)
    where, known = _lanes(lanes, games, settings.savings == "exact"), 0
    while known < games:
        _play(
            trees,
            draws,
            record,
            where,
            settings.simulations,
            at_label,
            settings.noise_fraction - at_label,
            settings.rollout == "heuristic",
            settings.savings == "exact",
            settings.mcts_solver,
        )
        over = np.flatnonzero(where.ended)
        if ended is not None and len(over) > known:
            ended(record, over)
        known = len(over)
    return record


def _lanes(lanes: int, games: int, savings: bool) -> Lanes:
    """Lanes before the first game."""
    game, step, vote = (np.zeros(lanes, np.int64) for _ in range(3))
    counts, over = np.zeros(2, np.int64), np.zeros(games, np.bool_)
    return Lanes(game, step, vote, np.full(lanes, savings), np.arange(lanes), counts, over)


def blank_record(current: NDArray[np.uint64], mask: NDArray[np.uint64], steps: int) -> dict[str, Any]:
    """The fields that records of either kind have, of games that are still to be played from (current, mask)."""
    shape = (len(current), steps)
    record: dict[str, Any] = {
        "current": np.zeros(shape, np.uint64),
        "mask": np.zeros(shape, np.uint64),
        "label": np.full(shape, -1, np.int8),
        "move": np.full(shape, -1, np.int8),
        "visits": np.zeros((*shape, COLUMNS), np.int32),
        "simulations": np.zeros(shape, np.int32),
        "value": np.zeros(shape),
        "length": np.zeros(len(current), np.int64),
        "result": np.zeros(len(current), np.int8),
    }
    record["current"][:, 0], record["mask"][:, 0] = current, mask
    return record


def search(
    positions: Sequence[Position], settings: SearchSettings, seeds: int | Sequence[int] = 0, lanes: int = LANES
) -> list[SearchResult]:
    """Search positions that are not over, side by side.

    `seeds` is one seed, of which each position takes its own stream by its place in the list, or a
    seed a position, which makes its result independent of the others asked for.
    """
    for position in positions:
        if is_over(position):
            raise ValueError(f"the game is over at {position}; there is nothing to search")
    if isinstance(seeds, int):
        draws = draw(seeds, range(len(positions)), 1, settings)
    else:
        drawn = [draw(seed, [0], 1, settings) for seed in seeds]
        draws = Draws(*(np.concatenate(parts) for parts in zip(*drawn, strict=True)))
    current = np.array([position.current for position in positions], np.uint64)
    mask = np.array([position.mask for position in positions], np.uint64)
    record = play(current, mask, draws, settings, lanes)
    return [
        SearchResult(
            votes=tuple(int(vote) for vote in record.votes[i, 0]),
            label=int(record.label[i, 0]),
            visits=record.visits[i, 0],
            value=float(record.value[i, 0]),
            simulations=int(record.simulations[i, 0]),
        )
        for i in range(len(positions))
    ]


@jit
def _play(
    trees: PlayoutTrees,
    draws: Draws,
    record: TeacherRecord,
    where: Lanes,
    simulations: int,
    noise: float,
    stray: float,
    heuristic: bool,
    savings: bool,
    proving: bool,
) -> None:
    """The games, one a lane, for AT_A_TIME simulations or to their end; a lane whose game has ended takes the next."""
    games = len(record.length)
    game, step, vote, saving, live = where.game, where.step, where.vote, where.saving, where.live
    count, waiting = where.counts[0], where.counts[1]
    if waiting == 0:
        waiting = min(len(live), games)
        count = waiting
        for lane in range(count):
            game[lane] = lane
            _start(trees, lane, draws, record, lane, 0, 0, noise)
    made = 0
    while count > 0 and made < AT_A_TIME:
        rounds = simulations
        for j in range(count):
            done = trees.simulations[live[j]]
            due = min(simulations, (done // CHECK_EVERY + 1) * CHECK_EVERY) if savings else simulations
            rounds = min(rounds, due - done)
        playout_trees.advance(trees, live, count, rounds, heuristic, proving)
        made += rounds * count
        j = 0
        while j < count:
            lane = live[j]
            j += 1
            if not _is_finished(trees, lane, simulations, saving[lane]):
                continue
            g, s = game[lane], step[lane]
            _count_vote(trees, lane, record, g, s, vote[lane])
            vote[lane] += 1
            if not _is_settled(record, g, s, vote[lane], saving[lane]):
                _start(trees, lane, draws, record, g, s, vote[lane], noise)
                continue
            if saving[lane] and _is_tied(record, g, s):
                # The tie is broken by visits, so the searches are made again, in full.
                record.votes[g, s] = -1
                record.visits[g, s] = 0
                record.simulations[g, s] = 0
                record.value[g, s] = 0.0
                saving[lane], vote[lane] = False, 0
                _start(trees, lane, draws, record, g, s, 0, noise)
                continue
            saving[lane], vote[lane] = savings, 0
            if _move(draws, record, g, s, stray):
                step[lane] = s + 1
            else:
                where.ended[g] = True
                if waiting == games:
                    j -= 1
                    count -= 1
                    live[j] = live[count]
                    continue
                game[lane], step[lane] = waiting, 0
                waiting += 1
            _start(trees, lane, draws, record, game[lane], step[lane], 0, noise)
    where.counts[0], where.counts[1] = count, waiting


@inline
def _start(trees: Any, lane: Any, draws: Any, record: Any, game: Any, step: Any, vote: Any, noise: Any) -> None:
    """Plant the search of one vote, with its own noise and order."""
    mask = record.mask[game, step]
    playout_trees.begin_at(trees, lane, record.current[game, step], mask, draws.key[game, step, vote])
    drawn = root_noise(draws.gamma[game, step, vote], mask, noise)
    for column in range(COLUMNS):
        trees.weights[(lane + 1) * SLOTS + column] = drawn[1, column]
        trees.order[lane * SLOTS + column] = draws.order[game, step, vote, column]


@inline
def _is_finished(trees: Any, lane: Any, simulations: Any, saving: Any) -> Any:
    """Whether the search has run, or (saving) nothing can overtake its leader any more."""
    done = trees.simulations[lane]
    if done >= simulations:
        return True
    if not saving or done % CHECK_EVERY:  # between its own checks a tree may be seen by chance of packing
        return False
    root, allowed = root_row(trees, lane), open_columns(trees.mask[lane])
    first, second, legal = 0, 0, 0
    for column in range(COLUMNS):
        if allowed >> column & 1:
            legal += 1
            visits = np.int64(trees.rows[root + column])
            if visits > first:
                first, second = visits, first
            elif visits > second:
                second = visits
    return legal == 1 or first - second > simulations - done


@inline
def _count_vote(trees: Any, lane: Any, record: Any, game: Any, step: Any, vote: Any) -> None:
    """Add one finished search to the position's record."""
    root, allowed = root_row(trees, lane), open_columns(trees.mask[lane])
    best, most, best_mean, total = -1, -(2**31), 0.0, 0
    for column in CENTRE_FIRST:
        if not allowed >> column & 1:
            continue
        visits = np.int64(trees.rows[root + column])
        returns = np.int64(trees.rows[root + TOTAL + column])
        record.visits[game, step, column] += visits
        weight = visits
        if abs(returns) > visits:  # proven: the total is a mark, every visit a win or a loss
            weight += returns
            returns = visits if returns > 0 else -visits
        total += returns
        mean = returns / visits if visits > 0 else -2.0
        if weight > most or (weight == most and mean > best_mean):
            best, most, best_mean = column, weight, mean
    record.votes[game, step, vote] = best
    record.simulations[game, step] += trees.simulations[lane]
    record.value[game, step] += total / trees.simulations[lane]


@inline
def _tally(record: Any, game: Any, step: Any) -> Any:
    """Votes of the leading column and of the runner-up."""
    first, second = 0, 0
    for column in range(COLUMNS):
        votes = 0
        for vote in record.votes[game, step]:
            votes += np.int64(vote == column)
        if votes > first:
            first, second = votes, first
        elif votes > second:
            second = votes
    return first, second


@inline
def _is_settled(record: Any, game: Any, step: Any, made: Any, saving: Any) -> Any:
    """Whether all votes are in, or (saving) those left cannot change the majority."""
    votes = record.votes.shape[2]
    first, second = _tally(record, game, step)
    return made == votes or (saving and first - second > votes - made)


@inline
def _is_tied(record: Any, game: Any, step: Any) -> Any:
    first, second = _tally(record, game, step)
    return first == second


@inline
def _move(draws: Any, record: Any, game: Any, step: Any, stray: Any) -> Any:
    """Settle the label, take the mean value and play, astray by a noise of this share; False where the game ends."""
    label, most_votes, most_visits, made = -1, 0, -1, 0
    for column in CENTRE_FIRST:
        votes = 0
        for vote in record.votes[game, step]:
            votes += np.int64(vote == column)
        made += votes
        visits = np.int64(record.visits[game, step, column])
        if votes > most_votes or (votes == most_votes and votes > 0 and visits > most_visits):
            label, most_votes, most_visits = column, votes, visits
    record.label[game, step] = label
    record.value[game, step] /= made
    record.length[game] = step + 1
    own, mask = record.current[game, step], record.mask[game, step]
    move = label
    if stray > 0.0:
        noise, left = root_noise(draws.move[game, step], mask, stray), draws.move[game, step, COLUMNS]
        for column in range(COLUMNS):
            left -= stray * noise[0, column] + (1.0 - stray) * (column == label)
            if left < 0.0:
                move = column
                break
    record.move[game, step] = move
    stone = landing(mask, move)
    if has_four(own | stone):
        record.result[game] = 1
        return False
    if mask | stone == FULL or step + 1 == record.label.shape[1]:
        return False
    record.current[game, step + 1] = own ^ mask
    record.mask[game, step + 1] = mask | stone
    return True


def warm_up() -> None:
    """Compile, or load from the cache; once in a parent process, before workers start."""
    play(np.zeros(1, np.uint64), np.zeros(1, np.uint64), draw(0, [0], 1, _TINY), _TINY)


_TINY = SearchSettings(simulations=1, votes=1)
