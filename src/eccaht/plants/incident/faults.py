"""Faults of known kind, put into quiet windows: what a drill looks for."""

from dataclasses import dataclass

import numpy as np

from eccaht.base.arrays import Array, Index, as_count, as_number

SIZED = ("step", "drift", "noise", "concealed")  # kinds that have a size
KINDS = ("step", "drift", "stuck", "noise", "replay", "silent", "concealed")
REPLAYED = ("replay", "concealed")  # kinds that show readings of another time
SMALLEST, LARGEST = 1.0, 10.0  # robust units
VARIES = 0.05  # robust units: standard deviation from which on a sensor has a course that could be missed
_NUMBERS, _CHANCES = (1, 2, 3), (0.5, 0.25, 0.25)  # of faulty sensors
MOST_FAULTY = max(_NUMBERS)


@dataclass(frozen=True)
class Fault:
    """What is wrong with which sensors.

    kind: step (moved by `size` up or down), drift (the same, growing from 0), stuck (the last reading is held), noise
    (Gaussian, of standard deviation `size`, is added), replay (its own readings of another time), silent, or concealed
    (the first sensor is moved by `size`, the others, its neighbours, show their own readings of another time).
    size: in robust units, 0 for kinds that have none.
    """

    kind: str
    sensors: tuple[int, ...]
    size: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of fault {self.kind!r}: use {', '.join(KINDS)}")
        if not self.sensors or len(set(self.sensors)) != len(self.sensors):
            raise ValueError("a fault needs sensors, each of them once")
        if (as_number(self.size, "size") > 0.0) != (self.kind in SIZED) or self.size < 0.0:
            raise ValueError(f"a fault of kind {self.kind!r} cannot have the size {self.size:g}: {', '.join(SIZED)} do")


def inject(
    values: Array, start: int, stop: int, fault: Fault, rng: np.random.Generator, replayed: Array | None = None
) -> Array:
    """A copy of the windows, (T, K), in which the sensors of the fault are wrong from `start` to before `stop`.

    replayed: windows of another time that a replay shows, (stop - start, K). Missing readings stay missing, but for
    stuck and replayed sensors, which show what they hold or replay.

    >>> quiet = np.zeros((4, 2))
    >>> inject(quiet, 2, 4, Fault("drift", (1,), 3.0), np.random.default_rng(0))[:, 1]
    array([0. , 0. , 1.5, 3. ])
    """
    if not 1 <= start < stop <= len(values):
        raise ValueError(f"a stretch from {start} to {stop} must lie after the first of {len(values)} windows")
    changed, sensors = np.array(values, dtype=np.float64), np.array(fault.sensors, dtype=np.intp)
    if fault.kind in REPLAYED:
        if replayed is None or replayed.shape != changed[start:stop].shape:
            raise ValueError(f"a replay needs another stretch of {stop - start} windows: give them as replayed")
        shown = np.array(replayed[:, sensors])
        if fault.kind == "concealed":
            shown[:, 0] = values[start:stop, sensors[0]] + fault.size * rng.choice([-1.0, 1.0])
        changed[start:stop, sensors] = shown
    else:
        changed[start:stop, sensors] = _course(values, start, stop - start, fault, sensors, rng)
    return changed


def _course(values: Array, start: int, length: int, fault: Fault, sensors: Index, rng: np.random.Generator) -> Array:
    """What sensors show whose fault replays nothing, (length, n)."""
    read = values[start : start + length, sensors]
    if fault.kind == "silent":
        return np.full(read.shape, np.nan)
    if fault.kind == "stuck":
        return np.broadcast_to(_last_reading(values[:start, sensors]), read.shape)
    if fault.kind == "noise":
        return np.asarray(read + fault.size * rng.standard_normal(read.shape))
    signs = rng.choice([-1.0, 1.0], size=sensors.size)
    ramp = np.arange(1, length + 1)[:, None] / length if fault.kind == "drift" else 1.0
    return np.asarray(read + fault.size * signs * ramp)


def _last_reading(before: Array) -> Array:
    """The last reading of each sensor that is there, NaN where none is."""
    present = ~np.isnan(before)
    last = len(before) - 1 - present[::-1].argmax(axis=0)
    return before[last, np.arange(before.shape[1])]


def draw_fault(rng: np.random.Generator, kind: str, alive: Index, number: int, near: Array | None = None) -> Fault:
    """A fault of this kind in `number` of the sensors `alive`; sizes are log-uniform from 1 to 10 robust units.

    near: absolute correlations, (K, K): a fault is concealed by the two sensors nearest to it.
    """
    if as_count(number, "number", least=1) > len(alive):
        raise ValueError(f"{number} faulty sensors need as many that vary, and there are {len(alive)}: ask for fewer")
    sensors = np.sort(rng.choice(alive, size=number, replace=False))
    if kind == "concealed" and near is not None:
        others = alive[alive != sensors[0]]
        nearest = others[np.argsort(-near[sensors[0], others], kind="stable")[:2]]
        sensors = np.concatenate([sensors[:1], nearest])
    size = float(np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST)))) if kind in SIZED else 0.0
    return Fault(kind, tuple(int(k) for k in sensors), min(size, LARGEST))


def correlations(values: Array) -> Array:
    """Absolute correlations of windows, (T, K), as (K, K); what is missing counts as usual."""
    present = ~np.isnan(values)
    means = np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    centred = np.where(present, values - means, 0.0)
    norms = np.sqrt(np.einsum("tk,tk->k", centred, centred))
    return np.asarray(np.abs(centred.T @ centred) / np.maximum(np.outer(norms, norms), 1e-300))


def draw_number(rng: np.random.Generator, most: int) -> int:
    """How many sensors are faulty: 1, 2 or 3 with probabilities 1/2, 1/4 and 1/4, but not above `most`."""
    return min(int(rng.choice(_NUMBERS, p=_CHANCES)), as_count(most, "most", least=1))


def varying(values: Array) -> Index:
    """The sensors that deliver something in most of the windows and do not stand still."""
    chosen = np.flatnonzero(2 * (~np.isnan(values)).sum(axis=0) > len(values))
    return chosen[np.nanstd(values[:, chosen], axis=0) >= VARIES]
