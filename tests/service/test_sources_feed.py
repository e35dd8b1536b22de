"""Back-off, delivery, states, settings, and the library's sources on both sides of a feed."""

import asyncio
import re
from pathlib import Path
from random import Random
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from eccaht.base.clock import Clock
from eccaht.checks import check_source
from eccaht.plants.data.source import Arrays, Source
from eccaht.plants.intake import Rows
from eccaht.service.rows import Busy, UnknownPlant
from eccaht.service.sources import SourceFeed, make_feed, read_settings
from eccaht.service.sources.feed import Backoff, Refused, deliver, keep_running
from eccaht.service.sources.health import Health
from tests.service.source_tools import SECOND, START, Recorder, running, target, until


def rows(*times: int) -> Rows:
    stamps = np.array(times, dtype=np.int64).astype("datetime64[us]")
    return Rows(stamps, ("a",), np.ones((len(times), 1)))


def health(sink: Recorder) -> Health:
    return Health(sink, "bus", ["north"], "somewhere")


def test_pauses_double_up_to_a_minute_with_chance_and_begin_anew() -> None:
    backoff = Backoff(Random(1))
    pauses = [backoff.pause() for _ in range(12)]
    full = [min(2.0**k, 60.0) for k in range(12)]
    assert all(0.5 * most <= pause <= most for pause, most in zip(pauses, full, strict=True))
    assert len(set(pauses)) == 12
    backoff.reset()
    assert backoff.pause() <= 1.0


def test_a_connection_is_made_again_for_ever_and_a_good_minute_resets_the_pauses() -> None:
    pauses: list[float] = []
    clock = [0.0]

    async def main() -> Recorder:
        sink = Recorder()
        state, tries = health(sink), 0

        async def connect() -> None:
            nonlocal tries
            tries += 1
            if tries == 9:
                state.running()
                clock[0] += 61.0
            raise OSError(f"no route\nat try {tries}")

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 12:
                raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await keep_running(connect, state, Backoff(Random(2)), sleep=sleep, now=lambda: clock[0])
        return sink

    sink = asyncio.run(main())
    assert all(pause > 15.0 for pause in pauses[5:8])
    assert pauses[8] <= 1.0
    assert pauses[9] <= 2.0
    assert {state.state for state in sink.states} == {"connecting", "running", "broken"}
    broken = [state.detail for state in sink.states if state.state == "broken"]
    assert broken[0].startswith("no route at try 1; next try within ")
    assert not any("\n" in state.detail for state in sink.states)


def test_while_the_service_is_busy_rows_wait_and_none_is_lost() -> None:
    async def main() -> tuple[Recorder, list[float]]:
        left, waits = [5], list[float]()

        def before(_: Rows) -> None:
            left[0] -= 1
            if left[0] >= 3:
                raise Busy("full", after=0.5)
            if left[0] >= 0:
                raise OSError("the disk is full")

        async def sleep(seconds: float) -> None:
            waits.append(seconds)

        sink = Recorder(before)
        state = health(sink)
        state.running()
        await deliver(sink, target(), rows(1, 2), state, sleep=sleep)
        state.end()
        return sink, waits

    sink, waits = asyncio.run(main())
    assert sink.times == {("north", 1): 1, ("north", 2): 1}
    assert waits[:2] == [0.5, 0.5]
    assert len(waits) == 5
    assert [state.state for state in sink.states] == ["running", "waiting", "waiting", "running"]
    assert [state.detail for state in sink.states[1:3]] == [
        "the service is busy: the source is held back",
        "the disk is full",
    ]


def test_no_more_rows_are_submitted_at_once_than_the_service_takes() -> None:
    async def main() -> Recorder:
        sink = Recorder()
        sink.most_rows = 20
        await deliver(sink, target(), rows(*range(50)), state := health(sink))
        state.end()
        return sink

    sink = asyncio.run(main())
    assert [len(part.times) for part in sink.rows] == [20, 20, 10]
    assert set(sink.times.values()) == {1}


