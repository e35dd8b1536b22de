"""The programs of docs/how-to/program-*.md find the right streams of their simulators, and print what is shown."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
PROGRAM = re.compile(r"^```python\n(.*?)^```\n+```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = {path.stem.removeprefix("program-"): path.read_text(encoding="utf-8") for path in HOW_TO.glob("program-*.md")}
PROGRAMS = {name: PROGRAM.findall(page)[0] for name, page in PAGES.items()}
NEEDS = {
    "switch-matrix": ("pymeasure",),
    "bluesky": ("bluesky", "ophyd"),
    "agents": ("bluesky", "ophyd", "bluesky_adaptive"),
}


def output_of(name: str, directory: Path, then: str = "") -> str:
    """In a process of its own, for bluesky leaves a thread with an event loop behind."""
    for package in NEEDS.get(name, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}, which the extra [test] installs")
    file = directory / "program.py"  # never the name of a package that it imports
    file.write_text(PROGRAMS[name][0] + then, encoding="utf-8")
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, cwd=directory, check=False, env=alone)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_page_is_listed_and_has_one_program_and_its_output() -> None:
    index = (HOW_TO / "instrument-programs.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(program-([a-z-]+)\.md\)", index)) == set(PAGES)
    assert {page.count("```") for page in PAGES.values()} == {4}


UNCUT = """
laboratory, through = Laboratory(), policy.beliefs
laboratory.plates = 2
FILE.unlink()
print((search(laboratory).beliefs == through).all())
"""
PAUSED = """
from bluesky.utils import Msg, RunEngineInterrupted


def paused(plan, defer):  # after the third reading, which is the fifth event
    saved, answer = 0, None
    while True:
        try:
            message = plan.send(answer)
        except StopIteration:
            return
        answer = yield message
        saved += message.command == "save"
        if message.command == "save" and saved == 5:
            yield Msg("pause", None, defer=defer)


for defer in (True, False):
    policy, documents = make_policy("joint", problem, seed=2, stopping=None), []
    try:
        RE(paused(search(policy, MaskedDetector(name="detector"), most=5), defer), lambda *both: documents.append(both))
    except RunEngineInterrupted:
        RE.resume()
        events = [document["data"] for name, document in documents if name == "event"]
        print("deferred" if defer else "immediate", policy.n_told, sum("detector_intensity" in data for data in events))
"""


@pytest.mark.parametrize("name", sorted({*PROGRAMS} - {"pooled-tests", "bluesky"}))
def test_a_program_prints_what_the_page_shows(name: str, tmp_path: Path) -> None:
    assert output_of(name, tmp_path) == PROGRAMS[name][1]


def test_a_power_cut_changes_nothing(tmp_path: Path) -> None:
    """The beliefs are those of a laboratory whose power never failed, to the last bit."""
    shown = PROGRAMS["pooled-tests"][1]
    assert output_of("pooled-tests", tmp_path, UNCUT) == f"{shown}beginning with 0 wells pending\nTrue\n"


def test_a_paused_plan_goes_on(tmp_path: Path) -> None:
    """A deferred pause waits for the checkpoint; an immediate one repeats the measurement since the last one."""
    printed = output_of("bluesky", tmp_path, PAUSED)
    assert printed.startswith(PROGRAMS["bluesky"][1])
    assert "deferred 5 5\n" in printed
    assert "immediate 5 6\n" in printed
