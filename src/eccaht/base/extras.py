"""What a search does not need: packages for tables, figures, terminals and many processes, and how to install them."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # not from typing: this is imported before the command line is ready for Ctrl-C
if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from types import ModuleType
    from typing import Any

_threads: list[Any] = []  # what sets the number of threads, once it was asked for
# the name that is imported: what needs it, the name that pip knows, the extra that installs it
PACKAGES = {
    "polars": ("reading and writing tables", "polars", "tables"),
    "sklearn": ("this covariance estimator", "scikit-learn", "estimators"),
    "matplotlib": ("drawing", "matplotlib", "figures"),
    "typer": ("the command line", "typer", "all"),
    "rich": ("the command line", "rich", "all"),
    "joblib": ("running experiments", "joblib", "experiments"),
    "threadpoolctl": ("running experiments", "threadpoolctl", "experiments"),
    "distributed": ("the dask backend", "distributed", "dask"),
    **dict.fromkeys(("fastapi", "starlette", "pydantic"), ("the service", "fastapi", "live")),
    "pydantic_settings": ("the service", "pydantic-settings", "live"),
    "sqlalchemy": ("the service", "sqlalchemy", "live"),
    "alembic": ("the service", "alembic", "live"),
    "paho": ("a source over MQTT", "paho-mqtt", "live"),
    "asyncua": ("a source over OPC UA", "asyncua", "live"),
    "confluent_kafka": ("a source over Kafka", "confluent-kafka", "live"),
    "httpx": ("alerts by webhooks", "httpx", "live"),
    "itsdangerous": ("the service", "itsdangerous", "live"),
    "uvicorn": ("the service", "uvicorn", "live"),
    "prometheus_client": ("the service", "prometheus-client", "live"),
    "wntr": ("simulating a water network", "wntr", "water"),
    "gymnasium": ("the environment of a search", "gymnasium", "gym"),
}


class MissingExtra(ModuleNotFoundError):
    """An optional package is not installed; the message says which extra brings it."""


class _Advice:
    """The last of Python's finders: it finds nothing, and reports which extra eccaht's own modules lack.

    One place instead of a check before each import. What other packages import is left alone, because many of them
    try whether a package is there.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:  # noqa: ARG004
        """Raise MissingExtra with the line to type if eccaht imports an extra that is not installed."""
        if name in PACKAGES and _importer().partition(".")[0] == "eccaht":
            purpose, package, extra = PACKAGES[name]
            raise MissingExtra(f"{purpose} needs {package}: pip install 'eccaht[{extra}]'", name=name)


def _importer() -> str:
    """The module whose import statement is being carried out."""
    frame = sys._getframe(2)
    machinery = ("importlib", "_frozen_importlib")  # the second before anything has imported importlib
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] in machinery:
        frame = frame.f_back
    return str(frame.f_globals["__name__"])


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


sys.meta_path.append(_Advice)
