"""The larger network that ships knows a win and a threat."""

from pathlib import Path

import keras
import numpy as np

from distill.game import encoding
from distill.game.rules import from_moves
from distill.networks import heads


def test_the_kept_network_takes_a_win_and_blocks_a_threat():
    core = keras.models.load_model(Path("models/reference/pillar-large/best.keras"), compile=False)
    for moves, column in (("112233", 3), ("121374", 4)):
        position = from_moves(moves)
        board = encoding.boards(np.array([position.current], np.uint64), np.array([position.mask], np.uint64))
        assert np.argmax(core(heads.encode(core, board))["logits"]) == column, moves
