"""Atomic writes to regular files, and a safe archive format.

An archive, which may come from an untrusted sender:

    8 bytes   magic
    32 bytes  SHA-256 of all that follows
    8 bytes   length of the header
    header    JSON: format, version, content, and of each array [place in the content, type, shape]
    arrays    their numbers, one array after the other in the order of the header, to the end of the file

The arrays follow from the header, so that they can neither overlap nor leave gaps, and nothing is ever larger than the
file. The digest finds what was damaged, mixed up or edited. It is no signature: whoever edits a file can renew it. So
what the numbers mean, and whether they make sense, is for the caller to check, as strictly as for any other input.
"""

import errno
import hashlib
import io
import json
import math
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
_MAGIC = b"eccaht\x01\n"
_DIGEST, _LENGTH = 32, 8
_FRONT = len(_MAGIC) + _DIGEST + _LENGTH
_TYPES = {"<f8": np.dtype("<f8"), "<i8": np.dtype("<i8")}
_LARGEST_HEADER = 1 << 24  # bytes
_DEEPEST = 64  # levels of lists and objects in a header
_VALUES, _BYTES_PER_VALUE = 10_000, 16  # most values in a header: 10,000, and one more per 16 bytes of the file


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
def exclusive(lock: Path, busy: str) -> Iterator[None]:
    """Be the only process that holds this lock; the system takes it from one that is killed.

    The lock is on an empty file that stays: one that was removed could be locked by a process that opened it before.
    busy: the message of the ValueError where another process holds it.
    """
    if fcntl is None:
        yield
        return
    with lock.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(busy) from None
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


Built = TypeVar("Built")


def write_archive(path: str | PathLike[str], kind: str, version: int, state: Mapping[str, Any]) -> None:
    """Write a state: values of JSON among which there are arrays.

    An existing file is replaced only once the new one is complete.
    """
    content = archive_bytes(kind, version, state)
    with replacing(Path(path)) as file:
        file.write(content)


def archive_bytes(kind: str, version: int, state: Mapping[str, Any]) -> bytes:
    """The bytes of the file that `write_archive` writes."""
    arrays: dict[str, NDArray[Any]] = {}
    content = _without_arrays(state, "", arrays)
    numbers = {name: _as_written(array) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, array.shape] for name, array in numbers.items()]
    document = {"format": f"eccaht-{kind}", "version": version, "content": content, "arrays": listed}
    text = json.dumps(document, default=_refused, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 8)  # arrays begin at multiples of their numbers
    _parsed(text, _FRONT + len(text) + sum(array.nbytes for array in numbers.values()))  # or reading would refuse it
    parts: list[Any] = [len(text).to_bytes(_LENGTH, "little"), text, *numbers.values()]
    body = b"".join(parts)
    return b"".join([_MAGIC, hashlib.sha256(body).digest(), body])


def _refused(value: Any) -> Any:
    raise ValueError(f"a value of type {type(value).__name__} cannot be saved: use numbers, texts, lists and arrays")


def read_archive(
    path: str | PathLike[str],
    kind: str,
    version: int,
    build: Callable[[dict[str, Any]], Built],
) -> Built:
    """Build from the state that `write_archive` wrote for the same kind and version.

    Any error, also while building, becomes a ValueError of one line that names the file.
    """
    with _explained(os.fspath(path), kind), regular_file(path, f"{kind} file") as file:
        return _built(file, os.fstat(file.fileno()).st_size, kind, version, build)


def parse_archive(
    content: bytes,
    kind: str,
    version: int,
    build: Callable[[dict[str, Any]], Built],
    *,
    name: str,
) -> Built:
    """The same from the bytes of a file; name: what messages call it."""
    with _explained(name, kind):
        return _built(io.BytesIO(content), len(content), kind, version, build)


def _built(
    file: BinaryIO,
    size: int,
    kind: str,
    version: int,
    build: Callable[[dict[str, Any]], Built],
) -> Built:
    text, data = _checked_bytes(file, size)
    document = _parsed(text, _FRONT + len(text) + len(data))
    if not isinstance(document, dict) or document.get("format") != f"eccaht-{kind}":
        raise ValueError("it was not written by eccaht" + _instead(document))
    if (found := document.get("version")) != version:
        raise ValueError(f"its format version is {found!r:.20}, this eccaht reads {version}: make it again")
    check_keys(document, {"format", "version", "content", "arrays"}, "header")
    if not isinstance(document["content"], dict):
        raise ValueError("its header is damaged")
    return build(_with_arrays(document["content"], _arrays(document["arrays"], data)))


