"""Upper bounds on the tails of distributions, as logarithms, without tables or numerical integration."""

from __future__ import annotations

import math


def log_binomial_tail(successes: int, trials: int, probability: float) -> float:
    """Return a bound on the logarithm of P(X >= successes) for `trials` independent trials; 0 up to the mean.

    Chernoff's bound in the form of Hoeffding (JASA 1963, theorem 1): exp(-n KL(k/n || p)).
    """
    if trials <= 0 or successes <= trials * probability:
        return 0.0
    share = successes / trials
    divergence = share * math.log(share / probability)
    if share < 1:
        divergence += (1 - share) * math.log((1 - share) / (1 - probability))
    return -trials * divergence


def log_poisson_tail(events: int, mean: float) -> float:
    """Return a bound on the logarithm of P(X >= events) (Chernoff); 0 up to the mean."""
    if events <= mean:
        return 0.0
    return events - mean - events * math.log(events / mean)


def log_normal_tail(deviations: float) -> float:
    """Return a bound on the logarithm of P(Z >= deviations) of a standard normal variable (Chernoff); 0 up to 0."""
    return 0.0 if deviations <= 0 else -deviations * deviations / 2
