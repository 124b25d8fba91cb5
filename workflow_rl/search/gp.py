"""A Gaussian process on orders: predicted values, their uncertainty, and the weights of the pairs of items.

Notation: an order is a tuple of items, highest priority first; its features are one number per pair of items (in the
order of ``items``), 1 if the first of the pair comes earlier, else 0.

    y_i = f(order_i) + t_i + e_i        f ~ GP(m, s^2 k),  t ~ N(0, training noise),  e_i ~ N(0, standard error_i^2)
    k(a, b) = exp(-sum over pairs of w_pair [a and b disagree on the pair])              (Mallows kernel)

m, s, the w and the training noise maximise the posterior density (MAP). Values are centred and scaled before the fit,
so the priors hold for any unit. Orders that were observed several times are several rows: for a GP that is the same as
pooling them, and their spread determines the training noise.

BoTorch fits the parameters. All predictions then use one factorisation of the covariance of the observations, which is
kept: pending orders add rows to it, and other values of the same orders do not change it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any

import numpy as np
import torch
from botorch.exceptions.warnings import InputDataWarning, OptimizationWarning
from botorch.models import SingleTaskGP
from botorch.optim.fit import fit_gpytorch_mll_scipy
from gpytorch.constraints import GreaterThan, Positive
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from gpytorch.settings import cholesky_max_tries
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NotPSDError
from linear_operator.utils.warnings import NumericalWarning

Order = tuple[str, ...]

MOST_SWAPS = 120  # neighbouring swaps over which the effect of a pair is averaged; all there are for up to 6 items
ROWS = 4096  # orders predicted at once
MOST_FITTED = 500  # observations from which weights and noise are learned; all of them count for what is predicted
LEAST_NOISE, LEAST_KNOWN_NOISE = 1e-8, 1e-6  # variances of scaled values, learned and known
FIRST_NOISE = 0.1  # variance of the training noise before anything was seen
SURPRISE = 3.0  # deviations below the prediction of all other values, from which a value is doubted
EXTREMES = (-20.0, 20.0)  # of the mean and of the logarithms of the others, where a fit without bounds fails
TRIES = 9  # of a factorisation that rounding spoils: the diagonal grows by 1e-8, then by ten times as much each time
UNKNOWN_ERROR = 0.1  # standard error of pending orders before anything was seen, of scaled values


def features(orders: Sequence[Order], items: Order) -> torch.Tensor:
    """Features of orders; (n, n_pairs) of 0 and 1.

    >>> features([("b", "a", "c")], ("a", "b", "c")).tolist()  # pairs ab, ac, bc
    [[0.0, 1.0, 1.0]]
    """
    number = {item: i for i, item in enumerate(items)}
    ranks = np.argsort([[number[item] for item in order] for order in orders], axis=1)
    first, second = np.array(list(combinations(range(len(items)), 2))).T
    return torch.from_numpy((ranks[:, first] < ranks[:, second]).astype(np.float64))


class MallowsKernel(Kernel):  # type: ignore[misc]
    """k(a, b) = exp(-sum_p w_p |a_p - b_p|) on features of orders; positive definite, being a product of such.

    The prior of each weight is log-normal: without evidence a weight stays near the small mode.

    Args:
        n_pairs: number of pairs of items.
    """

    def __init__(self, n_pairs: int) -> None:
        super().__init__()
        self.register_parameter("raw_weights", torch.nn.Parameter(torch.zeros(n_pairs, dtype=torch.float64)))
        self.register_constraint("raw_weights", Positive(torch.exp, torch.log))
        self.register_prior("weights_prior", LogNormalPrior(-math.log(n_pairs), 1.0), lambda module: module.weights)
        self.initialize(raw_weights=torch.full((n_pairs,), -math.log(n_pairs), dtype=torch.float64))

    @property
    def weights(self) -> torch.Tensor:
        """The weights; (n_pairs,)."""
        weights: torch.Tensor = self.raw_weights_constraint.transform(self.raw_weights)
        return weights

    def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False, **_: Any) -> torch.Tensor:
        """Kernel of features (..., n, n_pairs) and (..., m, n_pairs): (..., n, m), or (..., n) if ``diag``."""
        if diag:
            return torch.exp(-((x1 - x2).abs() * self.weights).sum(-1))
        weighted = x1 * self.weights
        both = weighted @ x2.transpose(-1, -2)  # of 0 and 1: |a - b| = a + b - 2ab
        distance = weighted.sum(-1)[..., :, None] + (x2 * self.weights).sum(-1)[..., None, :] - 2 * both
        return torch.exp(-distance)


@dataclass(frozen=True)
class _Seen:
    """The observations.

    Features x (n, n_pairs), the Cholesky factor of their covariance with noise (n, n), and the solution (n,) of
    covariance * solution = values - mean.
    """

    x: torch.Tensor
    factor: torch.Tensor
    solution: torch.Tensor


class OrderGP:
    """The process conditioned on observations.

    >>> gp = OrderGP(("a", "b", "c"), [("a", "b", "c"), ("b", "a", "c"), ("a", "c", "b")], [1.0, 0.0, 1.0], [0.1] * 3)
    >>> mean, sigma = gp.predict([("c", "a", "b"), ("c", "b", "a")])
    >>> bool(mean[0] > mean[1])
    True

    Args:
        items: the items to be ordered.
        orders: the observed orders.
        values: the value of each; (n,).
        errors: the standard error of each value; (n,).
    """

    def __init__(self, items: Order, orders: Sequence[Order], values: Sequence[float], errors: Sequence[float]) -> None:
        self.items, self.orders = tuple(items), list(orders)
        self.values, self.errors = np.array(values, float), np.array(errors, float)
        self.centre = float(self.values.mean()) if len(orders) else 0.0
        spread = float(self.values.std(ddof=1)) if len(orders) > 1 else 0.0
        self.scale = max(spread, float(self.errors.mean()) if len(orders) else 0.0) or 1.0
        n_pairs = math.comb(len(self.items), 2)
        self._kernel = ScaleKernel(MallowsKernel(n_pairs), outputscale_prior=LogNormalPrior(0.7, 1.0)).double()
        self._noise, self._mean = FIRST_NOISE, 0.0  # variance of the training noise, and m; both of scaled values
        if orders:
            self._fit()
        self._seen = self._factorise()

    def _fit(self) -> None:
        """Learns the kernel, the training noise and the mean."""
        some = np.unique(np.linspace(0, len(self.orders) - 1, MOST_FITTED).round().astype(int))
        x = features([self.orders[i] for i in some], self.items)
        y = torch.from_numpy((self.values[some] - self.centre) / self.scale)[:, None]
        likelihood = FixedNoiseGaussianLikelihood(
            noise=self._known_noise()[some], learn_additional_noise=True, noise_prior=LogNormalPrior(-2.3, 1.5),
            noise_constraint=GreaterThan(LEAST_NOISE, torch.exp, torch.log, FIRST_NOISE),
        ).double()  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputDataWarning)  # scaled by us, in a way that knows the known noise
            # a line search that ends early leaves good values; retries from random ones would not be repeatable
            warnings.simplefilter("ignore", OptimizationWarning)
            warnings.simplefilter("ignore", NumericalWarning)  # where the optimiser tries extreme parameters
            model = SingleTaskGP(x, y, likelihood=likelihood, covar_module=self._kernel, outcome_transform=None)
            self._kernel.initialize(outputscale=1.0)
            mll = ExactMarginalLogLikelihood(model.likelihood, model).train()
            start = {name: value.clone() for name, value in mll.state_dict().items()}
            try:
                fit_gpytorch_mll_scipy(mll)
            except NotPSDError:  # a step of the line search went too far
                mll.load_state_dict(start)
                with cholesky_max_tries(TRIES):
                    fit_gpytorch_mll_scipy(mll, bounds={name: EXTREMES for name, _ in mll.named_parameters()})
        self._noise, self._mean = float(likelihood.second_noise.detach()), float(model.mean_module.constant.detach())

    def _known_noise(self) -> torch.Tensor:
        return torch.from_numpy((self.errors / self.scale) ** 2).clamp_min(LEAST_KNOWN_NOISE)

    def _factorise(self) -> _Seen:
        empty = torch.zeros((0, math.comb(len(self.items), 2))).double()
        x = features(self.orders, self.items) if self.orders else empty
        covariance = self._covariance(x, x) + torch.diag(self._known_noise() + self._noise)
        return self._solved(_Seen(x, _factor_of(covariance), torch.zeros(len(x)).double()))

    def _solved(self, seen: _Seen) -> _Seen:
        """The observations with the solution for these values."""
        y = torch.from_numpy((self.values - self.centre) / self.scale) - self._mean
        return replace(seen, solution=torch.cholesky_solve(y[:, None], seen.factor)[:, 0])

    def _covariance(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            covariance: torch.Tensor = self._kernel.outputscale * self._kernel.base_kernel(x, other).to_dense()
        return covariance

    @property
    def weights(self) -> np.ndarray:
        """Weights of the pairs, in the order of ``combinations(items, 2)``; (n_pairs,)."""
        weights: np.ndarray = self._kernel.base_kernel.weights.detach().numpy().copy()
        return weights

    @property
    def training_noise(self) -> float:
        """Learned standard deviation between trainings beyond the known standard errors."""
        return math.sqrt(self._noise) * self.scale if self.orders else 0.0

    def with_pending(self, pending: Sequence[Order]) -> OrderGP:
        """The process if ``pending`` orders have their predicted values: the same means, smaller deviations there."""
        if not pending:
            return self
        seen, x = self._seen, features(pending, self.items)
        below = torch.linalg.solve_triangular(seen.factor, self._covariance(seen.x, x), upper=False).T
        corner = self._covariance(x, x) + self._pending_noise() * torch.eye(len(x)).double() - below @ below.T
        factor = torch.zeros((len(seen.x) + len(x),) * 2).double()
        factor[: len(seen.x), : len(seen.x)] = seen.factor
        factor[len(seen.x) :, : len(seen.x)] = below
        factor[len(seen.x) :, len(seen.x) :] = _factor_of(corner)
        solution = torch.cat([seen.solution, torch.zeros(len(x)).double()])
        return self._with(_Seen(torch.cat([seen.x, x]), factor, solution))

    def _pending_noise(self) -> float:
        """Variance of the value that a pending order will have, of scaled values."""
        error = float(self.errors.mean()) if len(self.errors) else UNKNOWN_ERROR * self.scale
        return max((error / self.scale) ** 2, LEAST_KNOWN_NOISE) + self._noise

    def with_values(self, values: np.ndarray) -> OrderGP:
        """The process with the same parameters, conditioned on other values of the same orders."""
        other = self._with(self._seen)
        other.values = np.array(values, float)
        other._seen = other._solved(self._seen)
        return other

    def _with(self, seen: _Seen) -> OrderGP:
        """The process with the same parameters, conditioned on other observations."""
        other = object.__new__(OrderGP)
        other.__dict__ |= self.__dict__ | {"_seen": seen}
        return other

    def predict(self, orders: Sequence[Order] | torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of f at orders or at their features, in the units of the values; (n,) each."""
        x = orders if isinstance(orders, torch.Tensor) else features(orders, self.items)
        means, variances = [], []
        for start in range(0, len(x), ROWS):
            across = self._covariance(self._seen.x, x[start : start + ROWS])
            means.append(self._seen.solution @ across)
            explained = torch.linalg.solve_triangular(self._seen.factor, across, upper=False).square_().sum(0)
            variances.append(self._kernel.outputscale.detach() - explained)
        mean, variance = (torch.cat(parts).numpy() for parts in (means, variances))
        return self.centre + self.scale * (self._mean + mean), self.scale * np.sqrt(np.maximum(variance, 0.0))

    def means_seen(self) -> np.ndarray:
        """Means of f at the observed orders, without a prediction: values - noise * solution; (n,)."""
        noise = (self._known_noise() + self._noise).numpy()
        return np.asarray(self.values - self.scale * noise * self._seen.solution.numpy()[: len(noise)])

    def surprises(self) -> np.ndarray:
        """How far each value lies above what all other values predict, in standard deviations; (n,)."""
        inverse = torch.cholesky_inverse(self._seen.factor)
        return (self._seen.solution / inverse.diagonal().sqrt()).numpy()

    def doubtful(self) -> list[Order]:
        """Orders of which one value far below the prediction of the others is known, the most surprising first."""
        if not 2 < len(self.orders) <= MOST_FITTED:
            return []
        found = sorted((float(z), order) for z, order in zip(self.surprises(), self.orders, strict=True))
        return [order for z, order in found if z < -SURPRISE and self.orders.count(order) == 1]

    def failed(self) -> np.ndarray:
        """Which values are those of failed trainings; (n,) bool.

        A training may end far below what its order allows. If a surprisingly low value is not confirmed by another
        evaluation of the same order, it is not believed. If it is confirmed, each of the two explains the other.
        """
        best: dict[Order, float] = {}
        for order, value in zip(self.orders, self.values, strict=True):
            best[order] = max(value, best.get(order, -math.inf))
        lower = np.array([v < best[order] for order, v in zip(self.orders, self.values, strict=True)], bool)
        if not lower.any() or len(self.orders) > MOST_FITTED:
            return np.zeros(len(self.orders), bool)
        return lower & (self.surprises() < -SURPRISE)

    def upper_bound(self, orders: Sequence[Order] | torch.Tensor, beta: float) -> np.ndarray:
        """Mean + beta * sigma; (n,)."""
        mean, sigma = self.predict(orders)
        return np.asarray(mean + beta * sigma)

    def over(self, x: torch.Tensor, most: int) -> Candidates:
        """The process on some orders, given by their features; up to ``most`` of them will become pending."""
        across = self._covariance(self._seen.x, x)
        explained = torch.empty((len(across) + most, len(x))).double()
        explained[: len(across)] = torch.linalg.solve_triangular(self._seen.factor, across, upper=False)
        mean = self._mean + self._seen.solution @ across
        variance = self._kernel.outputscale.detach() - explained[: len(across)].square().sum(0)
        return Candidates(self, x, self.centre + self.scale * mean.numpy(), variance, explained, len(across))

    def contrast(self, orders: Sequence[Order], weights: np.ndarray) -> tuple[float, float]:
        """Mean and standard deviation of ``sum(weights * f(orders))``."""
        x = features(orders, self.items)
        across = self._covariance(self._seen.x, x)
        explained = torch.linalg.solve_triangular(self._seen.factor, across, upper=False).numpy()
        covariance = self._covariance(x, x).numpy() - explained.T @ explained
        deviation = self.scale * math.sqrt(max(0.0, float(weights @ covariance @ weights)))
        mean = self._mean + (self._seen.solution @ across).numpy()
        return float(self.scale * (weights @ mean) + self.centre * weights.sum()), deviation


