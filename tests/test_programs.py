"""The programs of docs/programs find the right streams of their simulators."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parents[1] / "docs" / "programs"
NEEDS = {
    "switch_matrix": ("pymeasure",),
    "bluesky_plan": ("bluesky", "ophyd"),
    "gymnasium_agent": ("gymnasium",),
}
PRINTED = {
    "switch_matrix": "Simulated,Switch matrix,0,1.0\nTC07 TC16 after fewer than 40 readings: True\n",
    "bluesky_plan": "success beamlets [ 4 13]\nfrom the documents: [ 4 13] sure: True\n",
    "pooled_tests": "beginning with 0 wells pending\npower cut\ngoing on with 8 wells pending\npositive: [11 30]\n",
    "network_paths": "194 paths, 40 links, 0 of them on the same paths as another\n"
    "slow: 10-11 24-34 | as simulated: 10-11 24-34\n",
    "gymnasium_agent": "right: True\n",
}


def output_of(name: str, directory: Path, then: str = "") -> str:
    """In a process of its own, for bluesky leaves a thread with an event loop behind."""
    for package in NEEDS.get(name, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}, which the extra [test] installs")
    file = directory / "program.py"  # never the name of a package that it imports
    file.write_text((PROGRAMS / f"{name}.py").read_text(encoding="utf-8") + then, encoding="utf-8")
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, cwd=directory, check=False, env=alone)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
        seen = sum("detector_intensity" in data for data in events)
        print("deferred" if defer else "immediate", policy.n_readings, seen)
"""


def lines(directory: Path, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """What the server answers before it is killed."""
    sent = "".join(json.dumps(request) + "\n" for request in requests)
    command = [sys.executable, str(PROGRAMS / "line_server.py")]
    done = subprocess.run(command, input=sent, capture_output=True, text=True, cwd=directory, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_program_in_another_language_drives_a_search(tmp_path: Path) -> None:
    """The server is a new process for each reading, each reading is sent twice, and bad lines change nothing."""
    stop = False
    while not stop:
        asked, again, _ = lines(tmp_path, {"do": "ask"}, {"do": "ask"}, {"do": "tell", "number": 99, "reading": 0.0})
        assert asked == again
        told = {"do": "tell", "number": asked["number"], "reading": 4.0 * asked["weights"].get("tank", 0.0)}
        bad, first, second = lines(tmp_path, told | {"reading": "high"}, told, told)
        assert "error" in bad
        assert first == second
        stop = first["should_stop"]
    (decision,) = lines(tmp_path, {"do": "decision"})
    assert decision["names"] == ["tank"]
    assert decision["confidence"] > 0.95


@pytest.mark.parametrize("name", ["switch_matrix", "network_paths"])
def test_a_program_finds_the_streams(name: str, tmp_path: Path) -> None:
    assert output_of(name, tmp_path) == PRINTED[name]


def test_a_power_cut_changes_nothing(tmp_path: Path) -> None:
    """The beliefs are those of a laboratory whose power never failed, to the last bit."""
    shown = PRINTED["pooled_tests"]
    assert output_of("pooled_tests", tmp_path, UNCUT) == f"{shown}beginning with 0 wells pending\nTrue\n"


def test_a_paused_plan_goes_on(tmp_path: Path) -> None:
    """A deferred pause waits for the checkpoint; an immediate one repeats the measurement since the last one."""
    printed = output_of("bluesky_plan", tmp_path, PAUSED)
    assert printed.startswith(PRINTED["bluesky_plan"])
    assert "deferred 5 5\n" in printed
    assert "immediate 5 6\n" in printed


def test_the_environment_passes_the_checks_of_gymnasium(tmp_path: Path) -> None:
    checked = "\nfrom gymnasium.utils.env_checker import check_env\ncheck_env(Search(), skip_render_check=True)\n"
    assert output_of("gymnasium_agent", tmp_path, checked) == PRINTED["gymnasium_agent"]
