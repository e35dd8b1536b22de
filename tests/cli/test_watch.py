"""`eccaht watch` on a small plant: what it reports, and that no kill makes it lose or repeat an event."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from eccaht.base.files import exclusive
from eccaht.cli.main import run
from eccaht.cli.watch_outlets import Commands, Log
from eccaht.plants.model.model import load_model
from eccaht.plants.watch.events import Event
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.session import Session, false_alarm_every, rate_line
from tests.checks.archives import Change, edit
from tests.cli.commands import refused
from tests.cli.watched import FAULTS, MISSING, SILENT, lines, logged, make_model, until_it_ends, write_record

RATE = ("--false-alarms", "1/5000w")
EVENT = Event("alarm", "2024-05-01T08:00:00", "ALARM: a, b", 7, named=("a", "b"), sizes=(1.5, None))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a model, a record and the state of a watch that has not begun, which is quicker to start."""
    directory = tmp_path_factory.mktemp("plant")
    make_model(directory)
    write_record(directory / "record.csv")
    (directory / "empty.csv").write_text("\n".join(lines()[:3]) + "\n")
    assert run(command(directory, "empty.csv", "--state", str(directory / "new.state"))) == 0
    state, log = fresh(directory, directory / "a.state"), directory / "undisturbed.jsonl"
    assert run(command(directory, "record.csv", "--state", state, "--log", str(log))) == 0
    return directory


def command(place: Path, data: str, *more: str) -> list[str]:
    return ["watch", "--model", str(place / "plant.eccaht"), "--data", str(place / data), *RATE, *more]


def fresh(place: Path, path: Path) -> str:
    """The state of a watch that has not counted a window yet."""
    path.write_bytes((place / "new.state").read_bytes())
    return str(path)


def test_what_goes_wrong_is_reported_in_order(place: Path) -> None:
    events = logged(place / "undisturbed.jsonl")
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    course = [(event["event"], *event["sensors"]) for event in events]
    assert course == [
        ("alarm", "s1"),
        ("changed", "s1"),
        ("over", "s1"),
        ("gap",),
        ("alarm", "s3"),
        ("changed", "s3"),
        ("over", "s3"),
        ("silent", "s2"),
        ("speaking", "s2"),
    ]
    begun = np.datetime64("2017-09-26T18:00:00")
    onsets = [event["onset"] for event in events if event["event"] == "alarm"]
    assert onsets == [str(begun + first * np.timedelta64(5, "s")) for first, _ in FAULTS.values()]
    assert [event["count"] for event in events if event["event"] == "gap"] == [MISSING[1] - MISSING[0]]
    assert events[7]["onset"] == str(begun + SILENT[1] * np.timedelta64(5, "s"))
    (size,) = events[0]["sizes"]
    assert 3.0 < size < 5.0


def test_json_is_one_document_a_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command(place, "record.csv", "--json")) == 0
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [documents[0]["event"], documents[-1]["event"]] == ["started", "stopped"]
    assert documents[1:-1] == logged(place / "undisturbed.jsonl")
    assert {"event", "time", "onset", "named", "kinds", "sizes", "beliefs", "text"} <= documents[0].keys()


def test_orders_are_obeyed_as_they_come(place: Path) -> None:
    model = load_model(place / "plant.eccaht")
    digest = hashlib.sha256((place / "plant.eccaht").read_bytes()).hexdigest()
    session = Session.load(place / "new.state", model, digest)
    windows = model.prepare([place / "record.csv"])
    events: list[Event] = []
    for sample in windows.samples():
        orders = {80: ("acknowledge", "normal"), 90: ("shelve s0 1h",), 95: ("unshelve s0",)}
        for order in orders.get(session.windows, ()):
            events += session.obey(order, sample.start, windows.clock)
        events += session.take(sample, windows.clock)
        if session.windows == 98:
            break
    kinds = [event.event for event in events]
    assert kinds[:4] == ["alarm", "changed", "acknowledged", "new-normal"]
    assert sorted(kinds[4:]) == ["over", "shelved", "unshelved"]
    assert events[kinds.index("over")].sensors == ("s1",)
    with pytest.raises(ValueError, match="was counted before"):
        session.take(next(windows.samples()), windows.clock)
    for order in ("acknowledge", "unshelve s0", "shelve s9 1h", "shelve s1", "acknowledge it", "sing"):
        with pytest.raises(ValueError, match=r"alarm|shelve|length"):
            session.obey(order, sample.start)


