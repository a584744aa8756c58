"""How far a run is, and the learning rate of its next step."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from distill.training.recipe import Recipe

WARM_UP = 0.05
"""Share of the steps, or of the time, in which a cosine schedule's learning rate first rises from zero."""
PLATEAU, PLATEAU_FACTOR = 3, 0.5
"""The plateau schedule multiplies the learning rate by this factor after so many evaluations without a better loss."""
STOP = 8
"""The plateau schedule stops after so many evaluations without a better validation loss."""


@dataclass(kw_only=True)
class State:
    """Progress of a run: with the variables of model and optimizer, everything that the next step depends on."""

    planned_steps: int
    """Decided once, at the start, so that a resumed run follows the same schedule."""
    step: int = 0
    stopped_early: bool = False
    history: list[dict[str, float]] = field(default_factory=list)
    """What each evaluation measured."""

    @property
    def finished(self) -> bool:
        """Whether no step is left."""
        return self.stopped_early or self.step >= self.planned_steps

    def steps_to_evaluation(self, every: int) -> range:
        """The steps from here to the next evaluation, which comes after `every` steps and after the last one."""
        return range(self.step, min(self.planned_steps, (self.step // every + 1) * every))


@dataclass(kw_only=True)
class ValidatedState(State):
    """Progress of a run whose best network is the one with the smallest loss on validation boards."""

    lr_factor: float = 1.0
    lr_lowered_at: int = 0
    """Evaluation after which a plateau last lowered the learning rate."""
    best_loss: float = math.inf
    best_evaluation: int = 0
    best_step: int = 0


def learning_rate(recipe: Recipe, state: ValidatedState, step: int) -> float:
    """The learning rate of a step until the next evaluation."""
    if recipe.schedule == "plateau":
        return recipe.lr * state.lr_factor
    # Rises linearly to the peak, then falls as a cosine to zero.
    rising = min(1.0, (step + 1) / max(1.0, WARM_UP * state.planned_steps))
    return recipe.lr * rising * (1 + math.cos(math.pi * step / state.planned_steps)) / 2


def after_evaluation(recipe: Recipe, state: ValidatedState) -> None:
    """Let the plateau schedule lower the rate or stop the run."""
    if recipe.schedule != "plateau":
        return
    evaluations = len(state.history)
    if evaluations - max(state.best_evaluation, state.lr_lowered_at) >= PLATEAU:
        state.lr_factor, state.lr_lowered_at = state.lr_factor * PLATEAU_FACTOR, evaluations
    state.stopped_early = evaluations - state.best_evaluation >= STOP
