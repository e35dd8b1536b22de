"""Files that are either complete or not there."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only once it was written completely."""
    # not tempfile.mkstemp: its files stay readable by their owner alone whatever the umask says
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def regular_file(path: str | os.PathLike[str], what: str) -> BinaryIO:
    """Open a regular file for reading; pipes and devices, which may never begin or end, are refused at once."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise FileNotFoundError(f"no {what} at {os.fspath(path)}") from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    pipe = "not a regular file: save what it gives as one, and name that"
    instead = "a directory: name the files in it" if stat.S_ISDIR(mode) else pipe
    raise ValueError(f"{os.fspath(path)} is {instead}")
