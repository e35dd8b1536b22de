"""Same seed, same run, from process to process: where arrays lie in memory changes no bit of any search."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OFFSETS = range(0, 64, 8)  # bytes from a 64-byte boundary, at which the widest instructions load
SIZES = (60, 128, 400, 1000)


def searches(offset: int, steps: int, sizes: Sequence[int]) -> dict[str, list[str]]:
    command = [sys.executable, "-m", "tests.checks.searches", str(offset), str(steps), *map(str, sizes)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    placed: dict[str, list[str]] = json.loads(done.stdout)
    return placed


def check(steps: int, offsets: Sequence[int] = OFFSETS, sizes: Sequence[int] = SIZES) -> None:
    first = searches(0, steps, sizes)
    assert len(first) > 40 * len(sizes)
    for offset in offsets[1:]:
        other = searches(offset, steps, sizes)
        differ = [name for name in first if other[name] != first[name]]
        assert not differ, f"arrays {offset} bytes off a boundary give other bits: {'; '.join(differ)}"


def test_no_bit_depends_on_where_arrays_lie() -> None:
    check(steps=8, offsets=(0, 40), sizes=(24, 400))


@pytest.mark.slow
def test_no_bit_of_long_searches_depends_on_where_arrays_lie() -> None:
    check(steps=60)
