"""95 % intervals of means, of paired differences, and of Elo ratings.

The unit is whatever is independent: a board graded in both orientations, an opening played from both
sides. Its value is the mean of its one or two trials, so a unit may be 0, ½ or 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Z = 1.959964
"""The 97.5 % point of the normal distribution."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean with its 95 % interval, over `units` independent units; NaN where there are none."""

    mean: float
    low: float
    high: float
    units: int


def share(values: ArrayLike, trials: int = 2) -> Estimate:
    """The mean of values in [0, 1], one a unit, each the mean of `trials` trials, with Wilson's interval.

    Wilson's interval needs a number of independent trials n. Units are independent and the trials inside one are
    not, so n is the number that explains the spread seen between units: n = p(1 − p) / (s² / units), where s² is the
    units' sample variance, and at most units · trials. A mean of 0 or 1 shows no spread; there n = units.

        (p + z²/2n ± z·sqrt(p(1 − p)/n + z²/4n²)) / (1 + z²/n)
    """
    units = np.asarray(values, np.float64)
    if len(units) == 0:
        return Estimate(mean=np.nan, low=np.nan, high=np.nan, units=0)
    p, n = float(units.mean()), float(len(units))
    # The spread between units tells how many independent trials they amount to.
    if 0 < p < 1 and len(units) > 1:
        n = min(p * (1 - p) * n / max(float(units.var(ddof=1)), 1e-12), n * trials)
    centre = p + Z**2 / (2 * n)
    spread = Z * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    low, high = (float((centre + side * spread) / (1 + Z**2 / n)) for side in (-1, 1))
    return Estimate(mean=p, low=min(max(low, 0.0), p), high=max(min(high, 1.0), p), units=len(units))


def difference(values: ArrayLike, others: ArrayLike) -> Estimate:
    """The mean of `values − others` over the same units, with the interval mean ± z·s/sqrt(units)."""
    gaps = np.asarray(values, np.float64) - np.asarray(others, np.float64)
    if len(gaps) == 0:
        return Estimate(mean=np.nan, low=np.nan, high=np.nan, units=0)
    mean = float(gaps.mean())
    spread = Z * float(gaps.std(ddof=1)) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.inf
    return Estimate(mean=mean, low=mean - spread, high=mean + spread, units=len(gaps))


ELO_STEPS = 1000
"""Steps of the ascent; the largest change is below a hundredth of a point long before."""


def elo(
    points: NDArray[np.float64], games: NDArray[np.float64], prior: NDArray[np.float64] | float = 0.5
) -> NDArray[np.float64]:
    """Ratings (..., K) of K players, mean 0, most likely under the Bradley-Terry model.

    The model: A scores 1 / (1 + 10^((B − A)/400)) against B, a draw is half a point each. Fitted by Hunter's (2004)
    minorise-maximise steps, γ_i ← W_i / Σ_j n_ij / (γ_i + γ_j).

    Args:
      points: (..., K, K), points of the row's player against the column's.
      games: (..., K, K), games between them; symmetric, 0 where two players did not meet.
      prior: points added to either side of every pair that met; without them a player that lost every game would
        have no finite rating.
    """
    met = games > 0
    extra = np.where(met, prior, 0.0)
    scored = (points + extra).sum(-1)
    played = games + extra + np.swapaxes(extra, -1, -2)
    # Minorise-maximise steps; strengths are only defined up to a factor, so their geometric mean stays 1.
    strength = np.ones(scored.shape)
    for _ in range(ELO_STEPS):
        strength = scored / (played / (strength[..., :, None] + strength[..., None, :])).sum(-1)
        strength = strength / np.exp(np.log(strength).mean(-1, keepdims=True))
    return 400 * np.log10(strength)


def elo_with_intervals(points: NDArray[np.float64], seed: int, draws: int = 500) -> list[Estimate]:
    """One rating a player, mean 0, with the 2.5 and 97.5 % points of the Bayesian bootstrap.

    A draw of it weighs every opening by Exp(1) and the half point of the prior by Gamma(½), which for two players and
    independent games is Jeffreys' interval of the score; so a player that won every game has an interval too.

    Args:
      points: (U, K, K), per opening the points of the row's player against the column's in their games from both
        sides, 0 to 2; NaN where they did not meet.
      seed, draws: of the bootstrap.
    """
    rng = np.random.default_rng(seed)
    met = ~np.isnan(points)
    scored, games = np.where(met, points, 0.0), 2.0 * met
    # Weigh openings at random, and fit the ratings again for each draw.
    weights = rng.standard_exponential((draws, len(points)))
    prior = rng.standard_gamma(0.5, (draws, *points.shape[1:]))
    ratings = elo(scored.sum(0), games.sum(0))
    resampled = elo(np.tensordot(weights, scored, 1), np.tensordot(weights, games, 1), prior)
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    return [
        Estimate(mean=float(rating), low=float(below), high=float(above), units=len(points))
        for rating, below, above in zip(ratings, low, high, strict=True)
    ]
