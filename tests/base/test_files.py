"""A file is complete or absent, only regular files are replaced, and one process at a time writes to a directory."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import polars as pl
import pytest
from matplotlib.figure import Figure

from eccaht.base.files import NotWritten, exclusive, replacing

resource = pytest.importorskip("resource", reason="needs limits of file sizes")


@contextmanager
def full_disk(limit: int = 64) -> Iterator[None]:
    """No file grows beyond so many bytes: writing fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250)
    with replacing(path) as file:
        file.write(b"whole")
        assert not [*tmp_path.iterdir()]
    assert path.read_bytes() == b"whole"
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_what_was_there_stays_if_the_new_one_fails(error: BaseException, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise error

    with pytest.raises(type(error)):
        _write(path, fail)
    assert path.read_bytes() == b"before"
    assert [*tmp_path.iterdir()] == [path]


WRITERS: dict[str, Callable[[Path], object]] = {
    "bytes": lambda path: _write(path, lambda file: file.write(b"x" * 5000)),
    "parquet": lambda path: _write(path, pl.DataFrame({"x": range(5000)}).write_parquet),
    "csv": lambda path: _write(path, pl.DataFrame({"x": range(5000)}).write_csv),
    "picture": lambda path: _write(path, lambda file: Figure().savefig(file, format="png")),
}


def _write(path: Path, write: Callable[..., object]) -> None:
    with replacing(path) as file:
        write(file)


@pytest.mark.parametrize("what", WRITERS)
def test_on_a_full_disk_no_part_stays_and_the_file_is_named(what: str, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"before")
    for path in (old, new):
        with full_disk(), pytest.raises(NotWritten, match=f"cannot write {path}: File too large"):
            WRITERS[what](path)
    assert old.read_bytes() == b"before"
    assert [*tmp_path.iterdir()] == [old]


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    target, link, dangling = tmp_path / "place" / "target", tmp_path / "link", tmp_path / "dangling"
    target.write_bytes(b"before")
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "place" / "new")
    for path in (link, dangling):
        _write(path, lambda file: file.write(b"after"))
        assert path.is_symlink()
        assert path.read_bytes() == b"after"
    assert target.read_bytes() == b"after"


def odd_file(kind: str, path: Path) -> Path:
    """Something that is no regular file."""
    if kind == "a directory":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as bound:
            before = Path.cwd()
            os.chdir(path.parent)  # names of sockets are short
            bound.bind(path.name)
            os.chdir(before)
    else:
        path.symlink_to(os.devnull)
    return path


@pytest.mark.parametrize("kind", ["a directory", "a pipe", "a socket", "a device"])
def test_nothing_but_a_regular_file_is_replaced(kind: str, tmp_path: Path) -> None:
    odd = odd_file(kind, tmp_path / "odd")
    link = tmp_path / "link"
    link.symlink_to(odd)
    for path in (odd, link):
        with pytest.raises(ValueError, match=f"{path} is {kind}: give"):
            _write(path, lambda _: pytest.fail("work began"))
    assert len([*tmp_path.iterdir()]) == 2
    with pytest.raises(ValueError, match="/dev/null is a device"):
        _write(Path(os.devnull), lambda _: pytest.fail("work began"))


_HOLD = """
import sys, time
from pathlib import Path
from eccaht.base.files import exclusive
with exclusive(Path(sys.argv[1]), ""):
    print("locked", flush=True)
    time.sleep(60)
"""


def test_one_process_at_a_time_and_a_killed_one_holds_nothing(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="there is no lock on Windows")
    lock = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", _HOLD, str(lock)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(ValueError, match="another process"), exclusive(lock, "another process"):
            pytest.fail("both write")
        os.kill(other.pid, signal.SIGKILL)
    for _ in range(2):
        with exclusive(lock, "another process"):
            pass
