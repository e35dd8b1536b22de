"""The programs of docs/instrument-programs.md find the right streams of their simulators, and print what it shows."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "instrument-programs.md").read_text(encoding="utf-8")
PROGRAM = re.compile(r"^```python\n(.*?)^```\n+```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMES = ("multiplexer", "bluesky_plan", "pooled_tests", "network_paths", "agents")
PROGRAMS = dict(zip(NAMES, PROGRAM.findall(PAGE), strict=True))
NEEDS = {
    "multiplexer": ("pymeasure",),
    "bluesky_plan": ("bluesky", "ophyd"),
    "agents": ("bluesky", "ophyd", "bluesky_adaptive"),
}


def output_of(name: str, directory: Path, then: str = "") -> str:
    """In a process of its own, for bluesky leaves a thread with an event loop behind."""
    for package in NEEDS.get(name, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}, which the extra [test] installs")
    file = directory / f"{name}.py"
    file.write_text(PROGRAMS[name][0] + then, encoding="utf-8")
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, cwd=directory, check=False, env=alone)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_block_of_the_page_is_a_program_or_its_output() -> None:
    assert PAGE.count("```") == 4 * len(PROGRAMS)


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


@pytest.mark.parametrize("name", sorted({*NAMES} - {"pooled_tests", "bluesky_plan"}))
def test_a_program_prints_what_the_page_shows(name: str, tmp_path: Path) -> None:
    assert output_of(name, tmp_path) == PROGRAMS[name][1]


def test_a_power_cut_changes_nothing(tmp_path: Path) -> None:
    """The beliefs are those of a laboratory whose power never failed, to the last bit."""
    shown = PROGRAMS["pooled_tests"][1]
    assert output_of("pooled_tests", tmp_path, UNCUT) == f"{shown}beginning with 0 wells pending\nTrue\n"


def test_a_paused_plan_goes_on(tmp_path: Path) -> None:
    """A deferred pause waits for the checkpoint; an immediate one repeats the measurement since the last one."""
    printed = output_of("bluesky_plan", tmp_path, PAUSED)
    assert printed.startswith(PROGRAMS["bluesky_plan"][1])
    assert "deferred 5 5\n" in printed
    assert "immediate 5 6\n" in printed
