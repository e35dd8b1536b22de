"""Watching: rules that alarm side by side on simulated streams, and their speed beside the engine of plants.

No part of the default run: it takes about ten minutes on one core. Recorded plants are watched by `eccaht incidents`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks import watch_speed
from benchmarks.jobs import Job, Row
from benchmarks.tables import Column, Table, thousands, three_digits
from benchmarks.watch_bounds import OneStream, least_delays
from benchmarks.watch_rules import RULES, Rule
from benchmarks.watch_simulated import WORLDS, World, calibrate, count, draw_shifts, first_alarms, make_world, paths
from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for

EVERY = 5000  # windows to a false alarm, in the mean
STREAMS = 100
SHIFTED = (1, 3, 5, 10, 30)
SHIFTS = (0.5, 1.0, 2.0)
REPLICAS = 240  # quiet streams, each watched for as long as EVERY: once to calibrate, once to count
FEWER = {
    "eccaht": 60,
    "Xie-Siegmund": 60,
    "largest GLR": 60,
    "ocd": 24,
    "bounds": 60,
}  # for rules that take longer, and bounds
CHANGES = 200  # streams with a change, for each delay
MOST = 2000  # windows until a change is given up
QUICK = 10  # times fewer of everything
OURS = "eccaht"
KNOWN_ALL = "knows the set and its shift (no rule can do better)"
KNOWN_ONE = "knows that one stream rises, and by how much"


def jobs(quick: bool) -> list[Job]:
    """One job a world and rule; and the speed of all."""
    worlds = WORLDS[:2] if quick else WORLDS
    found = [
        Job(f"watch, {world}, {rule}", partial(_simulate, world, rule, quick)) for world in worlds for rule in RULES
    ]
    found += [Job(f"watch, {world}, bounds", partial(_bounds, world, quick)) for world in worlds]
    return [*found, Job("watch, speed", partial(_speed, quick))]


def _simulate(world: str, rule: str, quick: bool) -> list[Row]:
    """Calibrate, count on fresh streams, then delays; all rules of a world face the same windows.

    Ours has its proven threshold where it is given the true covariance.
    """
    noise = make_world(world, STREAMS)
    watcher = RULES[rule](noise.given)
    replicas = FEWER.get(rule.split(",")[0], REPLICAS)
    proven = np.array([np.log(EVERY)]) if rule == OURS and noise.given is noise.covariance else None
    thresholds, row = _counted(watcher, noise, world, replicas // (QUICK if quick else 1), proven)
    common: Row = {"world": world, "rule": rule}
    delays = [
        _delays_of(watcher, noise, world, shifted, shift, thresholds, quick) for shift in SHIFTS for shifted in SHIFTED
    ]
    return [common | row, *(common | delay for delay in delays)]


def _counted(watcher: Rule, noise: World, world: str, replicas: int, proven: Array | None = None) -> tuple[Array, Row]:
    """Thresholds, simulated if they are not proven, and the false alarms with them."""
    runs, thresholds = max(replicas, 4), proven
    if thresholds is None:
        thresholds = calibrate(paths(watcher, noise, runs, EVERY, rng_for(0, world, "calibrate")), EVERY)
    counted = count(paths(watcher, noise, runs, EVERY, rng_for(0, world, "count")), thresholds)
    low, high = counted.interval
    row: Row = {"kind": "false alarms", "thresholds": thresholds.tolist(), "alarms": counted.alarms}
    return thresholds, row | {"windows": counted.windows, "mean_time": counted.mean_time, "low": low, "high": high}


def _delays_of(
    watcher: Rule, noise: World, world: str, shifted: int, shift: float, thresholds: Array, quick: bool
) -> Row:
    shifts = _shifts(world, shifted, shift, quick)
    rng = rng_for(0, world, f"{shifted} streams", f"shift {shift}", "windows")
    delays = first_alarms(watcher, noise, shifts, thresholds, MOST, rng)
    return _delay(shifted, shift, delays) | {"never": int((delays > MOST).sum())}


def _delay(shifted: int, shift: float, delays: Array) -> Row:
    error = float(delays.std(ddof=1) / np.sqrt(delays.size))
    return {"kind": "delay", "shift": shift, "shifted": shifted, "delay": float(delays.mean()), "error": error}


def _shifts(world: str, shifted: int, shift: float, quick: bool) -> Array:
    rng = rng_for(0, world, f"{shifted} streams", f"shift {shift}", "streams")
    return draw_shifts(CHANGES // (QUICK if quick else 1), STREAMS, shifted, shift, rng)


def _bounds(world: str, quick: bool) -> list[Row]:
    """The delays of rules that know more, by the true covariance."""
    noise = make_world(world, STREAMS)
    rows: list[Row] = []
    precision = np.linalg.inv(noise.covariance)
    for shift in SHIFTS:
        for shifted in SHIFTED:
            shifts = _shifts(world, shifted, shift, quick)
            information = np.einsum("rk,kl,rl->r", shifts, precision, shifts)
            rows.append({"rule": KNOWN_ALL, "never": 0} | _delay(shifted, shift, least_delays(information, EVERY)))
        watcher = OneStream(noise.covariance, shift)
        thresholds, row = _counted(watcher, noise, world, FEWER["bounds"] // (QUICK if quick else 1))
        rows.append({"rule": f"{KNOWN_ONE}: {shift}"} | row)
        rows.append({"rule": KNOWN_ONE} | _delays_of(watcher, noise, world, 1, shift, thresholds, quick))
    return [{"world": world} | row for row in rows]


def _speed(quick: bool) -> list[Row]:
    return [{"kind": "speed"} | row for row in watch_speed.measure(quick)]


# -- tables ----------------------------------------------------------------------------------------------


def tables(rows: list[Row]) -> list[Table]:
    """What was asked for."""
    kinds = {kind: [row for row in rows if row["kind"] == kind] for kind in ("false alarms", "delay", "speed")}
    return [_false_alarms(kinds["false alarms"]), *_delays(kinds["delay"]), watch_speed.table(kinds["speed"])]


def _false_alarms(rows: list[Row]) -> Table:
    columns = (
        Column("world", "noise", right=False),
        Column("rule", "rule", right=False),
        Column("thresholds", "thresholds", lambda values: ", ".join(map(three_digits, values))),
        Column("alarms", "false alarms"),
        Column("windows", "in windows", thousands),
        Column("mean_time", "mean time to one", thousands),
        Column("low", "from", thousands),
        Column("high", "to", thousands),
    )
    notes = (
        f"Thresholds are simulated for one false alarm in {EVERY:,} windows; counted on other streams, 95 % intervals.",
        "eccaht, where it knows the covariance: its proven threshold, which keeps to the safe side.",
        "Estimated: factor noise, rules are given the covariance of 500 windows; thresholds by the true noise.",
    )
    return Table("watch-false-alarms", f"False alarms, K = {STREAMS}", columns, rows, notes)


def _delays(rows: list[Row]) -> Iterator[Table]:
    """One table a world, one line a rule and shift."""
    for world in dict.fromkeys(row["world"] for row in rows):
        lines: dict[tuple[float, str], Row] = {}
        for row in sorted((row for row in rows if row["world"] == world), key=lambda row: row["shift"]):
            line = lines.setdefault((row["shift"], row["rule"]), {"shift": row["shift"], "rule": row["rule"]})
            line |= {f"s{row['shifted']}": (row["delay"], row["error"]), "never": line.get("never", 0) + row["never"]}
        columns = (
            Column("shift", "shift"),
            Column("rule", "rule", right=False),
            *(Column(f"s{shifted}", f"s = {shifted}", _with_error) for shifted in SHIFTED),
            Column("never", "never"),
        )
        notes = (
            f"Mean delay ± standard error; changes not found in {MOST:,} windows count as {MOST + 1:,}.",
            "Knows the set and its shift: the CUSUM of the likelihood ratio, whose worst mean delay is the smallest.",
        )
        name = f"watch-delays-{world.replace(' ', '-')}"
        yield Table(name, f"Windows to the alarm, {world}, K = {STREAMS}", columns, list(lines.values()), notes)


def _with_error(value: tuple[float, float]) -> str:
    mean, error = value
    return f"{mean:.1f} ±{error:.1f}"
