"""Payloads become readings; hostile ones become a BadPayload and nothing else."""

import gzip
import json
import math
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Literal

import numpy as np
import pytest
from asyncua.ua import status_codes

from eccaht.base.clock import Clock
from eccaht.plants.data.reading import TimeRule
from eccaht.plants.data.recorded import Expected
from eccaht.service.rows import TimeReader, severity, severity_of_classic, severity_of_status
from eccaht.service.sources.parsing import (
    MOST_ROWS,
    BadPayload,
    Most,
    Payloads,
    SensorReading,
    deliveries,
)

NOW = datetime(2026, 5, 1, 8, tzinfo=UTC)
MICRO = int(NOW.timestamp()) * 1_000_000
EXPECTED = Expected(("a", "b"), {}, TimeRule(("time",)), zone="UTC")
PAYLOADS = Payloads(TimeReader(Clock("UTC"), now=lambda: MICRO * 1000), EXPECTED)


def one(payload: str, sensor: str | None = "a", payloads: Payloads = PAYLOADS) -> SensorReading:
    (reading,) = payloads.read(payload.encode(), sensor)
    return reading


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        *[("3.5", 3.5), (" -2e3\n", -2000.0), ("7", 7.0), ("true", 1.0), ("null", math.nan), ("NaN", math.nan)],
        *[("-Infinity", math.nan), ("1e999", math.nan), ('"4.25"', 4.25), ('{"value": 9}', 9.0)],
        *[('{"value": NaN}', math.nan), ('{"value": null}', math.nan), ('{"value": 1e400}', math.nan)],
        *[(json.dumps({"value": 10**400}), math.nan), ('{"value": 1, "quality": "bad"}', math.nan)],
    ],
)
def test_a_payload_of_one_sensor_is_a_number_or_missing(payload: str, value: float) -> None:
    np.testing.assert_equal(one(payload), SensorReading(MICRO, "a", value))


def test_a_local_time_is_read_in_the_zone_of_the_source_and_a_model_without_zone_needs_one() -> None:
    berlin = TimeReader(Clock("UTC"), zone="Europe/Berlin")
    assert berlin.read("2026-05-01 10:00") == MICRO
    plain = TimeReader(Clock(None))
    with pytest.raises(ValueError, match="timezone"):
        plain.read(MICRO)
    there = TimeReader(Clock(None), zone="Europe/Berlin")
    assert there.read(MICRO) == there.read("2026-05-01T08:00Z") == plain.read("2026-05-01 10:00")


def test_an_object_of_many_sensors_flat_or_nested_is_a_row() -> None:
    flat = PAYLOADS.read(b'{"time": 1777622400, "a": 1, "b": null, "c": {"value": 3, "quality": false}}')
    nested = PAYLOADS.read(b'{"time": 1777622400, "values": {"a": 1, "b": null, "c": {"value": 3, "quality": "Bad"}}}')
    np.testing.assert_equal(flat, nested)
    np.testing.assert_equal([reading.value for reading in flat], [1.0, math.nan, math.nan])
    long = PAYLOADS.read(b'[{"time": 1777622400, "sensor": "a", "value": 1}, {"sensor": "b", "value": 2}]')
    assert long == [SensorReading(1777622400 * 10**6, "a", 1.0), SensorReading(MICRO, "b", 2.0)]
    bad = PAYLOADS.read(b'{"time": 1777622400, "quality": "bad", "a": 1}')
    np.testing.assert_equal(bad, [SensorReading(1777622400 * 10**6, "a", math.nan)])


def test_a_plain_word_is_a_status_and_names_are_those_of_the_model() -> None:
    payloads = replace(PAYLOADS, expected=replace(EXPECTED, levels={"a": ("closed", "open")}), names={"A": "a"})
    assert one("open", payloads=payloads).value == one("open", "A", payloads=payloads).value == 1.0
    assert one("closed", "A", payloads=payloads).sensor == "a"
    assert payloads.read(b'{"A": "open"}') == [SensorReading(MICRO, "a", 1.0)]
    with pytest.raises(BadPayload, match="'open' is not a number"):
        one("open", "b", payloads=payloads)


def test_small_numbers_are_seconds_only_where_the_history_counted_from_its_beginning() -> None:
    assert TimeReader(Clock(None)).read(120) == TimeReader(Clock(None)).read("120") == 120_000_000
    with pytest.raises(ValueError, match="too small"):
        TimeReader(Clock("UTC")).read(120)


def test_every_opc_ua_code_has_the_severity_of_its_name_but_values_that_are_not_of_now_are_bad() -> None:
    stale = {"UncertainNoCommunicationLastUsableValue", "UncertainLastUsableValue"}
    stale |= {"UncertainSubstituteValue", "UncertainInitialValue"}
    codes = {name: code for name, code in vars(status_codes.StatusCodes).items() if isinstance(code, int)}
    assert stale <= set(codes)
    for name, code in codes.items():
        words = [word for word in ("Good", "Uncertain", "Bad") if name.startswith(word)]
        if words:
            expected = "bad" if name in stale else words[0].lower()
            assert severity_of_status(code) == severity(name, None) == expected, name


def test_opc_classic_quality_goes_by_two_bits_and_numbers_need_quality_codes() -> None:
    found = [severity_of_classic(code) for code in range(256)]
    assert found[192:] == ["good"] * 64
    assert {code for code in range(256) if found[code] == "uncertain"} == set(range(64, 128)) - {68, 69, 70, 71}
    with pytest.raises(ValueError, match="quality_codes"):
        severity(0, None)
    assert (severity(0, "opc-ua"), severity(0, "opc-classic")) == ("good", "bad")


def test_readings_are_cut_into_deliveries_that_keep_each_time_together() -> None:
    rng = np.random.default_rng(0)
    readings = [SensorReading(int(t), f"s{k}", float(k)) for t in rng.permutation(3 * MOST_ROWS) for k in range(3)]
    parts = list(deliveries(readings))
    assert all(len(part.times) <= MOST_ROWS for part in parts)
    times = np.concatenate([part.times.astype(np.int64) for part in parts])
    assert np.array_equal(times, np.arange(3 * MOST_ROWS))
    wide = [SensorReading(k, f"s{k}", 1.0) for k in range(3000)]  # every reading of a sensor of its own
    assert max(part.values.size for part in deliveries(wide)) <= 1_000_000


@cache
def packed_rows(packed: Callable[[bytes], bytes]) -> bytes:
    """110 MB of rows."""
    return packed(b"time,a,b\n" + b"2026-05-01T08:00Z,1,2\n" * 5_000_000)


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize("before", [b"", b"time,a,b\n"])
@pytest.mark.parametrize("packed", [gzip.compress, zlib.compress])
def test_packed_payloads_are_refused_and_never_unpacked(
    packed: Callable[[bytes], bytes], before: bytes, format: Literal["csv", "json"]
) -> None:
    payload = before + packed_rows(packed)
    most = Most(8_000_000, 10_000, 4_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(BadPayload):
            replace(PAYLOADS, format=format, most=most).rows(payload)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
