"""A search needs numpy and scipy; what else is missing is reported in one line where it is met."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from eccaht.base.extras import EXTRAS

ROOT = Path(__file__).parents[2]
WITHOUT = """
from importlib.machinery import PathFinder
found = PathFinder.find_spec
def find_spec(name, path=None, target=None):
    return None if name in {missing!r} else found(name, path, target)
PathFinder.find_spec = find_spec
"""
COMMAND = "import sys; sys.argv = ['eccaht', *{arguments!r}]; from eccaht.__main__ import main; main()"


def run_without(missing: tuple[str, ...], code: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a process in which these packages are not installed."""
    program = WITHOUT.format(missing=missing) + code
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=directory, check=False)


def test_every_policy_searches_with_numpy_and_scipy_alone(tmp_path: Path) -> None:
    script = ROOT / "tests" / "library_alone.py"
    code = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    result = run_without(tuple(EXTRAS), code, tmp_path)
    assert result.returncode == 0, result.stderr
    assert "whole vectors [3, 12]" in result.stdout


HISTORY = "from pathlib import Path; Path('h.csv').write_text('time,a,b\\n2024-01-01T00:00,1,2\\n'); "


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        ("polars", HISTORY + "from eccaht.plants.model import calibrate; calibrate('h.csv')"),
        ("polars", "from pathlib import Path; from eccaht.plants.example import write_example as w; w(Path('out'))"),
        (
            "sklearn",
            "import numpy as np; from eccaht.plants.model.estimators import estimate; "
            "estimate(np.random.default_rng(0).normal(size=(50, 3)), 'ledoit-wolf', 0.0)",
        ),
        ("sklearn", "from eccaht import Detector"),
    ],
)
def test_a_missing_extra_is_one_line_in_the_library(missing: str, code: str, tmp_path: Path) -> None:
    result = run_without((missing,), code, tmp_path)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {missing} ")
    assert last.endswith(f"pip install 'eccaht[{EXTRAS[missing]}]'")


@pytest.mark.parametrize(
    ("missing", "arguments"),
    [
        ("typer", []),
        ("typer", ["policies"]),
        ("polars", ["example", "--out", "plant"]),
        ("matplotlib", ["compare", "--streams", "8", "--anomalies", "1", "--runs", "1", "--plot", "compare.png"]),
        ("joblib", ["compare", "--streams", "8", "--anomalies", "1", "--runs", "1", "--json"]),
        ("fastapi", ["serve"]),
    ],
)
def test_a_missing_extra_is_one_line_at_the_command_line(missing: str, arguments: list[str], tmp_path: Path) -> None:
    result = run_without((missing,), COMMAND.format(arguments=arguments), tmp_path)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert f"pip install 'eccaht[{EXTRAS[missing]}]'" in result.stderr


def test_pyproject_installs_what_the_advice_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert sorted(re.split(r"[>=]", needed)[0] for needed in project["dependencies"]) == ["numpy", "scipy"]
    extras = project["optional-dependencies"]
    listed = extras["all"][0].removeprefix("eccaht[").removesuffix("]").split(",")
    extras["all"] = [package for extra in listed for package in extras[extra]]
    called = {"sklearn": "scikit-learn", "pydantic_settings": "pydantic-settings", "paho": "paho-mqtt"}
    called |= {"confluent_kafka": "confluent-kafka", "prometheus_client": "prometheus-client"}
    called |= dict.fromkeys(("starlette", "pydantic"), "fastapi")  # which needs them
    for package, extra in EXTRAS.items():
        assert called.get(package, package) in [re.split(r"[>=\[]", needed)[0] for needed in extras[extra]]
