"""An archive is read back exactly, or refused in one line; nothing in it is ever executed."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from eccaht.archive import read_archive, rebuilding, write_archive


def written(path: Path) -> Path:
    write_archive(path, "model", 3, {"a": [1, "x"]}, {"m": np.arange(6.0).reshape(2, 3), "n": np.array([7])})
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    header, arrays = read_archive(written(tmp_path / "f"), "model", 3)
    assert header["a"] == [1, "x"]
    assert np.array_equal(arrays["m"], [[0, 1, 2], [3, 4, 5]])
    assert arrays["n"].dtype.kind == "i"
    assert arrays["m"].flags.writeable


@pytest.mark.parametrize(
    ("kind", "version", "words"),
    [("model", 4, "format version is 3, this eccaht reads 4"), ("policy", 3, "not written by eccaht.*as 'model'")],
)
def test_other_kinds_and_versions_are_named(kind: str, version: int, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        read_archive(written(tmp_path / "f"), kind, version)


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no model file at"):
        read_archive(tmp_path / "none", "model", 3)
    with pytest.raises(ValueError, match="cannot be read as a model file"):
        read_archive(tmp_path, "model", 3)


def test_any_changed_byte_is_noticed_or_harmless(tmp_path: Path) -> None:
    """Whatever happens to one byte, there is a result of the same shape or one line, never another error."""
    data = written(tmp_path / "f").read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(data), 300):
        changed = bytearray(data)
        changed[place] ^= int(rng.integers(1, 256))
        (tmp_path / "g").write_bytes(bytes(changed))
        said = outcome(tmp_path / "g")
        assert said == 7 or ("model file" in str(said) and "\n" not in str(said))


def outcome(path: Path) -> int | str:
    """How many numbers were read, or the message."""
    try:
        return sum(array.size for array in read_archive(path, "model", 3)[1].values())
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_truncated(keep: float, tmp_path: Path) -> None:
    data = written(tmp_path / "f").read_bytes()
    (tmp_path / "f").write_bytes(data[: int(keep * len(data))])
    with pytest.raises(ValueError, match="model file"):
        read_archive(tmp_path / "f", "model", 3)


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes(pickle.dumps({"format": "eccaht-model", "version": 3}))
    with pytest.raises(ValueError, match="cannot be read as a model file"):
        read_archive(path, "model", 3)
    np.savez(path, a=np.array([{"x": 1}], dtype=object))
    with pytest.raises(ValueError, match="no header"):
        read_archive(path, "model", 3)


@pytest.mark.parametrize("header", ["[1, 2]", '"x"', "{}", "[" * 100_000, '{"format": "eccaht-model"}'])
def test_odd_headers(header: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "f", "w") as archive:
        archive.writestr("header.json", header)
    with pytest.raises(ValueError, match="not a valid model file"):
        read_archive(tmp_path / "f", "model", 3)


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_archive(tmp_path / "f", "model", 1, {"a": object()}, {})
    assert list(tmp_path.iterdir()) == []


def test_errors_while_rebuilding_name_the_file() -> None:
    with (
        pytest.raises(ValueError, match=r"'here' is not a valid model file: it lacks 'names'"),
        rebuilding("here", "model"),
    ):
        json.loads("{}")["names"]