@pytest.mark.parametrize("error", [ValueError("seven\nis no time"), UnknownPlant("north")])
def test_rows_that_are_refused_are_an_error_of_the_feed_and_none_of_them_is_left_out(error: Exception) -> None:
    asked = 0

    def before(given: Rows) -> None:
        nonlocal asked
        asked += 1
        if (given.times.astype(np.int64) == 7).any():
            raise error

    async def main() -> tuple[Recorder, Health]:
        sink = Recorder(before)
        state = health(sink)
        with pytest.raises(Refused, match="refuses rows of north"):
            await deliver(sink, target(), rows(*range(50)), state)
        return sink, state

    sink, state = asyncio.run(main())
    assert asked == 1
    assert not sink.rows
    assert not state.counts


def test_a_refused_delivery_breaks_the_feed_until_it_is_taken() -> None:
    async def main() -> Recorder:
        refused = [True]

        def before(_: Rows) -> None:
            if refused[0]:
                raise ValueError("the plant is full")

        sink = Recorder(before)
        feed = SourceFeed("array", lambda _: minutes(100), target(), sink, where="memory")
        async with running(feed):
            await until(lambda: any(state.state == "broken" for state in sink.states))
            refused[0] = False
            await until(lambda: len(sink.times) == 100)
        return sink

    broken = next(state for state in asyncio.run(main()).states if state.state == "broken")
    assert broken.detail.startswith("the service refuses rows of north: the plant is full; next try within ")


def minutes(count: int) -> Arrays:
    times = np.datetime64(START, "us") + np.arange(count) * np.timedelta64(1, "s")
    return Arrays(np.arange(2.0 * count).reshape(count, 2), times, ["a", "b"], zone="UTC")


def test_any_source_of_the_library_feeds_a_plant_and_what_it_brought_is_a_source_again() -> None:
    async def main(sink: Recorder, total: int) -> None:
        feed = SourceFeed("array", lambda _: minutes(2500), target(), sink, where="memory")
        async with running(feed):
            await until(lambda: sum(sink.times.values()) >= total)

    sink = Recorder()
    asyncio.run(main(sink, 2500))
    first = sink.excerpt()
    assert isinstance(first, Source)
    assert check_source(first) == {}
    assert np.array_equal(first.values, minutes(2500).values)
    asyncio.run(main(sink, 2501))  # after a restart only the overlap comes again
    again = {time for (_, time), n in sink.times.items() if n > 1}
    assert min(again) >= START + (2500 - 1 - 300) * SECOND


def test_a_source_whose_times_cannot_be_compared_with_the_models_is_refused() -> None:
    async def main() -> Recorder:
        sink = Recorder()
        feed = SourceFeed("array", lambda _: minutes(5), target(zone=None), sink, where="memory")
        async with running(feed):
            await until(lambda: any(state.state == "broken" for state in sink.states))
        return sink

    broken = next(state for state in asyncio.run(main()).states if state.state == "broken")
    assert "those of the model have none" in broken.detail


