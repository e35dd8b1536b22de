"""A model survives its file exactly; a file that is damaged or hostile is refused in one line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht import Problem
from eccaht.base.codec import state_of
from eccaht.plants.incident.counts import kept
from eccaht.plants.incident.drill import drill_history, keeping
from eccaht.plants.model.calibration import calibrate, calibrate_with_windows
from eccaht.plants.model.model import Model, load_model
from tests.checks.archives import Change, edit, packed, unpacked
from tests.checks.fields import damages
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
    np.testing.assert_allclose(problem.mean, model.mean, atol=1e-12)
    part = model.problem(shift=[1.0, -2.0], n_anomalies=1, budget=2.0, names=["s3", "s1"])
    assert part.names == ("s3", "s1")
    same = Problem.from_samples(model.quiet[0][:, [3, 1]], shift=1.0, n_anomalies=1, budget=2.0)
    assert np.array_equal(part.covariance.dense(), same.covariance.dense())
    assert part.estimated_from == len(model.quiet[0])
    few = replace(model, history=None).problem(shift=1.0, n_anomalies=1, budget=2.0, names=["s3", "s1"])
    assert np.array_equal(few.covariance.dense(), model.covariance.dense()[np.ix_([3, 1], [3, 1])])
    assert few.estimated_from == model.n_windows
    with pytest.raises(ValueError, match=r"no sensor 's9': did you mean 's\d'"):
        model.problem(shift=1.0, n_anomalies=1, budget=1.0, names=["s1", "s9"])


def test_a_model_is_immutable(model: Model) -> None:
    with pytest.raises(AttributeError):
        model.seconds = 1.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        model.scale[0] = 1.0


# -- files that are wrong ------------------------------------------------------------------------------


def put(name: str, value: Any) -> Change:
    """Put a value, or an array, into the part of a file that is about the model."""
    if isinstance(value, np.ndarray):
        return lambda _, arrays: arrays.__setitem__(name, value)
    return lambda content, _: content["model"].__setitem__(name, value)


def spoil(name: str, value: float) -> Change:
    return lambda _, arrays: arrays[name].reshape(-1).__setitem__(1, value)


def read_by(key: str, value: Any) -> Change:
    return lambda content, _: content["reading"].__setitem__(key, value)


def column(key: str, value: Any, place: int = 1) -> Change:
    return lambda content, _: content["model"]["columns"][place].__setitem__(key, value)


def scaled(name: str, factor: float) -> Change:
    return lambda _, arrays: arrays.update({name: arrays[name] * factor})


NORMAL, MATRIX = "model.normal", "covariance"
WRONG: dict[str, Change] = {  # what no single field says
    "negative scale": spoil("model.scale", -1.0),
    "NaN covariance": spoil(MATRIX, np.nan),
    "asymmetric covariance": spoil(MATRIX, 1e6),
    "indefinite covariance": put(MATRIX, -np.eye(4)),
    "small covariance": put(MATRIX, np.eye(3)),
    "names twice": put("names", ["s0", "s1", "s2", "s2"]),
    "no covariance": lambda content, _: content.update(covariance=[1.0]),
    "unknown estimator": put("estimator", "magic"),
    "window of no length": put("seconds", 0),
    "ends before it begins": put("last", 0),
    "columns of others": put("columns", []),
    "a constant that was kept": column("constant", 1.0),
    "a range of a column that was kept": column("high", 1.0),
    "levels of an unknown column": read_by("levels", {"x": ["a"]}),
    "levels twice": read_by("levels", {"s0": ["a", "a"]}),
    "decimals of an unknown column": read_by("decimals", {"x": 1}),
    "interval negative": read_by("interval", -1.0),
    "a range upside down": spoil(f"{NORMAL}.high", -1e9),
    "an asymmetric precision": spoil(f"{NORMAL}.precision", 0.9),
    "an indefinite precision": put(f"{NORMAL}.precision", -np.eye(8)),
    "a singular precision": put(f"{NORMAL}.precision", np.ones((8, 8))),
    "a nearly singular precision": put(f"{NORMAL}.precision", np.ones((8, 8)) + 1e-15 * np.eye(8)),
    "a huge precision": scaled(f"{NORMAL}.precision", 1e40),
    "a small precision": put(f"{NORMAL}.precision", np.eye(7)),
    "rarities that fall": spoil(f"{NORMAL}.rarity.table", 1e3),
    "tails of others": put(f"{NORMAL}.rarity.edge", np.ones(3)),
    "peaks that rise": lambda _, arrays: arrays.update(
        {f"{NORMAL}.peaks.heights": np.flip(arrays[f"{NORMAL}.peaks.heights"])}
    ),
    "no peaks": put(f"{NORMAL}.peaks.heights", np.ones((5, 0))),
    "knots that fall": spoil(f"{NORMAL}.local.knots", 1e9),
    "scores that fall": spoil(f"{NORMAL}.local.heights", 1e9),
    "lengths that fall": spoil(f"{NORMAL}.local.lengths", 0.0),
    "indefinite scores": put(f"{NORMAL}.local.others", -np.eye(4)),
    "levels of others": put(f"{NORMAL}.local.both", np.eye(6)),
    "drills a list": lambda content, _: content.update(drilled=[1]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_contents_are_refused(name: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.eccaht"
    path.write_bytes((folder / "model.eccaht").read_bytes())
    edit(path, WRONG[name])
    with pytest.raises(ValueError, match=r"model\.eccaht") as error:
        load_model(path)
    assert "\n" not in str(error.value)


def test_drills_are_kept_and_checked(folder: Path) -> None:
    model, windows = calibrate_with_windows(folder / "h.csv")
    assert kept(model) is None
    found = drill_history(model, windows, runs=80)
    again = kept(keeping(model, found))
    assert again is not None
    assert state_of(again) == state_of(found)
    for what, state in damages(found, state_of(found), {}):
        with pytest.raises(ValueError, match="its "):
            pytest.fail(f"taken: {what}, {kept(replace(model, drilled=state))}")


@pytest.mark.parametrize(
    ("change", "words"),
    [({"version": 3}, "version is 3"), ({"format": "eccaht-policy"}, "but as 'policy'")],
)
def test_another_version_or_kind(change: dict[str, Any], words: str, folder: Path, tmp_path: Path) -> None:
    header, arrays = unpacked((folder / "model.eccaht").read_bytes())
    (tmp_path / "m").write_bytes(packed(header | change, arrays))
    with pytest.raises(ValueError, match=words):
        load_model(tmp_path / "m")
