"""How long a run is, and the learning rate of each step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from distill.training.recipe import Recipe

if TYPE_CHECKING:
    from distill.training.loop import State

WARM_UP = 0.05
"""Share of the steps in which a cosine schedule's learning rate first rises from zero."""
PLATEAU, PLATEAU_FACTOR = 3, 0.5
"""The plateau schedule multiplies the learning rate by this factor after so many evaluations without a better loss."""
STOP = 8
"""The plateau schedule stops after so many evaluations without a better validation loss."""


def learning_rate(recipe: Recipe, state: State) -> float:
    """The learning rate of the next step."""
    if recipe.schedule == "plateau":
        return recipe.lr * state.lr_factor
    return cosine(recipe.lr, state.step, state.planned_steps)


def cosine(peak: float, step: int, steps: int) -> float:
    """The learning rate of step number `step`, from 0: rises linearly to `peak`, then falls as a cosine to zero."""
    rising = min(1.0, (step + 1) / max(1.0, WARM_UP * steps))
    return peak * rising * (1 + math.cos(math.pi * step / steps)) / 2


def after_evaluation(recipe: Recipe, state: State) -> None:
    """Let the plateau schedule lower the rate or stop the run."""
    if recipe.schedule != "plateau":
        return
    if state.evaluations - max(state.best_evaluation, state.lr_lowered_at) >= PLATEAU:
        state.lr_factor, state.lr_lowered_at = state.lr_factor * PLATEAU_FACTOR, state.evaluations
    state.stopped_early = state.evaluations - state.best_evaluation >= STOP
