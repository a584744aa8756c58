"""Leaves valued by playouts whose moves the network chooses, as in “Connect 4 AI”, around a `predict`.

    record = play(current, mask, settings, by_playouts(predict, seed=1))

The leaves of a batch are played out side by side, so a batch costs one call of the network a ply.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distill.game import outputs
from distill.game.mixing import GOLDEN, mix
from distill.game.rules import FULL_BOARD, has_four, landing, legal_mask
from distill.mcts.puct import Bitboards, Evaluate


def by_playouts(predict: Evaluate, seed: int = 0) -> Evaluate:
    """The same priors, but values from one playout of each leaf whose moves are drawn from the policy.

    A playout's draws are a function of (seed, position), so a leaf's value is too. The whole batch is played out
    together.
    """

    def predict_and_play_out(current: Bitboards, mask: Bitboards) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        logits, _ = outputs.evaluation(predict(current, mask), mask)
        value = np.zeros(len(current), np.float32)
        live, own, stones, policy, sign = np.arange(len(current)), current, mask, logits, np.float32(1)
        random = mix(current + mask + np.uint64(seed * GOLDEN % 2**64))
        while len(live):
            column = _drawn(policy, stones, random)
            cell = landing(stones)[np.arange(len(stones)), column]
            won = has_four(own | cell)
            value[live[won]] = sign
            going = ~won & (stones | cell != np.uint64(FULL_BOARD))
            live, own, stones = live[going], (own ^ stones)[going], (stones | cell)[going]
            sign, random = -sign, mix(random[going] + np.uint64(GOLDEN))
            if len(live):
                policy, _ = outputs.evaluation(predict(own, stones), stones)
        return logits, value

    return predict_and_play_out


def _drawn(logits: NDArray[np.float32], mask: Bitboards, random: Bitboards) -> NDArray[np.int64]:
    """A column for each board, drawn from the softmax of its logits over legal columns."""
    allowed = legal_mask(mask)
    masked = np.where(allowed, logits.astype(np.float64), -np.inf)
    below = np.exp(masked - masked.max(1, keepdims=True)).cumsum(1)
    share = (random >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (below > share[:, None] * below[:, -1:]).argmax(1)
