"""Files that are either complete or not there, and never anything but regular files."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


class NotWritten(OSError):
    """A file could not be written: no part of it stays, and a file that stood there before is as it was."""

    def __str__(self) -> str:
        return f"cannot write {self.filename}: {self.strerror}"


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Collect what a file shall hold, and let it appear under its name once all of it is on the disk.

    It is collected in memory, so that no library's own way to fail on a full disk leaves a part of the file.
    """
    target, content = destination(path), io.BytesIO()
    yield content
    # not tempfile.mkstemp: its files stay readable by their owner alone whatever the umask says
    temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())  # or a crash soon after the renaming could leave an empty file under the name
        os.replace(temporary, target)
    except OSError as error:
        raise NotWritten(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def destination(path: Path) -> Path:
    """The name that is replaced: the one a link leads to, so that the link stays; a regular file or a new name."""
    target = Path(os.path.realpath(path))
    try:
        kind = stat.S_IFMT(target.stat().st_mode)
    except FileNotFoundError:
        return target
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}; give another name") from None
    if kind != stat.S_IFREG:
        raise ValueError(f"{path} is {_KINDS.get(kind, 'no regular file')}: give a new name or that of a regular file")
    return target


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Be the only process that writes to the directory; the system takes the lock from one that is killed.

    The lock is on an empty file that stays: one that was removed could be locked by a process that opened it before.
    """
    if fcntl is None:
        yield
        return
    with (directory / LOCK).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another process is writing to {directory}: let it end, or use another --out") from None
        yield


def regular_file(path: str | os.PathLike[str], what: str) -> BinaryIO:
    """Open a regular file for reading; pipes and devices, which may never begin or end, are refused at once."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise FileNotFoundError(f"no {what} at {os.fspath(path)}") from None
    except OSError as error:
        if error.errno != errno.ENXIO:  # a socket cannot even be opened
            raise
        mode = stat.S_IFSOCK
    else:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
    pipe = "not a regular file: save what it gives as one, and name that"
    instead = "a directory: name the files in it" if stat.S_ISDIR(mode) else pipe
    raise ValueError(f"{os.fspath(path)} is {instead}")
