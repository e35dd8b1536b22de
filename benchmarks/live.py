"""The service under load: plants that deliver a row a second by HTTP, open pages, a flood, and rows that are too late.

No part of the default run: it takes as long as `--duration` says. The service is a process of its own with a store of
SQLite; who delivers, who listens and who floods are processes of their own too, whose share of a core is reported, so
that one sees what the bottleneck is. A delay is from the moment before a row is sent to the moment in which a page has
the window that the row completes; a delivery takes until it is acknowledged.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from benchmarks.jobs import Job, Row
from benchmarks.live_clients import FLOOD, FLOODED, LATE, Delivered, be_late, deliver, flood, listen
from benchmarks.live_service import SENSORS, Service, cpu, get, memory, started
from benchmarks.tables import Column, Table, thousands, three_digits

PLANTS, PAGES, OTHERS = 200, 50, 29
SECONDS, QUICK, BESIDE = 600.0, 20.0, 60.0
_WARM = 5  # seconds until anything is counted
_BEGIN = 6.0  # seconds for the processes to start
_ENDED = 10.0  # seconds for what is on its way at the end


def jobs(quick: bool, duration: float | None) -> list[Job]:
    """Many plants and pages; and few plants, alone and beside one that is a burden."""
    plants, pages = (20, 5) if quick else (PLANTS, PAGES)
    seconds = duration or (QUICK if quick else SECONDS)
    beside = min(seconds, BESIDE)
    return [
        Job(f"live {plants} plants, {pages} pages, {seconds:g} s", partial(run, plants, pages, seconds)),
        Job(f"live {OTHERS} plants beside a flood, {beside:g} s", partial(run_beside, OTHERS, beside)),
    ]


def tables(rows: list[Row]) -> list[Table]:
    """What was lost, how long it took, who was busy, and memory."""
    many, beside = [row for row in rows if "pages" in row], [row for row in rows if "beside" in row]
    took = [Column("took_median", "delivery median ms", three_digits), Column("took_p99", "99 % ms", three_digits)]
    shares = [Column("cpu", "CPU %", three_digits), Column("sender_cpu", "senders' CPU %", three_digits)]
    columns = [Column("plants", "plants"), Column("pages", "pages"), Column("seconds", "seconds", three_digits)]
    columns += [Column("windows", "windows", thousands), Column("lost", "lost", thousands)]
    columns += [Column("missed", "not on a page", thousands), Column("rate", "rows/s", three_digits), *took]
    columns += [Column("median", "to a page median ms", three_digits), Column("p99", "99 % ms", three_digits)]
    columns += [Column("refused", "refused", thousands), *shares, Column("page_cpu", "pages' CPU %", three_digits)]
    columns += [Column("rss_first", "MB after 10 s", three_digits), Column("rss_last", "MB at the end", three_digits)]
    fair = [Column("beside", "beside", right=False), Column("plants", "plants"), Column("deliveries", "deliveries")]
    fair += [*took, Column("took_most", "longest ms", three_digits)]
    fair += [Column("burden_rate", "burden rows/s", thousands), Column("burden_windows", "its windows/s", three_digits)]
    fair += [
        Column("burden_took", "its delivery median s", three_digits),
        Column("burden_most", "longest s", three_digits),
    ]
    fair += [*shares, Column("burden_cpu", "burden's CPU %", three_digits)]
    notes = [f"{SENSORS} sensors a plant, a window a second, one model; CPU and memory are those of the service."]
    about = f"flood: {FLOOD:,} rows a delivery, {FLOODED} rows a window; late: {LATE:,} rows in one delivery."
    course = [{"second": s, "mb": mb} for row in many for s, mb in row["rss"]]
    over_time = [Column("second", "second"), Column("mb", "MB")]
    return [
        Table("live", "The service under load", columns, many, notes),
        Table("live_beside", "Plants that send a row a second beside a burden", fair, beside, [about]),
        Table("live_memory", "Memory over time", over_time, course, on_screen=False),
    ]


def run(plants: int, pages: int, seconds: float) -> list[Row]:
    with started(plants) as service, _processes(2) as pool:
        begin = time.monotonic() + _BEGIN
        end = begin + seconds + min(_ENDED, seconds)
        listening = pool.submit(listen, service, pages, end)
        sending = pool.submit(deliver, service, range(plants), seconds, begin)
        time.sleep(max(begin - time.monotonic(), 0.0))
        used, course = cpu(service.pid), _watched(service.pid, sending, begin)
        delivered = sending.result()
        taken = time.monotonic() - begin
        busy = 100.0 * (cpu(service.pid) - used) / taken
        heard = listening.result()
        stored = sum(plant["windows"] for plant in asyncio.run(get(service, "/api/plants"))["plants"])
    delays = [(sent - begin, heard.got[place] - sent) for place, sent in delivered.sent.items() if place in heard.got]
    expected = delivered.rows - plants  # the last row of each plant completes nothing
    row = {"plants": plants, "pages": pages, "seconds": taken, "windows": stored, "lost": expected - stored}
    row |= {"missed": sum(expected - count for count in heard.windows), "rate": delivered.rows / taken}
    row |= _took(delivered, begin) | _quantiles([delay for at, delay in delays if at > _WARM])
    row |= {"refused": delivered.refused, "cpu": busy, "sender_cpu": delivered.cpu, "page_cpu": heard.cpu}
    first = next((mb for second, mb in course if second >= min(10.0, seconds / 2)), None)
    return [{**row, "rss_first": first, "rss_last": course[-1][1], "rss": course}]


def run_beside(plants: int, seconds: float) -> list[Row]:
    """The same plants alone, beside one that floods, and beside one whose rows come too late."""
    with started(plants + 2) as service, _processes(2) as pool:
        works = {"nothing": None, "a flood": partial(flood, service, plants, seconds)}
        works["late rows"] = partial(be_late, service, plants + 1)
        pool.submit(deliver, service, [plants + 1], seconds, time.monotonic() + 1.0).result()  # windows to be late for
        return [_beside(service, pool, plants, seconds, name, work) for name, work in works.items()]


def _beside(service: Service, pool: ProcessPoolExecutor, plants: int, seconds: float, name: str, work: Any) -> Row:
    begin = time.monotonic() + _BEGIN
    sending = pool.submit(deliver, service, range(plants), seconds, begin)
    burden = None if work is None else pool.submit(work, begin + _WARM)
    time.sleep(max(begin - time.monotonic(), 0.0))
    used = cpu(service.pid)
    delivered = sending.result()
    busy = 100.0 * (cpu(service.pid) - used) / (time.monotonic() - begin)
    row = {"beside": name, "plants": plants, "deliveries": len(delivered.took), "cpu": busy}
    row["sender_cpu"] = delivered.cpu
    if burden is not None:
        row |= _burden(burden.result(), asyncio.run(get(service, f"/api/plants/p{plants:03d}"))["windows"])
    spans = None if burden is None or name == "a flood" else burden.result().took
    return row | _took(delivered, begin, spans)


def _burden(found: Delivered, windows: int) -> Row:
    """What the burden delivered; windows: that the plant which floods has afterwards."""
    lasted, took = found.took[-1][0] + found.took[-1][1] - found.took[0][0], [seconds for _, seconds in found.took]
    row: Row = {"burden_took": float(np.median(took)), "burden_most": max(took), "burden_cpu": found.cpu}
    if len(took) > 2:
        row |= {"burden_rate": found.rows / lasted, "burden_windows": windows / lasted}
    return row


def _took(delivered: Delivered, begin: float, spans: Sequence[tuple[float, float]] | None = None) -> Row:
    """How long deliveries took; spans: only those that were under way during one of these."""
    took = np.array([
        seconds for at, seconds in delivered.took
        if at - begin > _WARM and (spans is None or any(at < a + s and at + seconds > a for a, s in spans))
    ])  # fmt: skip
    found = _quantiles(took.tolist(), "took_")
    return {**found, "took_most": 1e3 * float(took.max()), "took_counted": len(took)}


def _quantiles(seconds: list[float], name: str = "") -> Row:
    found = np.array(seconds) * 1e3
    return {f"{name}median": float(np.median(found)), f"{name}p99": float(np.quantile(found, 0.99))}


def _processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))


def _watched(pid: int, sending: Future[Any], begin: float) -> list[tuple[float, float]]:
    """Memory over time, until all is sent."""
    course = []
    while True:
        course.append((round(time.monotonic() - begin, 1), memory(pid)))
        with suppress(TimeoutError):
            sending.result(5.0)
            return course
