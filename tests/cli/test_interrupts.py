"""Ctrl-C and SIGTERM at any moment: one line, an exit code that says which, nothing left over."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checks.held import held_after

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks into /proc")

COMPARE = ["compare", "--horizon", "100000", "--jobs", "2"]
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


def listening(pid: int) -> bool:
    """Has the program set its handlers? Python itself has none for SIGTERM."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def workers(group: int) -> bool:
    """Has the group two processes that import what they need to work?"""
    count = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            count += os.getpgid(int(entry.name)) == group and b"LokyProcess" in (entry / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
    return count == 2


def file_appears(name: str) -> Callable[[int], bool]:
    return lambda _: any(Path().glob(name))


def eccaht(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "eccaht", *arguments]


def ended(command: list[str], when: Callable[[int], bool], number: signal.Signals, *, later: float = 0.0) -> str:
    """Start a command, send a signal to it and to its workers at the moment given, and return what it printed."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        try:
            while process.poll() is None and not when(process.pid):
                time.sleep(0.001)
            time.sleep(later)
            os.killpg(process.pid, number)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 128 + number
    assert err == f"eccaht: {WORDS[number]}\n"
    return out


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("later", "number"), [(0.0, signal.SIGINT), (0.1, signal.SIGINT), (0.0, signal.SIGTERM)])
def test_while_it_is_still_imported(later: float, number: signal.Signals) -> None:
    assert ended(eccaht("compare"), listening, number, later=later) == ""


def test_while_workers_are_started() -> None:
    assert ended(eccaht(*COMPARE), workers, signal.SIGINT) == ""
    assert not [*Path().iterdir()]


def test_while_results_are_written() -> None:
    command = held_after(".parquet", "reproduce", "fig5a", "--runs", "2", "--jobs", "2", "--out", "results")
    ended(command, file_appears("results/fig5a/cells/*.parquet"), signal.SIGINT)
    assert not [*Path().rglob("*.part")]
    assert not Path("results/fig5a/summary.csv").exists()


def test_the_system_ends_a_search_in_the_middle() -> None:
    out = ended(held_after(".pdf", "demo", "--out", "d"), file_appears("d/*.pdf"), signal.SIGTERM)
    assert out == "" or out.startswith("Which 3 of 15 correlated streams are anomalous?")
    assert "Saved" not in out
    assert not [*Path("d").glob(".*")]
