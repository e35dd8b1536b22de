"""The moves of `gibbs` by compiled loops, where shifts are known and M is a matrix; bit for bit as numpy makes them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.base.compiled import Loops
from eccaht.streams.posterior.likelihood import Likelihood
from eccaht.streams.sets import NEVER, Hypotheses, SetPrior

LOOPS = Loops("eccaht.streams.posterior.loops")
_CHUNK = 1 << 15  # numbers worked on at once: what the processor's nearest cache holds

Single = NDArray[np.float32]


class CompiledMoves(NamedTuple):
    """The loops, and what all of them need: M, b, M_kk / 2 and the prior."""

    loops: Any
    M: Array
    b: Array
    half: Array
    prior: SetPrior

    def sweep(self, sets: Index, beta: Array, rng: np.random.Generator) -> None:
        """Draw every slot of every set in place; sets do not know each other, so that few at a time will do."""
        loops, M, b, half, prior = self
        count, n = sets.shape
        uniform, single = rng.random((n, count), dtype=np.float32), beta.astype(np.float32)
        length = max(4, _CHUNK // half.size)
        fields, chances = self._room(min(length, count))
        for start in range(0, count, length):
            few = slice(start, start + length)
            part = sets[few]
            here, slots = chances[: len(part)], np.empty(len(part), dtype=np.intp)
            loops.fields_of(M, b, part, fields)
            for slot in range(n):
                slots.fill(slot)
                loops.exponents(M, half, fields, part, slots, prior.least, prior.odds_in_row, single[few], here)
                np.exp(here, out=here)
                loops.draw_slots(M, half, fields, part, slot, here, uniform[slot, few])

    def climb(self, sets: Index, tolerance: float) -> None:
        """Fill slot after slot in the best way, in place."""
        loops, M, b, half, prior = self
        loops.climb_each(M, b, half, sets, prior.least, prior.odds_in_set, tolerance)

    def changes(self, sets: Index, slots: Index) -> Array:
        """What filling one slot of each set otherwise does to its log-posterior, (N, K + 1)."""
        loops, M, b, half, prior = self
        return np.asarray(loops.changes_of(M, b, half, sets, slots, prior.least, prior.odds_in_set))

    def unscaled(self, sets: Index, slots: Index, beta: Array) -> Single:
        """Conditional probabilities of one slot of each set, up to a factor a row, (N, K + 1)."""
        loops, M, b, half, prior = self
        fields, chances = self._room(len(sets))
        loops.fields_of(M, b, sets, fields)
        single = beta.astype(np.float32)
        loops.exponents(M, half, fields, sets, slots, prior.least, prior.odds_in_row, single, chances)
        return np.exp(chances, out=chances)

    def _room(self, count: int) -> tuple[Array, Single]:
        size = self.half.size
        return np.empty((count, size)), np.empty((count, size), dtype=np.float32)


def compiled_moves(likelihood: Likelihood, prior: SetPrior) -> CompiledMoves | None:
    """Those of a likelihood, if the loops know it and are to be used."""
    evidence = likelihood.evidence
    if not likelihood.quadratic or evidence.matrix is None or (loops := LOOPS()) is None:
        return None
    return CompiledMoves(loops, evidence.matrix, evidence.linear, evidence.half_diagonal, prior)


def hypotheses_of(rest: Index, chances: Array | Single, rest_shifts: Array, shifts: Array) -> Hypotheses:
    """`Hypotheses.of_slots`."""
    if (loops := LOOPS()) is None:
        return Hypotheses.of_slots(rest, chances, rest_shifts, shifts)
    row, stream, shift, chance = loops.listed(chances, chances.dtype.type(NEVER), shifts)
    chance /= chance.sum()
    return Hypotheses(rest, rest_shifts, row, stream, shift, chance)
