"""What a PUCT search evaluates positions with: the `Evaluator` protocol, and evaluators made of others.

    def evaluator(boards):                             # knows nothing: every move alike, every position even
        return np.zeros((len(boards), 7), np.float32), np.zeros(len(boards), np.float32)

    results = puct.search(boards, evaluator, PuctSettings(simulations=100))

Inside, searches keep positions as bitboards. The package's own networks take those (`BitboardEvaluator`), and
`on_bitboards` adapts an `Evaluator`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.game import outputs
from distill.game.encoding import boards
from distill.game.mixing import GOLDEN, draw_by, splitmix64
from distill.game.rules import FULL_BOARD, Bitboards, after_moves, legal_mask

Evaluations: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32]]
BitboardEvaluator: TypeAlias = Callable[[Bitboards, Bitboards], Evaluations]
"""current and mask, uint64 (B,), to policy logits (B, 7) and values (B,)."""


class Evaluator(Protocol):
    """Evaluates positions for a search; any function of this form will do.

    It maps boards, int8 (B, 6, 7): row 0 on top, +1 the side to move, −1 the opponent, 0 empty, to policy logits,
    floats (B, 7), and values, floats (B,), in [−1, 1] for the side to move. The search ignores the logits of full
    columns. The evaluation of a board must not depend on the others in its batch.
    """

    def __call__(self, boards: NDArray[np.int8], /) -> tuple[NDArray[Any], NDArray[Any]]: ...


def on_bitboards(evaluator: Evaluator) -> BitboardEvaluator:
    """The evaluator on bitboards; a search checks its output."""
    return lambda current, mask: evaluator(boards(current, mask))


def by_rollouts(evaluate: BitboardEvaluator, seed: int = 0) -> BitboardEvaluator:
    """The same policy, but values from one rollout of each position, whose moves are drawn from this policy.

    As in “Connect 4 AI”. A rollout depends on (seed, position) alone. The whole batch is rolled out together, so it
    costs one evaluation a ply.
    """

    def evaluate_and_roll_out(current: Bitboards, mask: Bitboards) -> Evaluations:
        logits, _ = outputs.evaluation(evaluate(current, mask), mask)
        value = np.zeros(len(current), np.float32)
        live, policy, sign = np.arange(len(current)), logits, np.float32(1)
        random = splitmix64(current + mask + np.uint64(seed * GOLDEN % 2**64))
        # One ply of all rollouts at a time; finished ones leave the arrays.
        while len(live):
            masked = np.where(legal_mask(mask), policy.astype(np.float64), -np.inf)
            columns = draw_by(np.exp(masked - masked.max(1, keepdims=True)), random)
            current, mask, won = after_moves(current, mask, columns)
            value[live[won]] = sign
            unfinished = ~won & (mask != np.uint64(FULL_BOARD))
            live, current, mask = live[unfinished], current[unfinished], mask[unfinished]
            sign, random = -sign, splitmix64(random[unfinished] + np.uint64(GOLDEN))
            if len(live):
                policy, _ = outputs.evaluation(evaluate(current, mask), mask)
        return logits, value

    return evaluate_and_roll_out
