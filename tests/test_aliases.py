"""Dotted names of earlier versions give the very same modules, with a warning, and the public ones without."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings

import pytest

from eccaht.aliases import MOVED, PARTED, PUBLIC, place_of

SERVICE = ("live",)


@pytest.mark.parametrize("old", [name for name in MOVED if not name.startswith(SERVICE)])
def test_an_old_name_is_the_new_module(old: str) -> None:
    name = f"eccaht.{old}"
    sys.modules.pop(name, None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = importlib.import_module(name)
    new = importlib.import_module(f"eccaht.{MOVED[old]}")
    assert place_of(name) == new.__name__
    if name in PARTED:
        assert all(getattr(module, each) is getattr(new, each) for each in new.__all__)
    else:
        assert module is new
    assert new.__spec__ is not None
    assert new.__spec__.name == new.__name__
    said = [str(each.message) for each in caught if f"{name} is now" in str(each.message)]
    assert len(said) == (0 if old in PUBLIC else 1)


def test_classes_are_the_same_whichever_way_they_come() -> None:
    """In a program of its own, where nothing was imported by its new name before."""
    program = """
import warnings
warnings.simplefilter("ignore")
from eccaht.run import Replay, Simulator
from eccaht.model.model import Model
from eccaht.data.clock import Clock
from eccaht.covariance.families import toeplitz
from eccaht.measurements import Budget
import eccaht.measure.pair, eccaht.measurements
import eccaht
from eccaht.base import clock
from eccaht.plants import replay
from eccaht.plants.model import model
assert Replay is replay.Replay and Model is model.Model and Clock is clock.Clock
assert eccaht.Simulator is Simulator and eccaht.measurements.Budget is Budget
assert type(eccaht.families.toeplitz(4, 0.5)) is type(toeplitz(4, 0.5))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("eccaht.nothing")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("eccaht.covariance.nothing")
