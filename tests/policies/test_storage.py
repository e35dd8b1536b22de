"""Files hold plain numbers; what is damaged or foreign is refused in one line and never executed."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, Simulator, load_policy, make_policy
from eccaht.policies.storage import save_policy
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


def edit_header(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(entries["header.json"])
    change(header)
    entries["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)


def pickled_entry(path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.array([Trap(path.parent / "executed")], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("belief.extra.npy", buffer.getvalue())


def oversized_entry(path: Path) -> None:
    """An array that claims 10^15 numbers."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("huge.npy", buffer.getvalue())


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
    "other format": lambda path: edit_header(path, lambda h: h.update(format="other")),
    "other version": lambda path: edit_header(path, lambda h: h.update(version=99)),
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


def test_wrong_sized_scores_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "policy.eccaht")
    with zipfile.ZipFile(path) as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    for scores in (np.zeros(3), np.zeros(1), np.full(16, np.nan)):
        buffer = io.BytesIO()
        np.save(buffer, scores)
        with zipfile.ZipFile(path, "w") as archive:
            for entry, data in (entries | {"belief.scores.npy": buffer.getvalue()}).items():
                archive.writestr(entry, data)
        with pytest.raises(ValueError, match="not a valid policy file"):
            load_policy(path)


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no policy file"):
        load_policy(tmp_path / "nothing")
    with pytest.raises(ValueError, match="cannot be read"):
        load_policy(tmp_path)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "policy.eccaht")
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
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
