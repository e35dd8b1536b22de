"""Importing the package stays light, and its public names are found when they are used."""

import subprocess
import sys

import pytest

import eccaht
from eccaht.streams import measurements


def test_import_loads_nothing_heavy() -> None:
    heavy = [
        "numpy",
        "scipy",
        "matplotlib",
        "polars",
        "sklearn",
        "pandas",
        "typer",
        "rich",
        "joblib",
        "threadpoolctl",
    ]
    code = f"import sys, eccaht; print([name for name in {heavy!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_public_names_are_found() -> None:
    names = dir(eccaht)
    assert {"Model", "Problem", "calibrate", "search"} <= set(names)
    assert all(getattr(eccaht, name) is not None for name in names)
    assert eccaht.measurements.Budget is measurements.Budget
    with pytest.raises(AttributeError, match="nothing"):
        eccaht.nothing  # type: ignore[attr-defined]  # noqa: B018
