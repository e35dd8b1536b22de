"""What is known before the first measurement."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import (
    Array,
    Index,
    Mask,
    as_count,
    as_floats,
    as_number,
    as_vector,
    check_finite,
    check_problem,
    check_reading,
    check_vector,
    check_weights,
    frozen,
    inner,
    support_of,
)
from eccaht.base.labels import by_name, unlabelled
from eccaht.base.recalled import KnownMeasurement, Memory
from eccaht.streams.covariance import Covariance, Dense, as_covariance
from eccaht.streams.covariance.base import with_ridge
from eccaht.streams.covariance.sampled import inflation, sampled
from eccaht.streams.measurements import Budget, Constraint
from eccaht.streams.measurements.region import as_deviation
from eccaht.streams.shifts import Shift, ShiftPrior, shift_prior

__all__ = ["Problem"]

_OF_NOISE = ("degrees_of_freedom", "estimated_from")
_ARGUMENTS = ("covariance", "n_anomalies", "measurements", "mean", "names", "readout_noise", *_OF_NOISE)


class Problem:
    """K streams of known covariance, `n_anomalies` of which have their mean moved by their `shift`.

    A measurement c gives y ~ N(c'mean + sum over anomalous k of shift_k c_k, c'S c), with |c|_1 <= budget or another
    constraint (paper, section 3.1; docs/explanation/search.md). Immutable and checked when it is made.

    covariance: a (K, K) matrix, a frame of pandas or polars, whose columns give the names, or an operator of
        `eccaht.streams.covariance`.
    shift: one value or one per stream, of either sign, never 0; an UnknownShift where the size is not known.
        With names it may be a dict by name, as may `mean`.
    n_anomalies: a number, or (least, most) where it is not known; least may be 0.
    budget: B, short for measurements=Budget(B).
    measurements: what weights are allowed, a constraint of `eccaht.streams.measurements` or one's own.
    mean: nominal mean, one value or one per stream.
    names: K distinct names; errors and reports use them.
    readout_noise: standard deviation of noise that the instrument adds to every reading, independent of c; 0, or that
        of a `Readout` among the measurements.
    degrees_of_freedom: of t noise, more than 2, scaled to the covariance, where tails are heavier than Gaussian ones.
    estimated_from: how many vectors the mean and the covariance were estimated from. A sample covariance is multiplied
        by what designs understate their noise by, and what a mean of so many vectors leaves open is counted in every
        likelihood (docs/explanation/confidence.md). `from_samples` makes a better estimate where the vectors are there.
    calibrated: is the covariance one whose designs show the noise that it says, no sample covariance?

    >>> problem = Problem(np.eye(4), shift=[3, -3, 2, 2], n_anomalies=1, budget=2.0, names=list("abcd"))
    >>> problem.size, problem.label(1)
    (4, "'b'")
    """

    covariance: Covariance
    shift: Array  # known, or the mean of what it may be
    shift_spread: Array  # standard deviation of what it may be; 0 where it is known
    sizes: tuple[int, int]  # least and most streams that may be anomalous
    measurements: Constraint  # what weights are allowed
    mean: Array
    names: tuple[str, ...] | None
    readout_noise: float
    degrees_of_freedom: float | None
    estimated_from: int | None
    designing: Constraint  # the measurements with the instrument's noise, for designs that look at it
    _moved: bool  # is some mean not 0?
    _memory: Memory
    _ridged: dict[float, Problem]

    def __init__(
        self,
        covariance: Covariance | ArrayLike,
        *,
        shift: Shift,
        n_anomalies: int | tuple[int, int],
        budget: float | None = None,
        measurements: Constraint | None = None,
        mean: ArrayLike | Mapping[str, float] = 0.0,
        names: Sequence[str] | None = None,
        readout_noise: float | None = None,
        degrees_of_freedom: float | None = None,
        estimated_from: int | None = None,
        calibrated: bool = False,
    ) -> None:
        matrix, labels = unlabelled(covariance)
        operator = as_covariance(matrix)
        known = _checked_names(labels if names is None else names, operator.size)
        if labels is not None and known != labels:
            raise ValueError("names differ from those of the covariance's columns: leave out names, or the labels")
        prior = shift_prior(by_name(shift, known, "shift"), operator.size)
        sizes = _checked_sizes(n_anomalies, operator.size)
        within = _checked_constraint(budget, measurements)
        nominal = as_vector(by_name(mean, known, "mean"), operator.size, "mean")
        noise = _checked_noise(readout_noise, within)
        freedom = None if degrees_of_freedom is None else as_number(degrees_of_freedom, "degrees_of_freedom")
        if freedom is not None and freedom <= 2.0:
            given = repr(degrees_of_freedom)
            raise ValueError(f"degrees_of_freedom must be above 2, where the noise has a covariance, not {given}")
        windows = None if estimated_from is None else as_count(estimated_from, "estimated_from", least=1)
        if windows is not None and not calibrated:
            if windows < (least := operator.size + 2):
                some = f"a sample covariance of {operator.size} streams needs at least {least} vectors"
                raise ValueError(f"estimated_from={windows}: {some}; Problem.from_samples takes fewer")
            operator = Dense(inflation(windows, operator.size) * operator.dense())
        vars(self).update(  # past __setattr__, which refuses
            covariance=operator,
            shift=prior.mean,
            shift_spread=prior.spread,
            sizes=sizes,
            measurements=within,
            mean=nominal,
            names=known,
            readout_noise=noise,
            degrees_of_freedom=freedom,
            estimated_from=windows,
            designing=within.with_noise(noise),
            _moved=bool(nominal.any()),
            _memory=Memory(),
            _ridged={},
        )
        self.designing.check_streams(operator.size)
        check_problem(operator.least_variances(), prior.mean, prior.spread, nominal, noise / within.largest_weight)

    @classmethod
    def from_samples(cls, X: Any, **options: Any) -> Problem:
        """The problem of streams of which vectors were seen while nothing was wrong.

        X: rows are vectors of all streams in the order of time, NaN where one was not read; a frame gives the names.
            Mean and covariance are estimated so that designs show as much noise as they are believed to.
        options: the other arguments of a Problem, without a covariance and a mean.

        Error rates hold with what was estimated (docs/explanation/confidence.md says on what that rests).

        >>> X = np.random.default_rng(0).standard_normal((60, 30))
        >>> Problem.from_samples(X, shift=3.0, n_anomalies=2, budget=4.0)
        Problem(Dense(size=30), n_anomalies=2, budget=4, estimated_from=60)
        """
        for name in ("covariance", "mean", "estimated_from", "calibrated"):
            if name in options:
                raise ValueError(f"from_samples estimates mean and covariance from the vectors: leave out {name}")
        columns = getattr(X, "columns", None)
        if columns is not None and "names" not in options and all(isinstance(name, str) for name in columns):
            options["names"] = list(columns)
        return cls(**_estimated(X.to_numpy() if columns is not None else X), **options)

    def estimated(self, X: ArrayLike) -> Problem:
        """The same problem, with mean and covariance as `from_samples` estimates them from these vectors."""
        return self.replace(**_estimated(X))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Problem is immutable: use replace({name}=...) to get another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Problem is immutable")

    @property
    def size(self) -> int:
        """The number of streams K."""
        return self.covariance.size

    @property
    def n_anomalies(self) -> int | tuple[int, int]:
        """How many streams are anomalous: a number, or (least, most) where it is not known."""
        least, most = self.sizes
        return least if least == most else self.sizes

    @property
    def known_number(self) -> int:
        """The number of anomalous streams; a ValueError if it is only known as a range."""
        number = self.n_anomalies
        if isinstance(number, tuple):
            raise ValueError("the number of anomalies is only known to be {} to {}: give one number".format(*number))
        return number

    @property
    def unknown_shift(self) -> bool:
        """Is the size of some shift not known?"""
        spread = self.shift_spread
        return bool(spread[0] > 0.0 if spread.strides == (0,) else spread.any())

    @property
    def budget(self) -> float:
        """B of the constraint |c|_1 <= B; a ValueError where the weights are limited in another way."""
        if isinstance(self.measurements, Budget):
            return self.measurements.limit
        raise ValueError(f"this problem has no budget: its measurements are limited by {self.measurements!r}")

    def replace(self, **changes: Any) -> Problem:
        """Return the same problem with some arguments changed; a new budget takes the place of any constraint.

        A covariance that is estimated from so many vectors as before is taken as it is given: it is `calibrated`.
        """
        kept = self._arguments()
        if "measurements" in changes and self.measurements.noise is not None:
            del kept["readout_noise"]  # it was theirs
        if "budget" in changes:
            del kept["measurements"]
        return Problem(**(kept | changes))

    def with_ridge(self, a: float) -> Problem:
        """The same problem with covariance S + a I: one object for each a, so that searches share what it remembers."""
        if a not in self._ridged:
            self._ridged[a] = self.replace(covariance=with_ridge(self.covariance, a))
        return self._ridged[a]

    def check_gaussian(self, what: str) -> None:
        """Refuse noise that is not Gaussian, which `what` assume."""
        if self.degrees_of_freedom is not None:
            raise ValueError(f"{what} assume Gaussian noise: leave out degrees_of_freedom, which only Watch uses")

    def label(self, k: int) -> str:
        """How messages name stream k."""
        return str(k) if self.names is None else repr(self.names[k])

    def checked_measurement(self, c: ArrayLike | Mapping[str, float]) -> Array:
        """Return the weights of a measurement that was handed in, or say what is wrong with it.

        A dict or a labelled series goes by name; streams that it lacks have no weight.
        """
        given = c if type(c) is np.ndarray else by_name(c, self.names, "measurement", absent=0.0)
        weights = as_floats(given, "measurement")
        if weights.shape != (self.size,):
            raise ValueError(f"measurement has shape {weights.shape}, expected ({self.size},)")
        check_finite(weights, "measurement")
        if not weights.any():
            raise ValueError("measurement is all zero: it carries no information")
        check_weights(weights)
        return weights

    def checked_reading(self, c: Array, y: float) -> float:
        """Return the reading of a checked measurement, or say what is wrong with it."""
        reading = as_number(y, "reading")
        known = self.known(c)
        check_reading(reading - known.mean, known.variance)
        return reading

    def checked_moment(self, C: Any, y: ArrayLike) -> tuple[Array, Array]:
        """Return measurements of one moment, (q, K), and their readings, (q,), or say what is wrong with them."""
        given = C if isinstance(C, np.ndarray) else list(C)
        readings = as_floats(y, "readings")
        if readings.shape != (len(given),) or not len(given):
            raise ValueError(f"{len(given)} measurements need as many readings, not an array of shape {readings.shape}")
        rows = [frozen(self.checked_measurement(c).copy()) for c in given]
        checked = [self.checked_reading(c, value) for c, value in zip(rows, readings.tolist(), strict=True)]
        return np.array(rows), np.array(checked)

    def checked_mask(self, available: ArrayLike) -> Mask:
        """Return which streams can be measured, (K,), or say what is wrong with it."""
        mask = np.array(available)
        if mask.dtype != np.bool_ or mask.shape != (self.size,):
            raise ValueError(f"available must be {self.size} truth values, one for each stream")
        if not mask.any():
            raise ValueError("available has no stream: at least one must be there to be measured")
        return mask

    def checked_vector(self, x: Any) -> Array:
        """Return a reading of all streams, NaN where one was not read; a dict or a labelled series goes by name."""
        vector = as_floats(by_name(x, self.names, "reading", absent=np.nan), "reading")
        if vector.shape != (self.size,):
            raise ValueError(f"a complete reading has shape ({self.size},), not {vector.shape}")
        missing = np.isnan(vector)
        if missing.all():
            raise ValueError("a complete reading needs at least one number: all streams are missing")
        check_finite(np.where(missing, 0.0, vector), "reading")
        check_vector(vector - self.mean, self.covariance.least_variances())
        return vector

    def noise_variance(self, c: Array) -> float:
        """c'S c and the instrument's own."""
        return self.known(c).variance

    def mean_reading(self, c: Array) -> float:
        """c'mean: the mean reading where nothing is wrong."""
        return self.known(c).mean

    def known(self, c: Array) -> KnownMeasurement:
        """What the problem says of the measurement c; worked out once for weights that are read-only."""
        return self._memory.known(c, self._work_out)

    def recalled(self, key: Hashable, make: Callable[[], Array]) -> Array:
        """The weights that were made for a key before, or those that `make()` gives now, read-only."""
        return self._memory.made(key, make, self.size)

    def _work_out(self, c: Array) -> KnownMeasurement:
        mean = inner(c, self.mean) if self._moved else 0.0
        return KnownMeasurement(c, self.covariance.quad(c) + self.readout_noise**2, mean)  # c'S c of eq. 1

    def expected(self, c: Array, anomalies: Index | Sequence[int] = ()) -> float:
        """The mean reading of measurement c when the given streams are anomalous."""
        support = support_of(c)
        which = np.asarray(anomalies, dtype=np.intp)
        return float(c[support] @ self.mean[support] + c[which] @ self.shift[which])

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Problem, **self._arguments()), ()

    def _arguments(self) -> dict[str, Any]:
        shift = ShiftPrior(self.shift, self.shift_spread) if self.unknown_shift else self.shift
        known = {name: getattr(self, name) for name in _ARGUMENTS}
        return {"shift": shift, "calibrated": self.estimated_from is not None, **known}

    def __repr__(self) -> str:
        within = self.measurements
        limits = f"budget={within.limit:g}" if type(within) is Budget else f"measurements={within!r}"
        for name in _OF_NOISE:
            if (value := getattr(self, name)) is not None:
                limits += f", {name}={value:g}"
        return f"Problem({self.covariance!r}, n_anomalies={self.n_anomalies}, {limits})"