def arrays_of(state: Any) -> list[NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    _without_arrays(state, "", arrays)
    return list(arrays.values())


def _without_arrays(value: Any, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """A state with None in the place of each array; these go into `arrays`, by the way that leads to them."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return None
    if isinstance(value, Mapping):
        return {key: _without_arrays(part, f"{name}.{key}" if name else key, arrays) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(part, f"{name}.{k}", arrays) for k, part in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _with_arrays(content: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """The state again, whose arrays are put where there is None for them."""
    for name, array in arrays.items():
        holder: Any = content
        *way, last = name.split(".")
        for key in way:
            holder = holder[int(key)] if isinstance(holder, list) else holder[key]
        place: Any = int(last) if isinstance(holder, list) else last
        if holder[place] is not None:
            raise ValueError(f"it has no place for {name[:40]!r}")
        holder[place] = array
    return content


@contextmanager
def _explained(name: str, kind: str) -> Iterator[None]:
    """Any error becomes a ValueError of one line that names the file; only that there is none stays as it is."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, MemoryError) as error:
        raise ValueError(f"{name!r} is not a valid {kind} file: {_one_line(error)}") from None
    except (OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{name!r} cannot be read as a {kind} file: {_one_line(error)}") from None


def check_keys(found: Any, keys: set[str], what: str) -> None:
    """Refuse an object that lacks one of these keys or has others."""
    if not isinstance(found, dict):
        raise ValueError(f"its {what} is damaged")
    for name in sorted(keys ^ set(found)):
        raise ValueError(f"its {what} {'lacks' if name in keys else 'has an unknown'} {name[:40]!r}")


def _one_line(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return f"it lacks {error!s:.80}"
    return " ".join(str(error).split())[:300] or type(error).__name__


def _instead(document: Any) -> str:
    """Name the other kind of eccaht's files if it is one."""
    name = document.get("format") if isinstance(document, dict) else None
    if isinstance(name, str) and name.startswith("eccaht-"):
        return f" as this kind of file, but as {name.removeprefix('eccaht-')[:40]!r}"
    return ""


def _as_written(array: NDArray[Any]) -> NDArray[Any]:
    """Little-endian numbers of 8 bytes, in the order of rows."""
    kind = {"f": "<f8", "i": "<i8"}[array.dtype.kind]
    return np.ascontiguousarray(array, dtype=kind).reshape(array.shape)


def _checked_bytes(file: BinaryIO, size: int) -> tuple[bytes, memoryview]:
    """The header and the numbers of a file, never more than its size, if the digest agrees."""
    front = file.read(_FRONT)
    if len(front) < _FRONT or not front.startswith(_MAGIC):
        raise ValueError("it was not written by eccaht")
    length = int.from_bytes(front[-_LENGTH:], "little")
    if length > min(size - _FRONT, _LARGEST_HEADER):
        raise ValueError("its header is longer than it may be: it is incomplete or damaged")
    rest = memoryview(file.read(size - _FRONT))
    digest = hashlib.sha256(front[-_LENGTH:])
    digest.update(rest)
    if digest.digest() != front[len(_MAGIC) : -_LENGTH]:
        raise ValueError("its digest does not agree with its contents: it is incomplete, damaged or was edited")
    return bytes(rest[:length]), rest[length:]


def _parsed(text: bytes, size: int) -> Any:
    """The header of a file of this size: values of JSON, few enough, each key once, all numbers finite."""
    if len(text) > _LARGEST_HEADER or sum(map(text.count, b",[{")) > _VALUES + size // _BYTES_PER_VALUE:
        raise ValueError("its header holds more than eccaht writes")
    document = json.loads(text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite)
    level = [document]
    for _ in range(_DEEPEST):
        inner = (value.values() if isinstance(value, dict) else value for value in level)
        level = [part for parts in inner if isinstance(parts, list | type({}.values())) for part in parts]
    if level:
        raise ValueError(f"its header is more than {_DEEPEST} levels deep")
    return document


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return values


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def _arrays(listed: Any, data: memoryview) -> dict[str, NDArray[Any]]:
    """The arrays that the header lists, which must make up all of the data."""
    arrays: dict[str, NDArray[Any]] = {}
    start = 0
    for name, kind, shape in listed:
        good = isinstance(name, str) and name not in arrays and isinstance(shape, list) and len(shape) <= 8
        if not good or not all(type(length) is int and length >= 0 for length in shape):
            raise ValueError("its list of arrays is damaged")
        dtype = _TYPES[kind]
        stop = start + dtype.itemsize * math.prod(shape)
        if stop > len(data):
            raise ValueError("it is shorter than its arrays")
        arrays[name] = np.frombuffer(data[start:stop], dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=True)
        start = stop
    if start != len(data):
        raise ValueError("it is longer than its arrays")
    return arrays
