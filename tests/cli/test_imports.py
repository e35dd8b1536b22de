"""Commands take policies of the user's own from modules and files."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from eccaht import Problem, families, policy_names, register_policy
from eccaht.cli.main import run
from eccaht.research.experiments.comparison import compare
from eccaht.streams.policies.registry import own_entries
from tests.checks.own import write_lab
from tests.cli.commands import refused

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
    for command in ("compare", "policies", "count-errors"):
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
    assert words in refused(["policies", "--import", module], capsys)


def test_nothing_in_the_folder_of_a_file_replaces_a_known_module(lab: Path) -> None:
    lab.with_name("polars.py").write_text("raise RuntimeError")
    assert run(["policies", "--import", str(lab)]) == 0
    assert sys.path[-1] == os.path.realpath(lab.parent)


def test_a_policy_that_is_registered_needs_no_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As commands called from Python."""
    monkeypatch.chdir(write_lab(tmp_path).parent)
    assert run(["policies", "--import", "lab"]) == 0
    register_policy("again", own_entries()["exploring"])
    assert run([*COMPARED, "--policies", "again"]) == 0