def _estimated(X: Any) -> dict[str, Any]:
    found = sampled(X)
    known = {"covariance": found.covariance, "mean": found.mean}
    return known | {"estimated_from": found.worth, "calibrated": True}


def _checked_constraint(budget: float | None, measurements: Constraint | None) -> Constraint:
    if (budget is None) == (measurements is None):
        raise ValueError("give either budget=B, the limit on |c|_1, or measurements=..., another constraint")
    if budget is not None:
        return Budget(budget)
    if not isinstance(measurements, Constraint):
        kind = type(measurements).__name__
        raise ValueError(f"measurements must be a subclass of eccaht.measurements.Constraint, not {kind}")
    return measurements


def _checked_sizes(n: int | tuple[int, int], size: int) -> tuple[int, int]:
    if isinstance(n, tuple | list):
        if len(n) != 2:
            raise ValueError(f"n_anomalies must be a number or (least, most), not {n!r}")
        least, most = as_count(n[0], "the least n_anomalies", least=0), as_count(n[1], "the most n_anomalies", least=1)
        if least > most:
            raise ValueError(f"n_anomalies = ({least}, {most}): the least must not be above the most")
    else:
        least = most = as_count(n, "n_anomalies", least=1)
    if most >= size:
        raise ValueError(f"n_anomalies = {most} must be smaller than the number of streams, {size}")
    return least, most


def _checked_noise(noise: float | None, within: Constraint) -> float:
    own = within.noise
    if noise is None or own is not None:
        if noise is not None and noise != own:
            raise ValueError(f"readout_noise={noise!r} conflicts with the noise of {within!r}: leave it out")
        return own or 0.0
    return as_deviation(noise, "readout_noise")


def _checked_names(names: Sequence[str] | None, size: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError("names must be a list of strings")
    if len(names) != size:
        raise ValueError(f"{len(names)} names for {size} streams: give each stream one name")
    if len(set(names)) != size:
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"name {twice!r} is used twice: stream names must be distinct")
    return tuple(names)
