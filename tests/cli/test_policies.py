"""The list of algorithms is the catalogue."""

import json

from typer.testing import CliRunner

from eccaht import policy_names
from eccaht.cli.main import app
from eccaht.streams.policies import CATALOGUE


def test_json_lists_every_name_once_with_its_source() -> None:
    result = CliRunner().invoke(app, ["policies", "--json"])
    assert result.exit_code == 0
    listed = json.loads(result.stdout)
    assert [entry["name"] for entry in listed] == list(policy_names())
    assert all(entry["source"] == CATALOGUE[entry["name"]].source for entry in listed)
    assert all(entry["summary"] == CATALOGUE[entry["name"]].summary for entry in listed)


def test_plain_output_is_one_line_for_each_policy() -> None:
    lines = CliRunner().invoke(app, ["policies"]).stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(policy_names())
    assert all(entry.summary in line for entry, line in zip(CATALOGUE.values(), lines, strict=True))
