"""What every constraint on the weights of measurements must do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from typing import NamedTuple
from unittest import SkipTest

import numpy as np

from eccaht.base.arrays import Array, Index, as_count
from eccaht.checks.suite import CheckFailure, by_name, require, require_close, require_equal, run_all
from eccaht.streams import (
    Available,
    Budget,
    Constraint,
    Covariance,
    Dense,
    Design,
    Problem,
    Simulator,
    families,
    make_policy,
)

_DRAWN = 90  # measurements with which a design is compared
_ROUNDING = 1e-6  # relative: by so much a design may be below another measurement
_STEPS = (0.5, 0.1, 0.02)  # of changes to a design, relative
_BEYOND = 1e6  # times what is allowed: if that is allowed too, there is no limit

Build = Callable[[int], Constraint]


def check_constraint(
    constraint: Constraint | Build, *, streams: int = 8, skip: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Check a constraint on the weights of so many streams, or a function from their number to it.

    Its weights must be allowed, its designs the best that are: compared with measurements drawn at random and with
    small changes of the design itself, on independent, neighbouring and randomly correlated streams.
    skip: checks to leave out, by name, with the reason. Returns the checks that did not apply, with the reason; the
    first property that does not hold raises CheckFailure.

    >>> from eccaht.measurements import Box, NonNegative
    >>> check_constraint(NonNegative() & Box(0.0, 1.0), streams=5)
    {}
    """
    size = as_count(streams, "streams", least=3)
    made = constraint if isinstance(constraint, Constraint) or not callable(constraint) else constraint(size)
    if not isinstance(made, Constraint):
        raise CheckFailure(f"a constraint must be a subclass of Constraint, not {type(made).__name__!r}")
    subject = _Limited(made, size)
    return run_all(_CHECKS, skip, lambda: (subject,))


class _Contrast(NamedTuple):
    """Streams to tell apart under some noise."""

    covariance: Covariance
    indices: Index
    values: Array
    where: str

    @property
    def whole(self) -> Array:
        D = np.zeros(self.covariance.size)
        D[self.indices] = self.values
        return D


class _Limited:
    """A constraint, and the contrasts that it is tried on."""

    def __init__(self, within: Constraint, size: int) -> None:
        self.within, self.size = within, size
        rng = np.random.default_rng(0)
        root = rng.standard_normal((size, size))
        noises = {
            "independent": families.identity(size),
            "neighbouring": families.toeplitz(size, 0.7),
            "randomly correlated": Dense(root @ root.T / size + 0.3 * np.eye(size)),
        }
        self.contrasts = []
        for name, covariance in noises.items():
            for _ in range(3):
                i, j = rng.choice(size, 2, replace=False).tolist()
                values = np.array([1.0, -1.0]) * rng.uniform(2.0, 4.0, 2)
                self.contrasts.append(_Contrast(covariance, np.array([i, j]), values, f"of {name} streams {i} and {j}"))
        self.designs = [(each, self._design(each)) for each in self.contrasts]

    def _design(self, contrast: _Contrast) -> Design | None:
        try:
            return self.within.contrast(contrast.covariance, contrast.indices.copy(), contrast.values.copy())
        except ValueError as error:
            require("\n" not in str(error), f"contrast refuses {contrast.where} in more than one line")
            return None

    def shown(self) -> Iterator[tuple[_Contrast, Design]]:
        """The contrasts that it does not refuse, and their designs."""
        found = [(contrast, design) for contrast, design in self.designs if design is not None]
        if not found:
            raise SkipTest(f"{self.within!r} shows none of the contrasts that were tried")
        return iter(found)

    def drawn(self, contrast: _Contrast, rng: np.random.Generator) -> Iterator[Array]:
        """Allowed measurements that show a contrast."""
        for direction in _directions(contrast, rng):
            c = self.scaled(direction)
            if c is not None and self.within.allows(c) and self.reaches(c, contrast.whole):
                yield c

    def scaled(self, direction: Array) -> Array | None:
        try:
            return np.asarray(self.within.scaled(direction))
        except ValueError:
            return None

    def reaches(self, c: Array, D: Array) -> bool:
        """The paper's budget limits |c|_1 per unit of contrast as well."""
        limits = [part.limit for part in getattr(self.within, "parts", (self.within,)) if type(part) is Budget]
        return bool(c @ D) and all(np.abs(c).sum() <= limit * abs(c @ D) * (1.0 + 1e-9) for limit in limits)

    def worth(self, c: Array, contrast: _Contrast) -> float:
        """Nats of a reading per cost (paper, eq. 1)."""
        noise = contrast.covariance.quad(c) + (self.within.noise or 0.0) ** 2
        return 0.5 * float(c @ contrast.whole) ** 2 / noise / self.within.price(c)


