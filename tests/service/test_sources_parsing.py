"""Payloads become readings; hostile ones become a BadPayload and nothing else."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from asyncua.ua import status_codes
from hypothesis import given, settings
from hypothesis import strategies as st

from eccaht.base.clock import Clock
from eccaht.plants.data.reading import TimeRule
from eccaht.plants.data.recorded import Expected
from eccaht.service.rows import TimeReader, severity, severity_of_classic, severity_of_status
from eccaht.service.sources.parsing import (
    LARGEST_PAYLOAD,
    MOST_ROWS,
    BadPayload,
    Payloads,
    SensorReading,
    deliveries,
    rows_of,
)
from eccaht.service.sources.settings import ReadingSettings

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


@pytest.mark.parametrize(
    "time",
    [
        *[MICRO // 1_000_000, MICRO // 1000, MICRO, MICRO * 1000, MICRO / 1e6, str(MICRO // 1000)],
        *["2026-05-01T08:00:00Z", "2026-05-01 10:00:00+02:00", "2026-05-01T08:00", "2026-05-01T08:00:00.000000999Z"],
    ],
)
def test_times_are_recognised_by_size_or_read_as_iso(time: float | str) -> None:
    assert one(json.dumps({"time": time, "value": 1})).time == MICRO


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)])
def test_a_unit_that_is_given_is_exact(unit: str, factor: int) -> None:
    moments = TimeReader(Clock("UTC"), unit)  # type: ignore[arg-type]
    assert moments.read(12 * factor) == 12_000_000
    assert moments.read(MICRO // 10**6 * factor + factor // 2) == MICRO + (500_000 if factor > 1 else 0)


def test_a_local_time_is_read_in_the_zone_of_the_source_and_a_model_without_zone_needs_one() -> None:
    berlin = TimeReader(Clock("UTC"), zone="Europe/Berlin")
    assert berlin.read("2026-05-01 10:00") == MICRO
    plain = TimeReader(Clock(None))
    with pytest.raises(ValueError, match="no zone, so a time with an offset needs one: give timezone"):
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


def test_texts_of_status_sensors_are_places_in_their_levels() -> None:
    payloads = Payloads(PAYLOADS.moments, replace(EXPECTED, levels={"a": ("closed", "open")}))
    assert one('"open"', payloads=payloads).value == one('{"value": "open"}', payloads=payloads).value == 1.0
    assert math.isnan(one('"ajar"', payloads=payloads).value)


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


def test_of_two_values_at_one_time_the_first_that_is_there_counts() -> None:
    rows = rows_of([SensorReading(5, "a", math.nan), SensorReading(5, "a", 1.0), SensorReading(5, "a", 2.0)])
    assert rows.values.tolist() == [[1.0]]


HOSTILE = [b"", b" ", b"\xff\xfe", b"{", b"[1]", b"[[]]", b"abc", b"1,5", b"1_000", b"0x10", b"{}x", b'{"value": {}}']
HOSTILE += [b"[" * 100_000, b'{"a":' * 50_000, b"9" * 5000, b'{"value": ' + b"9" * 5000 + b"}", b'{"time": 1}']
HOSTILE += [b'{"value": 1, "time": "soon"}', b'{"value": 1, "time": 12}', b'{"value": 1, "time": 1e300}']
HOSTILE += [b'{"value": 1, "time": true}', b'{"value": 1, "quality": 3}', b'{"value": 1, "quality": []}']
HOSTILE += [b" " * (LARGEST_PAYLOAD + 1), b'{"value": 1, "time": NaN, "quality": "odd"}', b'{"value": [1]}']
HOSTILE += [b"[" + b'{"value": 1},' * 10_001 + b'{"value": 1}]', b'{"value": 1, "time": "' + b"2" * 100 + b'"}']


@pytest.mark.parametrize("payload", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_payload_is_bad_in_one_short_line(payload: bytes) -> None:
    with pytest.raises(BadPayload) as error:
        PAYLOADS.read(payload, "a")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) <= 200


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["time", "value", "values", "quality", "sensor", "a"]), inner, max_size=5)
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=60) | DOCUMENTS.map(lambda document: json.dumps(document).encode()), st.sampled_from(["a", None])
)
def test_whatever_comes_gives_readings_or_a_bad_payload(payload: bytes, sensor: str | None) -> None:
    try:
        readings = PAYLOADS.read(payload, sensor)
    except BadPayload:
        return
    for reading in readings:
        assert isinstance(reading.time, int)
        assert reading.sensor
        assert not math.isinf(reading.value)


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


def test_uncertain_counts_as_the_setting_says() -> None:
    text = '{"value": 1, "quality": "UncertainEngineeringUnitsExceeded"}'
    strict = replace(PAYLOADS, how=ReadingSettings(uncertain="bad"))
    assert one(text).value == 1.0
    assert math.isnan(one(text, payloads=strict).value)


def test_readings_are_cut_into_deliveries_that_keep_each_time_together() -> None:
    rng = np.random.default_rng(0)
    readings = [SensorReading(int(t), f"s{k}", float(k)) for t in rng.permutation(3 * MOST_ROWS) for k in range(3)]
    parts = list(deliveries(readings))
    assert all(len(part.times) <= MOST_ROWS for part in parts)
    times = np.concatenate([part.times.astype(np.int64) for part in parts])
    assert np.array_equal(times, np.arange(3 * MOST_ROWS))
    wide = [SensorReading(k, f"s{k}", 1.0) for k in range(3000)]  # every reading of a sensor of its own
    assert max(part.values.size for part in deliveries(wide)) <= 1_000_000


@pytest.mark.parametrize(("sensors", "beside"), [(10, False), (2000, True)])
def test_large_payloads_are_read_in_another_thread(sensors: int, beside: bool) -> None:
    threads = set[int]()

    def now() -> int:
        threads.add(threading.get_ident())
        return MICRO * 1000

    payload = json.dumps({f"s{k}": k for k in range(sensors)}).encode()
    found = asyncio.run(Payloads(TimeReader(Clock("UTC"), now=now), EXPECTED).read_beside(payload))
    assert found == PAYLOADS.read(payload)
    assert threads.isdisjoint({threading.get_ident()}) is beside
