"""Whole games: each position is labelled, the label or a move near it is played, until the game ends.

In: the settings of a run and the numbers of games. Out: their rows. The built-in search labels them, or any `Labeller`
(`play_labelled`); with the search as one it plays the same games.

Dimensions: G games, S positions of a game at most, A = 7 columns, K votes of a position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from distill.common.plugins import call
from distill.game import encoding, outputs, rules
from distill.games import schema
from distill.games.runs import RunSettings, opening, opening_pairs
from distill.mcts import labelled_games, uct
from distill.mcts.engine.record import GameRecord
from distill.mcts.labeller import Labeller, Labels, check_labels

Places = NDArray[np.intp]


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
    number, steps, search = np.array(games, np.uint64), longest(settings), settings.search

    def label(game: Places, step: Places, current: rules.Bitboards, mask: rules.Bitboards) -> Labels:
        seeds = np.stack([np.full(len(game), settings.seed, np.uint64), number[game], step.astype(np.uint64)], axis=1)
        labels = call(labeller, name, encoding.boards(current, mask), seeds)
        return check_labels(labels, rules.legal_mask(mask))

    noise = np.stack([uct.draw_moves(settings.seed, game, steps, search) for game in games])
    with outputs.named(name):
        return labelled_games.play_games(label, *starts(settings, games), noise, search.move_noise, len(games))


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
