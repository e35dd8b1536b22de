"""Drills on the history of a model: the yardstick of quiet stretches, the promise, and the counts.

The history is cut into three blocks of time. Each block is judged by normal operation fitted to the other two, with the
yardstick of what quiet stretches of the other two showed, so that nothing judged has been seen. The yardstick that the
model keeps is that of all blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eccaht.archive import check_keys
from eccaht.arrays import Array, as_number, check_alpha
from eccaht.data.windows import Windows
from eccaht.incident.counts import Counts, count
from eccaht.incident.drilling import Drill, kinds_of, run_drills
from eccaht.incident.judge import Basis, Judge
from eccaht.incident.promise import WITHOUT_EVIDENCE, ConfidenceTable, Promise
from eccaht.incident.quiet import Quiet, longest_repeats, quiet_of, sample_quiet
from eccaht.model.counted import Counted
from eccaht.model.fitting import fit_normal
from eccaht.model.model import Model
from eccaht.model.normal import Normal

BLOCKS = 3
RUNS = 1000
FEWEST_WINDOWS = 600  # in a history for its blocks to say something
Progress = Callable[[int], object]


@dataclass(frozen=True, eq=False)
class Drilled:
    """What the judge needs to know of quiet stretches, what makes a confidence, and what was counted."""

    quiet: Quiet
    promise: Promise
    counts: Counts

    @property
    def factor(self) -> float:
        """On the evidence."""
        return self.promise.factor

    def stored(self) -> Counted:
        """As plain numbers, for a model's file."""
        counted: dict[str, Any] = {"counts": self.counts.header(), "table": self.promise.table.header()}
        counted["shares"] = {basis: None if share != share else share for basis, share in self.promise.shares.items()}
        return Counted(counted, self.quiet.arrays())


def kept(model: Model) -> Drilled | None:
    """What drills a model keeps, None if it has none; checked, since a stranger may have written it."""
    if model.drilled is None:
        return None
    check_keys(model.drilled.counted, {"counts", "table", "shares"}, "drills")
    counts = Counts.build(model.drilled.counted["counts"])
    table = ConfidenceTable.build(model.drilled.counted["table"])
    try:
        quiet = Quiet(**model.drilled.measured)
    except TypeError:
        raise ValueError("its drills are damaged") from None
    if quiet.size != len(model.names):
        raise ValueError("its drills are of other sensors")
    return Drilled(quiet, Promise(counts.factor, table, _shares(model.drilled.counted["shares"])), counts)


def keeping(model: Model, drilled: Drilled) -> Model:
    """The model with these drills instead of its own."""
    return replace(model, drilled=drilled.stored())


def total(runs: int = RUNS) -> int:
    """How many steps `drill_history` and `drilled` report."""
    return len(kinds_of(runs))


def drill_history(
    model: Model,
    windows: Windows,
    *,
    runs: int = RUNS,
    seed: int = 0,
    alpha: float = 0.05,
    progress: Progress | None = None,
) -> Drilled:
    """Drill the history that a model was calibrated on; windows: those of the calibration."""
    values, moments = windows.values, moments_of(windows)
    if len(values) < FEWEST_WINDOWS:
        raise ValueError(
            f"drills need {FEWEST_WINDOWS} windows of history, and there are {len(values)}: give a longer history or"
            " shorter windows"
        )
    edges = np.linspace(0, len(values), BLOCKS + 1).astype(int)
    blocks = [slice(int(edges[b]), int(edges[b + 1])) for b in range(BLOCKS)]
    normals = [fitted_without(model, values, moments, block) for block in blocks]
    samples = [
        sample_quiet(normal, values[block], moments[block]) for normal, block in zip(normals, blocks, strict=True)
    ]
    repeats = [longest_repeats(values[block]) for block in blocks]
    drills: list[Drill] = []
    share = [runs // BLOCKS + (b < runs % BLOCKS) for b in range(BLOCKS)]
    for b, block in enumerate(blocks):
        others = [c for c in range(BLOCKS) if c != b]
        quiet = quiet_of([samples[c] for c in others], np.max([repeats[c] for c in others], axis=0))
        judge = Judge(normals[b], quiet, check_alpha(alpha))
        drills += run_drills(
            judge, values[block], moments[block], runs=max(share[b], 1), seed=seed * BLOCKS + b, progress=progress
        )
    return _counted(quiet_of(samples, longest_repeats(values)), drills, alpha)


def drilled(
    model: Model,
    windows: Windows,
    *,
    runs: int = RUNS,
    seed: int = 0,
    alpha: float = 0.05,
    progress: Progress | None = None,
) -> Drilled:
    """Drill quiet windows that the model has not seen.

    The first half gives the yardstick by which the second one, with its faults, is judged.
    """
    if model.normal is None:
        raise ValueError("the model does not describe normal operation: calibrate it again")
    values, moments = windows.values, moments_of(windows)
    half = len(values) // 2
    sample = [sample_quiet(model.normal, values[part], moments[part]) for part in (slice(0, half), slice(half, None))]
    judge = Judge(model.normal, quiet_of(sample[:1], longest_repeats(values[:half])), check_alpha(alpha))
    drills = run_drills(judge, values[half:], moments[half:], runs=runs, seed=seed, progress=progress)
    return _counted(quiet_of(sample, longest_repeats(values)), drills, alpha)


def _shares(header: Any) -> dict[Basis, float]:
    """The counted shares that a file holds, None where there is none."""
    check_keys(header, set(WITHOUT_EVIDENCE), "drills")
    shares = {}
    for basis in WITHOUT_EVIDENCE:
        share = header[basis]
        if share is not None and not 0.0 <= as_number(share, "a counted share") <= 1.0:
            raise ValueError("its drills are damaged")
        shares[basis] = float("nan") if share is None else float(share)
    return shares


def moments_of(windows: Windows) -> Array:
    """Seconds since midnight of each window; 0 where rows have no times."""
    moments = windows.clock.since_midnight(windows.starts)
    return np.zeros(len(windows.starts)) if moments is None else moments


def fitted_without(model: Model, values: Array, moments: Array, without: slice) -> Normal:
    """Normal operation without one block, with what was chosen for all of it."""
    if model.choice is None:
        raise ValueError("the model does not describe normal operation: calibrate it again")
    rest = np.r_[0 : without.start, without.stop : len(values)]
    choice = model.choice
    chosen: dict[str, Any] = {"level": choice.level, "memory": choice.memory}
    chosen |= {"shrink": choice.shrink, "tails": choice.tails if np.isfinite(choice.tails) else "gaussian"}
    options: dict[str, Any] = {"estimator": model.estimator, "ridge": model.ridge}
    return fit_normal(values[rest], moments[rest], **chosen, **options)[0]


def _counted(quiet: Quiet, drills: Sequence[Drill], alpha: float) -> Drilled:
    """Count on one half of the drills with a promise fitted to the other; the one that is kept is fitted to both."""
    counts = count(drills, Promise.fitted(drills), alpha)
    promise = Promise.fitted([replace(drill, part="fit") for drill in drills])
    return Drilled(quiet, promise, replace(counts, factor=promise.factor))
