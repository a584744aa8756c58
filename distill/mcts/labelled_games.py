"""Games in which a labeller plays both sides: label the positions, play the labels or moves near them, and go on.

A position's labels depend on its game and its number in the game alone, so neither the number of games side by side nor
their order changes a game.

Dimensions: G games, S positions a game at most, K votes a position, A = 7 columns; B positions that are labelled at a
time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.common import OutputError
from distill.game.rules import FULL_BOARD, Bitboards, after_moves
from distill.mcts.engine.noise import noisy_move
from distill.mcts.engine.record import GameRecord, new_record
from distill.mcts.labeller import Labels

LabelGames: TypeAlias = Callable[[NDArray[np.intp], NDArray[np.intp], Bitboards, Bitboards], Labels]
"""(game, step, current, mask), (B,) each: positions, and which position of which game each is → complete labels."""


def play_games(
    label: LabelGames,
    current: Bitboards,
    mask: Bitboards,
    noise: NDArray[np.float64],
    noise_fraction: float,
    lanes: int,
) -> GameRecord:
    """Play G games on from the positions (current, mask), uint64 (G,), none of them over, `lanes` side by side.

    Args:
      noise: (G, S, 8), random numbers of `noisy_move`; a game ends by the rules or after S positions.
      noise_fraction: of the moves; 0 plays the labels.

    Raises OutputError where a labeller changes its number of votes.
    """
    games, steps = noise.shape[:2]
    record, length = new_record(current, mask, steps), np.zeros(games, np.intp)
    live, begun = np.arange(min(lanes, games)), lanes
    while len(live):
        step = length[live]
        current, mask = record.current[live, step], record.mask[live, step]
        labels = label(live, step, current, mask)
        assert labels.label is not None
        assert labels.votes is not None
        votes = labels.votes.shape[1]
        if not length.any():
            record = new_record(record.current[:, 0], record.mask[:, 0], steps, votes)
        elif votes != record.votes.shape[2]:
            raise OutputError(f"returned {votes} votes, but {record.votes.shape[2]} before")
        # Play the label, or a move near it.
        move = labels.label.astype(np.intp)
        if noise_fraction:
            draws = zip(move, noise[live, step], mask, strict=True)
            move = np.array([noisy_move(*draw, noise_fraction) for draw in draws])
        for name in ("votes", "label", "visits", "value"):
            getattr(record, name)[live, step] = getattr(labels, name)
        record.simulations[live, step] = labels.visits.sum(axis=1)
        record.move[live, step] = move
        # A game continues unless this move won it, filled the board or was the last one.
        current, mask, won = after_moves(current, mask, move)
        over = won | (mask == np.uint64(FULL_BOARD)) | (step + 1 == steps)
        length[live] += 1
        record.length[live[over]], record.result[live[over]] = length[live[over]], won[over]
        record.current[live[~over], step[~over] + 1] = current[~over]
        record.mask[live[~over], step[~over] + 1] = mask[~over]
        # Games that have not begun take the places of those that have ended.
        following = np.arange(begun, min(begun + over.sum(), games))
        live, begun = np.append(live[~over], following), begun + len(following)
    return record
