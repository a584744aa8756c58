"""`pillar` with twice as many features and blocks, the strongest network without search; 1,171,399 parameters.

It takes about six times as long as `pillar`. `experiments/large` says how one was trained.
"""

from __future__ import annotations

import keras

from distill.networks import pillar

FEATURES = 64
BLOCKS = 6
HIDDEN = 256


def build(
    value_head: bool = False, *, features: int = FEATURES, blocks: int = BLOCKS, hidden: int = HIDDEN
) -> keras.Model:
    """planes (B, 6, 7, 2) → logits (B, 7) and, where wanted, value (B,)."""
    return pillar.network("pillar-large", value_head, features, blocks, hidden)
