"""A model survives its file exactly; a file that is damaged or hostile is refused in one line."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht.plants.incident.counts import kept
from eccaht.plants.incident.drill import drill_history, keeping
from eccaht.plants.model.calibration import calibrate, calibrate_with_windows
from eccaht.plants.model.model import Model, load_model
from eccaht.streams.covariance import LowRankPlusDiagonal
from tests.checks.archives import Change, edit, packed, unpacked
from tests.plants.model.histories import history


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models")
    history(path / "h.csv")
    calibrate(path / "h.csv").save(path / "model.eccaht")
    return path


@pytest.fixture
def model(folder: Path) -> Model:
    return load_model(folder / "model.eccaht")


@pytest.mark.parametrize("estimator", ["ledoit-wolf", "factor"])
def test_a_model_survives(estimator: str, folder: Path, tmp_path: Path) -> None:
    before = calibrate(folder / "h.csv", estimator=estimator, ridge=0.01)
    before.save(tmp_path / "m")
    after = load_model(tmp_path / "m")
    assert type(after.covariance) is type(before.covariance)
    assert np.array_equal(after.covariance.dense(), before.covariance.dense())
    for name in ("center", "scale", "mean"):
        assert np.array_equal(getattr(after, name), getattr(before, name))
    for name in ("names", "seconds", "estimator", "ridge", "n_windows", "first", "last", "columns", "reading"):
        assert getattr(after, name) == getattr(before, name)
    for name, array in before.summary.arrays().items():
        assert np.array_equal(after.summary.arrays()[name], array)
    assert before.normal is not None
    assert after.normal is not None
    for name, array in before.normal.arrays().items():
        assert np.array_equal(after.normal.arrays()[name], array), name
    assert np.array_equal(after.prepare(folder / "h.csv").values, before.prepare(folder / "h.csv").values)


def test_a_saved_model_is_the_same_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    model, windows = calibrate_with_windows(folder / "h.csv", window="3s")
    keeping(model, drill_history(model, windows, runs=100)).save(tmp_path / "m")
    load_model(tmp_path / "m").save(tmp_path / "again")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()


def test_some_sensors_of_normal_operation(model: Model) -> None:
    part = model.of(["s3", "s1"])
    assert part.names == ("s1", "s3")
    assert part.normal is not None
    assert model.normal is not None
    chosen = np.array([1, 3])
    assert np.array_equal(part.normal.precision, model.normal.of(chosen).precision)
    assert np.array_equal(part.normal.scale, model.normal.scale[chosen])


def test_a_model_poses_problems(model: Model) -> None:
    problem = model.problem(shift=3.0, n_anomalies=1, budget=2.0)
    assert problem.names == ("s0", "s1", "s2", "s3")
    assert np.array_equal(problem.mean, model.mean)
    part = model.problem(shift=[1.0, -2.0], n_anomalies=1, budget=2.0, names=["s3", "s1"])
    assert part.names == ("s3", "s1")
    assert np.array_equal(part.covariance.dense(), model.covariance.dense()[np.ix_([3, 1], [3, 1])])
    assert np.array_equal(part.mean, model.mean[[3, 1]])
    with pytest.raises(ValueError, match=r"no sensor 's9': did you mean 's\d'"):
        model.problem(shift=1.0, n_anomalies=1, budget=1.0, names=["s1", "s9"])


def test_a_factor_model_stays_one_when_restricted(folder: Path) -> None:
    model = calibrate(folder / "h.csv", estimator="factor")
    part = model.problem(shift=1.0, n_anomalies=1, budget=1.0, names=["s2", "s0", "s1"])
    assert isinstance(part.covariance, LowRankPlusDiagonal)
    assert part.covariance.dense() == pytest.approx(model.covariance.dense()[np.ix_([2, 0, 1], [2, 0, 1])])


def test_a_model_is_immutable(model: Model) -> None:
    with pytest.raises(AttributeError):
        model.seconds = 1.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        model.scale[0] = 1.0


# -- files that are wrong ------------------------------------------------------------------------------


def put(name: str, value: Any) -> Change:
    return lambda header, arrays: (arrays if isinstance(value, np.ndarray) else header).__setitem__(name, value)


def drop(name: str) -> Change:
    return lambda header, arrays: (arrays if name in arrays else header).pop(name)


def spoil(name: str, value: float) -> Change:
    return lambda _, arrays: arrays[name].reshape(-1).__setitem__(1, value)


def read_by(key: str, value: Any) -> Change:
    return lambda header, _: header["reading"].__setitem__(key, value)


def column(key: str, value: Any) -> Change:
    return lambda header, _: header["columns"][1].__setitem__(key, value)


def scaled(name: str, factor: float) -> Change:
    return lambda _, arrays: arrays.update({name: arrays[name] * factor})


WRONG: dict[str, Change] = {
    "negative scale": spoil("scale", -1.0),
    "zero scale": spoil("scale", 0.0),
    "NaN centre": spoil("center", np.nan),
    "NaN covariance": spoil("covariance.matrix", np.nan),
    "asymmetric covariance": spoil("covariance.matrix", 1e6),
    "indefinite covariance": put("covariance.matrix", -np.eye(4)),
    "small covariance": put("covariance.matrix", np.eye(3)),
    "too few names": put("names", ["s0", "s1", "s2"]),
    "names twice": put("names", ["s0", "s1", "s2", "s2"]),
    "names a text": put("names", "abcd"),
    "names numbers": put("names", [1, 2, 3, 4]),
    "no names": drop("names"),
    "no mean": drop("mean"),
    "mean of another length": put("mean", np.zeros(5)),
    "no summary": drop("summary.stuck"),
    "summary of another shape": put("summary.quantiles", np.zeros((41, 3))),
    "further arrays": put("summary.more", np.zeros(3)),
    "infinite summary": spoil("summary.kurtosis", np.inf),
    "unknown operator": put("operator", "os.system"),
    "unknown estimator": put("estimator", "magic"),
    "window of no length": put("seconds", 0),
    "window a text": put("seconds", "1min"),
    "no windows": put("n_windows", 0),
    "half a window": put("n_windows", 2.5),
    "negative ridge": put("ridge", -1.0),
    "huge ridge": put("ridge", 10**400),
    "ends before it begins": put("last", 0),
    "time a text": put("first", "2017"),
    "time too large": put("first", 2**80),
    "columns of others": put("columns", []),
    "column without a name": column("name", None),
    "column of an odd kind": column("kind", "magic"),
    "column imputed twice": column("imputed", 2.0),
    "column with more": column("code", "x"),
    "reading a list": put("reading", []),
    "reading without levels": lambda header, _: header["reading"].pop("levels"),
    "levels of an unknown column": read_by("levels", {"x": ["a"]}),
    "levels that are no texts": read_by("levels", {"s0": [1]}),
    "levels twice": read_by("levels", {"s0": ["a", "a"]}),
    "decimals of an unknown column": read_by("decimals", {"x": 1}),
    "decimals in a list": read_by("decimals", [1]),
    "decimals negative": read_by("decimals", {"s0": -1}),
    "decimals too many": read_by("decimals", {"s0": 7}),
    "decimals a fraction": read_by("decimals", {"s0": 1.0}),
    "decimals true": read_by("decimals", {"s0": True}),
    "decimals a text": read_by("decimals", {"s0": "2"}),
    "interval negative": read_by("interval", -1.0),
    "time column a text": read_by("time_columns", "timestamp"),
    "decimal comma a text": read_by("decimal_comma", "yes"),
    "constant of a sensor": column("constant", 1.0),
    "constant a text": lambda header, _: header["columns"][0].__setitem__("constant", "1"),
    "normal operation in the header": put("normal", None),
    "a choice": put("choice", None),
    "no centre of normal operation": drop("normal.centre"),
    "no precision": drop("normal.precision"),
    "no tails": drop("normal.tails.edge"),
    "no levels": drop("normal.local.middle"),
    "more of normal operation": put("normal.more", np.zeros(3)),
    "more tails": put("normal.tails.more", np.zeros(3)),
    "more parts": put("normal.more.edge", np.zeros(3)),
    "no spread": spoil("normal.scale", 0.0),
    "hardly any spread": spoil("normal.scale", 1e-300),
    "NaN spread": spoil("normal.scale", np.nan),
    "a range upside down": spoil("normal.high", -1e9),
    "repeats of nothing": spoil("normal.repeats", 0.0),
    "an asymmetric precision": spoil("normal.precision", 0.9),
    "an indefinite precision": put("normal.precision", -np.eye(8)),
    "a singular precision": put("normal.precision", np.ones((8, 8))),
    "a nearly singular precision": put("normal.precision", np.ones((8, 8)) + 1e-15 * np.eye(8)),
    "a huge precision": scaled("normal.precision", 1e40),
    "a small precision": put("normal.precision", np.eye(7)),
    "an edge at 0": spoil("normal.tails.edge", 0.0),
    "an edge without end": spoil("normal.drifts.edge", np.inf),
    "a shape of nothing": spoil("normal.tails.shape", 0.0),
    "tails that fall": spoil("normal.tails.table", 1e3),
    "tails of others": put("normal.tails.edge", np.ones(3)),
    "an edge that is one number": put("normal.tails.edge", np.ones(())),
    "a base that is several": put("normal.tails.base", np.ones(4)),
    "a negative base": put("normal.tails.base", np.array(-1.0)),
    "distances of sensors": put("normal.distances.edge", np.ones(4)),
    "peaks that rise": put("normal.peaks.heights", np.tile(np.arange(3.0), (5, 1))),
    "peaks of four detectors": put("normal.peaks.heights", np.ones((4, 3))),
    "no peaks": put("normal.peaks.heights", np.ones((5, 0))),
    "NaN peaks": spoil("normal.peaks.heights", np.nan),
    "peaks of no windows": put("normal.peaks.windows", np.array(0.0)),
    "peaks of NaN windows": put("normal.peaks.windows", np.array(np.nan)),
    "knots that fall": spoil("normal.local.knots", 1e9),
    "knots that begin elsewhere": spoil("normal.local.knots", -1.0),
    "scores that fall": spoil("normal.local.heights", 1e9),
    "a memory without end": put("normal.local.memory", np.full(4, 1.5)),
    "a negative memory": put("normal.local.memory", np.full(4, -0.5)),
    "no innovations": spoil("normal.local.unit", 0.0),
    "a width of several": put("normal.local.width", np.full(2, 11.0)),
    "a width of nothing": put("normal.local.width", np.array(0.0)),
    "lengths that fall": spoil("normal.local.lengths", 0.0),
    "a slope of nothing": spoil("normal.local.slope", 0.0),
    "indefinite scores": put("normal.local.others", -np.eye(4)),
    "levels of others": put("normal.local.both", np.eye(6)),
    "drills of nothing": put("drilled.more", np.zeros(3)),
    "drills a list": put("drilled", [1]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_contents_are_refused(name: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.eccaht"
    path.write_bytes((folder / "model.eccaht").read_bytes())
    edit(path, WRONG[name])
    with pytest.raises(ValueError, match=r"model\.eccaht' is not a valid model file: ") as error:
        load_model(path)
    assert "\n" not in str(error.value)


def test_drills_are_kept_and_checked(folder: Path) -> None:
    model, windows = calibrate_with_windows(folder / "h.csv")
    assert kept(model) is None
    found = drill_history(model, windows, runs=80)
    again = kept(keeping(model, found))
    assert again is not None
    assert again.header() == found.header()
    assert again.counts.cells == found.counts.cells
    for header in ({}, {"counts": 1}, found.header() | {"more": 1}, found.header() | {"afterwards": {"edges": [1]}}):
        with pytest.raises(ValueError, match=r"its (drills|confidence|counts of drills) "):
            kept(replace(model, drilled=header))


@pytest.mark.parametrize(
    ("change", "words"),
    [({"version": 3}, "version is 3, .* 4: calibrate again"), ({"format": "eccaht-policy"}, "but as 'policy'")],
)
def test_another_version_or_kind(change: dict[str, Any], words: str, folder: Path, tmp_path: Path) -> None:
    header, arrays = unpacked((folder / "model.eccaht").read_bytes())
    (tmp_path / "m").write_bytes(packed(header | change, arrays))
    with pytest.raises(ValueError, match=words):
        load_model(tmp_path / "m")


def test_an_edited_but_sound_file_is_read(folder: Path, tmp_path: Path) -> None:
    """So that the refusals above are not about the editing."""
    path = tmp_path / "model.eccaht"
    path.write_bytes((folder / "model.eccaht").read_bytes())
    edit(path, lambda *_: None)
    assert load_model(path).names == ("s0", "s1", "s2", "s3")


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    (tmp_path / "model.npz").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(ValueError, match=r"model\.npz' is not a valid model file: it was not written by eccaht"):
        load_model(tmp_path / "model.npz")


def test_fuzzed_bytes(folder: Path, tmp_path: Path) -> None:
    """A model that is valid, or one line."""
    data = (folder / "model.eccaht").read_bytes()
    rng = np.random.default_rng(1)
    said = []
    for _ in range(150):
        changed = bytearray(data)
        start = int(rng.integers(0, len(data)))
        changed[start : start + int(rng.integers(1, 30))] = rng.bytes(int(rng.integers(0, 30)))
        (tmp_path / "m").write_bytes(bytes(changed))
        try:
            load_model(tmp_path / "m")
        except ValueError as error:
            said.append(str(error))
    assert len(said) > 100
    assert not any("\n" in text for text in said)
