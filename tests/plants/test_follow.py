"""A file followed while it grows gives the windows that it gives once it is complete."""

import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht.base.clock import Clock
from eccaht.plants.data.lines import LONGEST_LINE
from eccaht.plants.intake import Follower
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model, Notation
from tests.plants.model.histories import clock, signals, write_csv

HEADER = "time,a,b\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A model that leaves readings as they are."""
    path = tmp_path_factory.mktemp("history") / "h.csv"
    calibrated = calibrate(
        write_csv(path, ["time", "a", "b"], [clock(900), *signals(900, 2).T.tolist()]), window="1min"
    )
    return replace(calibrated, center=np.zeros(2), scale=np.ones(2))


def row(second: int, a: object = None, b: object = None) -> str:
    when = f"2024-05-01 08:{second // 60:02d}:{second % 60:02d}"
    return f"{when},{second if a is None else a},{2 * second if b is None else b}\n"


def expected(path: Path) -> list[tuple[str, list[float]]]:
    """Minute means by plain Python, as independent of the reader as can be."""
    sums: dict[str, list[list[float]]] = {}
    for line in path.read_text().splitlines()[1:]:
        when, *cells = line.split(",")
        sums.setdefault(when[11:16], []).append([float(cell) for cell in cells])
    return [(start, np.mean(sums[start], axis=0).tolist()) for start in sorted(sums)]


class Growing:
    """Follow a file in a thread, feeding it step by step."""

    def __init__(self, model: Model, path: Path, **options: Any) -> None:
        self.seen: list[tuple[str, list[float]]] = []
        self.notes: list[str] = []
        self.error: BaseException | None = None
        self.follower = Follower(model, path, poll=0.005, note=self.notes.append, **options)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            for start, values, *_ in self.follower:
                self.seen.append((str(start)[11:16], np.asarray(values).tolist()))
        except (ValueError, OSError) as error:
            self.error = error

    def wait(self, done: Callable[[], object]) -> None:
        patience = time.monotonic() + 60
        while not done() and time.monotonic() < patience:
            time.sleep(0.002)
        assert done(), (self.seen, self.notes, self.error)

    def finish(self, end: bool = True) -> None:
        if end:
            self.follower.end()
        self._thread.join(60)
        assert not self._thread.is_alive()


def append(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text.encode() if isinstance(text, str) else text)


def test_a_window_counts_once_a_later_row_has_arrived_and_the_last_one_at_the_end(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + row(0) + row(30))
    growing = Growing(model, path)
    append(path, row(50))
    append(path, row(60))
    growing.wait(lambda: len(growing.seen) == 1)
    text = row(130)
    append(path, text[:-4])  # a half-written line closes nothing
    growing.wait(lambda: growing.follower.file._tail.unfinished == text[:-4].encode())
    assert len(growing.seen) == 1
    append(path, text[-4:])
    growing.wait(lambda: len(growing.seen) == 2)
    growing.finish()
    assert growing.seen == expected(path)
    assert [start for start, _ in growing.seen] == ["08:00", "08:01", "08:02"]
    assert growing.notes == growing.follower.notes == []