def test_orders_in_a_file_are_read_once(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that were there before the watch began are none of its own."""
    log, orders, data = tmp_path / "log", tmp_path / "orders", tmp_path / "data.csv"
    orders.write_text("shelve s3 2h\n")
    more = ("--log", str(log), "--orders", str(orders), "--state")
    rows = lines()
    data.write_text("\n".join(rows[:100]) + "\n")
    begun = [
        "watch",
        "--model",
        str(place / "plant.eccaht"),
        "--data",
        str(data),
        *RATE,
        *more,
        str(tmp_path / "state"),
    ]
    assert run(begun) == 0
    orders.write_text("shelve s3 2h\nshelve s1 2h\nhello\nshelve s2")
    for size in (200, len(rows)):
        data.write_text("\n".join(rows[:size]) + "\n")
        assert run(begun) == 0
    course = [(event["event"], *event["sensors"]) for event in logged(log)]
    assert course[:3] == [("shelved", "s1"), ("gap",), ("alarm", "s3")]
    assert capsys.readouterr().err.count("the order 'hello' was not obeyed") == 1


# -- killed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [15, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_any_write_it_goes_on_with_the_same_events(
    place: Path, tmp_path: Path, killer: Callable[[int | None], list[str]], step: int
) -> None:
    expected = logged(place / "undisturbed.jsonl")
    log, state = tmp_path / "log", tmp_path / "state"
    arguments = command(place, "record.csv", "--state", str(state), "--log", str(log))
    for number in range(step // 2, 1000, step):
        fresh(place, state)
        log.unlink(missing_ok=True)
        killer(number)
        if until_it_ends(arguments):
            break
        killer(number // 3)  # and once more, earlier
        until_it_ends(arguments)
        killer(None)
        assert until_it_ends(arguments)
        assert logged(log) == expected, number
    assert number > 40


def eccaht(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "eccaht", *arguments], stdout=subprocess.DEVNULL)


def wait_for(what: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    for _ in range(12000):
        if what() or process.poll() is not None:
            return
        time.sleep(0.01)
    raise AssertionError("nothing happened for two minutes")


def growing(path: Path, pieces: int) -> Iterator[None]:
    """Append the record to a file, a few rows at a time."""
    rows = lines()
    path.write_text(rows[0] + "\n")
    for piece in np.array_split(np.array(rows[1:], dtype=object), pieces):
        with path.open("a") as file:
            file.write("".join(f"{row}\n" for row in piece))
        yield


def _is_longer(log: Path, before: int) -> bool:
    return log.stat().st_size > before  # it says that it has started


@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_at_random_moments_while_the_file_grows(place: Path, tmp_path: Path, kills: int) -> None:
    rng = np.random.default_rng(kills)
    log, data, state = tmp_path / "log", tmp_path / "live.csv", tmp_path / "state"
    fresh(place, state)
    arguments = ["watch", "--model", str(place / "plant.eccaht"), "--data", str(data), *RATE, "--follow"]
    arguments += ["--state", str(state), "--log", str(log)]
    log.touch()
    for _ in growing(data, kills):
        before = log.stat().st_size
        process = eccaht(*arguments)
        try:
            wait_for(partial(_is_longer, log, before), process)
            time.sleep(rng.exponential(0.05))
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()
    process = eccaht(*arguments, "--timeout", "1s")
    assert process.wait(120) == 0
    assert logged(log) == logged(place / "undisturbed.jsonl")


def test_sigterm_ends_it_with_the_state_saved(place: Path, tmp_path: Path) -> None:
    log, state = tmp_path / "log", tmp_path / "state"
    fresh(place, state)
    process = eccaht(*command(place, "record.csv", "--follow", "--state", str(state), "--log", str(log)))
    try:
        wait_for(lambda: log.exists() and '"speaking"' in log.read_text(), process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
    assert json.loads(log.read_text().splitlines()[-1])["event"] == "stopped"
    assert run(command(place, "record.csv", "--state", str(state), "--log", str(log))) == 0
    assert logged(log) == logged(place / "undisturbed.jsonl")


# -- where events go ----------------------------------------------------------------------------------


def test_a_command_gets_the_event(place: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import json, sys, pathlib\n"
        "event = json.load(sys.stdin)\n"
        f"pathlib.Path({str(tmp_path)!r}, 'event-%d' % event['number']).write_text(json.dumps(event))\n"
    )
    state = fresh(place, tmp_path / "state")
    assert run(command(place, "record.csv", "--state", state, "--exec", f"{sys.executable} {script}")) == 0
    events = {event["number"]: event for event in logged(place / "undisturbed.jsonl")}
    urgent = {number for number, event in events.items() if event["event"] in ("alarm", "silent")}
    got = {int(path.name[6:]): json.loads(path.read_text()) for path in tmp_path.glob("event-*")}
    assert got == {number: events[number] for number in urgent}


def test_a_command_that_does_not_read_blocks_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """However large the event is: the second command ends the first."""
    pipe, large = tmp_path / "pipe", {**EVENT.document(), "text": "x" * 200_000}
    os.mkfifo(pipe)
    both = [Commands(f"grep nothing {pipe}"), Commands(f"cp /dev/stdin {pipe}")]
    for commands in both:
        commands.start(large)
    for commands in both:
        commands.finish()
    assert capfd.readouterr().err == "Note: --exec ended with code 1\n"


def test_a_half_line_of_a_log_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = Log(path)
    log.write(EVENT.document())
    with path.open("a") as file:
        file.write('{"event": "ov')
    again = Log(path)
    assert again.has(EVENT.document())
    assert len(path.read_text().splitlines()) == 1


# -- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--false-alarms", "often"], "--false-alarms 'often' is no rate: write 1/30d"),
        (["--false-alarms", "1/1s"], "is more than one in each window of 5s"),
        (["--false-alarms", "1/3weeks"], "is not a length of time"),
        (["--exec", "no-such-program now"], "there is no program 'no-such-program'"),
        (["--exec", "'"], "is no command: No closing quotation"),
        (["--timeout", "3s"], "--timeout is for growing files: add --follow"),
        (["--log", "PLACE/plant.eccaht"], "--log PLACE/plant.eccaht would overwrite --model"),
        (["--log", "PLACE/history.csv"], "holds something else than events"),
        (["--state", "PLACE/history.csv"], "is not a valid watch-state file"),
        (["--state", "PLACE/a.state", "--false-alarms", "1/1d"], "was begun with a false alarm in 5000 windows"),
        (["--data", "PLACE/none.csv"], "no data file at PLACE/none.csv"),
        (["--follow", "--data", "PLACE/history.csv"], "--follow needs one growing CSV file, not 2"),
    ],
)
def test_bad_input_is_one_line(place: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str) -> None:
    arguments = [*command(place, "record.csv"), *(text.replace("PLACE", str(place)) for text in more)]
    assert said.replace("PLACE", str(place)) in refused(arguments, capsys)


def test_a_state_of_another_model_is_refused(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.eccaht"
    model = load_model(place / "plant.eccaht")
    replace(model, ridge=model.ridge + 1e-9).save(other)
    arguments = ["watch", "--model", str(other), "--data", str(place / "record.csv"), *RATE]
    assert "another model" in refused([*arguments, "--state", str(place / "a.state")], capsys)


@pytest.mark.parametrize(
    "change",
    [
        lambda content, _: content["session"].update(position="soon"),
        lambda content, _: content["session"]["operator"].update(shelved={"unknown": 1}),
        lambda content, _: content["watch"].update(standing=[{"sensor": 9, "kind": "stuck", "since": 1}]),
    ],
)
def test_a_damaged_state_is_refused(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Change
) -> None:
    state = tmp_path / "state"
    state.write_bytes((place / "a.state").read_bytes())
    edit(state, change)
    assert "watch-state" in refused(command(place, "record.csv", "--state", str(state)), capsys)


def test_the_rate_in_windows(place: Path) -> None:
    model = load_model(place / "plant.eccaht")
    assert false_alarm_every(None, model) == 3 * model.n_windows
    assert false_alarm_every("2/1h", model) == 360
    assert false_alarm_every("1/500w", model) == 500


def test_the_rate_says_what_it_rests_on_and_what_it_costs(place: Path) -> None:
    model = load_model(place / "plant.eccaht")
    usual = rate_line(PlantWatch(model, false_alarm_every=20.0))
    assert "in 100 seconds (counted on 800 windows)" in usual
    rare = rate_line(PlantWatch(model, false_alarm_every=1e6))
    assert "can carry one in 3.33 hours" in rare
    assert "smallest step" in rare


def test_a_recording_that_stops_to_move_is_not_watched_from_then_on(place: Path, tmp_path: Path) -> None:
    header, *rows = lines()
    first = 30 * 5
    still = rows[first].partition(",")[2]
    frozen = [f"{row.partition(',')[0]},{still}" for row in rows[first:]]
    (tmp_path / "frozen.csv").write_text("\n".join([header, *rows[:first], *frozen]) + "\n")
    log = tmp_path / "log"
    assert run(command(place, str(tmp_path / "frozen.csv"), "--log", str(log))) == 0
    found = [event["text"] for event in logged(log) if event["event"] in ("no-data", "data-back")]
    assert found == ["no data: nothing moves: every sensor repeats its value: check its source"]


def test_a_second_watch_on_the_same_state_is_refused(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = fresh(place, tmp_path / "a.state")
    with exclusive(Path(f"{state}.lock"), "not here"):
        said = refused(command(place, "record.csv", "--state", state), capsys)
    assert said == f"eccaht: --state {state} is in use by another watch: end that one, or give another file\n"
    assert run(command(place, "record.csv", "--state", state)) == 0
