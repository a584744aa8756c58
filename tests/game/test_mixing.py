"""Numbers made of numbers (`game/mixing.py`): outputs are those that SplitMix64's reference implementation prints."""

import numpy as np

from distill.game.mixing import GOLDEN, splitmix64


def test_outputs_are_the_published_ones():
    # The first five outputs for seed 1234567, as the reference implementation prints them.
    outputs = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    states = [(1234567 + step * GOLDEN) % 2**64 for step in range(5)]
    assert splitmix64(np.array(states, np.uint64)).tolist() == outputs
