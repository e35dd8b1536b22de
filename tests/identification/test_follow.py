"""A file followed while it grows gives the windows that it gives once it is complete."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eccaht.data.windows import Windows
from eccaht.identification.follow import Follower, read_layout

HEADER = "time,a,b\n"


def row(second: int, a: object = None, b: object = None) -> str:
    clock = f"2024-05-01 08:{second // 60:02d}:{second % 60:02d}"
    return f"{clock},{second if a is None else a},{2 * second if b is None else b}\n"


def prepare(path: Path) -> Windows:
    """Minute means by plain Python, as independent of the reader as can be."""
    sums: dict[np.datetime64, list[list[float]]] = {}
    lines = path.read_text().splitlines()
    assert lines[0] == HEADER.strip()
    for line in lines[1:]:
        clock, *cells = line.split(",")
        if len(cells) != 2:
            raise ValueError(f"{path} has a short line")
        sums.setdefault(np.datetime64(clock, "m"), []).append([float(cell) for cell in cells])
    starts = sorted(sums)
    values = np.array([np.mean(sums[start], axis=0) for start in starts]).reshape(-1, 2)
    return Windows(np.array(starts, dtype="datetime64[us]"), values, ("a", "b"), 60.0)


class Growing:
    """Follow a file in a thread, feeding it step by step."""

    def __init__(self, path: Path, **options: float) -> None:
        self.seen: list[tuple[str, list[float]]] = []
        self.notes: list[str] = []
        self.error: BaseException | None = None
        self.follower = Follower(path, prepare, poll=0.005, note=self.notes.append, **options)  # type: ignore[arg-type]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            for start, values, *_ in self.follower:
                self.seen.append((str(start)[11:16], np.asarray(values).tolist()))
        except ValueError as error:
            self.error = error

    def wait(self, done: Callable[[], object]) -> None:
        patience = time.monotonic() + 20
        while not done() and time.monotonic() < patience:
            time.sleep(0.002)
        assert done(), (self.seen, self.notes, self.error)

    def finish(self, end: bool = True) -> None:
        if end:
            self.follower.end()
        self._thread.join(20)
        assert not self._thread.is_alive()


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def expected(path: Path) -> list[tuple[str, list[float]]]:
    whole = prepare(path)
    return [(str(t)[11:16], x.tolist()) for t, x in zip(whole.starts, whole.values, strict=True)]


def test_a_window_counts_once_a_later_row_has_arrived_and_the_last_one_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + row(0) + row(30))
    growing = Growing(path)
    append(path, row(50))
    append(path, row(60))
    growing.wait(lambda: len(growing.seen) == 1)
    text = row(130)
    append(path, text[:-4])  # a half-written line closes nothing
    time.sleep(0.05)
    assert len(growing.seen) == 1
    append(path, text[-4:])
    growing.wait(lambda: len(growing.seen) == 2)
    growing.finish()
    assert growing.seen == expected(path)
    assert [start for start, _ in growing.seen] == ["08:00", "08:01", "08:02"]
    assert growing.notes == []


def test_many_small_pieces_give_the_windows_of_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    whole = HEADER + "".join(row(7 * k, a=np.sin(k), b=k) for k in range(120))
    path.write_text("")
    growing = Growing(path)
    cuts = np.sort(np.random.default_rng(0).integers(0, len(whole), 60))
    for piece in np.split(np.array(list(whole)), cuts):
        append(path, "".join(piece))
        time.sleep(0.001)
    growing.wait(lambda: len(growing.seen) == len(expected(path)) - 1)
    growing.finish()
    assert growing.seen == expected(path)


def test_silence_for_the_timeout_ends_it_and_an_unfinished_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + row(0) + row(61) + row(65)[:-1])
    growing = Growing(path, timeout=0.1)
    growing.finish(end=False)
    assert growing.follower.timed_out
    assert growing.seen == [("08:00", [0, 0]), ("08:01", [61, 122])]
    (note,) = growing.notes
    assert "not finished" in note


def test_a_rotated_file_is_followed_on_and_the_window_across_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + row(0) + row(60))
    growing = Growing(path)
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


def test_a_truncated_file_is_followed_from_its_beginning_and_old_rows_do_not_count_again(tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + "".join(row(k) for k in range(0, 200, 10)))
    growing = Growing(path)
    growing.wait(lambda: len(growing.seen) == 3)
    before = list(growing.seen)
    with path.open("r+") as file:
        file.truncate(0)
    append(path, HEADER + row(10) + row(250))
    growing.wait(lambda: len(growing.seen) == 4)
    growing.finish()
    assert growing.seen[:3] == before
    assert [start for start, _ in growing.seen] == ["08:00", "08:01", "08:02", "08:03", "08:04"]


def test_another_file_under_the_name_and_bad_lines_are_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + row(0))
    growing = Growing(path)
    time.sleep(0.05)
    path.unlink()
    append(path, "time,x,y\n" + row(60))
    growing.finish(end=False)
    assert "other columns" in str(growing.error)

    path.write_text(HEADER + row(0) + "2024-05-01 08:00:30,1\n")
    growing = Growing(path)
    growing.finish(end=False)
    assert str(path) in str(growing.error)  # not that of some temporary file
    with pytest.raises(ValueError, match="directory"):
        list(Follower(tmp_path, prepare))
    with pytest.raises(FileNotFoundError):
        list(Follower(tmp_path / "absent.csv", prepare))


def test_start_and_stop_bound_it(tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + "".join(row(k) for k in range(0, 400, 20)))
    times = [np.datetime64(f"2024-05-01T08:0{minute}", "us") for minute in (2, 5)]
    seen = list(Follower(path, prepare, start=times[0], stop=times[1], timeout=0.05))
    assert [str(start)[11:16] for start, *_ in seen] == ["08:02", "08:03", "08:04"]


def test_the_layout_is_read_from_finished_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "grow.csv"
    path.write_text(HEADER + row(0) + "2024-05")
    assert read_layout(path).names == ("time", "a", "b")
    path.write_text(HEADER + row(0)[:-1])
    with pytest.raises(ValueError, match="no row yet"):
        read_layout(path)
