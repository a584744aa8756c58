"""`pillar` without the planes that follow from the rules; 182,087 parameters, 190,408 with a value head."""

from __future__ import annotations

import keras

from distill.networks import pillar


def build(
    value_head: bool = False,
    *,
    features: int = pillar.FEATURES,
    blocks: int = pillar.BLOCKS,
    hidden: int = pillar.HIDDEN,
) -> keras.Model:
    """planes (B, 6, 7, 2) → logits (B, 7) and, where wanted, value (B,)."""
    return pillar.network("pillar-plain", value_head, features, blocks, hidden, with_lines=False)
