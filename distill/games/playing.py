"""Whole games: each position is labelled, the label or a move near it is played, until the game ends.

In: the settings of a run and the numbers of games. Out: their rows. The built-in search labels and plays in compiled
code (`mcts`). `play_labelled` is the same loop in Python for any `Labeller`; with the search as one it plays the same
games.

Dimensions: G games, S positions of a game at most, A = 7 columns, K votes of a position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill.common import OutputError
from distill.common.plugins import call
from distill.game import encoding, outputs, rules
from distill.games import schema
from distill.games.runs import RunSettings, opening, opening_pairs
from distill.mcts import uct
from distill.mcts.engine.noise import noisy_move
from distill.mcts.engine.record import GameRecord, new_record
from distill.mcts.labeller import Labeller, check_labels


def play_games(settings: RunSettings, first: int, count: int, labeller: Labeller | None = None) -> pa.Table:
    """The rows of games [first, first + count), in `schema.ROW`, sorted by (game_id, ply).

    `labeller` labels instead of the built-in search.
    """
    games = list(range(first, first + count))
    if labeller:
        record = play_labelled(labeller, settings.labeller or "the labeller", settings, games)
    else:
        record = uct.play_games(
            *starts(settings, games),
            settings.search,
            seeds=settings.seed,
            games=games,
            steps=longest(settings),
        )
    return rows(record, np.arange(count), np.array(games))


def longest(settings: RunSettings) -> int:
    """S: most labelled positions of a game."""
    return rules.CELLS - min(fewest for fewest, _ in opening_pairs(settings.opening_moves))


def starts(settings: Any, games: Sequence[int]) -> tuple[rules.Bitboards, rules.Bitboards]:
    """The positions after the openings of games."""
    return encoding.bitboards_of(opening(settings, game) for game in games)


def play_labelled(labeller: Labeller, name: str, settings: RunSettings, games: Sequence[int]) -> GameRecord:
    """Play games side by side with any labeller.

    Args:
      name: of the labeller, for errors.
      games: numbers of the games, which decide their openings and their noise.

    Raises OutputError, which names the labeller, for labels that cannot be stored.
    """
    current, mask = starts(settings, games)
    number, steps = np.array(games, np.uint64), longest(settings)
    record, live, search = None, np.arange(len(games)), settings.search
    noise = np.stack([uct.draw_moves(settings.seed, game, steps, search) for game in games])
    for step in range(steps):
        # Label the positions of all games that have not ended.
        own, stones = current[live], mask[live]
        seeds = np.stack([np.full(len(live), n, np.uint64) for n in (settings.seed, 0, step)], axis=1)
        seeds[:, 1] = number[live]
        # The labeller may use its boards as scratch, so nothing is computed from them afterwards.
        labels = call(labeller, name, encoding.boards(own, stones), seeds)
        with outputs.named(name):
            found = check_labels(labels, rules.legal_mask(stones))
        assert found.label is not None
        assert found.votes is not None
        if record is None:
            record = new_record(current, mask, steps, found.votes.shape[1])
        elif found.votes.shape[1] != record.votes.shape[2]:
            raise OutputError(f"returned {found.votes.shape[1]} votes, but {record.votes.shape[2]} before", name)
        # Play the label, or a move near it.
        move = found.label.astype(np.intp)
        if search.noise_at == "move" and search.noise_fraction:
            draws = zip(move, noise[live, step], stones, strict=True)
            move = np.array([noisy_move(*each, search.noise_fraction) for each in draws])
        stone = rules.landing(stones)[np.arange(len(live)), move]
        record.current[live, step], record.mask[live, step] = own, stones
        for field in ("votes", "label", "visits", "value"):
            getattr(record, field)[live, step] = getattr(found, field)
        record.simulations[live, step] = found.visits.sum(axis=1)
        record.move[live, step] = move
        record.length[live] = step + 1
        # A game continues unless this move won it or filled the board.
        won, after = rules.has_four(own | stone), stones | stone
        record.result[live] = won
        current[live], mask[live] = own ^ stones, after
        live = live[~won & (after != np.uint64(rules.FULL_BOARD))]
        if not len(live):
            break
    assert record is not None
    return record


def try_labeller(labeller: Labeller, name: str) -> None:
    """Raise UserError or OutputError if a user's labeller fails, or returns labels that cannot be stored."""
    boards = encoding.boards(*outputs.TRIAL)
    labels = call(labeller, name, boards.copy(), np.zeros((len(boards), 3), np.uint64))
    with outputs.named(name):
        check_labels(labels, boards[:, 0] == 0)


def rows(record: GameRecord, places: NDArray[np.int64], game_ids: NDArray[np.int64]) -> pa.Table:
    """The rows of finished games in `schema.ROW`, by game and ply.

    Args:
      places: int64 (G,), the games' indices in the record.
      game_ids: int64 (G,), their numbers.
    """
    # One row for each position up to the end of its game.
    game, step = np.nonzero(np.arange(record.label.shape[1]) < record.length[places][:, None])
    place = places[game]
    plies_to_end = record.length[place] - 1 - step
    mask = record.mask[place, step]
    columns = {
        "game_id": game_ids[game],
        "ply": np.bitwise_count(mask),
        "current": record.current[place, step],
        "mask": mask,
        "votes": record.votes[place, step],
        "label": record.label[place, step],
        "visits": record.visits[place, step],
        "simulations": record.simulations[place, step],
        "value": record.value[place, step],
        "move": record.move[place, step],
        "outcome": record.result[place] * (1 - 2 * (plies_to_end % 2)),
    }
    return schema.table_of(columns)
