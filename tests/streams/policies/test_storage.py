"""Files hold plain numbers; what is damaged or foreign is refused in one line and never executed."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, Simulator, load_policy, make_policy
from eccaht.base.arrays import Array
from eccaht.streams.policies.storage import save_policy
from tests.checks.archives import edit, packed, unpacked
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


class Trap:
    """Unpickling this would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return Path.touch, (self.path,)  # type: ignore[return-value]


def edit_header(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    edit(path, lambda header, _: change(header))


def retell(path: Path, **changes: Any) -> None:
    stored, arrays = unpacked(path.read_bytes())
    path.write_bytes(packed(stored | changes, arrays))


def oversized_entry(path: Path) -> None:
    """An array that claims 10^15 numbers."""
    stored, arrays = unpacked(path.read_bytes())
    path.write_bytes(packed(stored, arrays, [*stored["arrays"], ["huge", "<f8", [10**15]]]))


def pickled_entry(path: Path) -> None:
    stored, arrays = unpacked(path.read_bytes())
    path.write_bytes(packed(stored, arrays, [["scores", "|O", [1]], *stored["arrays"]]))


def foreign_npz(path: Path, save: Callable[..., None]) -> None:
    with path.open("wb") as file:
        save(file, a=np.ones(3))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("not a policy"),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-200]),
    "half": lambda path: path.write_bytes(path.read_bytes()[:700]),
    "flipped bits": flip,
    "pickle": lambda path: path.write_bytes(pickle.dumps(Trap(path.parent / "executed"))),
    "pickled entry": pickled_entry,
    "oversized entry": oversized_entry,
    "plain npz": lambda path: foreign_npz(path, np.savez),
    "compressed npz": lambda path: foreign_npz(path, np.savez_compressed),
    "other format": lambda path: retell(path, format="other"),
    "other version": lambda path: retell(path, version=99),
    "unknown policy": lambda path: edit_header(path, lambda h: h["policy"].update(name="rm -rf")),
    "unknown option": lambda path: edit_header(path, lambda h: h["policy"]["options"].update(code="x")),
    "unknown operator": lambda path: edit_header(path, lambda h: h["problem"]["covariance"].update(operator="os")),
    "no problem": lambda path: edit_header(path, lambda h: h.pop("problem")),
    "bad n": lambda path: edit_header(path, lambda h: h["problem"].update(n_anomalies=-3)),
    "bad count": lambda path: edit_header(path, lambda h: h["state"].update(n_told="many")),
    "bad generator": lambda path: edit_header(path, lambda h: h["state"].update(rng={"bit_generator": "x"})),
    "header a list": lambda path: edit_header(path, lambda h: h["state"].clear()),
    "huge size": lambda path: edit_header(
        path,
        lambda h: h["problem"].update(covariance={"operator": "AR1", "parameters": {"size": 10**15, "rho": 0.5}}),
    ),
    "huge block count": lambda path: edit_header(
        path, lambda h: h["problem"]["covariance"]["parameters"]["blocks"]["runs"][0].__setitem__(1, 10**12)
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_or_foreign_files_give_one_clear_error(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "policy.eccaht")
    DAMAGE[name](path)
    with pytest.raises(ValueError, match=r"policy\.eccaht.*policy file") as error:
        load_policy(path)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("scores", [np.zeros(3), np.zeros(1), np.full(16, np.nan), np.full(16, 1e200)])
def test_wrong_scores_are_refused(scores: Array, tmp_path: Path) -> None:
    path = saved(tmp_path / "policy.eccaht")
    edit(path, lambda _, arrays: arrays.update({"belief.scores": scores}))
    with pytest.raises(ValueError, match="not a valid policy file"):
        load_policy(path)


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
    assert loaded.recipe.options["shifts"] == [3.0, 5.0, 7.0]
