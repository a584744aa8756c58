"""Games labelled by UCT: K searches of each position, their majority, the move, the next position.

Each lane plays one game; a lane whose game has ended takes the next one that waits. A position's searches depend only
on its own draws, so neither the number of lanes nor their order changes a game.
"""

from __future__ import annotations

from typing import NamedTuple

from distill.game.rules import COLUMNS
from distill.mcts.engine.best_ucb1 import SLOTS
from distill.mcts.engine.bits import CENTRE_FIRST, open_columns
from distill.mcts.engine.jit import Float32s, Float64s, Int8s, Int32s, UInt64s, inline, int64, jit
from distill.mcts.engine.noise import exploration_weights, noisy_move
from distill.mcts.engine.record import GameRecord, play_move
from distill.mcts.engine.tree import TOTAL, is_proven
from distill.mcts.engine.uct_simulation import UctTrees, root_row, set_root, simulate

SIMULATIONS_A_CALL = 1_000_000
"""Simulations, some tenths of a second, after which compiled code lets Python look at the games."""


class UctDraws(NamedTuple):
    """All random numbers of G games, S positions each, K votes a position, except those of the rollouts."""

    key: UInt64s  # (G, S, K) seeds of the rollouts
    order: Float32s  # (G, S, K, 8) scores of unvisited moves
    gamma: Float64s  # (G, S, K, 7) standard gamma variates: over their sum, Dirichlet noise of the root
    move: Float64s  # (G, S, 8) the same for the move that is played, and a uniform number


@jit
def play_games(trees: UctTrees, draws: UctDraws, record: GameRecord) -> None:
    """Play on for SIMULATIONS_A_CALL simulations, or until all games have ended."""
    number, votes, executed = len(record.length), record.votes.shape[2], 0
    live, count, started = trees.live, trees.counts[0], trees.counts[1]
    while count > 0 and executed < SIMULATIONS_A_CALL:
        for vote in range(votes):
            for j in range(count):
                start_search(trees, draws, record, live[j], vote)
            simulate(trees, live, count)
            for j in range(count):
                finish_search(trees, record, live[j], vote)
        executed += votes * count * trees.parameters.simulations
        # Play the moves; lanes that still have a game move to the front of `live`.
        still = 0
        for j in range(count):
            lane = live[j]
            game, step = trees.game[lane], trees.step[lane]
            if play_move(record, game, step, choose_move(trees, draws, record, game, step)):
                trees.step[lane] += 1
            elif started < number:  # its game has ended, and another one waits
                trees.game[lane], trees.step[lane] = started, 0
                started += 1
            else:
                continue
            live[still] = lane
            still += 1
        count = still
    trees.counts[0], trees.counts[1] = count, started


@inline
def start_search(trees: UctTrees, draws: UctDraws, record: GameRecord, lane: int, vote: int) -> None:
    """An empty tree for one vote, with its own noise, order of unvisited moves, and rollouts."""
    game, step = trees.game[lane], trees.step[lane]
    mask = record.mask[game, step]
    set_root(trees, lane, record.current[game, step], mask, draws.key[game, step, vote])
    weights = exploration_weights(draws.gamma[game, step, vote], mask, trees.parameters.label_noise)
    for column in range(COLUMNS):
        trees.weights[(lane + 1) * SLOTS + column] = weights[column]
        trees.order[lane * SLOTS + column] = draws.order[game, step, vote, column]


@inline
def finish_search(trees: UctTrees, record: GameRecord, lane: int, vote: int) -> None:
    """Record one vote: proven wins first and proven losses last, then most visits, then the higher mean."""
    game, step = trees.game[lane], trees.step[lane]
    root, allowed = root_row(trees, lane), open_columns(trees.mask[lane])
    best, most, best_mean, returns = -1, -(2**31), 0.0, 0
    for column in CENTRE_FIRST:
        if not allowed >> column & 1:
            continue
        visits = int64(trees.rows[root + column])
        total = int64(trees.rows[root + TOTAL + column])
        record.visits[game, step, column] += visits
        weight = visits
        if is_proven(total):  # the total is a mark, and every visit counts as a win or a loss
            weight += total
            total = visits if total > 0 else -visits
        returns += total
        mean = total / visits if visits > 0 else -2.0
        if weight > most or (weight == most and mean > best_mean):
            best, most, best_mean = column, weight, mean
    record.votes[game, step, vote] = best
    record.simulations[game, step] += trees.parameters.simulations
    record.value[game, step] += returns / trees.parameters.simulations


@inline
def choose_move(trees: UctTrees, draws: UctDraws, record: GameRecord, game: int, step: int) -> int:
    """Label the position by its votes; returns the move to play: the label, or with noise at the move one near it."""
    move_noise = trees.parameters.move_noise
    label = majority(record.votes[game, step], record.visits[game, step])
    record.label[game, step] = label
    record.value[game, step] /= record.votes.shape[2]
    if move_noise > 0.0:
        return noisy_move(label, draws.move[game, step], record.mask[game, step], move_noise)
    return label


@jit
def majority(votes: Int8s, visits: Int32s) -> int:
    """The column with most votes, then most summed visits, then the nearest to the centre, then the lower one."""
    best, most_votes, most_visits = -1, 0, int64(-1)
    for column in CENTRE_FIRST:
        count = 0
        for vote in votes:
            count += int64(vote == column)
        if count > most_votes or (count == most_votes and count > 0 and visits[column] > most_visits):
            best, most_votes, most_visits = column, count, int64(visits[column])
    return best
