"""Where commands write."""

from __future__ import annotations

import tempfile
from pathlib import Path


def writable_directory(path: Path, option: str = "--out") -> Path:
    """Return the directory, made if need be, after proving that a file can be written there."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"{option} {path} is a file: give a directory")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):  # permissions alone do not tell: the disk may be read-only or full
            return path
    except OSError as error:
        raise ValueError(f"cannot write to {option} {path}: {error.strerror}; give another directory") from None
