"""An archive is read back exactly, or refused in one line; nothing in it is ever executed or larger than the file."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht.base.files import read_archive, write_archive
from tests.checks.archives import packed, sealed, unpacked


def read(path: Path, kind: str, version: int) -> dict[str, Any]:
    return read_archive(path, kind, version, dict)


def written(path: Path) -> Path:
    state = {"a": [1, "x", {"m": np.arange(6.0).reshape(2, 3)}], "n": np.array([7])}
    write_archive(path, "model", 3, state)
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    state = read(written(tmp_path / "f"), "model", 3)
    one, two, inner = state["a"]
    assert (one, two) == (1, "x")
    assert np.array_equal(inner["m"], [[0, 1, 2], [3, 4, 5]])
    assert inner["m"].flags.writeable
    assert state["n"].dtype.kind == "i"


def test_arrays_of_every_layout(tmp_path: Path) -> None:
    arrays = {"scalar": np.array(2.5), "empty": np.zeros((0, 3)), "turned": np.arange(6.0).reshape(2, 3).T}
    arrays["small"], arrays["big"] = np.arange(3, dtype=np.int32), np.arange(3.0, dtype=">f8")
    write_archive(tmp_path / "f", "model", 1, arrays)
    found = read(tmp_path / "f", "model", 1)
    assert found.keys() == arrays.keys()
    assert all(np.array_equal(found[name], arrays[name]) and found[name].shape == arrays[name].shape for name in arrays)


@pytest.mark.parametrize(
    ("kind", "version", "words"),
    [("model", 4, "format version is 3, this eccaht reads 4"), ("policy", 3, "not written by eccaht.*as 'model'")],
)
def test_other_kinds_and_versions_are_named(kind: str, version: int, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        read(written(tmp_path / "f"), kind, version)


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no model file at"):
        read(tmp_path / "none", "model", 3)
    with pytest.raises(ValueError, match="is a directory"):
        read(tmp_path, "model", 3)


def test_pipes_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # no process ever writes to it
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(ValueError, match="not a regular file"):
            read(path, "model", 3)


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    data = written(tmp_path / "f").read_bytes()
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 8)
        (tmp_path / "f").write_bytes(bytes(changed))
        with pytest.raises(ValueError, match="model file") as error:
            read(tmp_path / "f", "model", 3)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_truncated(keep: float, tmp_path: Path) -> None:
    data = written(tmp_path / "f").read_bytes()
    (tmp_path / "f").write_bytes(data[: int(keep * len(data))])
    with pytest.raises(ValueError, match="model file"):
        read(tmp_path / "f", "model", 3)


def test_files_of_other_programs_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes(pickle.dumps({"format": "eccaht-model", "version": 3}))
    with pytest.raises(ValueError, match="not written by eccaht"):
        read(path, "model", 3)
    np.savez(path, a=np.array([{"x": 1}], dtype=object))
    with pytest.raises(ValueError, match="not written by eccaht"):
        read(path, "model", 3)


HEADERS = {
    "list": b"[1, 2]",
    "text": b'"x"',
    "empty": b"",
    "no json": b"{",
    "no text": b"\xff\xfe",
    "of nothing": b"{}",
    "without version": b'{"format": "eccaht-model"}',
    "deep": b"[" * 100_000,
    "deep but right": b"[" * 100 + b"]" * 100,
    "NaN": b'{"format": "eccaht-model", "version": NaN}',
    "infinite": b'{"format": "eccaht-model", "version": 1e999}',
    "twice": b'{"format": "eccaht-model", "version": 3, "version": 3}',
    "of many values": b"[" + b"{}," * 100_000 + b"{}]",
    "of many digits": b"[" + b"1" * 100_000 + b"]",
}


@pytest.mark.parametrize("name", HEADERS)
def test_odd_headers(name: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(sealed(HEADERS[name]))
    with pytest.raises(ValueError, match="not a valid model file") as error:
        read(tmp_path / "f", "model", 3)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("place", ["a.0", "a", "a.1.x", "a.3", "b", "a.2.m.0", "n.m", "", "a.x"])
def test_arrays_without_a_place(place: str, tmp_path: Path) -> None:
    header, arrays = unpacked(written(tmp_path / "f").read_bytes())
    (tmp_path / "f").write_bytes(packed(header, arrays | {place: np.zeros(2)}))
    with pytest.raises(ValueError, match="not a valid model file"):
        read(tmp_path / "f", "model", 3)


LISTS: dict[str, Any] = {
    "none": None,
    "nothing": [],
    "one missing": [["a.2.m", "<f8", [2, 3]]],
    "the same twice": [["a.2.m", "<f8", [2, 3]]] * 2,
    "too long": [["a.2.m", "<f8", [2, 3]], ["n", "<i8", [2]]],
    "very long": [["a.2.m", "<f8", [2, 3]], ["n", "<i8", [10**18]]],
    "negative": [["a.2.m", "<f8", [2, 3]], ["n", "<i8", [-1]]],
    "negative that fit": [["a.2.m", "<f8", [-2, -3]], ["n", "<i8", [1]]],
    "overflowing": [["a.2.m", "<f8", [2**32, 2**32]], ["n", "<i8", [7]]],
    "fractions": [["a.2.m", "<f8", [2.0, 3]], ["n", "<i8", [1]]],
    "truths": [["a.2.m", "<f8", [2, 3]], ["n", "<i8", [True]]],
    "shape a number": [["a.2.m", "<f8", 6], ["n", "<i8", [1]]],
    "objects": [["a.2.m", "|O", [2, 3]], ["n", "<i8", [1]]],
    "half numbers": [["a.2.m", "<f4", [4, 3]], ["n", "<i8", [1]]],
    "name a number": [[1, "<f8", [2, 3]], ["n", "<i8", [1]]],
    "of four": [["a.2.m", "<f8", [2, 3], 0], ["n", "<i8", [1]]],
    "of many axes": [["a.2.m", "<f8", [2, 3, *[1] * 40]], ["n", "<i8", [1]]],
}


@pytest.mark.parametrize("name", LISTS)
def test_odd_lists_of_arrays(name: str, tmp_path: Path) -> None:
    stored, arrays = unpacked(written(tmp_path / "f").read_bytes())
    header = json.dumps(stored | {"arrays": LISTS[name]}).encode()
    (tmp_path / "f").write_bytes(sealed(header, b"".join(array.tobytes() for array in arrays.values())))
    with pytest.raises(ValueError, match="not a valid model file") as error:
        read(tmp_path / "f", "model", 3)
    assert "\n" not in str(error.value)


def test_put_together_by_hand_it_is_read(tmp_path: Path) -> None:
    """So that the refusals above are not about the editing."""
    (tmp_path / "g").write_bytes(packed(*unpacked(written(tmp_path / "f").read_bytes())))
    assert read(tmp_path / "g", "model", 3)["a"][:2] == [1, "x"]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be saved"):
        write_archive(tmp_path / "f", "model", 1, {"a": object()})
    with pytest.raises(ValueError, match="levels deep"):
        write_archive(tmp_path / "f", "model", 1, {"a": json.loads("[" * 80 + "]" * 80)})
    assert list(tmp_path.iterdir()) == []


def test_errors_while_building_name_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "here")
    with pytest.raises(ValueError, match="lacks 'names'"):
        read_archive(path, "model", 3, lambda state: state["names"])
