"""Files hold plain numbers; what is damaged or foreign is refused in one line and never executed."""

import os
from pathlib import Path

import numpy as np
import pytest

from eccaht import Problem, Simulator, load_policy, make_policy
from eccaht.streams.policies.storage import save_policy
from tests.checks.archives import Change, edit
from tests.checks.covariances import EXAMPLES


def saved(path: Path) -> Path:
    problem = Problem(EXAMPLES["block-mixed"](), shift=3.0, n_anomalies=2, budget=2.0)
    policy, world = make_policy("ecc-aht", problem), Simulator(problem)
    for _ in range(5):
        policy.tell(policy.ask(), world.measure(policy.ask()))
    policy.save(path)
    return path


@pytest.mark.parametrize("name", [name for name, build in EXAMPLES.items() if build().size > 1])
def test_every_covariance_survives(name: str, tmp_path: Path) -> None:
    cov = EXAMPLES[name]()
    rng = np.random.default_rng(0)
    problem = Problem(
        cov,
        shift=rng.uniform(1, 2, cov.size),
        n_anomalies=1,
        budget=3.0,
        mean=rng.standard_normal(cov.size),
        names=[f"sensor {k}" for k in range(cov.size)],
    )
    make_policy("ecc-aht", problem, stopping=None).save(tmp_path / "p")
    loaded = load_policy(tmp_path / "p").problem
    assert type(loaded.covariance) is type(cov)
    assert np.array_equal(loaded.covariance.dense(), cov.dense())
    assert np.array_equal(loaded.shift, problem.shift)
    assert np.array_equal(loaded.mean, problem.mean)
    assert loaded.names == problem.names


def in_policy(key: str, value: object) -> Change:
    return lambda content, _: content["policy"].__setitem__(key, value)


def in_problem(key: str, value: object) -> Change:
    return lambda content, _: content["problem"].__setitem__(key, value)


DAMAGE: dict[str, Change] = {
    "unknown policy": in_policy("name", "rm -rf"),
    "unknown option": in_policy("options", {"code": "x"}),
    "unknown operator": lambda content, _: content["problem"]["covariance"].update(operator="os"),
    "no problem": lambda content, _: content.pop("problem"),
    "bad n": in_problem("n_anomalies", -3),
    "bad generator": lambda content, _: content["state"].update(rng={"bit_generator": "x"}),
    "huge size": in_problem("covariance", {"operator": "AR1", "parameters": {"size": 10**15, "rho": 0.5}}),
    "huge block count": lambda content, _: content["problem"]["covariance"]["parameters"]["blocks"]["runs"][
        0
    ].__setitem__(1, 10**12),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files_give_one_clear_error(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "policy.eccaht")
    edit(path, DAMAGE[name])
    with pytest.raises(ValueError, match=r"policy\.eccaht.*policy file") as error:
        load_policy(path)
    assert "\n" not in str(error.value)


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no policy file"):
        load_policy(tmp_path / "nothing")
    with pytest.raises(ValueError, match="is a directory"):
        load_policy(tmp_path)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "policy.eccaht")
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save_policy(load_policy(path), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["policy.eccaht"]


def test_options_given_as_arrays_survive(tmp_path: Path) -> None:
    problem = Problem(np.eye(8), shift=5.0, n_anomalies=1, budget=1.0)
    make_policy("hds", problem, shifts=np.array([3.0, 5.0, 7.0]), readings=np.int64(4)).save(tmp_path / "p")
    loaded = load_policy(tmp_path / "p")
    assert loaded.recipe is not None
    assert np.array_equal(loaded.recipe.options["shifts"], [3.0, 5.0, 7.0])
