"""`python -m benchmarks.active [--setting sums singles] [--data CSV]`: changes found with few readings a step.

`eccaht.Watch` beside rules of the literature, all at one counted rate of false alarms: each has its threshold from
quiet runs under its own rule of reading. Rivals follow a CUSUM a stream of the likelihood of what was read together,
TRAS by its paper of each reading alone. docs/measured/watching.md has the numbers.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.watch_simulated import Counted, calibrate, count, draw_shifts
from eccaht import Problem, Watch, families
from eccaht.base.arrays import Array, Index
from eccaht.base.randomness import rng_for
from eccaht.measurements import AtMost, Budget, Constraint

SHIFTED, MOST_SHIFTED = (1, 3, 5), 5  # streams that change, and that the watch expects at most
ASKED, EVERY = (200.0, 500.0), 500.0  # steps to a false alarm: counted for each, delays are at EVERY
LONG = 1000  # steps of a quiet run
BEFORE, MOST = 50, 1000  # quiet steps before a change, and steps until it is given up
NAMING = 100  # steps that are waited for a set to be certain
TOPS = (1, 3)  # rivals add up so many of their largest CUSUMs; the better one is shown
GROWTH, EXPLORED = 0.05, 0.2  # what TRAS adds to streams that it does not read; how often epsilon-greedy explores


class Setting(NamedTuple):
    """So many measurements a step of K streams, and the shift of a stream that changes."""

    K: int
    readings: int
    shift: float
    measurements: Constraint
    runs: int = 400  # with a change, and quiet ones of a rival

    def problem(self, S: Array) -> Problem:
        return Problem(S, shift=self.shift, n_anomalies=(1, MOST_SHIFTED), measurements=self.measurements)

    def about(self, S: Array) -> Array:
        """The measurements that tell most of each stream, (K, m, K)."""
        Q = np.linalg.inv(S)
        if self.readings == 1:
            return np.asarray(Q[:, None, :])
        return np.stack([np.eye(self.K)[_group(S, k, self.readings)] for k in range(self.K)])


def _group(S: Array, k: int, readings: int) -> list[int]:
    """A stream and those that cancel most of its noise, one by one."""
    group, left = [k], S.copy()
    while len(group) < readings:  # left: the covariance given the others of the group
        cancelled = left[k] ** 2 / np.maximum(left.diagonal(), 1e-9)
        cancelled[group] = -1.0
        group.append(j := int(cancelled.argmax()))
        left = left - np.outer(left[j], left[j]) / left[j, j]
    return group


SETTINGS = {
    "sums": Setting(40, 1, 1.5, Budget(1e3)),
    "singles": Setting(50, 5, 1.0, AtMost(1)),
}


def noises(K: int, data: Path | None) -> dict[str, Array]:
    """Covariances of K streams of unit variance; the last one is that of a recording, if there is one."""
    loads = rng_for(0, "factors").standard_normal((K, 3))
    found = {
        "identity": np.eye(K),
        "toeplitz 0.8": families.toeplitz(K, 0.8).dense(),
        "factors": loads @ loads.T + 0.9 * np.eye(K),
        "block 0.8": families.block(K, 0.8, size=10).dense(),
        "kronecker 0.8": families.kronecker(0.8, (K // 5, 5)).dense(),
    }
    if data is not None:
        rows = np.genfromtxt(data, delimiter=",", skip_header=1)[:, 1 : K + 1]
        found["recorded"] = np.corrcoef(rows.T) + 0.05 * np.eye(K)
    return {name: S / np.sqrt(np.outer(S.diagonal(), S.diagonal())) for name, S in found.items()}


Choose = Callable[["Cusums"], Array]  # measurements of each run, (R, m, K)


class Cusums:
    """Runs side by side under one rule of reading: W <- max(0, W + log likelihood ratio) for each stream."""

    def __init__(self, setting: Setting, S: Array, choose: Choose, *, growth: float = 0.0, alone: bool = False) -> None:
        self.setting, self.covariance, self.choose = setting, S, choose
        self.about, self.units = setting.about(S), np.eye(setting.K)
        self._growth, self._alone, self._root = growth, alone, np.linalg.cholesky(S).T
        self.start(1)

    def start(self, runs: int, *names: str) -> None:
        """Every W is 0; names: of the generator of noise and exploration."""
        self.W, self.time, self.rng = np.zeros((runs, self.setting.K)), 0, rng_for(0, *names)

    def step(self, shifts: Array | float = 0.0) -> Array:
        """Read once in each run; the sums of the largest W, (R, len(TOPS))."""
        self._take(self.choose(self), self.rng.standard_normal(self.W.shape) @ self._root + shifts)
        self.time += 1
        top = -np.sort(-self.W, axis=1)[:, : max(TOPS)]
        return np.stack([top[:, :r].sum(axis=1) for r in TOPS], axis=1)

    def _take(self, C: Array, x: Array) -> None:
        noise = C @ self.covariance @ C.swapaxes(-1, -2)
        if self._alone:
            noise = noise * np.eye(C.shape[-2])
        H, y = np.linalg.solve(noise, C), C @ x[:, :, None]
        shift = self.setting.shift
        gained = shift * (H * y).sum(axis=-2) - 0.5 * shift**2 * (C * H).sum(axis=-2)
        read = np.abs(C).max(axis=-2) > 0.0
        self.W = np.where(read, np.maximum(self.W + gained, 0.0), self.W + self._growth)

    def suspects(self, count: int) -> Index:
        """The streams of the largest W of each run, (R, count); by chance where they are equal."""
        return np.argsort(-self.W - 1e-9 * self.rng.random(self.W.shape), axis=1)[:, :count]


def in_turn(rule: Cusums) -> Array:
    """Blocks of neighbours."""
    m, K = rule.setting.readings, rule.setting.K
    return np.broadcast_to(rule.units[(rule.time * m + np.arange(m)) % K], (len(rule.W), m, K))


def cancelled_in_turn(rule: Cusums) -> Array:
    """What tells most of one stream after the other: S^-1 e_k."""
    return np.broadcast_to(rule.about[rule.time % rule.setting.K], (len(rule.W), *rule.about.shape[1:]))


def at_random(rule: Cusums) -> Array:
    return rule.units[rule.rng.random(rule.W.shape).argsort(axis=1)[:, : rule.setting.readings]]


def largest(rule: Cusums) -> Array:
    """TRAS, Liu, Mei & Shi (2015): the streams of the largest statistics."""
    return rule.units[rule.suspects(rule.setting.readings)]


def about_largest(rule: Cusums) -> Array:
    """What tells most of the stream of the largest statistic."""
    return rule.about[rule.suspects(1)[:, 0]]


def epsilon_greedy(rule: Cusums) -> Array:
    """Gopalan, Lakshminarayanan & Saligrama (2021): now and then what tells most of any stream."""
    explored = rule.rng.random(len(rule.W)) < EXPLORED
    return rule.about[np.where(explored, rule.rng.integers(rule.setting.K, size=len(rule.W)), rule.suspects(1)[:, 0])]


def everything(rule: Cusums) -> Array:
    return rule.units[None]


def rivals(setting: Setting, S: Array) -> dict[str, Cusums]:
    correlated = about_largest if setting.readings == 1 else largest
    return {
        "in turn": Cusums(setting, S, in_turn),
        "random": Cusums(setting, S, at_random),
        "noise-cancelled, in turn": Cusums(setting, S, cancelled_in_turn),
        "TRAS": Cusums(setting, S, largest, growth=GROWTH, alone=True),
        "TRAS, correlated": Cusums(setting, S, correlated, growth=GROWTH),
        "epsilon-greedy": Cusums(setting, S, epsilon_greedy),
        "all streams": Cusums(setting, S, everything),
    }


class Delay(NamedTuple):
    """A mean with half of its 95 % interval."""

    mean: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.half:.1f}"


def delay_of(times: Array) -> Delay:
    """Of the times of first alarms, from the start; those before the change do not count."""
    late = times[times > BEFORE] - BEFORE
    return Delay(float(late.mean()), float(1.96 * late.std(ddof=1) / np.sqrt(late.size)))


def shifts_of(setting: Setting, world: str, shifted: int) -> Array:
    """The same changes for all rules, (runs, K)."""
    return draw_shifts(setting.runs, setting.K, shifted, setting.shift, rng_for(0, world, f"{shifted} streams"))


def delays_of_rival(rule: Cusums, world: str) -> Iterator[Delay]:
    """For each of SHIFTED, with thresholds from quiet runs."""
    rule.start(rule.setting.runs, world, "quiet")
    quiet = np.stack([rule.step() for _ in range(LONG)], axis=1)
    thresholds = np.concatenate([calibrate(quiet[:, :, [i]], EVERY) for i in range(len(TOPS))])
    for shifted in SHIFTED:
        rule.start(rule.setting.runs, world, f"{shifted} streams", "noise")
        shifts, times = shifts_of(rule.setting, world, shifted), np.full((rule.setting.runs, len(TOPS)), BEFORE + MOST)
        running = np.arange(rule.setting.runs)
        while rule.time < BEFORE + MOST and running.size:
            over = rule.step(shifts[running] * (rule.time >= BEFORE)) >= thresholds
            times[running] = np.where(over, np.minimum(times[running], rule.time), times[running])
            left = (times[running] == BEFORE + MOST).any(axis=1)
            running, rule.W = running[left], rule.W[left]
        yield min(map(delay_of, times.T))


def watch_of(problem: Problem, readings: int, threshold: float) -> Watch:
    """A watch with a threshold that is not its own, in nats."""
    watch = Watch(problem, readings)
    watch._threshold = threshold
    return watch


def told(watch: Watch, x: Array) -> None:
    C = watch.ask()
    watch.tell(C, C @ x)


def quiet_evidence(problem: Problem, setting: Setting, world: str, root: Array) -> Array:
    """The evidence of quiet runs without an alarm, (R, LONG, 1)."""
    fresh, found = watch_of(problem, setting.readings, np.inf), np.zeros((setting.runs // 4, LONG, 1))
    for run, path in enumerate(found):
        watch, rng = copy.deepcopy(fresh), rng_for(run, world, "quiet")
        for t in range(LONG):
            told(watch, root @ rng.standard_normal(problem.size))
            path[t] = watch._evidence.log
    return found


class Change(NamedTuple):
    """When the alarm came, when the set was certain (infinite: never; NaN: not waited for), and was it right?"""

    alarmed: float
    certain: float = np.nan
    right: float = np.nan


def change(watch: Watch, root: Array, moved: Array, rng: np.random.Generator, named: bool) -> Change:
    """A watch that has had its quiet steps, from the change to the alarm, and to a set that is certain."""
    raised, truth = np.nan, np.flatnonzero(moved)
    while watch.time < BEFORE + MOST:
        told(watch, root @ rng.standard_normal(moved.size) + moved)
        if watch.alarm is None:
            continue
        raised = float(watch.time) if np.isnan(raised) else raised
        if not named or watch.certain or watch.time > raised + NAMING:
            break
    if watch.certain and watch.alarm is not None and named:
        return Change(raised, watch.time - raised, float(np.array_equal(watch.alarm.decision, truth)))
    return Change(BEFORE + MOST if np.isnan(raised) else raised, np.inf if named else np.nan)


class Ours(NamedTuple):
    """Mean times to a false alarm at what was ASKED, delays where it is EVERY, and the changes with their sets."""

    counted: list[Counted]
    delays: list[Delay]
    changes: list[list[Change]]


def watched(setting: Setting, S: Array, world: str) -> Ours:
    problem, root = setting.problem(S), np.asarray(np.linalg.cholesky(S), dtype=float)
    quiet = quiet_evidence(problem, setting, world, root)
    own = [Watch(problem, setting.readings, asked)._threshold for asked in ASKED]
    counted = [count(quiet, np.array([threshold])) for threshold in own]
    fresh = watch_of(problem, setting.readings, float(calibrate(quiet, EVERY)[0]))
    found: list[list[Change]] = [[] for _ in SHIFTED]
    shifts = [shifts_of(setting, world, shifted) for shifted in SHIFTED]
    for run in range(setting.runs):
        watch, rng = copy.deepcopy(fresh), rng_for(run, world, "before")
        for _ in range(BEFORE):
            told(watch, root @ rng.standard_normal(setting.K))
        if watch.alarm is None and watch.past is None:
            for place, shifted in enumerate(SHIFTED):
                after = rng_for(run, world, f"{shifted} streams", "noise")
                found[place].append(
                    change(copy.deepcopy(watch), root, shifts[place][run], after, run < setting.runs // 10)
                )
    return Ours(counted, [delay_of(np.array([each.alarmed for each in some])) for some in found], found)


def main() -> None:
    """Read the options and count."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.active", description=__doc__)
    parser.add_argument("--setting", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--noise", nargs="+", help="some of the covariances")
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--data", type=Path, help="a CSV whose columns after the first give one covariance more")
    options = parser.parse_args()
    for name in options.setting:
        setting = SETTINGS[name]._replace(runs=options.runs)
        for noise, S in noises(setting.K, options.data).items():
            if options.noise is None or noise in options.noise:
                show(setting, S, f"{name}, {noise}")


def show(setting: Setting, S: Array, world: str) -> None:
    ours = watched(setting, S, world)
    print(f"{world}: changed streams " + ", ".join(map(str, SHIFTED)))
    for asked, counted in zip(ASKED, ours.counted, strict=True):
        low, high = counted.interval
        print(f"  asked for one false alarm in {asked:g} steps: {counted.mean_time:.0f} [{low:.0f}, {high:.0f}]")
    rows = {"eccaht.Watch": ours.delays} | {
        name: list(delays_of_rival(rule, world)) for name, rule in rivals(setting, S).items()
    }
    for rule, delays in rows.items():
        print(f"  {rule:26}" + "".join(f"{delay!s:>16}" for delay in delays), flush=True)
    for shifted, changes in zip(SHIFTED, ours.changes, strict=True):
        waited = [each for each in changes if not np.isnan(each.certain)]
        sure = [each for each in waited if each.certain < np.inf]
        wrong, later = sum(not each.right for each in sure), np.mean([each.certain for each in sure])
        print(f"  {shifted} changed: {len(sure)} of {len(waited)} certain, {later:.1f} steps later; {wrong} wrong")


if __name__ == "__main__":
    main()
