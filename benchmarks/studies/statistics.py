"""Statistics over a few seeds: the interquartile mean with its bootstrap interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import bootstrap, trim_mean

LEVEL = 0.95  # confidence of an interval
RESAMPLES = 5000
SPREAD = 1.96  # standard errors on each side of a mean that give this level


def interquartile_mean(values: np.ndarray, axis: int = -1) -> Any:
    """Mean of the middle half: a quarter of the values, rounded down, is trimmed at each end.

    >>> float(interquartile_mean(np.array([1.0, 2.0, 3.0, 4.0, 100.0])))
    3.0
    """
    return trim_mean(values, 0.25, axis=axis)


def _interval(statistic: Callable[..., Any], *groups: np.ndarray) -> dict[str, float]:
    """Percentile bootstrap interval of a statistic of independent groups; one value has no spread to resample."""
    if all(len(group) == 1 for group in groups):
        low = high = statistic(*groups)
    else:
        rng = np.random.default_rng([len(group) for group in groups])
        found = bootstrap(
            groups, statistic, n_resamples=RESAMPLES, confidence_level=LEVEL, method="percentile", rng=rng
        )
        low, high = found.confidence_interval
    return {"low": float(low), "high": float(high)}


def _clear(interval: dict[str, float]) -> dict[str, bool]:
    """A difference is clear if its interval excludes zero."""
    return {"clear": interval["low"] > 0 or interval["high"] < 0}


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Interquartile mean of one figure over seeds, with its bootstrap interval and the values themselves."""
    array = np.array(values, float)
    middle, mean = float(interquartile_mean(array)), float(array.mean())
    interval = _interval(interquartile_mean, array)
    return {"iqm": middle} | interval | {"mean": mean, "seeds": len(array), "values": array.tolist()}


def of_games(mean: float, standard_error: float) -> dict[str, Any]:
    """The same form for a defender that was not trained here: the normal interval of its mean over games."""
    half = SPREAD * standard_error
    return {"iqm": mean, "low": mean - half, "high": mean + half, "mean": mean, "seeds": 1, "values": [mean]}


def paired(left: Sequence[float], right: Sequence[float]) -> dict[str, Any]:
    """Mean difference between two groups whose seeds are paired, with its bootstrap interval."""
    apart = np.array(left, float) - np.array(right, float)
    interval = _interval(np.mean, apart)
    return {"difference": float(apart.mean())} | interval | _clear(interval)


def difference(left: Sequence[float], right: Sequence[float]) -> dict[str, Any]:
    """Interquartile mean of one group of seeds minus that of another, with its bootstrap interval."""

    def statistic(a: np.ndarray, b: np.ndarray, axis: int = -1) -> Any:
        return interquartile_mean(a, axis) - interquartile_mean(b, axis)

    groups = np.array(left, float), np.array(right, float)
    interval = _interval(statistic, *groups)
    return {"difference": float(statistic(*groups))} | interval | _clear(interval)
