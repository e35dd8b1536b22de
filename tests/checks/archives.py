"""Archives taken apart and put together again by hand, with a digest that is right for what they hold."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
Change = Callable[[dict[str, Any], Arrays], object]
FRONT = 48  # bytes before the header


def unpacked(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """All that the header says, and the arrays."""
    start = FRONT + int.from_bytes(data[FRONT - 8 : FRONT], "little")
    header, arrays = json.loads(data[FRONT:start]), {}
    for name, kind, shape in header["arrays"]:
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(data, kind, count, start).reshape(shape).copy()
        start += 8 * count
    return header, arrays


def packed(header: dict[str, Any], arrays: Arrays, listed: Any = None) -> bytes:
    """A file of these; `listed` is what it says of its arrays, the truth unless given."""
    true = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    text = json.dumps(header | {"arrays": true if listed is None else listed}).encode()
    return sealed(text, b"".join(array.tobytes() for array in arrays.values()))


def sealed(header: bytes, numbers: bytes = b"") -> bytes:
    """Front, header and numbers."""
    rest = len(header).to_bytes(8, "little") + header + numbers
    return b"eccaht\x01\n" + hashlib.sha256(rest).digest() + rest


def edit(path: Path, change: Change) -> None:
    """Change the content of the header and the arrays of a file."""
    header, arrays = unpacked(path.read_bytes())
    change(header["content"], arrays)
    path.write_bytes(packed(header, arrays))
