"""What a release rests on: workflows that say what the project says, and templates that can be read."""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(path: str) -> dict[str, Any]:
    return yaml.load((ROOT / ".github" / path).read_text(encoding="utf-8"), yaml.BaseLoader)


def test_every_version_of_python_that_is_named_is_tested() -> None:
    tested = read("workflows/tests.yml")["jobs"]["linux"]["strategy"]["matrix"]["python"]
    named = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3" in each]
    assert set(named) <= set(tested)
    assert f">={tested[0]}" == PROJECT["requires-python"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python {tested[0]} to {named[-1]}" in readme


def test_workflows_call_targets_and_folders_that_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    called = set(read("workflows/tests.yml")["jobs"]["rest"]["strategy"]["matrix"]["target"])
    for path in (ROOT / ".github" / "workflows").iterdir():
        text = path.read_text(encoding="utf-8")
        called |= set(re.findall(r"run: make ([\w-]+)", text))
        assert [name for name in re.findall(r"\btests/\w+", text) if not (ROOT / name).is_dir()] == []
    assert {"test", "lint", "build", "docs"} <= called <= targets


def test_only_the_publishing_jobs_may_write() -> None:
    for name in ("tests", "docs", "release"):
        workflow = read(f"workflows/{name}.yml")
        assert workflow["permissions"] == {"contents": "read"}
        for job, content in workflow["jobs"].items():
            assert ("permissions" in content) == (job == "publish")


def test_links_of_the_project_lead_to_one_place() -> None:
    source = PROJECT["urls"]["Source"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'\nrepository-code: "{source}"\n' in citation
    assert PROJECT["urls"]["Issues"] == f"{source}/issues"
    (contact,) = read("ISSUE_TEMPLATE/config.yml")["contact_links"]
    for page in ("SECURITY.md", "CODE_OF_CONDUCT.md"):
        assert contact["url"] in (ROOT / page).read_text(encoding="utf-8")
    assert contact["url"].startswith(source)
