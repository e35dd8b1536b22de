"""Packages that a search does not need, and the extra of eccaht that installs each."""

from __future__ import annotations

TYPE_CHECKING = False  # not from typing: this is imported before the command line is ready for Ctrl-C
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

EXTRAS = {
    "polars": "tables",
    "sklearn": "estimators",
    "matplotlib": "figures",
    **dict.fromkeys(("typer", "rich"), "all"),
    **dict.fromkeys(("joblib", "threadpoolctl"), "experiments"),
    "distributed": "dask",
    "wntr": "water",
    **dict.fromkeys(("fastapi", "starlette", "pydantic", "pydantic_settings", "sqlalchemy"), "live"),
    **dict.fromkeys(("paho", "asyncua", "confluent_kafka", "httpx", "itsdangerous", "uvicorn"), "live"),
    "prometheus_client": "live",
}
_threads: list[Any] = []  # what sets the number of threads, once it was asked for


def advice(package: str | None) -> str | None:
    """The line that says how to install an optional package; None for any other."""
    extra = EXTRAS.get(package or "")
    return None if extra is None else f"{package} is not installed: pip install 'eccaht[{extra}]'"


def need(package: str) -> None:
    """Raise an ImportError that says what to install, before any work starts, unless the package is there."""
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise ImportError(advice(package), name=package)


def one_thread() -> AbstractContextManager[object]:
    """Linear algebra on one thread where threadpoolctl is there to say so: small matrices are not worth sharing."""
    if not _threads:  # once: looking for the libraries takes a millisecond
        try:
            from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
        except ImportError:
            from contextlib import nullcontext

            return nullcontext()
        _threads.append(ThreadpoolController())
    limited: AbstractContextManager[object] = _threads[0].limit(limits=1)
    return limited
