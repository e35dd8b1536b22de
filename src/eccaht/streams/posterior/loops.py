"""Compiled loops over sets of streams: what `gibbs`, `likelihood` and `statistics` do in numpy, bit for bit.

M has K + 1 rows, `half` is M_kk / 2, a set is a row of slots, and the last place is that of an EMPTY slot.
`odds` are the prior log-odds of an EMPTY slot by the size of the rest; none where the number of anomalies is fixed.
"""

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.base.compiled import compiled, sum_of

_AT_ONCE = 4  # rows added up side by side: one addition waits for the one before

Single = NDArray[np.float32]


@compiled
def log_likelihoods(M: Array, linear: Array, sets: Index) -> Array:
    """b'z - z'M z / 2 of every row; n^2 may be up to 128."""
    n = sets.shape[1]
    terms, found = np.empty(n * n), np.empty(len(sets))
    for row in range(len(sets)):
        members = sets[row]
        for i in range(n):
            terms[i] = linear[members[i]]
        alone = sum_of(terms, n)
        for i in range(n):
            own = M[members[i]]
            for j in range(n):
                terms[i * n + j] = own[members[j]]
        found[row] = alone - 0.5 * sum_of(terms, n * n)
    return found


@compiled
def fields_of(M: Array, linear: Array, sets: Index, fields: Array) -> None:
    """b - M z of every row."""
    size, n = linear.size, sets.shape[1]
    for row in range(len(sets)):
        g = fields[row]
        first = M[sets[row, 0]]
        if n == 1:
            for k in range(size):
                g[k] = linear[k] - first[k]
            continue
        more = M[sets[row, 1]]
        for k in range(size):
            g[k] = first[k] + more[k]
        for slot in range(2, n):
            more = M[sets[row, slot]]
            for k in range(size):
                g[k] += more[k]
        for k in range(size):
            g[k] = linear[k] - g[k]


@compiled
def _gains(
    M: Array, half: Array, field: Array, members: Index, slot: int, least: int, odds: Array, gains: Array
) -> float:
    """What each stream adds in the place of a slot; return the largest. `odds` of an EMPTY slot are not added yet."""
    size = half.size
    old, empty = members[slot], size - 1
    own = M[old]
    for k in range(size):
        gains[k] = field[k] + (own[k] - half[k])
    held, rest = gains[old], 0
    for other in range(members.size):
        if members[other] < empty and other != slot:
            rest += 1
        gains[members[other]] = -np.inf
    gains[old] = held
    gains[empty] = 0.0 if odds.size > 0 and rest >= least else -np.inf
    return _largest(gains)


@compiled
def _largest(values: Array) -> float:
    """Eight at a time: the largest does not depend on the order."""
    a = b = c = d = e = f = g = h = -np.inf
    whole = values.size - values.size % 8
    for k in range(0, whole, 8):
        a = max(a, values[k])
        b = max(b, values[k + 1])
        c = max(c, values[k + 2])
        d = max(d, values[k + 3])
        e = max(e, values[k + 4])
        f = max(f, values[k + 5])
        g = max(g, values[k + 6])
        h = max(h, values[k + 7])
    for k in range(whole, values.size):
        a = max(a, values[k])
    return max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))


@compiled
def _log_odds_empty(members: Index, slot: int, empty: int, least: int, odds: Array) -> float:
    rest = 0
    for other in range(members.size):
        if members[other] < empty and other != slot:
            rest += 1
    return odds[rest] if rest >= least else 0.0


@compiled
def exponents(
    M: Array,
    half: Array,
    fields: Array,
    sets: Index,
    slots: Index,
    least: int,
    odds: Array,
    beta: Single,
    found: Single,
) -> None:
    """Logarithms of the conditional distributions of one slot of each row, up to a number each, (N, K + 1)."""
    size = half.size
    gains = np.empty(size)
    for row in range(len(sets)):
        highest = _gains(M, half, fields[row], sets[row], slots[row], least, odds, gains)
        scaled, inverse = found[row], beta[row]
        for k in range(size):
            scaled[k] = np.float32(gains[k] - highest) * inverse
        if odds.size > 0:
            more = _log_odds_empty(sets[row], slots[row], size - 1, least, odds)
            scaled[size - 1] = np.float32(np.float64(scaled[size - 1]) + more)


