"""One policy over recorded windows: every measurement with what it was to tell apart and what it changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eccaht.arrays import Array, Index, as_count, inner
from eccaht.model.rows import Excess
from eccaht.policies import Policy
from eccaht.run.record import Change, Record
from eccaht.run.replay import Reading, Replay
from eccaht.run.whole import WholeWindows


@dataclass(frozen=True)
class Entry:
    """One measurement.

    Two hypotheses are compared: the set held before the reading, and the same set with its `champion` replaced by its
    `challenger`: the pair measured, or else the change that the earlier readings find hardest to rule out. Where
    the number of anomalies is open there may be no champion or no challenger (-1). `expected` and `expected_swapped`
    are the mean readings under either, with shifts as known, or as estimated before it.

    A window told whole is shown as the weighted sum that tells these two apart as well as the window does.
    """

    number: int  # from 1
    window: int
    time: np.datetime64  # start of the window
    weights: Array
    reading: float
    noise: float  # standard deviation of the reading
    champion: int
    challenger: int
    expected: float
    expected_swapped: float
    evidence: float  # what the reading adds to the log-odds of the held set over the other
    held: Index  # the set before the reading
    decision: Index  # and after it
    moved: Array  # change of every score, (K,)
    values: Array  # what every sensor read in the window, NaN where it delivered nothing, (K,)
    scores: Array  # after the reading, (K,)
    lead: float
    vector: Array | None = None  # the window, if it was told whole
    inflation: float = 1.0  # noise variance over that of a window with all its rows
    excess: Excess | None = None  # noise that missing rows add to a window told whole


def search(
    policy: Policy,
    replay: Replay,
    max_measurements: int | None = None,
    *,
    vectors: bool = False,
    record: Record | None = None,
) -> Iterator[Entry]:
    """Measure until the policy stops, the data end or the measurements are used up, yielding one entry a reading.

    vectors: tell each window whole instead of a weighted sum of it. record: takes the readings too.
    """
    limit = np.inf if max_measurements is None else as_count(max_measurements, "max_measurements", least=1)
    record = Record.of(policy) if record is None else record
    whole = WholeWindows(policy.problem)
    number = 0
    while number < limit and not policy.should_stop():
        held, before = policy.decision, policy.scores.copy()
        change = record.best_change(held) if vectors else _compared(policy, held, record)
        other = change.of(held)
        odds, near, far = record.log_odds(held, other), record.shifts(held), record.shifts(other)
        taken = _whole(policy, replay, record, whole, held, other) if vectors else _sum(policy, replay, record)
        if taken is None:
            return
        reading, noise, vector, excess = taken
        number += 1
        c, scores = reading.weights, policy.scores.copy()
        yield Entry(
            number=number,
            window=reading.window,
            time=reading.time,
            weights=c,
            reading=reading.value,
            noise=noise,
            champion=change.out,
            challenger=change.into,
            expected=inner(c, policy.problem.mean + near),
            expected_swapped=inner(c, policy.problem.mean + far),
            evidence=record.log_odds(held, other) - odds,
            held=held,
            decision=policy.decision,
            moved=scores - before,
            values=replay.values,
            scores=scores,
            lead=policy.lead,
            vector=vector,
            inflation=reading.inflation,
            excess=excess,
        )


# what was read, its noise, and if the window was told whole, its values and the noise of missing rows
Taken = tuple[Reading, float, Array | None, Excess | None]


def _sum(policy: Policy, replay: Replay, record: Record) -> Taken | None:
    reading = replay.read(policy.ask(), short=policy.takes_inflation)
    if reading is None:
        return None
    inflation = reading.inflation if policy.takes_inflation else 1.0
    policy.tell(reading.weights, reading.value, inflation=inflation)
    record.add(reading.weights, reading.value, inflation)
    variance = inflation * policy.problem.noise_variance(reading.weights)
    return reading._replace(inflation=inflation), float(np.sqrt(variance)), None, None


def _whole(
    policy: Policy, replay: Replay, record: Record, whole: WholeWindows, held: Index, other: Index
) -> Taken | None:
    """Tell the next window, with what it lacks as NaN."""
    window = replay.whole()
    if window is None:
        return None
    x, place, time, excess = window
    added = None if excess is None else excess.dense()
    policy.observe(x, excess=added)
    record.add_vector(x, added)
    shift = policy.problem.shift
    size = np.where(shift == 0.0, 1.0, shift)  # of either sign: 1 will do for a picture
    difference = np.zeros(shift.size)
    difference[held] += size[held]
    difference[other] -= size[other]
    c, y, noise = whole.contrast(x, difference, excess)
    inflation = 1.0
    if excess is not None and noise > 0.0:
        inflation = noise**2 / max(noise**2 - excess.quad(c), np.finfo(float).tiny)
    return Reading(c, y, place, time, inflation), noise, x, excess


def _compared(policy: Policy, held: Index, record: Record) -> Change:
    """The measured pair if it straddles the edge of the set, else the change of the set that is hardest to rule out."""
    members = set(held.tolist())
    if policy.pair is not None and policy.pair[0] in members and policy.pair[1] not in members:
        return Change(*policy.pair, 0.0)
    return record.best_change(held)
