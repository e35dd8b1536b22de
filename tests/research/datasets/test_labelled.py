"""The layout of labelled collections is read or refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht.research.datasets.labelled import Segment, read_entity, read_rows
from tests.research.datasets.labelled_format import (
    TRAINING_ROWS,
    find_entities,
    small_rows,
    write_collection,
)


def test_entities_are_found_from_the_collection_and_from_above(tmp_path: Path) -> None:
    write_collection(tmp_path / "first", ["e-10", "e-2"])
    write_collection(tmp_path / "second", ["m"])
    (tmp_path / "other").mkdir()
    assert [entity.label for entity in find_entities(tmp_path / "first")] == ["first/e-2", "first/e-10"]
    assert [entity.label for entity in find_entities(tmp_path)] == ["first/e-2", "first/e-10", "second/m"]
    entity = find_entities(tmp_path)[-1]
    assert entity.segments == (Segment(10, 40, (1, 4)), Segment(50, 60, (6,)))
    train, test = read_entity(entity)
    assert train.rows.shape == (TRAINING_ROWS, 8)
    assert test.rows.shape == (100, 8)


def test_rows_are_read_packed_or_not(tmp_path: Path) -> None:
    rows = small_rows(6, seed=0)
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",", fmt="%.17g")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    np.testing.assert_array_equal(read_rows(tmp_path / "a.csv"), rows)
    np.testing.assert_array_equal(read_rows(tmp_path / "b.csv.gz"), rows)


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ([], "is not a list of segments by entity"),
        ({}, "names no entity"),
        ({"e": [{"start": 3, "stop": 3, "dims": [0]}]}, "is not one of rows and metrics"),
        ({"e": [{"start": 0, "stop": 3}]}, "dims"),
        ({"e": [{"start": 0, "stop": 300, "dims": [0]}]}, "lies outside of the test"),
        ({"e": [{"start": 0, "stop": 3, "dims": [8]}]}, "lies outside of the test"),
        ({"f": []}, "truth.json names f, but there is no"),
    ],
)
def test_a_truth_that_does_not_fit_is_refused(tmp_path: Path, truth: Any, message: str) -> None:
    write_collection(tmp_path, ["e"])
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    with pytest.raises(ValueError, match=message):
        read_entity(find_entities(tmp_path)[0])


@pytest.mark.parametrize("content", ["", "1,2\n3\n", "1,x\n", "1,2\n,3\n"])
def test_damaged_rows_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(ValueError, match=r"a\.csv"):
        read_rows(tmp_path / "a.csv")


def test_what_is_no_collection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"it has no truth\.json"):
        find_entities(tmp_path)
    with pytest.raises(ValueError, match="not a directory"):
        find_entities(tmp_path / "absent")
