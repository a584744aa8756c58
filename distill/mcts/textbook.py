"""The textbook's UCT as a labeller: `generate --labeller distill.mcts.textbook:label`.

A run's identity has the hash of the source of the game and the searches (`common/plugins.py`), on which labels depend.
"""

from __future__ import annotations

from functools import partial

from distill.common import sources
from distill.mcts import reference
from distill.mcts.settings import UctSettings

label = partial(reference.label_boards, settings=UctSettings(simulations=100))
"""Label by three votes of 100 simulations each; exploration and noise are those of the teacher by default.

The labels are those that `uct.search` finds with the same random numbers, hundreds of times slower.
"""
label.source_files = sources.of_packages("game", "mcts")  # type: ignore[attr-defined]
