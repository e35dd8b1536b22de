"""What a part of the benchmark is made of: labelled jobs that give rows, and the timing they share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

Row = dict[str, Any]


class Job(NamedTuple):
    """One piece of work and what the progress bar says about it."""

    label: str
    run: Callable[[], list[Row]]


def seconds(action: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
