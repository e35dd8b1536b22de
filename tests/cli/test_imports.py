"""Commands take policies of the user's own from modules, files and installed packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from eccaht import Problem, families, policy_names, register_policy
from eccaht.cli.main import run
from eccaht.research.experiments.comparison import compare
from eccaht.research.paper import figures, storage
from eccaht.research.paper.own_policies import OWN
from eccaht.streams.policies.registry import own_entries, set_own_entries
from tests.checks.own import write_distribution, write_lab

pytestmark = pytest.mark.usefixtures("own_policies", "few_resamples")

COMPARED = ["compare", "--streams", "16", "--anomalies", "2", "--shift", "4", "--budget", "3", "--runs", "2"]
COMPARED += ["--horizon", "10", "--jobs", "1", "--json"]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to be in, with the module `lab`."""
    monkeypatch.chdir(tmp_path)
    return write_lab(tmp_path)


@pytest.mark.parametrize("module", ["lab", "lab.py", "./lab.py", "absolute"])
def test_a_module_or_a_file_brings_its_policies(module: str, lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = str(lab) if module == "absolute" else module
    assert run([*COMPARED, "--import", named, "--policies", "draws,exploring,ecc-aht"]) == 0
    said = json.loads(capsys.readouterr().out)["policies"]
    problem = Problem(families.toeplitz(16, 0.8), shift=4.0, n_anomalies=2, budget=3.0)
    found = compare(problem, ["exploring", "draws", "ecc-aht"], runs=2, horizon=10)
    assert {row["policy"]: row["final_hits"] for row in said} == {
        name: hits[:, -1].tolist() for name, hits in found.hits.items()
    }


def test_every_command_that_names_policies_takes_them(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem = ["--family", "identity", "--streams", "8", "--anomalies", "1", "--shift", "5", "--budget", "1"]
    counted = [*problem, "--policy", "exploring", "--stopping", "gap", "--runs", "3", "--jobs", "1", "--json"]
    assert run(["count-errors", *counted, "--import", str(lab)]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["policy"] == "exploring"
    assert run(["policies", "--json", "--import", "lab"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed] == list(policy_names())
    assert listed[-1]["summary"] == "Reads streams drawn at random, one at a time."
    for command in ("identify", "wadi", "water", "reproduce", "compare", "policies", "count-errors", "session"):
        assert run([command, "--help"]) == 0
        assert "--import" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("no_such_lab", "--import no_such_lab cannot be imported: ModuleNotFoundError: No module named 'no_such_lab'"),
        ("no_such_lab.py", "--import no_such_lab.py: there is no such file"),
        ("lab/../x", "is neither the name of a module nor a file that ends in .py"),
        ("empty.py", "--import empty.py registers no policy: it should call eccaht.register_policy"),
        ("wrong.py", "--import wrong.py cannot be imported: SyntaxError: "),
        ("failing.py", "--import failing.py cannot be imported: RuntimeError: not now"),
        ("leaving.py", "--import leaving.py cannot be imported: SystemExit: 3"),
        ("clashing.py", "--import clashing.py cannot be imported: ValueError: policy 'joint' is built in"),
        ("json.py", "--import json.py has the name of another module"),
        ("a.b.py", "--import a.b.py has the name of another module, or none that can be imported: rename it"),
    ],
)
def test_what_cannot_be_imported_is_one_line(
    module: str, words: str, lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {
        "empty": "",
        "wrong": "def",
        "failing": "raise RuntimeError('not\\nnow')",
        "leaving": "raise SystemExit(3)",
    }
    texts |= {"clashing": "from lab import EXPLORING\nfrom eccaht import register_policy as r\nr('joint', EXPLORING)"}
    for name, text in (texts | {"json": "", "a.b": ""}).items():
        lab.with_name(f"{name}.py").write_text(text)
    assert run(["policies", "--import", module]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert words in said.err


def test_nothing_in_the_folder_of_a_file_replaces_a_known_module(lab: Path) -> None:
    lab.with_name("polars.py").write_text("raise RuntimeError")
    assert run(["policies", "--import", str(lab)]) == 0
    assert sys.path[-1] == os.path.realpath(lab.parent)


def test_what_installed_packages_declare_is_listed_with_what_is_wrong(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.with_name("ruin.py").write_text("raise RuntimeError('no\\nway')\n")
    write_distribution(lab.parent, "lab-policies", "lab-exploring = lab:EXPLORING\nruin = ruin:X")
    sys.path.append(str(lab.parent))
    assert run(["policies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "not usable: policy 'ruin' of lab-policies cannot be loaded: RuntimeError: no way"
    assert any(line.startswith("lab-exploring ") for line in lines)
    assert run(["policies", "--json"]) == 0
    *_, broken = json.loads(capsys.readouterr().out)
    assert broken == {"name": "ruin", "error": lines[-1].removeprefix("not usable: ")}
    assert run([*COMPARED, "--policies", "lab-exploring"]) == 0
    assert [row["policy"] for row in json.loads(capsys.readouterr().out)["policies"]] == ["lab-exploring"]
    assert run([*COMPARED, "--policies", "ruin"]) == 2
    assert capsys.readouterr().err == f"eccaht: {lines[-1].removeprefix('not usable: ')}\n"


# -- beside the paper's --------------------------------------------------------------------------------


REPRODUCED = ["reproduce", "fig5a", "--runs", "2", "--jobs", "1", "--out", "results"]


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path("results").rglob("*")) if path.is_file()}


def test_a_policy_of_the_users_own_stands_beside_the_papers(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for draw in ("draw", "draw_search"):
        monkeypatch.setattr(figures, draw, lambda _: Figure(figsize=(1, 1)))
    assert run(REPRODUCED) == 0
    before = contents()
    own = [*REPRODUCED, "fig1", "--with", "exploring", "--import", "lab"]
    assert run(own) == 0
    said = capsys.readouterr()
    assert "Note: no policies are compared in fig1: exploring is not added there" in said.err
    now = contents()
    kept = [name for name in before if "/cells/" in name or name.endswith("spec.json")]
    assert all(now[name] == before[name] for name in kept)
    assert Path("results/fig5a/cells/0-exploring.parquet").is_file()
    summary = pl.read_csv("results/fig5a/summary.csv")
    assert summary["policy"].to_list() == ["ecc-aht", "random-sparse", "round-robin", "exploring"]
    # nothing is run again, and the results are shown where the policy is not known
    made = Path("results/fig5a/cells/0-exploring.parquet").stat().st_mtime_ns
    assert run(own) == 0
    set_own_entries({})
    assert run(REPRODUCED) == 0
    results = storage.load(Path("results"), "fig5a")
    assert results.experiment.added == ("exploring",)
    assert Path("results/fig5a/cells/0-exploring.parquet").stat().st_mtime_ns == made
    sys.modules.pop("lab")
    assert run([*REPRODUCED, "--import", "lab", "--with", "exploring"]) == 0
    setting = results.experiment.settings[0]
    found = compare(setting.problem(), ["exploring"], runs=2, horizon=results.experiment.horizon).hits["exploring"]
    np.testing.assert_array_equal(results.cells[0, "exploring"], found)
    # another algorithm under the same name
    sys.modules.pop("lab")
    set_own_entries({})
    lab.write_text(lab.read_text().replace("< share", "> share"))
    os.utime(lab, (2e9, 2e9))  # else the same size in the same second is the same file to Python's cache
    capsys.readouterr()
    assert run([*REPRODUCED, "--import", "lab", "--with", "exploring"]) == 0
    assert "Note: the module of exploring has changed since its cells of fig5a were made" in capsys.readouterr().err
    assert not np.array_equal(storage.load(Path("results"), "fig5a").cells[0, "exploring"], found)
    assert {path.name for path in Path("results/fig5a").iterdir()} - {"fig5a.pdf", "fig5a.png", ".lock"} == {
        *("cells", "curves.csv", "manifest.json", OWN, "spec.json", "summary.csv")
    }


def test_experiments_that_a_policy_does_not_apply_to_go_on_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("eccaht.cli.reproduce.runner.reproduce", lambda chosen, *_, **__: seen.extend(chosen))
    seen: list[object] = []
    assert run(["reproduce", "fig5a", "fig3a", "fig7", "--with", "hds,joint"]) == 0
    assert [experiment.added for experiment in seen] == [("joint",), ("joint",), ("joint",)]  # type: ignore[attr-defined]
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Note")]
    assert [line.partition(":")[2].split(":")[0] for line in lines] == [
        " hds is not added to fig5a",
        " hds is not added to fig7",
    ]
    assert run(["reproduce", "fig5a", "fig7", "--with", "hds,joint"]) == 2
    assert "hds cannot be run in fig5a: HDS searches a binary tree" in capsys.readouterr().err


def test_a_policy_that_is_registered_needs_no_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As commands called from Python."""
    monkeypatch.chdir(write_lab(tmp_path).parent)
    assert run(["policies", "--import", "lab"]) == 0
    register_policy("again", own_entries()["exploring"])
    assert run([*COMPARED, "--policies", "again"]) == 0


# -- from another program ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_session_that_is_killed_goes_on_with_a_policy_of_the_users_own(lab: Path) -> None:
    covariance = {"family": "toeplitz", "K": 16, "rho": 0.5}
    posed = {"covariance": covariance, "shift": 4.0, "anomalies": 2, "budget": 3.0, "policy": "draws", "seed": 3}
    lab.with_name("problem.json").write_text(json.dumps(posed | {"stopping": None}))

    def start(*state: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "eccaht", "session", "problem.json", "--import", "lab.py", *state]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(process: subprocess.Popen[str], **request: object) -> object:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{json.dumps(request)}\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def end(process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()

    whole, parted = start(), start("--state", "state")
    for step in range(10):
        if step == 5:
            say(parted, do="ask")
            end(parted)
            parted = start("--state", "state")
        assert say(parted, do="ask") == say(whole, do="ask")
        assert say(parted, do="tell", reading=step % 3) == say(whole, do="tell", reading=step % 3)
    assert say(parted, do="decision") == say(whole, do="decision")
    end(whole)
    end(parted)