def _factor_of(covariance: torch.Tensor) -> torch.Tensor:
    """The Cholesky factor of a covariance (n, n)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        factor: torch.Tensor = psd_safe_cholesky(covariance, max_tries=TRIES)
    return factor


@dataclass
class Candidates:
    """Orders among which several are chosen, one after the other; each chosen order is pending for the next choice.

    Mean (n,) in the units of the values; variance (n,) of scaled values; the factor's rows for these orders, of which
    the first ``n_rows`` are filled: each pending order adds one, without another factorisation.
    """

    gp: OrderGP
    x: torch.Tensor
    mean: np.ndarray
    variance: torch.Tensor
    explained: torch.Tensor
    n_rows: int

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations, in the units of the values; (n,)."""
        return np.asarray(self.gp.scale * np.sqrt(np.maximum(self.variance.numpy(), 0.0)))

    def choose(self, number: int) -> None:
        """Makes an order pending."""
        rows = self.explained[: self.n_rows]
        covariance = self.gp._covariance(self.x[number : number + 1], self.x)[0] - rows[:, number] @ rows
        row = covariance / torch.sqrt(self.variance[number] + self.gp._pending_noise())
        self.explained[self.n_rows] = row
        self.variance = self.variance - row.square()
        self.n_rows += 1


def pair_swaps(items: Order, first: str, second: str) -> tuple[list[Order], list[Order]]:
    """Orders with ``first`` right before ``second``, and the same with the two swapped: all, or a sample of them.

    >>> pair_swaps(("a", "b", "c"), "a", "c")
    ([('b', 'a', 'c'), ('a', 'c', 'b')], [('b', 'c', 'a'), ('c', 'a', 'b')])
    """
    rest = [item for item in items if item not in (first, second)]
    block = len(rest)  # stands for the pair
    if math.factorial(block + 1) <= MOST_SWAPS:
        arrangements = list(permutations(range(block + 1)))
    else:
        rng = np.random.default_rng(0)
        arrangements = [tuple(rng.permutation(block + 1).tolist()) for _ in range(MOST_SWAPS)]

    def order(arrangement: Sequence[int], pair: Order) -> Order:
        return tuple(item for i in arrangement for item in (pair if i == block else (rest[i],)))

    return [order(a, (first, second)) for a in arrangements], [order(a, (second, first)) for a in arrangements]
