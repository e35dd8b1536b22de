"""What a problem remembers of its measurements: a search asks for the same few streams and pairs again and again."""

from collections.abc import Callable, Hashable

import numpy as np

from eccaht.base.arrays import Array, frozen, support_of

_MOST = 1 << 21  # weights that are kept, 16 MB
_FEWEST = 64  # measurements: where fewer would fit, weights are made anew


class KnownMeasurement:
    """A measurement with its noise variance and its mean reading where nothing is wrong."""

    __slots__ = ("_only", "mean", "variance", "weights")

    def __init__(self, weights: Array, variance: float, mean: float) -> None:
        self.weights, self.variance, self.mean = weights, variance, mean
        self._only: int | None = None

    @property
    def only(self) -> int:
        """The one stream that has weight; -1 where several have."""
        if self._only is None:
            support = support_of(self.weights)
            self._only = int(support[0]) if support.size == 1 else -1
        return self._only


_NOTHING = KnownMeasurement(np.empty(0), 0.0, 0.0)


class Memory:
    """Measurements by what they are for, and what is known of each; bounded, and forgotten all at once."""

    def __init__(self) -> None:
        self._last = _NOTHING
        self._known: dict[int, KnownMeasurement] = {}  # by the identity of the weights, which an entry keeps alive
        self._made: dict[Hashable, Array] = {}

    def known(self, c: Array, work_out: Callable[[Array], KnownMeasurement]) -> KnownMeasurement:
        """What was worked out of the measurement c before, or is now; kept where its weights are read-only."""
        known = self._last
        if c is known.weights:
            return known
        found = self._known.get(id(c))
        if found is None:
            found = work_out(c)
            if c.flags.writeable or not c.flags.owndata:
                return found
            if len(self._known) * c.size >= _MOST:
                self._known.clear()
            self._known[id(c)] = found
        self._last = found
        return found

    def made(self, key: Hashable, make: Callable[[], Array], size: int) -> Array:
        """The weights, (size,), that were made for a key before, or those that `make()` gives now, read-only."""
        weights = self._made.get(key)
        if weights is None:
            weights = frozen(make())
            if _FEWEST * size <= _MOST:
                if len(self._made) * size >= _MOST:
                    self._made.clear()
                self._made[key] = weights
        return weights
