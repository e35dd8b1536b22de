"""How rare what the streams of a plant show is in normal operation, counted on its history.

The history is cut into blocks of time. Each block is watched with normal operation fitted to the others, so that
nothing counted has been seen. Four steps, each by the blocks other than the one it is applied to:

1. *Scales*, by length and sensor: windows have memory, so that sums vary more than if they were independent, by a
   factor that is measured; courses and powers count beyond the mean of a window.
2. *Components* of each length: one sensor, several that move alike, several, in each view; and the distances of all,
   of their scores and of their innovations.
3. *Rarity* of each component at each length; the statistic is the rarest of all: see `rarity`.
4. *Passes* of the statistic say how rare that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.data.windows import Windows
from eccaht.incident.drill import BLOCKS as DRILLED_BLOCKS
from eccaht.incident.drill import fitted_without, kept, moments_of
from eccaht.incident.quiet import Quiet, longest_repeats, quiet_of, sample_quiet
from eccaht.model.model import Model
from eccaht.model.normal import Normal, history_deviations, knots_of
from eccaht.model.scatter import scatter_of
from eccaht.watch.detector import components
from eccaht.watch.rarity import Passes, Rarity
from eccaht.watch.streams import LENGTHS, Look, Streams
from eccaht.watch.wander import AGES, usual_moves

Basis = Literal["counted", "extrapolated", "simulated"]
BLOCKS, MORE_BLOCKS = 6, 9  # of a history, and of a short one
SHORT = 2000  # windows
NAMES = (
    *(f"{view} {what}" for view in ("shift", "own") for what in ("one", "alike", "several")),
    *(f"{view} {what}" for view in ("power", "free") for what in ("one", "several")),
    "dense",
    "fresh",
)
_ALIGNED = 64  # windows: candidates of segments that begin so far apart are thinned alike
_RUN_IN = 4 * _ALIGNED  # windows, more than the longest stretch and what a local level may wait for
_SEGMENTS = 64
_MOST = 1_000_000  # windows times sensors of a history that are looked at
_LEAST_INFLATION = 0.25
_PRIOR = 20.0  # stretches that the mean of all sensors counts for in the inflation of one
_LEAST_SPREAD = 0.1  # of the evidence of a window, in nats


def law_of(normal: Normal, values: Array, moments: Array) -> Normal:
    """Normal operation of innovations: scores by the ranks of those of a history, (T, K), and what these share."""
    deviations = history_deviations(values, moments, normal.level, normal.profile, normal.width)
    innovations = normal.innovations(np.full(normal.size, np.nan), deviations)[1:]
    knots, heights = knots_of(innovations, np.ones(normal.size))
    law = replace(normal, knots=knots, knot_scores=heights)
    return replace(law, scatter=scatter_of(law.scores(innovations)))


def second_moments(normal: Normal, law: Normal, values: Array, moments: Array) -> Array:
    """Second moments of the scores of deviations and of innovations in a history, (2, K, K)."""
    deviations = history_deviations(values, moments, normal.level, normal.profile, normal.width)
    innovations = normal.innovations(np.full(normal.size, np.nan), deviations)[1:]
    found = [scores.T @ scores / len(scores) for scores in (normal.scores(deviations), law.scores(innovations))]
    return np.stack(found)


def looks_of(normal: Normal, law: Normal, values: Array, moments: Array, before: int = 0) -> Look:
    """What all windows of values, (T, K), but the first `before`, show, each part with a first axis of T windows.

    Long histories are cut into segments that go side by side; each begins _RUN_IN windows before it counts.
    """
    T = len(values) - before
    segments = int(np.clip((T - _RUN_IN) // (2 * _RUN_IN), 1, _SEGMENTS))
    stride = T - _RUN_IN if segments == 1 else -(-(T - _RUN_IN) // (segments * _ALIGNED)) * _ALIGNED
    begins = before + np.arange(0, T if segments > 1 else 1, max(stride, 1))[:segments]
    segments = len(begins)
    streams = Streams(normal, law, plants=segments)
    nothing = np.full(normal.size, np.nan)
    for ago in range(normal.width, 0, -1):
        places = begins - ago
        streams.follow(np.where((places >= 0)[:, None], values[np.maximum(places, 0)], nothing))
    looks, places = [], begins
    for step in range(stride + _RUN_IN):
        places = np.minimum(begins + step, len(values) - 1)
        if streams.ready:
            lengths, *shown = streams.update(values[places], moments[places])
            looks.append(Look(lengths, *(part.astype(np.float32) for part in shown)))
        else:
            streams.follow(values[places])
    late = stride + _RUN_IN - len(looks)  # windows before the level was known
    joined: list[Any] = []
    for name in Look._fields:
        part = np.stack([getattr(look, name) for look in looks], axis=1)  # (P, windows, ...)
        joined.append(np.concatenate([part[0], *part[1:, _RUN_IN - late :]])[: T - late])
    return Look(*joined)


@dataclass(frozen=True, eq=False)
class Scales:
    """What makes sums comparable over sensors.

    shift, own, power, free: roots of the inflations by memory, by length and sensor, (J, K). power_usual, free_usual:
    mean and standard deviation of a window, (2, K).
    """

    shift: Array
    own: Array
    power: Array
    free: Array
    power_usual: Array
    free_usual: Array

    @staticmethod
    def of(looks: Sequence[Look], usual: tuple[Array, Array]) -> Scales:
        """Measure them on the windows of blocks; usual: see `usual_of`."""
        known = [look.lengths > 0 for look in looks]
        power, free = usual
        return Scales(
            _inflation([look.shift for look in looks], known),
            _inflation([look.own for look in looks], known),
            _inflation([_standardised(look.power, look.lengths, power) for look in looks], known),
            _inflation([_standardised(look.free, look.lengths, free) for look in looks], known),
            power,
            free,
        )

    def components(self, look: Look) -> Array:
        """The components of a look, (12, J), or of many, (12, T, J); 0 where there are not so many windows."""
        shift, own = components(look.shift / self.shift), components(look.own / self.own)
        power = _standardised(look.power, look.lengths, self.power_usual) / self.power
        free = _standardised(look.free, look.lengths, self.free_usual) / self.free
        wide = [components(np.maximum(z, 0.0))[[0, 2]] for z in (power, free)]
        found = np.concatenate([shift, own, *wide, look.dense[None], look.fresh[None]])
        return np.where(look.lengths > 0, found, 0.0)


def usual_of(looks: Sequence[Look]) -> tuple[Array, Array]:
    """What a window shows of power and free courses: mean and standard deviation of each sensor, (2, K) each.

    Of all blocks, also for the block that it is applied to: each was looked at by a fit to the others, so that where
    one is rougher all others seem calmer, which must not count twice.
    """
    power, free = (_usual(np.concatenate([getattr(look, name)[:, 0] for look in looks])) for name in ("power", "free"))
    return power, free


def _usual(windows: Array) -> Array:
    """Mean and standard deviation of each sensor, (2, K)."""
    rows = windows.astype(np.float64)
    return np.stack([rows.mean(axis=0), np.maximum(rows.std(axis=0), _LEAST_SPREAD)])


def _standardised(means: Array, lengths: NDArray[np.intp], usual: Array) -> Array:
    """Means over stretches in units of the standard deviation that they would have if windows were independent."""
    return np.asarray((means - usual[0]) * np.sqrt(lengths)[..., None] / usual[1])


def _inflation(blocks: Sequence[Array], known: Sequence[NDArray[np.bool_]]) -> Array:
    """Roots of the mean squares, (J, K): those of one sensor drawn to the mean of all the more, the fewer stretches."""
    squares = np.sum(
        [
            (np.square(z) * there[..., None]).sum(axis=0, dtype=np.float64)
            for z, there in zip(blocks, known, strict=True)
        ],
        axis=0,
    )
    number = np.sum([there.sum(axis=0) for there in known], axis=0)[:, None]
    each = np.where(number > 0, squares / np.maximum(number, 1), 1.0)
    worth = number / np.array(LENGTHS)[: len(each), None]
    found = (worth * each + _PRIOR * each.mean(axis=1, keepdims=True)) / (worth + _PRIOR)
    return np.sqrt(np.maximum(found, _LEAST_INFLATION))


@dataclass(frozen=True, eq=False)
class Rule:
    """All that says how unusual a look is.

    passes: of the statistic. calm: what the statistic of short stretches stays below in nine of ten windows.
    law: of the innovations, see `law_of`. quiet: the yardstick by which sensors are named.
    second: second moments of scores, see `second_moments`.
    moves: how far sensors usually are from a local level of some windows ago, see `wander`; 0 for other levels.
    simulated: whether the windows were drawn from the model and not those of its history.
    """

    scales: Scales
    rarity: Rarity
    passes: Passes
    calm: float
    law: Normal
    quiet: Quiet
    second: Array
    moves: Array
    simulated: bool = False

    def statistic(self, look: Look) -> Array:
        """The rarity of each component at each length, (12, J) or (12, T, J)."""
        return self.rarity.by_length(self.scales.components(look))

    def basis(self, every: float) -> Basis:
        """Whether so rare a value was counted in the history, is extrapolated from what was, or simulated."""
        if self.simulated:
            return "simulated"
        return "counted" if self.passes.threshold(every) <= self.passes.levels[-1] else "extrapolated"


CALM_LENGTHS = 8  # the first of LENGTHS, up to 27 windows, say whether all is normal again


def rule_of_history(model: Model, windows: Windows) -> Rule:
    """Count on the windows that a model was calibrated on, without gaps."""
    if model.normal is None or windows.names != model.names:
        raise ValueError("a plant is watched by a model of normal operation and the windows it was calibrated on")
    values, moments = windows.values, moments_of(windows)
    blocks = BLOCKS if len(values) >= SHORT else MORE_BLOCKS
    most = max(_MOST // values.shape[1] // blocks, 500)
    looks = []
    for first, last in _blocks(len(values), blocks):
        rest = np.r_[0:first, last : len(values)]
        normal = fitted_without(model, values, moments, slice(first, last))
        begin, stop = max(first - normal.width, 0), min(last, first + most)
        law = law_of(normal, values[rest], moments[rest])
        looks.append(looks_of(normal, law, values[begin:stop], moments[begin:stop], before=first - begin))
    usual, found = usual_of(looks), []
    for b, look in enumerate(looks):
        others = [other for c, other in enumerate(looks) if c != b]
        found.append(Scales.of(others, usual).components(look))
    law = law_of(model.normal, values, moments)
    second = second_moments(model.normal, law, values, moments)
    local = model.normal.level == "local"
    moves = usual_moves(values, model.normal.width) if local else np.zeros((len(AGES), values.shape[1]))
    return _rule(looks, found, law=law, quiet=_quiet(model, values, moments), second=second, moves=moves)


def _blocks(windows: int, number: int) -> list[tuple[int, int]]:
    """The first window of each block of time, and the one after its last."""
    return list(pairwise(np.linspace(0, windows, number + 1).astype(int).tolist()))


def _quiet(model: Model, values: Array, moments: Array) -> Quiet:
    """The yardstick by which sensors are named: that of the model's drills, or measured as these do."""
    drilled, blocks = kept(model), _blocks(len(values), DRILLED_BLOCKS)
    repeats = np.array([longest_repeats(values[first:last]) for first, last in blocks])
    if drilled is not None:
        quiet = drilled.quiet
    else:
        normals = [fitted_without(model, values, moments, slice(*block)) for block in blocks]
        samples = [
            sample_quiet(normal, values[first:last], moments[first:last])
            for normal, (first, last) in zip(normals, blocks, strict=True)
        ]
        quiet = quiet_of(samples, longest_repeats(values))
    return replace(quiet, still=quiet.still * _unsteady(repeats))


