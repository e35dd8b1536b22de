"""Processes that work for this one."""

from contextlib import suppress
from pathlib import Path

import pytest

from eccaht.research.experiments.workers import end, local


def processes() -> list[str]:
    """Workers of this process that are there, busy or not."""
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        pytest.skip("needs /proc to see other processes")
    children = []
    for task in tasks.iterdir():
        with suppress(FileNotFoundError):  # a thread that has ended meanwhile
            children += (task / "children").read_text().split()
    commands = [Path(f"/proc/{child}/cmdline") for child in children]
    return [path.parent.name for path in commands if path.exists() and b"LokyProcess" in path.read_bytes()]


def test_idle_workers_end_at_once() -> None:
    """They would otherwise be waited for at the end of a program, whatever signals came."""
    assert sorted(local(2)(abs, [(-1,), (2,), (-3,)])) == [1, 2, 3]
    assert processes()
    end()
    assert not processes()
    assert sorted(local(2)(abs, [(-4,), (5,)])) == [4, 5]  # others are started where there is work again
