"""Commands called as users call them, where they must succeed in silence."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from eccaht.cli.main import app


def invoke(*arguments: str) -> str:
    """What a command prints."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def document(*arguments: str) -> Any:
    """What it prints as JSON."""
    return json.loads(invoke(*arguments, "--json"))