def test_many_small_pieces_give_the_windows_of_the_whole_file(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    whole = HEADER + "".join(row(7 * k, a=round(np.sin(k)), b=k) for k in range(120))
    path.write_text("")
    growing = Growing(model, path)
    cuts = np.sort(np.random.default_rng(0).integers(0, len(whole), 60))
    for piece in np.split(np.array(list(whole)), cuts):
        append(path, "".join(piece))
        time.sleep(0.001)
    growing.wait(lambda: growing.follower.file.rows == 120)
    growing.finish()
    assert [start for start, _ in growing.seen] == [start for start, _ in expected(path)]
    means = [values for _, values in expected(path)]
    assert np.array([values for _, values in growing.seen]) == pytest.approx(np.array(means), rel=1e-14)


def test_silence_for_the_timeout_ends_it_and_an_unfinished_line_is_left_out(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + row(0) + row(61) + row(65)[:-1])
    growing = Growing(model, path, timeout=0.1)
    growing.finish(end=False)
    assert growing.follower.file.timed_out
    assert growing.seen == [("08:00", [0, 0]), ("08:01", [61, 122])]
    (note,) = growing.notes
    assert "not finished" in note


def test_a_rotated_file_is_followed_on_and_the_window_across_it_is_whole(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + row(0) + row(60))
    growing = Growing(model, path)
    growing.wait(lambda: len(growing.seen) == 1)
    os.rename(path, tmp_path / "grow.csv.1")
    growing.wait(lambda: growing.notes)
    append(path, HEADER + row(90) + row(120))
    growing.wait(lambda: len(growing.seen) == 2)
    growing.finish()
    assert growing.seen == [("08:00", [0, 0]), ("08:01", [75, 150]), ("08:02", [120, 240])]
    assert [word in note for word, note in zip(("gone", "from its beginning"), growing.notes, strict=True)] == [
        True,
        True,
    ]


def test_a_truncated_file_is_followed_from_its_beginning_and_old_rows_do_not_count_again(
    model: Model, tmp_path: Path
) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + "".join(row(k) for k in range(0, 200, 10)))
    growing = Growing(model, path)
    growing.wait(lambda: len(growing.seen) == 3)
    before = list(growing.seen)
    with path.open("r+") as file:
        file.truncate(0)
    append(path, HEADER + row(10) + row(250))
    growing.wait(lambda: len(growing.seen) == 4)
    growing.finish()
    assert growing.seen[:3] == before
    assert [start for start, _ in growing.seen] == ["08:00", "08:01", "08:02", "08:03", "08:04"]


@pytest.mark.parametrize(("was", "now"), [(",0,0\n", ",7,0\n"), (",198,396\n", ",198,397\n")])
def test_a_file_that_was_rewritten_longer_is_followed_from_its_beginning(
    was: str, now: str, model: Model, tmp_path: Path
) -> None:
    """The inode is the same and the file is longer than what was read of it: only its bytes show it."""
    path = tmp_path / "grow.csv"
    old = HEADER + "".join(row(k) for k in range(0, 200, 2))
    path.write_text(old)
    growing = Growing(model, path)
    growing.wait(lambda: len(growing.seen) == 3 and growing.follower.file.rows == 100)
    inode = path.stat().st_ino
    with path.open("r+b") as file:  # in one go, so that it is never seen shorter
        file.write((old.replace(was, now) + row(241) + row(301)).encode())
    assert path.stat().st_ino == inode
    growing.wait(lambda: len(growing.seen) == 5)
    growing.finish()
    assert [start for start, _ in growing.seen] == [f"08:0{minute}" for minute in range(6)]
    assert sum("following it from its beginning" in note for note in growing.notes) == 1


