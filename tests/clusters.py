"""A small dask cluster in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "protocol": "tcp://"}
    with LocalCluster(processes=len(sys.argv) > 1, **options) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@contextmanager
def cluster(*processes: str) -> Iterator[str]:
    """The address of a scheduler with two workers, threads unless an argument is given; skips without dask."""
    pytest.importorskip("distributed")
    command = [sys.executable, "-c", _CLUSTER, *processes]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as started:  # type: ignore[call-overload]
        yield started.stdout.readline().strip()
        started.communicate()  # closes its input, upon which it ends