def _directions(contrast: _Contrast, rng: np.random.Generator) -> Iterator[Array]:
    """Single streams, the pair, what cancels the noise, and random ones, of either sign, full or sparse."""
    D, K = contrast.whole, contrast.covariance.size
    free = contrast.covariance.solve(D)
    for c in (*np.eye(K), D, np.sign(D), free, free.clip(0.0, None), free.clip(None, 0.0)):
        yield from (sign * c for sign in (1.0, -1.0) if c.any())
    for number in range(_DRAWN):
        c = rng.standard_normal(K) * (rng.random(K) < rng.uniform(0.2, 1.0))
        c[contrast.indices] = np.abs(c[contrast.indices]) * np.sign(contrast.values)
        c = np.abs(c) if number % 3 == 0 else np.sign(c) if number % 3 == 1 else c
        if c.any():
            yield c


def _description(subject: _Limited) -> None:
    """Its repr is one line, and what it says of itself makes sense."""
    within = subject.within
    within.check_streams(subject.size)
    require(repr(within).strip() and "\n" not in repr(within), "repr must be one line")
    require(within.noise is None or within.noise >= 0.0, f"noise is {within.noise}, which is no standard deviation")
    for name in ("largest_weight", "usual_norm"):
        value = getattr(within, name)
        require(value > 0.0, f"{name} must be above 0, not {value}")
    require(within.least_contrast >= 0.0, f"least_contrast must not be negative: {within.least_contrast}")
    require(isinstance(within.with_noise(0.5), Constraint), "with_noise must return a constraint")


def _scaled(subject: _Limited) -> None:
    """scaled gives the largest allowed multiple, or refuses, and leaves the direction as it is."""
    within = subject.within
    for direction in _directions(subject.contrasts[-1], np.random.default_rng(1)):
        before = direction.copy()
        c = subject.scaled(direction)
        require_equal(direction, before, "scaled changed the direction that it was handed")
        if c is None:
            continue
        good = c.shape == direction.shape and np.isfinite(c).all() and c.any()
        require(good, f"scaled must give {direction.size} finite weights, not all 0")
        require(within.allows(c), f"scaled gives weights that are not allowed, of |c|_1 = {np.abs(c).sum():.6g}")
        factor = float(c @ direction) / float(direction @ direction)
        require(factor > 0.0, "scaled turns a direction round")
        require_close(c, factor * direction, "scaled gives another direction", atol=1e-9 * float(np.abs(c).max()))
        if not within.allows(_BEYOND * c):
            require(
                not within.allows(1.01 * c), "scaled does not give the largest allowed multiple: 1.01 of it is, too"
            )


def _allowed(subject: _Limited) -> None:
    """Designs are allowed and show their contrast; what is no measurement is not allowed."""
    within = subject.within
    for contrast, design in subject.shown():
        require(isinstance(design, Design), f"contrast must return a Design, not {type(design).__name__!r}")
        c = design.weights
        good = isinstance(c, np.ndarray) and c.shape == (subject.size,) and c.dtype == np.float64
        require(good and np.isfinite(c).all() and c.any(), f"the design {contrast.where} has no finite weights")
        require(within.allows(c), f"the design {contrast.where} is not allowed")
        require(float(c @ contrast.whole) != 0.0, f"the design {contrast.where} does not show the contrast")
        top = float(np.abs(c).max())
        require(top <= within.largest_weight * (1.0 + 1e-9), f"a weight {contrast.where} is above largest_weight")
        require_close(design.information / design.cost, subject.worth(c, contrast), f"the information {contrast.where}")
        require(within.price(c) > 0.0, f"price must be above 0, not {within.price(c)}")
        for wrong in (np.full(subject.size, np.nan), np.full(subject.size, np.inf)):
            require(not _allows(within, wrong), "weights that are no numbers must not be allowed")


def _allows(within: Constraint, c: Array) -> bool:
    try:
        with np.errstate(all="ignore"):
            return bool(within.allows(c))
    except ValueError:
        return False


