"""Whole games: a random opening, then each position is labelled and the label or a move near it is played, to the end.

In: the settings of a run and the numbers of games. Out: their rows. The built-in search labels them, or any `Labeller`.

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
from distill.games.settings import GamesSettings, OpeningMoves, RunSettings, opening_pairs
from distill.mcts import uct
from distill.mcts.labeller import Labels, check_labels
from distill.mcts.results import GameRecord, generator


def random_opening(allowed: OpeningMoves, seed: int, game: int) -> list[int]:
    """The columns of a game's random opening; an opening that ends the game is redrawn."""
    pairs = opening_pairs(allowed)
    fewest, most = pairs[game % len(pairs)]
    # The game's own generator: its opening does not depend on which other games are played.
    random = generator(seed, game, 0)
    while True:
        position, moves = rules.EMPTY, list[int]()
        for _ in range(random.integers(fewest, most + 1)):
            columns = rules.legal_columns(position)
            moves.append(columns[random.integers(len(columns))])
            position = rules.next_position(position, moves[-1])
            if rules.is_over(position):
                break
        else:
            return moves


def starts(settings: GamesSettings, games: Sequence[int]) -> tuple[rules.Bitboards, rules.Bitboards]:
    """The positions after the openings of games."""
    allowed, seed = settings.opening_moves, settings.seed
    return encoding.bitboards_of(rules.from_moves(random_opening(allowed, seed, game)) for game in games)


def play_games(settings: RunSettings, first: int, count: int) -> pa.Table:
    """The rows of games [first, first + count), in `schema.ROW`, sorted by (game_id, ply).

    Raises OutputError, which names the user's labeller, for labels that cannot be stored.
    """
    games, longest = np.arange(first, first + count), rules.CELLS - min(opening_pairs(settings.opening_moves))[0]
    plugin = settings.labeller
    labeller: Any = plugin.load() if plugin else None
    name = plugin.spec if plugin else ""

    def label(places: NDArray[np.intp], step: int, current: rules.Bitboards, mask: rules.Bitboards) -> Labels:
        seeds = np.array([(settings.seed, game, step) for game in games[places].tolist()], np.uint64)
        labels = call(labeller, name, encoding.boards(current, mask), seeds)
        return check_labels(labels, rules.legal_mask(mask))

    with outputs.named(name):
        record = uct.play(
            *starts(settings, games.tolist()), settings.search, seeds=settings.seed, games=games.tolist(),
            steps=longest, label=label if labeller else None,
        )  # fmt: skip
    return rows(record, np.arange(count), games)


def rows(record: GameRecord, places: NDArray[np.int64], game_ids: NDArray[np.int64]) -> pa.Table:
    """The rows of finished games in `schema.ROW`, by game and ply.

    Args:
      places: int64 (G,), the games' indices in the record.
      game_ids: int64 (G,), their numbers.
    """
    # One row for each position up to the end of its game.
    game, step = np.nonzero(np.arange(record.label.shape[1]) < record.length[places][:, None])
    place = places[game]
    names = ("current", "mask", "votes", "label", "visits", "simulations", "value", "move")
    columns = {name: getattr(record, name)[place, step] for name in names}
    plies_to_end = record.length[place] - 1 - step
    outcome = record.result[place] * (1 - 2 * (plies_to_end % 2))
    ply = np.bitwise_count(columns["mask"])
    return schema.table_of(columns | {"game_id": game_ids[game], "ply": ply, "outcome": outcome})