def _unsteady(repeats: Array) -> Array:
    """By how much the longest repetition of a sensor in a block exceeds those in the others, at most, (K,).

    repeats: by block and sensor. Where this is much, the longest one of the history says little of those to come.
    """
    ordered = np.sort(repeats, axis=0)
    return np.asarray(ordered[-1] / ordered[-2])


def _rule(looks: Sequence[Look], found: Sequence[Array], **parts: Any) -> Rule:
    """The rule of all blocks; found: the components of each by the scales of the others; parts: all else of it.

    The peaks are of blocks whose rarities are those of the others.
    """
    statistics = []
    for b, values in enumerate(found):
        others = [c for c in range(len(found)) if c != b]
        lengths = np.concatenate([looks[c].lengths for c in others])
        rarity = Rarity.of(np.concatenate([found[c] for c in others], axis=1), lengths)
        statistics.append(rarity.by_length(values))
    largest = [statistic.max(axis=(0, 2)) for statistic in statistics]
    short = np.concatenate([statistic[:, :, :CALM_LENGTHS].max(axis=(0, 2)) for statistic in statistics])
    return Rule(
        scales=Scales.of(looks, usual_of(looks)),
        rarity=Rarity.of(np.concatenate(found, axis=1), np.concatenate([look.lengths for look in looks])),
        passes=Passes.of(largest),
        calm=float(np.quantile(short, 0.9)),
        **parts,
    )
