"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def limit_threads(count: int) -> None:
    """Fix the threads of the linear algebra, here and in processes started from here."""
    for name in THREAD_VARIABLES:  # read by what is loaded from now on, and in other processes
        os.environ[name] = str(count)
    threadpool_limits(count)  # what is loaded already


def description() -> list[str]:
    """Processor, threads and versions, one line each."""
    packages = ("numpy", "scipy", "cvxpy", "osqp", "clarabel", "piqp")
    threads = os.environ.get(THREAD_VARIABLES[0], "as the library chooses")
    return [
        f"processor: {_processor()}, {os.cpu_count()} cores; {platform.system()} {platform.machine()}",
        f"threads of the linear algebra: {threads}; load average at the start: {_load()}",
        f"Python {platform.python_version()}, " + ", ".join(f"{name} {_version(name)}" for name in packages),
    ]


def _version(package: str) -> str:
    """Of a package, which not every part needs."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _load() -> str:
    """What else the machine is doing, where the system says so."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"
