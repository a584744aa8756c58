"""95 % intervals of means, of paired differences, and of Elo ratings.

The unit is whatever is independent: a board graded in both orientations, an opening played from both sides, the rows
of one game. The first two have one value, the mean of their one or two trials, which may be 0, ½ or 1.
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


def share(values: ArrayLike, trials: int = 2, games: ArrayLike | None = None) -> Estimate:
    """The mean of values in [0, 1], each the mean of `trials` trials, with Wilson's interval.

    Wilson's interval needs a number of independent trials n. Units are independent and what is inside one is not, so n
    is the number that explains the spread seen between units: n = p(1 − p) / e², where e is the standard error of the
    mean, and at most the number of trials. A mean of 0 or 1 shows no spread; there n = units.

        (p + z²/2n ± z·sqrt(p(1 − p)/n + z²/4n²)) / (1 + z²/n)

    Args:
      values: one a unit, or one a row.
      games: of each row, its game, which is the unit.
    """
    shares = np.asarray(values, np.float64)
    if len(shares) == 0:
        return Estimate(mean=np.nan, low=np.nan, high=np.nan, units=0)
    p, (error, units) = float(shares.mean()), _standard_error(shares, games)
    n = float(units)
    # The spread between units tells how many independent trials they amount to.
    if 0 < p < 1 and units > 1:
        n = min(p * (1 - p) / max(error**2, 1e-12), len(shares) * trials)
    centre = p + Z**2 / (2 * n)
    spread = Z * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    low, high = (float((centre + side * spread) / (1 + Z**2 / n)) for side in (-1, 1))
    return Estimate(mean=p, low=min(max(low, 0.0), p), high=max(min(high, 1.0), p), units=units)


def difference(values: ArrayLike, others: ArrayLike, games: ArrayLike | None = None) -> Estimate:
    """The mean of `values − others`, of the same units or rows, with the interval mean ± z · standard error."""
    gaps = np.asarray(values, np.float64) - np.asarray(others, np.float64)
    if len(gaps) == 0:
        return Estimate(mean=np.nan, low=np.nan, high=np.nan, units=0)
    mean, (error, units) = float(gaps.mean()), _standard_error(gaps, games)
    return Estimate(mean=mean, low=mean - Z * error, high=mean + Z * error, units=units)


def _standard_error(values: NDArray[np.float64], games: ArrayLike | None) -> tuple[float, int]:
    """The standard error of the values' mean, infinite for one unit, and the number of independent units.

    e² = units / (units − 1) · Σ d² / len(values)², where d is a unit's sum of differences from the mean (Cameron and
    Miller 2015, clusters of unequal sizes).
    """
    gaps = values - values.mean()
    if games is not None:
        gaps = np.bincount(np.unique(games, return_inverse=True)[1], gaps)
    count = len(gaps)
    return (np.sqrt(count / (count - 1) * float(gaps @ gaps)) / len(values) if count > 1 else np.inf), count


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

    A draw of it weighs every opening, two games, by Exp(1), and a prior of half an opening to either side by Gamma(½).
    For two players and openings that are won or lost this is Jeffreys' interval of the share of openings; so a player
    that won every game has an interval too.

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
    prior = 2 * rng.standard_gamma(0.5, (draws, *points.shape[1:]))
    ratings = elo(scored.sum(0), games.sum(0))
    resampled = elo(np.tensordot(weights, scored, 1), np.tensordot(weights, games, 1), prior)
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    return [
        Estimate(mean=float(rating), low=float(below), high=float(above), units=len(points))
        for rating, below, above in zip(ratings, low, high, strict=True)
    ]