GARBAGE: dict[str, tuple[bytes, str]] = {
    "short row": (b"2024-05-01 08:00:30,1\n", "line 3 of .* has 2 values where the header has 3"),
    "long row": (b"2024-05-01 08:00:30,1,2,3\n", "line 3 of .* has 4 values"),
    "words": (b"logger restarted\n", "line 3 of .* has 1 value "),
    "NUL bytes": (b"\0" * 40 + b",1,2\n", "line 3 of .* holds NUL bytes"),
    "no time": (b"yesterday,1,2\n", "line 3 of .* has the time 'yesterday'"),
    "empty time": (b",1,2\n", "line 3 of .* has readings but no time"),
    "not UTF-8": (b"\xff\xfe\x80\x81\n", "line 3 of .* has 1 value "),
    "not UTF-8 in the time": (b"2024-\xff,1,2\n", "line 3 of .* has the time"),
    "half a quotation": (b'2024-05-01 08:00:30,"1,2\n', "line 3 of .* quotation mark without its partner"),
    "endless": (b"7" * (LONGEST_LINE + 5) + b"\n", "line 3 of .* is longer than 4 MiB"),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_a_bad_line_is_named_counted_and_left_out(name: str, model: Model, tmp_path: Path) -> None:
    bad, words = GARBAGE[name]
    path = tmp_path / "grow.csv"
    path.write_bytes((HEADER + row(0)).encode() + bad + (row(50) + row(70)).encode())
    growing = Growing(model, path, timeout=0.05)
    growing.finish(end=False)
    assert growing.error is None
    assert growing.seen == [("08:00", [25, 50]), ("08:01", [70, 140])]
    (first,) = growing.notes
    assert growing.follower.file.faults.notes() == growing.follower.notes
    for text in (first, *growing.follower.file.faults.notes()):
        assert re.search(words, text)
    assert growing.follower.file.faults.notes()[0].startswith("1 bad line was left out")


@pytest.mark.parametrize("text", ["ERROR", "Bad Input", "#VALUE!", "1.2.3", '"ERR"'])
def test_a_bad_value_is_missing_and_the_rest_of_its_row_counts(text: str, model: Model, tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + row(0) + row(30, a=text) + row(50) + row(70, a=text) + row(130))
    growing = Growing(model, path, timeout=0.05)
    growing.finish(end=False)
    (_, first), (_, second), _ = growing.seen
    assert first == [25, pytest.approx(160 / 3)]
    assert np.isnan(second[0])
    assert second[1] == 140
    if text in ("Bad Input", "#VALUE!"):  # known ways to say that there is none
        assert growing.notes == []
    else:
        (count,) = growing.follower.file.faults.notes()
        assert count.startswith("column 'a': 2 values count as missing, the first: ")
        assert "in line 3 of " in count


def test_column_names_in_the_middle_blank_lines_and_other_line_ends_are_no_fault(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    text = HEADER + row(0) + HEADER + "\n" + row(50) + HEADER + row(70)
    path.write_bytes(text.replace("\n", "\r\n").encode())
    growing = Growing(model, path, timeout=0.05)
    growing.finish(end=False)
    assert growing.seen == [("08:00", [25, 50]), ("08:01", [70, 140])]
    assert growing.notes == growing.follower.notes == []


def test_an_endless_line_takes_no_memory_and_ends_where_it_ends(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + row(0))
    growing = Growing(model, path)
    for _ in range(10):
        append(path, b"9" * (LONGEST_LINE // 4))
        time.sleep(0.01)
        assert len(growing.follower.file._tail.unfinished) <= LONGEST_LINE
    growing.wait(lambda: growing.notes)
    append(path, "\n" + row(50) + row(70) + "bad\n" + row(130))
    growing.wait(lambda: len(growing.seen) == 2)
    growing.finish()
    assert growing.seen[0] == ("08:00", [25, 50])
    assert growing.follower.file.faults.notes()[0].startswith("2 bad lines were left out, the first: line 3 of ")


def test_other_columns_under_the_name_end_it_with_what_was_seen(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + row(0) + row(60))
    growing = Growing(model, path)
    growing.wait(lambda: growing.seen)
    path.unlink()
    append(path, "time,x,y\n" + row(60))
    growing.finish(end=False)
    assert growing.error is None
    assert growing.seen == [("08:00", [0, 0])]
    assert "other columns" in growing.notes[-1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "waited for column names and a row"),
        (HEADER.encode(), "waited for column names and a row"),
        (b"some words\nand others\n", r"waited for column names and a row .*only one column"),
        (HEADER.encode() + b"x,1,2\ny\n", "waited for a row that can be read; 2 bad lines"),
    ],
)
def test_where_nothing_was_read_it_says_what_was_waited_for(
    content: bytes, words: str, model: Model, tmp_path: Path
) -> None:
    path = tmp_path / "grow.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^nothing was read from .*grow.csv: {words}") as error:
        list(Follower(model, path, timeout=0.01, poll=0.005))
    assert "\n" not in str(error.value)


def test_what_cannot_be_followed_is_one_clear_line(model: Model, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="directory"):
        list(Follower(model, tmp_path))
    with pytest.raises(FileNotFoundError):
        list(Follower(model, tmp_path / "absent.csv"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no regular file"):
        list(Follower(model, tmp_path / "pipe"))
    wide = tmp_path / "wide.csv"
    wide.write_bytes((HEADER + row(0) + row(60)).encode("utf-16"))
    with pytest.raises(ValueError, match="UTF-16, which cannot be followed"):
        list(Follower(model, wide, timeout=0.01))
    lacking = tmp_path / "lacking.csv"
    lacking.write_text("time,a\n2024-05-01 08:00:00,1\n")
    with pytest.raises(ValueError, match="'b'; add --missing allow"):
        list(Follower(model, lacking, timeout=0.01))


def test_the_sensors_are_known_from_finished_lines_only(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text("time,b\n2024-05-01 08:00:00,1\n2024-05")
    assert Follower(model, path, missing="allow").file.present() == ("b",)
    path.write_text("time,b\n2024-05-01 08:00:00,1")
    with pytest.raises(ValueError, match="no row yet"):
        Follower(model, path, missing="allow").file.present()


def test_decimal_commas_are_seen_when_they_come(model: Model, tmp_path: Path) -> None:
    """The first rows hold whole numbers and do not show them."""
    path = tmp_path / "grow.csv"
    path.write_text("time;a;b\n2024-05-01 08:00:00;1;2\n")
    growing = Growing(model, path)
    growing.wait(lambda: growing.follower.file.rows == 1)
    append(path, "2024-05-01 08:00:30;2,5;3\n2024-05-01 08:01:00;1;2\n")
    growing.wait(lambda: growing.seen)
    growing.finish()
    assert growing.seen[0] == ("08:00", [1.75, 2.5])


def test_the_hour_that_occurs_twice_row_by_row(model: Model, tmp_path: Path) -> None:
    """In Berlin 2024-10-27 02:00 to 03:00 comes twice; the second time rows step back, wherever the pieces are cut."""
    minutes = [f"2024-10-27 {hour:02d}:{minute:02d}:00" for hour in (1, 2, 2, 3) for minute in range(0, 60, 10)]
    path = tmp_path / "grow.csv"
    path.write_text(HEADER)
    growing = Growing(model, path, notation=Notation(timezone="Europe/Berlin"))
    for k, when in enumerate(minutes):
        append(path, f"{when},{k},{k}\n")
        growing.wait(lambda k=k: growing.follower.file.rows > k)  # type: ignore[misc]
    growing.finish()
    assert growing.follower.clock == Clock("Europe/Berlin")
    assert growing.notes == []
    starts = [f"{hour % 24:02d}:{minute:02d}" for hour in (23, 24, 25, 26) for minute in range(0, 60, 10)]  # in UTC
    assert growing.seen == [(start, [k, k]) for k, start in enumerate(starts)]


@pytest.mark.parametrize("when", ["9999-12-31 23:59:59", "2031-01-01 00:00:00", "2024-05-02 04:00:00"])
def test_an_absurd_time_makes_no_window_and_ends_nothing(when: str, model: Model, tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + row(0) + row(30))
    growing = Growing(model, path)
    growing.wait(lambda: growing.follower.file.rows == 2)
    append(path, f"{when},7,7\n")
    time.sleep(0.03)
    append(path, row(60))
    growing.wait(lambda: growing.seen)
    append(path, row(130))
    growing.wait(lambda: growing.follower.file.rows == 5)
    growing.finish()
    assert growing.seen == [("08:00", [15, 30]), ("08:01", [60, 120]), ("08:02", [130, 260])]
    (count,) = growing.follower.file.faults.notes()
    assert f"the row of {when} in " in count


def test_rows_that_are_all_too_late_are_mentioned(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    later = [line.replace("2024", "2025") for line in (row(0), row(70), row(140))]
    path.write_text(HEADER + row(0) + "".join(later))
    growing = Growing(model, path)
    growing.wait(lambda: len(growing.seen) == 3)
    append(path, "".join(row(second) for second in range(60, 3600)))
    growing.wait(lambda: growing.follower.file.rows == 4 + 3540)
    growing.finish()
    (said,) = [note for note in growing.notes if "no data" in note]
    assert "came too late for their windows" in said
