"""Commands called as users call them, where they must succeed in silence."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from eccaht.cli.main import app, run


def invoke(*arguments: str) -> str:
    """What a command prints."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def document(*arguments: str) -> Any:
    """What it prints as JSON."""
    return json.loads(invoke(*arguments, "--json"))


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a command refuses what it is given."""
    capsys.readouterr()
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("eccaht: ")
    return err
