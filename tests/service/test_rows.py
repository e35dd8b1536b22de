"""What HTTP takes, brokers take, with the same meaning; nothing that is sent is a fault."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eccaht.base.randomness import rng_for
from eccaht.plants.intake import Rows
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model
from eccaht.service.rows import Receipt
from eccaht.service.sources import Target, make_feed, read_settings
from eccaht.service.sources.parsing import LARGEST_PAYLOAD, BadPayload, Payloads, rows_of
from eccaht.service.sources.settings import MqttSettings
from tests.service.service import PLANT, Service, running
from tests.service.source_tools import Recorder, open_port, publisher, running as feeding, until

JSON, LINES, CSV = "application/json", "application/x-ndjson", "text/csv"
MOMENT = 1_746_086_400  # 2025-05-01T08:00Z
ROWS = 400


@dataclass(frozen=True)
class Door:
    """A service with a plant whose history is a German file, and the rows that its engine was given."""

    service: Service
    model: Model
    given: list[Rows]

    def by_http(self, content: bytes, kind: str, **how: str) -> Rows | str:
        """The rows that came out, or why they were refused."""
        self.given.clear()
        headers = {**self.service.headers["ingest"], "Content-Type": kind}
        answer = self.service.client.post(f"/api/plants/{PLANT}/rows", content=content, headers=headers, params=how)
        if answer.status_code == 200:
            (rows,) = self.given
            return rows
        assert answer.status_code == (413 if "at once: send less" in answer.text else 400), answer.text
        assert not self.given
        assert len(answer.json()["detail"]) <= 200
        return str(answer.json()["detail"])

    def by_broker(self, content: bytes, kind: str, **how: str) -> Rows | str:
        document = {"kind": "mqtt", "topic": "t", "format": "csv" if kind == CSV else "json", **how}
        source = read_settings(document, "bus")
        assert isinstance(source, MqttSettings)
        target = Target.of(PLANT, self.model)
        try:
            return rows_of(Payloads.of(source, target, format=source.format, names=source.names).read(content))
        except BadPayload as error:
            return str(error)

    def by_both(self, content: bytes, kind: str, **how: str) -> Rows | str:
        """The rows of both ways, which must agree."""
        one, other = self.by_http(content, kind, **how), self.by_broker(content, kind, **how)
        if isinstance(one, str) or isinstance(other, str):
            assert one == other
            return one
        same(one, other)
        return one


def same(one: Rows, other: Rows) -> None:
    """The same readings; those without a time came at almost the same time."""
    assert set(one.names) == set(other.names)
    assert len(one.times) == len(other.times)
    if not np.array_equal(one.times, other.times):
        assert (np.abs(one.times - other.times) < np.timedelta64(60, "s")).all()
    order = [other.names.index(name) for name in one.names]
    np.testing.assert_array_equal(one.values, other.values[:, order])


@lru_cache(maxsize=1)
def history() -> str:
    """A file as German programs write it: local times, decimal commas, a status in words, a column of remarks."""
    rng = rng_for(0, "rows of a German file")
    common = rng.standard_normal(ROWS)
    lines = ["Zeit;Druck;Menge;Ventil;Bemerkung;Soll"]
    for k in range(ROWS):
        druck, menge = 3.0 + common[k] + rng.standard_normal(), 100.0 + 5.0 * common[k] + rng.standard_normal()
        numbers = f"{druck:.3f};{menge:.2f}".replace(".", ",")
        seconds = 8 * 3600 + k
        time = f"01.04.25 {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        lines.append(f"{time};{numbers};{'auf' if rng.random() < 0.5 else 'zu'};gut {k};7,5")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    folder = tmp_path_factory.mktemp("rows")
    file = folder / "history.csv"
    file.write_text(history(), encoding="utf-8")
    model = calibrate(file, window="4s", timezone="Europe/Berlin")
    with serving(folder, model) as made:
        yield made


@contextmanager
def serving(folder: Path, model: Model) -> Iterator[Door]:
    with running("sqlite", folder) as service:
        sent = service.client.post("/api/models?name=g", content=model.to_bytes(), headers=service.headers["admin"])
        put = {"model": sent.json()["digest"]}
        path = f"/api/plants/{PLANT}"
        assert service.client.request("PUT", path, json=put, headers=service.headers["admin"]).status_code == 200
        engine, given = service.app.state.engine, list[Rows]()
        submit = engine.submit

        async def submitted(plant: str, rows: Rows, **more: Any) -> Receipt:
            given.append(rows)
            taken: Receipt = await submit(plant, rows, **more)
            return taken

        engine.submit = submitted
        yield Door(service, model, given)


def one(rows: Rows | str, name: str = "Druck") -> float:
    assert isinstance(rows, Rows), rows
    assert len(rows.times) == 1
    return float(rows.values[0, rows.names.index(name)])


ISO = "2025-05-01T08:00:00Z"
TIMES: list[Any] = [MOMENT, MOMENT * 1000, MOMENT * 10**6, MOMENT * 10**9, str(MOMENT), f"{MOMENT}.0", float(MOMENT)]
TIMES += [ISO, "2025-05-01T10:00:00+02:00", "2025-05-01 10:00", "2025-05-01T10:00:00.000"]


@pytest.mark.parametrize("time", TIMES)
def test_a_time_means_the_same_whichever_way_it_comes(door: Door, time: Any) -> None:
    rows = door.by_both(json.dumps([{"time": time, "Druck": 1}]).encode(), JSON)
    assert isinstance(rows, Rows)
    assert rows.times.astype(np.int64).tolist() == [MOMENT * 10**6]


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)])
def test_a_unit_of_time_can_be_given(door: Door, unit: str, factor: int) -> None:
    for content, kind in (
        (json.dumps({"time": 90 * factor, "Druck": 1}), JSON),
        (f"Zeit;Druck\n{90 * factor};1", CSV),
    ):
        rows = door.by_both(content.encode(), kind, time_unit=unit)
        assert isinstance(rows, Rows), rows
        assert rows.times.astype(np.int64).tolist() == [90_000_000]
    assert isinstance(door.by_both(json.dumps({"time": 90, "Druck": 1}).encode(), JSON), str)


VALUES = [("2", 2.0), ("-1.5e3", -1500.0), ("true", 1.0), ("false", 0.0), ('"4.25"', 4.25), ('" 7 "', 7.0)]
VALUES += [
    (text, np.nan) for text in ("null", '""', '"nan"', '"N/A"', '"NULL"', "NaN", "Infinity", "-Infinity", "1e400")
]
VALUES += [("9" * 400, np.nan), ('"inf"', np.nan), ('"Bad"', np.nan)]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_a_value_means_the_same_whichever_way_it_comes(door: Door, text: str, value: float) -> None:
    forms = [f'[{{"time": {MOMENT}, "values": {{"Druck": {text}}}}}]', f'{{"time": {MOMENT}, "Druck": {text}}}']
    forms += [f'{{"time": {MOMENT}, "sensor": "Druck", "value": {text}}}']
    forms += [f'{{"Druck": {{"value": {text}, "time": {MOMENT}}}}}']
    for form in forms:
        for kind in (JSON, LINES):
            np.testing.assert_equal(one(door.by_both(form.encode(), kind)), value)


@pytest.mark.parametrize(
    ("value", "level"), [("auf", 0.0), ("zu", 1.0), (" zu ", 1.0), ("halb", np.nan), (1, np.nan), (None, np.nan)]
)
def test_a_status_is_read_by_the_texts_of_the_history(door: Door, value: Any, level: float) -> None:
    found = door.by_both(json.dumps({"time": ISO, "Ventil": value}).encode(), JSON)
    np.testing.assert_equal(one(found, "Ventil"), level)
    text = "" if value is None else str(value)
    found = door.by_both(f"Zeit;Ventil\n01.05.25 10:00:00;{text}\n".encode(), CSV)
    np.testing.assert_equal(one(found, "Ventil"), level)


QUALITIES: list[tuple[Any, dict[str, str], bool]] = [("good", {}, True), ("Bad", {}, False), (False, {}, False)]
QUALITIES += [("Uncertain", {}, True), ("Uncertain", {"uncertain": "bad"}, False), (None, {}, True)]
QUALITIES += [(192, {"quality_codes": "opc-classic"}, True), (0, {"quality_codes": "opc-classic"}, False)]


@pytest.mark.parametrize(("quality", "how", "good"), QUALITIES)
def test_quality_means_the_same_whichever_way_it_comes(
    door: Door, quality: Any, how: dict[str, str], good: bool
) -> None:
    row = {"time": ISO, "Druck": 5, "quality": quality}
    nested = {"time": ISO, "values": {"Druck": {"value": 5, "quality": quality}}}
    for document in (row, nested):
        assert np.isnan(one(door.by_both(json.dumps([document]).encode(), JSON, **how))) != good


def test_a_sensor_that_the_model_does_not_have_may_hold_anything(door: Door) -> None:
    for value in list[Any](("AUTO", ["AUTO"], {"value": {}}, {"mode": "AUTO"})):
        row = {"time": ISO, "Druck": 3, "Betriebsart": value}
        assert one(door.by_both(json.dumps(row).encode(), JSON)) == 3.0
    table = door.by_both(b"Zeit;Druck;Betriebsart\n01.05.25 10:00:00;1,5;AUTO\n", CSV)
    assert one(table) == 1.5


def test_a_leap_second_is_the_first_of_the_next_minute(door: Door) -> None:
    """In JSON as in CSV."""
    found = [
        door.by_http(b'{"time": "2016-12-31T23:59:60Z", "Druck": 3}', JSON),
        door.by_http(b"time,Druck\n2016-12-31T23:59:60Z,3\n", CSV),
    ]
    assert [str(rows.times[0]) for rows in found if isinstance(rows, Rows)] == ["2017-01-01T00:00:00.000000"] * 2


def test_keys_can_be_named(door: Door) -> None:
    row = {"when": ISO, "sensor": "Druck", "v": 3, "q": "good"}
    how = {"time_key": "when", "value_key": "v", "quality_key": "q"}
    assert one(door.by_both(json.dumps(row).encode(), JSON, **how)) == 3.0


def test_rows_without_a_time_are_of_their_arrival_but_not_two_of_one_sensor(door: Door) -> None:
    rows = door.by_both(json.dumps([{"sensor": "Druck", "value": 1}, {"sensor": "Menge", "value": 2}]).encode(), JSON)
    assert isinstance(rows, Rows)
    assert len(rows.times) == 1
    assert abs(rows.times[0] - np.datetime64("now")) < np.timedelta64(60, "s")
    twice = door.by_both(json.dumps([{"Druck": 1}, {"Druck": 2}]).encode(), JSON)
    assert twice == "row 2: 'Druck' comes twice without a time: give it as 'time'"
    other = door.by_both(json.dumps({"timestamp": MOMENT, "Druck": 2}).encode(), JSON)
    assert other == "it has no 'time', but 'timestamp': give that as time_key"


BAD: list[tuple[str, str]] = [
    ('[{"time": 1746086400, "Druck": 1}, {"time": 1746086401, "Druck": "abc"}]', "row 2: 'abc' is not a number"),
    ('{"time": 1746086400, "Druck": "1,5"}', "not a number"),
    ('{"time": 1746086400, "Druck": "1_000"}', "not a number"),
    ('{"time": 1746086400, "Druck": "١"}', "not a number"),
    ('{"time": 1746086400, "Druck": [1]}', "not a list"),
    ('{"time": 1746086400, "Druck": {"value": {}}}', "not an object"),
    ('{"time": true, "Druck": 1}', "not bool"),
    ('{"time": NaN, "Druck": 1}', "not finite"),
    ('{"time": 1e400, "Druck": 1}', "not finite"),
    ('{"time": 12, "Druck": 1}', "too small"),
    ('{"time": "soon", "Druck": 1}', "not a time"),
    ('{"time": "\\ud800", "Druck": 1}', "not a time"),
    ('{"time": "0001-01-01T00:00+14:00", "Druck": 1}', ""),
    ('{"time": "9999-12-31T23:59-14:00", "Druck": 1}', ""),
    ('{"time": ' + "9" * 309 + ', "Druck": 1}', "2200"),
    ('{"time": "' + "9" * 309 + '", "Druck": 1}', "too long"),
    ('{"time": ' + "9" * 5000 + ', "Druck": 1}', "digits"),
    ('{"time": 1746086400, "\\ud800": 1}', "control characters"),
    ('{"time": 1746086400, "a\\u0000b": 1}', "control characters"),
    ('{"time": 1746086400, "a\\u0085b": 1}', "control characters"),
    ('{"time": 1746086400, "": 1}', "empty"),
    ('{"time": 1746086400, "' + "a" * 501 + '": 1}', "longer than 500"),
    ('{"time": 1746086400, "sensor": [], "value": 1}', "must be a text"),
    ('{"time": 1746086400, "Druck": 1, "quality": 3}', "quality_codes"),
    ('{"time": 1746086400, "Druck": 1, "quality": []}', "quality"),
    ("3.5", "names its sensors"),
    ("[1, 2]", "row 1"),
    ("[" * 100_000, "deeply"),
    ('{"a":' * 40_000, "deeply"),
    ("", "empty"),
    ("{", "not JSON"),
    ('{"time": 1746086400, "Druck": 1}\n{"time": 1746086401, "Druck": }', "line 2 is not JSON"),
]


@pytest.mark.parametrize(("content", "why"), BAD, ids=[f"{k} {why}" for k, (_, why) in enumerate(BAD)])
def test_what_is_bad_is_bad_whichever_way_it_comes(door: Door, content: str, why: str) -> None:
    for kind in (JSON, LINES):
        found = door.by_both(content.encode(), kind)
        assert isinstance(found, str)
        assert why in found


# -- CSV ---------------------------------------------------------------------------------------------------


def test_a_piece_of_the_history_is_taken_as_it_is(door: Door) -> None:
    """German dates with two digits of the year, semicolons, decimal commas, words, remarks; Berlin time."""
    lines = history().splitlines()
    chunk = "\n".join([lines[0], *lines[11:21]])
    rows = door.by_both(chunk.encode(), CSV)
    assert isinstance(rows, Rows), rows
    first = np.datetime64("2025-04-01T06:00:10", "us")
    np.testing.assert_array_equal(rows.times, first + np.arange(10) * np.timedelta64(1, "s"))
    fields = [line.replace(",", ".").split(";") for line in lines[11:21]]
    for name, place in (("Druck", 1), ("Menge", 2), ("Soll", 5)):
        np.testing.assert_array_equal(rows.values[:, rows.names.index(name)], [float(row[place]) for row in fields])
    np.testing.assert_array_equal(
        rows.values[:, rows.names.index("Ventil")], [["auf", "zu"].index(row[3]) for row in fields]
    )
    assert set(rows.names) == {"Druck", "Menge", "Ventil", "Bemerkung", "Soll"}


@pytest.mark.parametrize(
    "table",
    [
        "time,Druck\n2025-05-01T08:00:00Z,1.5\n",
        "Druck\tTimestamp\n1.5\t1746086400\n",
        "time|Druck|x\n2025-05-01 10:00:00|1.5|\n",
        "Zeit;Druck\r\n01.05.25 10:00:00;1,5\r\n\r\n",
        "\ufeffZeit;Druck\n01.05.25 10:00:00;1,5\n",
        'Zeit;"Druck"\n"01.05.25 10:00:00";"1,5"\n',
        "Date,Time,Druck\n2025-05-01,10:00:00,1.5\n",
        "written by a logger\n\ntime,Druck,Menge\n1746086400000,1.5,NaN\n",
    ],
)
def test_csv_is_read_as_files_are(door: Door, table: str) -> None:
    rows = door.by_both(table.encode(), CSV)
    assert one(rows) == 1.5
    assert isinstance(rows, Rows)
    assert rows.times.astype(np.int64).tolist() == [MOMENT * 10**6]
    latin = table.removeprefix("\ufeff").replace("Druck", "Höhe").encode("cp1252")
    found = door.by_both(latin, CSV)
    assert isinstance(found, Rows)
    assert "Höhe" in found.names


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("Zeit;Druck\n01.05.25 10:00:00;1,5\n01.05.25 10:00:01;abc\n", "'abc' in line 3 of the CSV (no number)"),
        ("Zeit;Druck\n01.05.25 10:00:00;1,5\n01.05.25 10:00:01\n", "line 3 of the CSV has 1 value"),
        ("Zeit;Druck\n01.05.25 10:00:00;1,5\nsoon;1,5\n", "line 3 of the CSV has the time 'soon'"),
        ("Zeit;Druck\n01.05.25 10:00:00;1,5\n;1,5\n", "no time"),
        ("Zeit;Druck;Druck\n01.05.25 10:00:00;1,5;2\n", "two columns named 'Druck'"),
        ("Druck;Menge\n1,5;2\n", "no column of times: call it 'time', or name it by time_key (?time_key=NAME)"),
        ("Zeit;Druck\n" + "9" * 309 + ";1,5\n", ""),
        ("Zeit;Druck\n12;1,5\n", "too small for a time since 1970"),
        ("Zeit;Druck\n01.01.0001 00:00:00;1,5\n", "1900"),
        ('Zeit;Druck\n01.05.25 10:00:00;1,5\n"', "quotation mark"),
        ("Zeit;Druck\n01.05.25 10:00:00;1\0\n", "no text"),
        ("Zeit;Druck\n", "no rows"),
        ("x\n1\n", "only one column"),
        ("", "empty"),
        ("PAR1", "Parquet"),
        ("\x1f\ufffd", ""),
    ],
)
def test_csv_that_is_wrong_is_refused_with_its_line(door: Door, table: str, why: str) -> None:
    assert why in str(door.by_both(table.encode(), CSV))


def test_a_model_that_counts_rows_takes_their_numbers(tmp_path: Path) -> None:
    rng = rng_for(1, "counted rows")
    file = tmp_path / "history.csv"
    values = rng.standard_normal((400, 2)) + rng.standard_normal((400, 1))
    file.write_text("u,v\n" + "\n".join(",".join(f"{value:.4f}" for value in row) for row in values) + "\n")
    with serving(tmp_path, calibrate(file, window="4rows")) as door:
        for content, kind in (
            (b'[{"time": 3, "u": 1}, {"time": "row 4", "u": 2}, {"time": "5", "u": 3}]', JSON),
            (b"time,u\n3,1\n4,2\n5,3\n", CSV),
        ):
            rows = door.by_both(content, kind)
            assert isinstance(rows, Rows), rows
            assert rows.times.astype(np.int64).tolist() == [2_000_000, 3_000_000, 4_000_000]
        for content, kind in (
            (b'{"time": ' + b"9" * 309 + b', "u": 1}', JSON),
            (b'{"time": "' + b"9" * 309 + b'", "u": 1}', JSON),
            (b'{"time": 1.5, "u": 1}', JSON),
            (b'{"u": 1}', JSON),
            (b"u,v\n1,2\n", CSV),
            (b"time,u\n1e300,2\n", CSV),
            (b"time,u\n,2\n", CSV),
        ):
            assert isinstance(door.by_both(content, kind), str)


# -- anything at all ---------------------------------------------------------------------------------------

ODD = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(MOMENT) | st.just(ISO)
ODD |= st.sampled_from(["auf", "good", "Bad", "1.5", "\ud800", "a\0b", "\x85", 10**309, 10**18, "2025-05-01"])
KEYS = st.sampled_from(["time", "value", "values", "quality", "sensor", "Druck", "Ventil", "x", "\ud800", "a\0"])
DOCUMENTS = st.recursive(
    ODD, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
TIMED = st.fixed_dictionaries({"time": ODD | st.integers(MOMENT, MOMENT + 9)}, optional={"Druck": ODD, "Ventil": ODD})


@settings(max_examples=120, deadline=None)
@given(document=DOCUMENTS | TIMED | st.lists(TIMED, max_size=3), lines=st.booleans())
def test_documents_mean_the_same_whichever_way_they_come(door: Door, document: Any, lines: bool) -> None:
    many = lines and isinstance(document, list)
    text = "\n".join(map(json.dumps, document)) if many else json.dumps(document)
    door.by_both(text.encode(), LINES if lines else JSON)


TABLE = "time,Druck,Ventil\n2025-05-01 08:00:00,1,auf\n2025-05-01 08:00:01,2,zu\n"
PIECES = ["\0", '"', "\r", "\n", "\x85", ",", ";", "\t", "9" * 309, "1e400", "é", "\ufeff", "*", "^.*$", "0001-01-01"]


@settings(max_examples=120, deadline=None)
@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(TABLE)), st.integers(0, 6), st.sampled_from(PIECES) | st.text(max_size=3))
    )
)
def test_csv_gives_rows_or_a_reason(door: Door, changes: list[tuple[int, int, str]]) -> None:
    text = TABLE
    for place, gone, piece in changes[:4]:
        text = text[:place] + piece + text[place + gone :]
    found = door.by_broker(text.encode("utf-8", "replace"), CSV)
    assert isinstance(found, Rows) or (len(found) <= 200 and "\n" not in found)


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=60), kind=st.sampled_from([JSON, LINES, CSV]))
def test_any_bytes_give_rows_or_a_reason(door: Door, content: bytes, kind: str) -> None:
    door.by_both(content, kind)


def test_sizes_are_bounded_before_anything_is_parsed(door: Door) -> None:
    limit = door.service.app.state.settings.limits.rows
    for content, kind in (
        ('{"x":1}\n' * (limit + 2), LINES),
        ("[" + "1," * limit + "1]", JSON),
        ("time,Druck\n" + "x,1\n" * (limit + 1), CSV),
    ):
        assert "at once: send less at a time" in str(door.by_http(content.encode(), kind))
    wide = {"time": MOMENT} | {f"x{k}": 1 for k in range(2000)}
    tall = [wide, *({"time": MOMENT + k, "Druck": 1} for k in range(1, 3000))]
    assert "too much at once" in str(door.by_http(json.dumps(tall).encode(), JSON))
    assert str(LARGEST_PAYLOAD) in str(door.by_broker(b" " * (LARGEST_PAYLOAD + 1), JSON))


def test_other_requests_are_answered_while_rows_are_parsed(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, answered, parsed = threading.Event(), threading.Event(), Payloads.rows
    in_time = list[bool]()

    def waiting(payloads: Payloads, payload: bytes) -> Rows:
        entered.set()
        in_time.append(answered.wait(60.0))  # for ever, if this thread is the one that answers
        return parsed(payloads, payload)

    async def ask() -> tuple[int, int]:
        http, headers = door.service.client._http, {**door.service.headers["ingest"], "Content-Type": JSON}
        body = json.dumps({"time": MOMENT, "Druck": 1})
        slow = asyncio.ensure_future(http.post(f"/api/plants/{PLANT}/rows", content=body, headers=headers))
        await asyncio.to_thread(entered.wait, 60.0)
        quick = await http.get("/openapi.json")
        answered.set()
        return quick.status_code, (await slow).status_code

    monkeypatch.setattr(Payloads, "rows", waiting)
    assert door.service.client.run(ask()) == (200, 200)
    assert in_time == [True]


def test_a_real_broker_and_http_bring_the_same_rows(door: Door) -> None:
    if not open_port("localhost", 1883):
        pytest.skip("no MQTT broker listens on localhost:1883")
    lines = history().splitlines()
    messages = {
        JSON: [
            json.dumps([{"time": 1000 * (MOMENT + k), "Druck": str(k), "Ventil": "zu", "quality": "good"}]).encode()
            for k in range(5)
        ],
        CSV: ["\n".join([lines[0], *lines[k : k + 3]]).encode() for k in range(21, 36, 3)],
    }

    async def by_mqtt(kind: str) -> Recorder:
        topic, sink = f"eccaht-test/{uuid4().hex}", Recorder()
        document = {"kind": "mqtt", "topic": topic, "format": "csv" if kind == CSV else "json", "wait": "20ms"}
        source = read_settings({**document, "client_id": f"eccaht-{uuid4().hex[:12]}"}, "bus")
        feed = make_feed("bus", source, Target.of(PLANT, door.model), sink)
        async with feeding(feed), publisher("localhost") as publish:
            await until(lambda: feed.health.state == "running", "connected")
            for message in messages[kind]:
                await publish(topic, message)
            rows = 5 if kind == JSON else 15
            await until(lambda: len(sink.times) == rows, "all rows came")
        return sink

    for kind, sent in messages.items():
        there = asyncio.run(by_mqtt(kind))
        for content in sent:
            rows = door.by_http(content, kind)
            assert isinstance(rows, Rows), rows
            for time, values in zip(rows.times.astype(np.int64).tolist(), rows.values.tolist(), strict=True):
                for name, value in zip(rows.names, values, strict=True):
                    np.testing.assert_equal(there.cells[PLANT, time, name], value)
