"""Tables and batches for the tests of training."""

import numpy as np

from distill.datasets import batching
from distill.game import encoding
from tests.network_helpers import played_boards


def two_boards() -> batching.Examples:
    """Two empty boards with given visits, labels and values, which occurred once and nine times."""
    return batching.Examples(
        current=np.zeros(2, np.uint64),
        mask=np.zeros(2, np.uint64),
        visits=np.array([[0, 0, 1, 3, 0, 0, 0], [5, 0, 0, 0, 0, 0, 5]]),
        label=np.array([2, 6], np.int8),
        value=np.array([0.5, -1], np.float32),
        outcome=np.array([1, 0], np.float32),
        count=np.array([1, 9], np.int32),
    )


def random_examples(number: int) -> batching.Examples:
    """Boards of random play with random labels, all columns visited that are open."""
    boards, rng = played_boards(number), np.random.default_rng(1)
    current, mask = encoding.bitboards(boards)
    visits = rng.integers(1, 100, (number, 7)) * (boards[:, 0] == 0)
    return batching.Examples(
        current=current,
        mask=mask,
        visits=visits,
        label=visits.argmax(axis=1).astype(np.int8),
        value=rng.uniform(-1, 1, number).astype(np.float32),
        outcome=rng.integers(-1, 2, number).astype(np.float32),
        count=np.ones(number, np.int32),
    )
