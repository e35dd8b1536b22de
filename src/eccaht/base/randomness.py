"""Named random generators: each name has its own, so the order in which things run does not matter."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from eccaht.base.arrays import as_count

Seed = int | Sequence[int]


def rng_for(seed: Seed, *names: str) -> np.random.Generator:
    """Return the generator that belongs to a seed and a chain of names.

    >>> rng_for(7, "world").random() == rng_for(7, "world").random()
    True
    >>> rng_for(7, "world").random() == rng_for(7, "policy", "ecc-aht").random()
    False
    """
    return np.random.default_rng([*check_seed(seed), *(crc32(name.encode()) for name in names)])


def check_seed(seed: Seed) -> tuple[int, ...]:
    """Return the seed as a tuple of whole numbers of at least 0."""
    parts = seed if isinstance(seed, Sequence) else (seed,)
    return tuple(as_count(part, "seed", least=0) for part in parts)
