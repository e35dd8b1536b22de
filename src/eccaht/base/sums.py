"""A sum in the order in which numpy adds up, for compiled loops that give the same bits."""

from __future__ import annotations

from eccaht.base.arrays import Array
from eccaht.base.compiled import compiled

__all__ = ["LONGEST_SUM", "sum_of"]

LONGEST_SUM = 128  # numbers that numpy adds up with eight sums side by side; more are split in two


@compiled
def sum_of(terms: Array, count: int) -> float:
    """The first `count` terms, up to 128, added up in numpy's order."""
    if count < 8:
        total = 0.0
        for k in range(count):
            total += terms[k]
        return total
    a, b, c, d = terms[0], terms[1], terms[2], terms[3]
    e, f, g, h = terms[4], terms[5], terms[6], terms[7]
    whole = count - count % 8
    for k in range(8, whole, 8):
        a += terms[k]
        b += terms[k + 1]
        c += terms[k + 2]
        d += terms[k + 3]
        e += terms[k + 4]
        f += terms[k + 5]
        g += terms[k + 6]
        h += terms[k + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for k in range(whole, count):
        total += terms[k]
    return total