def _best(subject: _Limited) -> None:
    """No measurement that is drawn at random is better than a design, beyond the gap that it declares."""
    for contrast, design in subject.shown():
        rng, reached = np.random.default_rng(2), subject.worth(design.weights, contrast)
        best = max((subject.worth(c, contrast) for c in subject.drawn(contrast, rng)), default=0.0)
        least = best * (1.0 - max(design.gap, 0.0) - _ROUNDING)
        found = f"{best:.6g} nats a cost can be had {contrast.where}, the design has {reached:.6g}"
        require(reached >= least, f"{found}: give better weights, or a ceiling where they may not be the best")
        require(
            design.bound >= best * (1.0 - _ROUNDING), f"{found}, and bound says that none exceeds {design.bound:.6g}"
        )


def _no_better_neighbour(subject: _Limited) -> None:
    """A design that declares no gap cannot be improved by changing it a little."""
    rng = np.random.default_rng(3)
    for contrast, design in subject.shown():
        if design.gap > _ROUNDING:
            continue
        c, reached = design.weights, subject.worth(design.weights, contrast)
        for step, _ in ((step, n) for step in _STEPS for n in range(25)):
            change = step * float(np.abs(c).max()) * rng.standard_normal(c.size) * (rng.random(c.size) < 0.4)
            other = subject.scaled(c + change) if (c + change).any() else None
            if other is None or not subject.within.allows(other) or not subject.reaches(other, contrast.whole):
                continue
            gain = subject.worth(other, contrast) / reached - 1.0
            require(gain <= _ROUNDING, f"a small change raises the information {contrast.where} by {gain:.2g} of it")


def _scale(subject: _Limited) -> None:
    """The opposite contrast is shown as well as the contrast, one of twice the size at least four times as well."""
    for contrast, design in subject.shown():
        for factor, least in ((-1.0, 1.0), (2.0, 4.0)):
            other = subject.within.contrast(contrast.covariance, contrast.indices, factor * contrast.values)
            slack = 1.0 - max(design.gap, other.gap) - _ROUNDING
            share = other.information / other.cost / (design.information / design.cost)
            times = f"{factor:g} times the contrast {contrast.where}"
            require(share >= least * slack, f"{times} is shown {share:.4g} times as well, not {least:g} times")


def _recalled(subject: _Limited) -> None:
    """What is remembered for a pair is what contrast gives, also after a caller wrote into it."""
    for contrast, design in subject.shown():
        ask = partial(subject.within.recalled, contrast.covariance, contrast.indices, contrast.values)
        first = ask().weights
        require_close(first, design.weights, f"recalled gives other weights than contrast {contrast.where}")
        if first.flags.writeable:
            first[:] = 0.0
        require_close(ask().weights, design.weights, f"writing into a design changes the next one {contrast.where}")


def _copies(subject: _Limited) -> None:
    """A copy allows and designs the same."""
    copied = deepcopy(subject.within)
    require(repr(copied) == repr(subject.within), "a copy has another repr")
    for contrast, design in subject.shown():
        again = copied.contrast(contrast.covariance, contrast.indices, contrast.values)
        require_close(again.weights, design.weights, f"a copy designs other weights {contrast.where}")
        require(copied.allows(design.weights), "a copy does not allow what the constraint does")


def _unavailable(subject: _Limited) -> None:
    """With some streams off their weights are 0; a constraint that combines with no other says so in one line."""
    contrast = subject.contrasts[0]
    mask = np.ones(subject.size, dtype=bool)
    mask[np.setdiff1d(np.arange(subject.size), contrast.indices)[:2]] = False
    try:
        both = subject.within & Available(mask)
        design = both.contrast(contrast.covariance, contrast.indices, contrast.values)
    except ValueError as error:
        require("\n" not in str(error), "a mask of streams is refused in more than one line")
        return
    require(not design.weights[~mask].any(), "a stream that is off has weight")
    require(
        both.allows(design.weights) and subject.within.allows(design.weights), "with streams off, it is not allowed"
    )


def _search(subject: _Limited) -> None:
    """A search under it measures what is allowed, or is refused in one line."""
    covariance = subject.contrasts[-1].covariance
    try:
        problem = Problem(covariance, shift=3.0, n_anomalies=1, measurements=subject.within)
        policy, world = make_policy("ecc-aht", problem, stopping=None), Simulator(problem)
        for _ in range(4):
            c = policy.ask()
            require(subject.within.allows(np.array(c)), "a search asks for weights that are not allowed")
            policy.tell(c, world.measure(c))
    except ValueError as error:
        require("\n" not in str(error), "a search is refused in more than one line")
        raise SkipTest(f"a search under it is refused: {error}") from None


_CHECKS = by_name(
    *(_description, _scaled, _allowed, _best, _no_better_neighbour, _scale, _recalled, _copies, _unavailable, _search)
)
