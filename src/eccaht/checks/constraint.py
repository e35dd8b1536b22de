"""What every constraint on the weights of measurements must do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
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

_DRAWN = 90  # random measurements with which a design is compared, and as many small changes of the design itself
_ROUNDING = 1e-6  # relative: by so much a design may be below another measurement
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
    return run_all(_CHECKS, skip, made, _contrasts(made, size))


@dataclass(frozen=True)
class _Contrast:
    """Two streams to tell apart under some noise, and the design for it; None where the constraint refuses."""

    within: Constraint
    covariance: Covariance
    indices: Index
    values: Array
    where: str
    design: Design | None = field(init=False)

    def __post_init__(self) -> None:
        try:
            design = self.within.contrast(self.covariance, self.indices.copy(), self.values.copy())
        except ValueError as error:
            require("\n" not in str(error), f"contrast refuses {self.where} in more than one line")
            design = None
        object.__setattr__(self, "design", design)

    @property
    def whole(self) -> Array:
        D = np.zeros(self.covariance.size)
        D[self.indices] = self.values
        return D

    def worth(self, c: Array) -> float:
        """Nats of a reading (paper, eq. 1)."""
        noise = self.covariance.quad(c) + (self.within.noise or 0.0) ** 2
        return 0.5 * float(c @ self.whole) ** 2 / noise

    def allowed(self, direction: Array) -> Array | None:
        """The largest allowed multiple of a direction that shows the contrast."""
        c = _scaled_or_none(self.within, direction) if direction.any() else None
        if c is None or not self.within.allows(c) or not c @ self.whole:
            return None
        # the paper's budget limits |c|_1 per unit of contrast as well
        limits = [part.limit for part in getattr(self.within, "parts", (self.within,)) if type(part) is Budget]
        reaches = all(np.abs(c).sum() <= limit * abs(c @ self.whole) * (1.0 + 1e-9) for limit in limits)
        return c if reaches else None


def _contrasts(within: Constraint, size: int) -> list[_Contrast]:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((size, size))
    noises = {
        "independent": families.identity(size),
        "neighbouring": families.toeplitz(size, 0.7),
        "randomly correlated": Dense(root @ root.T / size + 0.3 * np.eye(size)),
    }
    found = []
    for name, covariance in noises.items():
        for _ in range(3):
            pair = rng.choice(size, 2, replace=False)
            values = np.array([1.0, -1.0]) * rng.uniform(2.0, 4.0, 2)
            found.append(_Contrast(within, covariance, pair, values, f"of {name} streams {pair[0]} and {pair[1]}"))
    return found


def _designed(contrasts: list[_Contrast]) -> Iterator[tuple[_Contrast, Design]]:
    found = [(contrast, contrast.design) for contrast in contrasts if contrast.design is not None]
    if not found:
        raise SkipTest(f"{contrasts[0].within!r} shows none of the contrasts that were tried")
    return iter(found)


def _scaled_or_none(within: Constraint, direction: Array) -> Array | None:
    try:
        return np.asarray(within.scaled(direction))
    except ValueError:
        return None


def _directions(contrast: _Contrast) -> Iterator[Array]:
    """Single streams, the pair, what cancels the noise, and random ones, of either sign, full or sparse."""
    D, rng = contrast.whole, np.random.default_rng(2)
    free = contrast.covariance.solve(D)
    for c in (*np.eye(D.size), D, np.sign(D), free, free.clip(min=0.0), free.clip(max=0.0)):
        yield from (sign * c for sign in (1.0, -1.0) if c.any())
    for number in range(_DRAWN):
        c = rng.standard_normal(D.size) * (rng.random(D.size) < rng.uniform(0.2, 1.0))
        c[contrast.indices] = np.abs(c[contrast.indices]) * np.sign(contrast.values)
        if c.any():
            yield np.abs(c) if number % 3 == 0 else np.sign(c) if number % 3 == 1 else c


def _neighbours(c: Array) -> Iterator[Array]:
    """Weights that differ a little."""
    rng = np.random.default_rng(3)
    for number in range(_DRAWN):
        step = (0.5, 0.1, 0.02)[number % 3] * float(np.abs(c).max())
        yield c + step * rng.standard_normal(c.size) * (rng.random(c.size) < 0.4)


def _scaled(within: Constraint, contrasts: list[_Contrast]) -> None:
    """scaled gives the largest allowed multiple, or refuses, and leaves the direction as it is."""
    for direction in _directions(contrasts[-1]):
        before = direction.copy()
        c = _scaled_or_none(within, direction)
        require_equal(direction, before, "scaled changed the direction that it was handed")
        if c is None:
            continue
        good = c.shape == direction.shape and np.isfinite(c).all() and c.any()
        require(good and within.allows(c), f"scaled must give {direction.size} allowed weights, not all 0, not {c}")
        factor = float(c @ direction) / float(direction @ direction)
        require(factor > 0.0, "scaled turns a direction round")
        require_close(c, factor * direction, "scaled gives another direction", scale=float(np.abs(c).max()))
        largest = within.allows(_BEYOND * c) or not within.allows(1.01 * c)
        require(largest, "scaled does not give the largest allowed multiple: 1.01 of it is allowed, too")


def _allowed(within: Constraint, contrasts: list[_Contrast]) -> None:
    """Designs are allowed and show their contrast; what is no measurement is not allowed."""
    size = contrasts[0].covariance.size
    within.check_streams(size)
    require(repr(within).strip() and "\n" not in repr(within), "repr must be one line")
    for wrong in (np.full(size, np.nan), np.full(size, np.inf)):
        try:
            with np.errstate(all="ignore"):
                allowed = within.allows(wrong)
        except ValueError:
            continue
        require(not allowed, "weights that are no numbers must not be allowed")
    for contrast, design in _designed(contrasts):
        c = design.weights
        good = isinstance(c, np.ndarray) and c.shape == (size,) and c.dtype == np.float64 and np.isfinite(c).all()
        require(good and within.allows(c), f"the design {contrast.where} is not allowed")
        require(float(c @ contrast.whole) != 0.0, f"the design {contrast.where} does not show the contrast")
        low = float(np.abs(c).max()) <= within.largest_weight * (1.0 + 1e-9)
        require(low, f"a weight {contrast.where} is above largest_weight")
        require_close(design.information, contrast.worth(c), f"the information {contrast.where}")


def _best(within: Constraint, contrasts: list[_Contrast]) -> None:  # noqa: ARG001
    """Neither a measurement drawn at random nor a small change is better than a design, beyond its declared gap."""
    for contrast, design in _designed(contrasts):
        others = [*_directions(contrast), *_neighbours(design.weights)]
        allowed = [c for direction in others if (c := contrast.allowed(direction)) is not None]
        best, reached = max(map(contrast.worth, allowed), default=0.0), contrast.worth(design.weights)
        found = f"{best:.6g} nats can be had {contrast.where}, the design has {reached:.6g}"
        least = best * (1.0 - max(design.gap, 0.0) - _ROUNDING)
        require(reached >= least, f"{found}: give better weights, or a ceiling where they may not be the best")
        bounded = design.bound >= best * (1.0 - _ROUNDING)
        require(bounded, f"{found}, and bound says that none exceeds {design.bound:.6g}")


def _recalled(within: Constraint, contrasts: list[_Contrast]) -> None:
    """What is remembered for a pair is what contrast gives, also after a caller wrote into it."""
    for contrast, design in _designed(contrasts):
        for what in ("recalled gives other weights than contrast", "writing into a design changes the next one"):
            weights = within.recalled(contrast.covariance, contrast.indices, contrast.values).weights
            require_close(weights, design.weights, f"{what} {contrast.where}")
            if weights.flags.writeable:
                weights[:] = 0.0


def _unavailable(within: Constraint, contrasts: list[_Contrast]) -> None:
    """With some streams off their weights are 0; a constraint that combines with no other says so in one line."""
    covariance, indices, values = contrasts[0].covariance, contrasts[0].indices, contrasts[0].values
    mask = np.ones(covariance.size, dtype=bool)
    mask[np.setdiff1d(np.arange(mask.size), indices)[:2]] = False
    try:
        c = (within & Available(mask)).contrast(covariance, indices, values).weights
    except ValueError as error:
        require("\n" not in str(error), "a mask of streams is refused in more than one line")
        return
    require(not c[~mask].any() and within.allows(c), "with streams off, they have weight or others are not allowed")


def _search(within: Constraint, contrasts: list[_Contrast]) -> None:
    """A search under it measures what is allowed, or is refused in one line."""
    try:
        problem = Problem(contrasts[-1].covariance, shift=3.0, n_anomalies=1, measurements=within)
        policy, world = make_policy("ecc-aht", problem, stopping=None), Simulator(problem)
        for _ in range(4):
            c = policy.ask()
            require(within.allows(np.array(c)), "a search asks for weights that are not allowed")
            policy.tell(c, world.measure(c))
    except ValueError as error:
        require("\n" not in str(error), "a search is refused in more than one line")
        raise SkipTest(f"a search under it is refused: {error}") from None


_CHECKS = by_name(_scaled, _allowed, _best, _recalled, _unavailable, _search)
