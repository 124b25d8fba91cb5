"""What a few seeds can tell: the interquartile mean and its bootstrap interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

RESAMPLES = 5000
LEVEL = 95  # per cent of an interval
SPREAD = 1.96  # deviations of a normal distribution that hold as much


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """Mean of the middle half along the last axis: a quarter of the values is left out at each end, rounded down.

    >>> float(interquartile_mean(np.array([1.0, 2.0, 3.0, 4.0, 100.0])))
    3.0
    """
    cut = values.shape[-1] // 4
    middle: np.ndarray = np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut].mean(axis=-1)
    return middle


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Interquartile mean of some seeds' figures, with its bootstrap interval; the figures are kept."""
    array = np.array(values, float)
    generator = np.random.default_rng(len(array))
    resampled = interquartile_mean(array[generator.integers(len(array), size=(RESAMPLES, len(array)))])
    low, high = np.percentile(resampled, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return {
        "iqm": float(interquartile_mean(array)),
        "low": float(low),
        "high": float(high),
        "mean": float(array.mean()),
        "seeds": len(array),
        "values": array.tolist(),
    }


def of_games(mean: float, standard_error: float) -> dict[str, Any]:
    """The same form for a defender that was not trained here: the interval is that of its games."""
    apart = SPREAD * standard_error
    return {"iqm": mean, "low": mean - apart, "high": mean + apart, "mean": mean, "seeds": 1, "values": [mean]}


def paired(left: Sequence[float], right: Sequence[float]) -> dict[str, Any]:
    """Mean difference between two groups whose seeds belong together, with its bootstrap interval."""
    apart = np.array(left, float) - np.array(right, float)
    generator = np.random.default_rng(len(apart))
    resampled = apart[generator.integers(len(apart), size=(RESAMPLES, len(apart)))].mean(axis=1)
    return _interval(float(apart.mean()), resampled)


def difference(left: Sequence[float], right: Sequence[float]) -> dict[str, Any]:
    """Interquartile mean of one group of seeds less that of another, with its bootstrap interval."""
    a, b = np.array(left, float), np.array(right, float)
    generator = np.random.default_rng([len(a), len(b)])
    apart = [
        interquartile_mean(values[generator.integers(len(values), size=(RESAMPLES, len(values)))]) for values in (a, b)
    ]
    return _interval(float(interquartile_mean(a) - interquartile_mean(b)), apart[0] - apart[1])


def _interval(value: float, resampled: np.ndarray) -> dict[str, Any]:
    low, high = np.percentile(resampled, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return {"difference": value, "low": float(low), "high": float(high), "clear": bool(low > 0 or high < 0)}
