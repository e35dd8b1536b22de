"""Answers as an investigation gives them, from simulated readings whose truth is known."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.signal import lfilter

from eccaht.base.arrays import Array
from eccaht.base.clock import PLAIN
from eccaht.base.randomness import rng_for
from eccaht.plants.answer import Answer, Course, Difference, Incident, Interval, Reason, Suspect
from eccaht.streams.watch.alarm import Kind

START = np.datetime64("2024-03-07T07:00:00", "us")
MINUTE = np.timedelta64(60, "s")
BEFORE = 60  # windows before the onset
OWN = 0.6  # standard deviation of what the other sensors do not predict, in that of what they do
NAMES = ("LT-101", "TT-303", "PT-402", "AT-301", "FT-202", "DP-201", "FT-102", "PT-101", "TB-201", "LT-401")


def answer_of(
    kinds: Sequence[Kind] = ("step", "noise", "drift"),
    *,
    size: float = 3.0,
    sensors: int = 24,
    windows: int = 150,
    names: Sequence[str] = NAMES,
    seed: int = 0,
    **changes: Any,
) -> Answer:
    """The first sensors have these faults from window 60 on, `size` own deviations large; no other has any.

    changes: fields of the answer or of its incident that are to be others; confidence and clock are those of both.
    """
    names = [*names, *(f"S-{k:03}" for k in range(sensors))][:sensors]
    starts = START + np.arange(windows) * MINUTE
    courses = [_course(name, starts, kind, size, k, seed) for k, (name, kind) in enumerate(zip(names, kinds))]  # noqa: B905
    runner = _course(names[len(kinds)], starts, None, size, len(kinds), seed)
    suspects = [_suspect(course, kind, True) for course, kind in zip(courses, kinds, strict=True)]
    suspects.append(_suspect(runner, "free", False))
    for k, name in enumerate(names[len(suspects) :], len(suspects)):
        suspects.append(_suspect(_course(name, starts, None, size, k, seed), "free", False))
    evidence = np.zeros(windows)
    evidence[BEFORE:] = np.cumsum(0.8 * len(kinds) + rng_for(seed, "evidence").standard_normal(windows - BEFORE))
    confidence, clock = changes.pop("confidence", 0.963), changes.pop("clock", PLAIN)
    of_incident: dict[str, Any] = {
        "began": starts[BEFORE],
        "began_interval": (starts[BEFORE] - 2 * MINUTE, starts[BEFORE] + MINUTE),
        "ended": None,
        "changed": False,
        "sensors": tuple(replace(suspect, clock=clock) for suspect in suspects),
        "evidence": 11.5 if kinds else -1.9,
        "weight": float(evidence[-1]),
        "confidence": confidence if kinds else None,
        "confident": bool(kinds) and confidence is not None and confidence >= 0.95,
        "rankings": _rankings(suspects, seed),
        "starts": starts,
        "evidence_course": evidence if kinds else np.zeros(windows),
        "courses": (*courses, runner),
        "clock": clock,
    }
    incident = Incident(**of_incident | {name: changes.pop(name) for name in [*changes] if name in of_incident})
    fields: dict[str, Any] = {
        "verdict": "wrong" if kinds else "nothing",
        "incidents": (incident,) if kinds else (),
        "looked_at": incident,
        "first": starts[BEFORE - 30],
        "last": starts[-1],
        "n_windows": windows - BEFORE + 30,
        "evidence": 11.5 if kinds else -1.9,
        "alpha": 0.05,
        "every": 8600.0,
        "quiet": None if kinds else confidence,
        "clock": clock,
        "drill": "On your own history: 200 faults drilled, 187 found, 170 sets right, 5 of 100 confident answers wrong;"
        " 4 false alarms in 200 hours of it (0.5 expected)",
    }
    return Answer(**fields | changes)


def with_incidents(answer: Answer, *others: Incident) -> Answer:
    """The answer with further incidents, in order of time."""
    incidents = sorted([*answer.incidents, *others], key=lambda incident: incident.began)
    return replace(answer, incidents=tuple(incidents), verdict="wrong")


def _course(name: str, starts: Any, kind: Kind | None, size: float, k: int, seed: int) -> Course:
    rng, T = rng_for(seed, "course", name), len(starts)
    level, scale = 10.0 + 7.0 * (k % 9), 0.5 + 0.25 * (k % 5)
    expected = level + scale * _slow(rng, T)
    own = OWN * rng.standard_normal(T)
    after = np.arange(T) >= BEFORE
    if kind in ("step", "moved", "range"):
        own += size * OWN * after
    elif kind == "drift":
        own -= size * OWN * np.clip((np.arange(T) - BEFORE) / 40.0, 0.0, None)
    elif kind == "noise":
        own[after] *= size
    read = expected + scale * own
    if kind == "free":  # a replay: its own past instead of what happens now
        read[after] = level + scale * _slow(rng, T)[after]
    elif kind == "stuck":
        read[after] = read[BEFORE]
    elif kind == "silent":
        read[after] = np.nan
    reach = 1.96 * OWN * scale
    return Course(name, starts, read, expected, expected - reach, expected + reach)


def _slow(rng: np.random.Generator, T: int) -> Array:
    noise: Array = lfilter([1.0], [1.0, -0.9], np.sqrt(1 - 0.81) * rng.standard_normal(T + 50))[50:]
    return noise


def _suspect(course: Course, kind: Kind, named: bool) -> Suspect:
    read, expected = course.read[BEFORE:], course.expected[BEFORE:]
    error = float((course.high - course.low)[0]) / 3.92 / np.sqrt(len(read))
    size = float((read - expected).mean())
    alone = float(read.mean() - course.read[:BEFORE].mean()) / (5.0 * error / OWN)
    reason = Reason(
        alone, size / error, (("PT-101", 0.61), ("FT-402", -0.32)), float(read.mean()), float(expected.mean())
    )
    interval = Interval(size - 1.96 * error, size + 1.96 * error)
    belief, evidence = (0.991, 31.5) if named else (0.012, 2.1)
    since = course.starts[BEFORE] if named else None
    shown = None
    if named and np.isfinite(size):
        weights = ((course.sensor, 1.0), ("PT-101", -0.61), ("FT-402", 0.32), ("DP-201", -0.02))
        scatter = float(np.sqrt(np.mean((read - expected) ** 2))) / error
        shown = Difference(weights, 0.0, size, error, size / error, scatter)
    suspect = Suspect(course.sensor, named, belief, evidence, 6.5, kind, size / 2.0, size, interval, reason, since)
    return replace(suspect, difference=shown)


def _rankings(suspects: Sequence[Suspect], seed: int) -> dict[str, tuple[tuple[str, float], ...]]:
    """By z-score the first named sensor is last; by Mahalanobis contribution the order is that of the answer."""
    order = [suspect.sensor for suspect in suspects]
    scores = np.sort(rng_for(seed, "rankings").gamma(2.0, size=(2, len(order))))[:, ::-1]
    orders = {"z_local": [*order[1:], order[0]], "mahalanobis": order}
    return {
        name: tuple(zip(each, row.tolist(), strict=True))
        for (name, each), row in zip(orders.items(), scores, strict=True)
    }
