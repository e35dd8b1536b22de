"""Same seed, same run, from process to process: where arrays lie in memory changes no bit of any search."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OFFSETS = range(0, 64, 8)  # bytes from a 64-byte boundary, at which the widest instructions load


def searches(offset: int, steps: int) -> dict[str, list[str]]:
    command = [sys.executable, "-m", "tests.checks.searches", str(offset), str(steps)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, list[str]] = json.loads(done.stdout)
    return told


def check(steps: int) -> None:
    first = searches(0, steps)
    assert len(first) > 150
    for offset in OFFSETS[1:]:
        other = searches(offset, steps)
        differ = [name for name in first if other[name] != first[name]]
        assert not differ, f"arrays {offset} bytes off a boundary give other bits: {'; '.join(differ)}"


def test_no_bit_depends_on_where_arrays_lie() -> None:
    check(steps=8)


@pytest.mark.slow
def test_no_bit_of_long_searches_depends_on_where_arrays_lie() -> None:
    check(steps=60)