WRONG: dict[str, dict[str, Any]] = {
    "kind must be": {"kind": "fax"},
    "setting path is missing": {"kind": "file"},
    "setting polls is no setting: did you mean 'poll'?": {"kind": "file", "path": "x", "polls": 3},
    "is not a length of time": {"kind": "file", "path": "x", "poll": "soon"},
    "unknown time zone": {"kind": "file", "path": "x", "timezone": "Mars"},
    "places are {plant} and {sensor}": {"kind": "mqtt", "topic": "a/{tag}"},
    "# must be the last level": {"kind": "mqtt", "topic": "a/#/b"},
    r"ca_file: there is no such file": {"kind": "mqtt", "topic": "a", "tls": True, "ca_file": "/nowhere/ca.pem"},
    "is no node id": {"kind": "opcua", "url": "opc.tcp://x", "nodes": {"a": "pump"}},
    "needs a certificate and a key": {
        "kind": "opcua",
        "url": "opc.tcp://x",
        "nodes": {"a": "i=1"},
        "policy": "Basic256Sha256",
    },
    "write it as opc.tcp://HOST": {"kind": "opcua", "url": "http://x", "nodes": {"a": "i=1"}},
    "this is no URL": {"kind": "sql", "url": "my table", "table": "t"},
    "name a file": {"kind": "sql", "url": "sqlite://", "table": "t"},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_settings_are_refused_in_one_line_before_anything_starts(message: str) -> None:
    with pytest.raises(ValueError, match=r"source|topic|node") as error:
        make_feed("bus", read_settings(WRONG[message], "bus"), target(), Recorder())
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_model_that_counts_rows_takes_files_only() -> None:
    counted = target()
    object.__setattr__(counted, "clock", Clock(row_interval=1.0))
    document = {"kind": "mqtt", "topic": "a"}
    with pytest.raises(ValueError, match="counts rows"):
        make_feed("bus", read_settings(document, "bus"), counted, Recorder())
    with pytest.raises(ValueError, match="only Kafka"):
        make_feed("bus", read_settings(document, "bus"), lambda _: counted, Recorder())


# -- files -------------------------------------------------------------------------------------------------


def line(k: int) -> str:
    return f"{np.datetime64(START + k * SECOND, 'us')}Z,{k},{-k}\n"


def test_a_growing_file_is_followed_across_rotation_a_late_start_and_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    document = {"kind": "file", "path": str(path), "poll": "10ms"}

    async def main(sink: Recorder) -> None:
        feed = make_feed("log", read_settings(document, "log"), target(), sink)
        async with running(feed):
            await until(lambda: any(state.state == "waiting" for state in sink.states), "there is no file yet")
            assert sink.states[-1].detail == f"no file at {path} yet"
            path.write_text("time,a,b\n" + "".join(map(line, range(100))))
            await until(lambda: len(sink.values("a")) == 100, "the first rows")
            with path.open("a") as file:
                file.write(line(100) + line(101)[:20])
            await until(lambda: len(sink.values("a")) == 101, "a row that was appended")
            with path.open("a") as file:
                file.write(line(101)[20:])
            await until(lambda: len(sink.values("a")) == 102, "a row in two pieces")
            path.rename(tmp_path / "log.1")
            path.write_text("time,a,b\n" + "".join(map(line, range(102, 150))))
            await until(lambda: len(sink.values("a")) == 150, "the rows after rotation")
            path.write_text("time,b,a\n" + "".join(map(line, range(150, 200))))
            await until(lambda: len(sink.values("a")) == 200, "other columns: followed anew")
        assert sink.values("b")[START + 150 * SECOND] == 150.0

    sink = Recorder()
    asyncio.run(main(sink))
    assert set(sink.times.values()) == {1}
    assert sink.values("a")[START + 149 * SECOND] == 149.0
    assert check_source(sink.excerpt()) == {}
    assert sink.positions["north", "log"]["time"] >= START


# -- docs --------------------------------------------------------------------------------------------------


def test_the_source_of_the_docs_brings_every_row_once() -> None:
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "sources.md").read_text(encoding="utf-8")
    there: dict[str, Any] = {"__name__": "example"}
    for block in re.findall(r"    ```python\n(.*?)    ```", text, re.DOTALL):
        exec(compile(dedent(block), "sources.md", "exec", dont_inherit=True), there)
    lines = [b'{"time": %d, "a": %d, "b": 1}\n' % (START // SECOND + k, k) for k in range(100)]
    stored: list[bytes] = []

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for line in [b"nonsense\n", *lines[len(stored) :]][:40]:  # then it hangs up
            writer.write(line)
            if await reader.readline() == b"stored\n" and line in lines:
                stored.append(line)
        writer.close()

    async def main() -> Recorder:
        sink = Recorder()
        async with await asyncio.start_server(served, "127.0.0.1", 0) as server:
            settings = there["LinesSettings"](kind="lines", host="127.0.0.1", port=server.sockets[0].getsockname()[1])
            feed = there["LinesFeed"]("lines", settings, target(), sink)
            async with running(feed):
                await until(lambda: len(stored) == len(lines), "all lines are acknowledged")
        assert feed.health.counts["bad payloads"] >= 3
        return sink

    sink = asyncio.run(main())
    assert set(sink.times.values()) == {1}
    assert list(sink.values("a").values()) == list(range(100))
    assert check_source(sink.excerpt()) == {}
