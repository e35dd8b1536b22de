"""What holds for all tests."""

import gc
import os
import signal
import sys
from collections.abc import Generator
from typing import Any

import pytest

# tests run side by side: threads of one would only wait for those of another; set before numpy is imported
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# tests start more than a hundred commands: each would compile the package anew where compiled files are not kept
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# a shell without job control starts background jobs with Ctrl-C ignored, and so would every command that tests start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests and their modules stay: the garbage collector need not look at them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bootstrap intervals of 200 resamples, where a test asks whether they are drawn and not whether they hold."""
    from eccaht.base.statistics import bca_interval

    monkeypatch.setattr(bca_interval, "__kwdefaults__", {**(bca_interval.__kwdefaults__ or {}), "resamples": 200})


@pytest.fixture
def plain_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small pictures that are not laid out, where a test asks whether they are written and not what they look like."""
    from matplotlib.figure import Figure

    save = Figure.savefig

    def plain(figure: Figure, *arguments: Any, **options: Any) -> None:
        figure.set_layout_engine("none")
        save(figure, *arguments, **{**options, "dpi": 20})

    monkeypatch.setattr(Figure, "savefig", plain)


@pytest.fixture
def own_policies(tmp_path_factory: pytest.TempPathFactory) -> Generator[None, None, None]:
    """Whatever policies, modules and places to find them a test adds are gone after it."""
    from eccaht.streams.policies.catalogue import own_entries, set_own_entries

    before, path, modules = own_entries(), list(sys.path), set(sys.modules)
    yield
    set_own_entries(before)
    sys.path[:] = path
    made = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - modules:  # those of libraries stay: loaded twice, they would not know their own
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(made):
            del sys.modules[name]
