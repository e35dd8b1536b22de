"""The loop of every search, `steps`: the policy asks for a measurement, the world gives its reading."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
from scipy.special import ndtri

from eccaht.base.arrays import Array, Index, as_count, frozen
from eccaht.streams.policies import Policy
from eccaht.streams.posterior import Confidence
from eccaht.streams.run.world import NO_TIME, Reading, Window, World, as_world
from eccaht.streams.stopping import Never

if TYPE_CHECKING:
    from eccaht.streams.covariance.base import Excess

SAFE_LEAD = 50.0  # nats

Pair = tuple[int, int]  # champion and challenger
_NO_PAIR: Pair = (-1, -1)
_MOST_LOST = 1000  # results in a row


class Step(NamedTuple):
    """One measurement: what was read, and where. Flat, so that a list of steps is a table.

    What the policy concludes (`decision`, `lead`, `scores`) can be asked of the policy, or kept by a recorder.
    """

    number: int  # from 1
    weights: Array  # really used, (K,) and read-only; 0 for a window observed as a whole vector
    reading: float  # NaN for a window observed as a whole vector
    champion: int = -1  # the pair that was measured, -1 without one
    challenger: int = -1
    window: int = -1  # counted from 0, -1 where readings come from no window
    time: np.datetime64 = NO_TIME  # start of the window
    inflation: float = 1.0  # noise variance over the usual one, as given to the policy
    values: Array | None = None  # all that the window holds, NaN where a sensor delivered nothing
    whole: bool = False  # did the policy get all these values instead of a weighted sum?
    excess: Excess | None = None  # noise that missing rows add to a window observed as a whole vector


class Recorder(Protocol):
    """Keeps what it needs of every step; `before` does nothing unless it is overridden."""

    def before(self, policy: Policy, pair: Pair | None) -> None:  # noqa: ARG002
        """Look at the policy before a reading; `pair`: the streams it shall separate, if it was chosen for a pair."""
        return

    def after(self, policy: Policy, step: Step) -> None:
        """Look at the policy after it has taken the reading."""


def steps(
    policy: Policy,
    world: World | Callable[[Array], float | None],
    limit: int | None = None,
    *,
    whole: bool = False,
    obey_stopping: bool = True,
    recorders: Sequence[Recorder] = (),
    workers: int | None = None,
) -> Iterator[Step]:
    """Measure until the policy stops, the data end or `limit` measurements were made, yielding one step each.

    world: where readings come from; a function from weights to a reading will do.
    whole: give the policy all streams of a window instead of a weighted sum (policies that can take whole vectors).
    obey_stopping: whether the policy's stopping rule ends the search.
    workers: how many measurements are under way at once, each read in a thread of its own; results are given in the
        order in which they come. A result of None or NaN is lost: the measurement is given up, and counts for `limit`.

    >>> from eccaht import Problem, Simulator, families, make_policy
    >>> problem = Problem(families.identity(8), shift=6.0, n_anomalies=1, budget=1.0)
    >>> policy, world = make_policy("ecc-aht", problem), Simulator(problem, anomalies=[5])
    >>> for step in steps(policy, world, limit=100):
    ...     last = step.number, policy.lead > 0
    >>> policy.decision, last
    (array([5]), (1, True))
    """
    most = math.inf if limit is None else as_count(limit, "limit", least=0)
    source = as_world(world)
    if workers is not None:
        if whole:
            raise ValueError("workers read weighted sums, not whole windows: leave out workers")
        yield from _steps_of_workers(
            policy, source, most, obey_stopping, recorders, as_count(workers, "workers", least=1)
        )
        return
    number, weighs = 0, policy.can.inflation
    while number < most and not (obey_stopping and policy.should_stop()):
        number += 1
        pair = None if whole else policy.pair
        for recorder in recorders:
            recorder.before(policy, pair)
        if whole:
            window = source.whole()
            step = None if window is None else _observed(policy, window, number)
        else:
            reading = source.read(policy.ask(), short=weighs)  # Algorithm 1, line 14
            step = None if reading is None else _taken(policy, reading, number, pair, weighs)
        if step is None:
            return
        for recorder in recorders:
            recorder.after(policy, step)
        yield step


def _taken(policy: Policy, reading: Reading, number: int, pair: Pair | None, weighs: bool) -> Step:
    weights, value, window, time, inflation, values = reading
    if not weighs:
        inflation = 1.0
    policy.tell(weights, value, inflation=inflation)
    fields = (number, weights, value, *(pair or _NO_PAIR), window, time, inflation, values, False, None)
    return Step._make(fields)  # takes half the time of Step(...)


def _steps_of_workers(
    policy: Policy, world: World, most: float, obey_stopping: bool, recorders: Sequence[Recorder], count: int
) -> Iterator[Step]:
    """Keep `count` measurements under way, each in a thread; what is pending already comes first.

    If reading fails or the caller leaves, what is under way stays pending. Where the search ends by itself it is given
    up: its result is not used.
    """
    number, begun, lost, weighs = 0, 0, 0, policy.can.inflation
    waiting = list(policy.pending)
    under_way: dict[Future[Reading | None], tuple[Array, Pair | None]] = {}
    done = SimpleQueue[Future[Reading | None]]()  # in the order in which results come

    def over() -> bool:
        return obey_stopping and policy.should_stop()

    with ThreadPoolExecutor(count, thread_name_prefix="measure") as pool:
        ended = over()
        while not ended:
            while len(under_way) < count and begun < most:
                pair = None if waiting else policy.pair
                c = waiting.pop(0) if waiting else policy.ask(batch=1)[0]
                future = pool.submit(world.read, c, short=weighs)
                under_way[future] = c, pair
                future.add_done_callback(done.put)
                begun += 1
            if not under_way:
                break
            future = done.get()
            reading = future.result()
            c, pair = under_way.pop(future)
            if reading is None:
                policy.forget(c)
                break
            value: float | None = reading.value
            if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
                policy.forget(c)
                lost += 1
                if lost >= _MOST_LOST:
                    raise RuntimeError(f"{lost} results in a row were lost: see to the instrument")
                continue
            number, lost = number + 1, 0
            for recorder in recorders:
                recorder.before(policy, pair)
            step = _taken(policy, reading, number, pair, weighs)
            if reading.weights is not c and not np.array_equal(reading.weights, c):
                policy.forget(c)  # other weights were read in its place
            for recorder in recorders:
                recorder.after(policy, step)
            ended = over()
            yield step
        for c, _ in under_way.values():
            policy.forget(c)


def _observed(policy: Policy, taken: Window, number: int) -> Step:
    x, window, time, excess = taken
    policy.observe(x, excess=None if excess is None else excess.dense())
    nothing = frozen(np.zeros(policy.problem.size))
    return Step(number, nothing, math.nan, window=window, time=time, values=x, whole=True, excess=excess)


class ShiftEstimates(NamedTuple):
    """Estimated shifts of the named streams and the interval in which each lies with probability `level`.

    They hold if the named set is the right one.
    """

    values: Array
    low: Array
    high: Array
    level: float

    @classmethod
    def of(cls, values: Array, deviations: Array, level: float = 0.95) -> ShiftEstimates:
        reach = ndtri(0.5 + 0.5 * level) * deviations
        return cls(values, values - reach, values + reach, level)


def stays_right(policy: Policy, anomalies: Index) -> bool:
    """Is the set right, and will it stay so? Lets simulations, where the truth is known, end early.

    The likelihood of a wrong set over that of the true one is a martingale: one that trails by 50 nats ever catches up
    with probability exp(-50). Only policies whose lead is exact know how far a swap trails, and only where they
    believe the covariance of the world.
    """
    made = policy.recipe
    exact = policy.can.exact_lead and made is not None and not made.options.get("regularize")
    return exact and policy.lead >= SAFE_LEAD and np.array_equal(policy.decision, anomalies)


@dataclass(frozen=True)
class Identification:
    """The streams named, after how many measurements, and why the search ended there.

    confidence: the posterior probability of the set and how it was found; None where the policy cannot tell.
    fit: the probability of readings as bad as these if the set is right; near 0 the model does not hold and the
        confidence means nothing. None where the policy cannot tell.
    shifts: where their sizes were not known.
    """

    anomalies: Index
    n_measurements: int
    reason: Literal["stopped", "max_measurements"]
    names: tuple[str, ...] | None = None
    confidence: Confidence | None = None
    fit: float | None = None
    shifts: ShiftEstimates | None = None


def search(
    policy: Policy,
    measure: Callable[[Array], float | None],
    max_measurements: int | None = None,
    *,
    workers: int | None = None,
) -> Identification:
    """Run the loop: ask, measure, tell, until the policy stops or the measurements are used up.

    measure(c) returns the reading of the weights c, from a simulator, a replay or an instrument. The result's reason is
    "stopped" if the policy's stopping rule ended the search.

    workers: for instruments that measure in parallel: so many calls of measure, in threads, are under way at once. One
    that returns None or NaN has lost its result: the measurement is given up and counts for max_measurements only.
    Measurements that are pending already are made first. If measure raises, what is under way stays pending.

    >>> from eccaht import Problem, Simulator, families, make_policy
    >>> problem = Problem(families.toeplitz(20, 0.5), shift=5.0, n_anomalies=1, budget=2.0)
    >>> world = Simulator(problem, anomalies=[7])
    >>> search(make_policy("ecc-aht", problem), world.measure, max_measurements=200).anomalies
    array([7])
    """
    if max_measurements is not None:
        as_count(max_measurements, "max_measurements", least=0)
    elif isinstance(policy.stopping, Never):
        raise ValueError("the policy has no stopping rule: give max_measurements, or make it with stopping=...")
    count = sum(1 for _ in steps(policy, measure, max_measurements, workers=workers))
    return Identification(
        anomalies=policy.decision,
        n_measurements=count,
        reason="stopped" if policy.should_stop() else "max_measurements",
        names=None if policy.problem.names is None else policy.decision_names,
        confidence=policy.confidence,
        fit=policy.fit,
        shifts=estimated_shifts(policy) if policy.problem.unknown_shift else None,
    )


def identify(
    policy: Policy,
    measure: Callable[[Array], float | None] | None = None,
    max_measurements: int | None = None,
    *,
    workers: int | None = None,
    **options: object,
) -> Identification:
    """The former name of `search`; it has no options."""
    if not hasattr(policy, "ask") or measure is None or options:
        raise TypeError(
            "eccaht.identify runs the search of a policy, now called eccaht.search; for data call "
            "model.identify(data), with model = eccaht.calibrate(history) or eccaht.load_model(path)"
        )
    return search(policy, measure, max_measurements, workers=workers)


def estimated_shifts(policy: Policy, level: float = 0.95) -> ShiftEstimates | None:
    """Estimates of the decided streams' shifts, where the policy keeps a joint belief."""
    return None if policy.shifts is None else ShiftEstimates.of(*policy.shifts, level)