@compiled
def draw_slots(M: Array, half: Array, fields: Array, sets: Index, slot: int, chances: Single, uniform: Single) -> None:
    """Fill a slot of every row by these chances, which are overwritten, and keep the fields up to date."""
    last = half.size - 1
    for first in range(0, len(sets), _AT_ONCE):
        _add_up(chances, first)
    for row in range(len(sets)):
        line = chances[row]
        drawn = (np.float32(1.0) - uniform[row]) * line[last]
        low, high = 0, last
        while low < high:  # the first place at which the sum reaches it
            middle = (low + high) // 2
            if line[middle] >= drawn:
                high = middle
            else:
                low = middle + 1
        _put(M, half, fields[row], sets[row], slot, low)


@compiled
def _add_up(chances: Single, first: int) -> None:
    """Cumulative sums of some rows, in place."""
    size = chances.shape[1]
    if first + _AT_ONCE > len(chances):
        for row in range(first, len(chances)):
            for k in range(1, size):
                chances[row, k] += chances[row, k - 1]
        return
    a, b, c, d = chances[first], chances[first + 1], chances[first + 2], chances[first + 3]
    sum_a, sum_b, sum_c, sum_d = a[0], b[0], c[0], d[0]
    for k in range(1, size):
        sum_a += a[k]
        a[k] = sum_a
        sum_b += b[k]
        b[k] = sum_b
        sum_c += c[k]
        c[k] = sum_c
        sum_d += d[k]
        d[k] = sum_d


@compiled
def _put(M: Array, half: Array, field: Array, members: Index, slot: int, new: int) -> None:
    old = members[slot]
    if new != old:
        members[slot] = new
        gone, come = M[old], M[new]
        for k in range(half.size):
            field[k] += (gone[k] - half[k]) - (come[k] - half[k])


@compiled
def climb_each(M: Array, linear: Array, half: Array, sets: Index, least: int, odds: Array, tolerance: float) -> None:
    """Fill slot after slot in the best way until no single change helps, in place; `odds` are those of sets."""
    size, n = half.size, sets.shape[1]
    gains, fields = np.empty(size), np.empty((1, size))
    for row in range(len(sets)):
        members = sets[row]
        moved = True
        while moved:
            moved = False
            fields_of(M, linear, sets[row : row + 1], fields)
            for slot in range(n):
                highest = _gains(M, half, fields[0], members, slot, least, odds, gains)
                if odds.size > 0:
                    gains[size - 1] += _log_odds_empty(members, slot, size - 1, least, odds)
                    highest = _largest(gains)
                if highest > gains[members[slot]] + tolerance:
                    best = 0
                    while gains[best] != highest:
                        best += 1
                    _put(M, half, fields[0], members, slot, best)
                    moved = True


@compiled
def changes_of(M: Array, linear: Array, half: Array, sets: Index, slots: Index, least: int, odds: Array) -> Array:
    """What filling one slot of each set otherwise does to its log-posterior, (N, K + 1); `odds` are those of sets."""
    size = half.size
    field, found = np.empty((1, size)), np.empty((len(sets), size))
    for row in range(len(sets)):
        change, slot = found[row], slots[row]
        fields_of(M, linear, sets[row : row + 1], field)
        _gains(M, half, field[0], sets[row], slot, least, odds, change)
        if odds.size > 0:
            change[size - 1] += _log_odds_empty(sets[row], slot, size - 1, least, odds)
        own = change[sets[row, slot]]
        for k in range(size):
            change[k] -= own
    return found


@compiled
def listed(chances: NDArray[np.floating], least: np.floating, shifts: Array) -> tuple[Index, Index, Array, Array]:
    """Row, stream, shift and chance of every entry above `least`, in order."""
    count, (rows, size) = 0, chances.shape
    for row in range(rows):
        for k in range(size):
            count += chances[row, k] > least
    at, stream = np.empty(count, dtype=np.intp), np.empty(count, dtype=np.intp)
    shift, chance = np.empty(count), np.empty(count)
    place = 0
    for row in range(rows):
        for k in range(size):
            if chances[row, k] > least:
                at[place], stream[place] = row, k
                shift[place], chance[place] = shifts[row, k], chances[row, k]
                place += 1
    return at, stream, shift, chance
