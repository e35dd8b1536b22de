"""How much memory a simulation takes, so that what cannot fit is refused before it starts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from eccaht.streams.policies import CATALOGUE

DENSE = ("rbf", "graph")  # families whose operators hold matrices of all streams by all streams
# numbers of 8 bytes held at once, counted with peak resident sizes and rounded up
_DENSE_MATRICES, _JOINT_MATRICES, _VECTORS = 6, 3, 20
_RECORD = 16  # bytes: what is kept and computed of one measurement
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def check_memory(family: str, streams: int, policies: Iterable[str], *, processes: int = 1, records: int = 0) -> None:
    """Refuse a simulation that needs more memory than there is, and say how much it would be."""
    have = free()
    joint = [name for name in policies if name in CATALOGUE and CATALOGUE[name].can.whole_vectors]
    if have is None:
        return
    need = needed(streams, dense=family in DENSE, joint=bool(joint), processes=processes)
    ways = ["fewer streams"]
    ways += ["a family other than " + " and ".join(DENSE)] if family in DENSE else []
    ways += [f"policies other than {', '.join(joint)}"] if joint else []
    ways += ["fewer jobs"] if need <= processes * have else []
    noise = f"{family} noise and {joint[0]}" if joint else f"{family} noise"
    for what, size, use in (
        (f"the records of {records:,} measurements", _RECORD * records, "fewer runs or a smaller horizon"),
        (f"{streams:,} streams with {noise}", need, ", or ".join(ways)),
    ):
        if size > have:
            raise ValueError(f"{what} need about {_show(size)}, this machine has {_show(have)}: use {use}")


def needed(streams: int, *, dense: bool, joint: bool, processes: int = 1) -> int:
    """Bytes for the covariance and a policy in each process.

    >>> needed(128, dense=False, joint=False)
    20480
    """
    matrices = _DENSE_MATRICES * dense + _JOINT_MATRICES * joint
    return 8 * processes * (matrices * streams**2 + _VECTORS * streams)


def free() -> int | None:
    """Bytes that can be taken, None where the system does not say."""
    found = []
    for count in (_available, _built_in, _allowed):
        with suppress(AttributeError, OSError, StopIteration, ValueError):
            found.append(count())
    return min(found, default=None)


def _available() -> int:
    """As Linux counts it, with what it would give back."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def _built_in() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _allowed() -> int:
    return int(Path("/sys/fs/cgroup/memory.max").read_text())


def _show(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.0f} {_UNITS[-1]}"
