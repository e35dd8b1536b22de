"""Importing the package stays light."""

import subprocess
import sys


def test_import_loads_nothing_heavy() -> None:
    heavy = [
        "matplotlib",
        "polars",
        "sklearn",
        "pandas",
        "typer",
        "rich",
        "scipy.stats",
        "scipy.optimize",
        "joblib",
        "threadpoolctl",
    ]
    code = f"import sys, eccaht; print([name for name in {heavy!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
