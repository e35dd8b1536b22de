"""One file of plain numbers that is safe to load from strangers.

A file is an uncompressed zip: `header.json` says what it is, the other entries are arrays of numbers (.npy). Nothing
is ever unpickled, and every entry is checked for type and size before it is used. What the numbers mean, and whether
they make sense, is for the caller to check, by the same validating constructors that a user calls.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.files import replacing

_HEADER = "header.json"


def write_archive(
    path: str | PathLike[str],
    kind: str,
    version: int,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    plain: Callable[[Any], Any] | None = None,
) -> None:
    """Write header and arrays; an existing file is replaced only once the new one is complete.

    plain: turns what JSON does not know into what it knows, or raises.
    """
    told = {"format": f"eccaht-{kind}", "version": version, **header}
    text = json.dumps(told, default=plain)
    with replacing(Path(path)) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_HEADER, text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.ascontiguousarray(array), allow_pickle=False)


def read_archive(path: str | PathLike[str], kind: str, version: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `write_archive` wrote for the same kind and version; anything else is a ValueError of one line."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"no {kind} file at {os.fspath(path)!r}")
    with rebuilding(path, kind):
        header, arrays = _read(path)
        if not isinstance(header, dict) or header.get("format") != f"eccaht-{kind}":
            raise ValueError("it was not written by eccaht" + _instead(header))
        if header.get("version") != version:
            raise ValueError(f"its format version is {header.get('version')!r}, this eccaht reads {version}")
        return header, arrays


@contextmanager
def rebuilding(path: str | PathLike[str], kind: str) -> Iterator[None]:
    """Whatever goes wrong while building from a file is the file's fault: say so in one line."""
    try:
        yield
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        ArithmeticError,
        RecursionError,
        MemoryError,
    ) as error:
        raise ValueError(f"{os.fspath(path)!r} is not a valid {kind} file: {_one_line(error)}") from None
    except (OSError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be read as a {kind} file: {_one_line(error)}") from None


def _one_line(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    return " ".join(str(error).split()) or type(error).__name__


def _instead(header: Any) -> str:
    """Name the other kind of eccaht's files if it is one."""
    told = header.get("format") if isinstance(header, dict) else None
    if isinstance(told, str) and told.startswith("eccaht-"):
        return f" as this kind of file, but as {told.removeprefix('eccaht-')[:40]!r}"
    return ""


def _read(path: str | PathLike[str]) -> tuple[Any, dict[str, NDArray[Any]]]:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("it is compressed, which eccaht never writes")
        if _HEADER not in archive.namelist():
            raise ValueError("it has no header")
        header = json.loads(archive.read(_HEADER))
        arrays = {e.filename.removesuffix(".npy"): _array(archive.read(e)) for e in entries if e.filename != _HEADER}
    return header, arrays


def _array(data: bytes) -> NDArray[Any]:
    """Parse an .npy entry without trusting what it says of itself."""
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array has an unknown format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in "fi" or fortran or dtype.itemsize * math.prod(shape) != len(data) - stream.tell():
        raise ValueError("an array is damaged or does not hold plain numbers")
    return np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape).copy()
