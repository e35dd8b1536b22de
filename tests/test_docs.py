"""The code in docs runs as printed, and what they name is there."""

import importlib
import json
import re
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import eccaht
from eccaht import Problem
from eccaht.plants.example import write_example
from eccaht.research.paper.catalogue import EXPERIMENTS
from eccaht.research.paper.claims import CLAIMS
from eccaht.research.paper.verdicts import Word
from eccaht.streams.policies import CATALOGUE, Policy

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TEXTS = {path: path.read_text(encoding="utf-8") for path in (*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md")}
HOW_TO = (
    "choose-a-policy",
    "instruments",
    "own-covariance-and-constraint",
    "run-a-search",
)


def code_of(page: str) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL))


@pytest.mark.parametrize(
    "page",
    [*(f"docs/how-to/{name}.md" for name in HOW_TO), "docs/explanation/limits.md"],
)
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = code_of(page)
    assert code
    exec(compile(code, page, "exec"), {"__name__": "__main__"})


def test_designed_differences_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = "docs/explanation/designed-differences.md"
    exec(compile(code_of(page), page, "exec"), {"__name__": "__main__"})
    shown = re.findall(r"```text\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert capsys.readouterr().out == "".join(shown)


def test_the_page_on_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(eccaht, "calibrate", partial(eccaht.calibrate, drills=24), raising=False)  # defaults otherwise
    _, _, truth = write_example(tmp_path)
    page: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code_of("docs/how-to/python.md"), "docs/how-to/python.md", "exec"), page)
    assert sorted(page["incident"].named) == sorted(json.loads(truth.read_text())["anomalies"])
    assert page["alarms"][210:].all()
    assert not page["alarms"][:190].any()
    assert page["named"] == page["detector"].model_.names[2:3]


def test_the_policy_of_own_policy_passes_the_suite(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = code_of("docs/how-to/own-policy.md")
    part, checked = code.split("from eccaht.checks import check_policy")
    assert len([line for line in part.splitlines() if line.strip()]) < 40
    assert 'check_policy("exploring")' in checked
    code = code.replace("from __future__ import annotations\n", "")
    monkeypatch.setattr("eccaht.streams.policies.catalogue.CATALOGUE", dict(CATALOGUE))
    page: dict[str, Any] = {"__name__": "own_policy"}
    exec(compile(code, "docs/how-to/own-policy.md", "exec"), page)
    assert capsys.readouterr().out.startswith("{'saving': 'only policies built by make_policy can be saved: ")
    assert isinstance(page["build"](Problem(np.eye(4), shift=2.0, n_anomalies=1, budget=1.0), 0), Policy)


def test_links_lead_somewhere() -> None:
    """Of links within docs, strict mkdocs checks the anchors too."""
    broken = []
    for path, text in TEXTS.items():
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in target and not (path.parent / target).is_file():
                broken.append((path.name, target))
    assert broken == []


def test_files_and_modules_that_are_named_exist() -> None:
    absent = []
    for path, text in TEXTS.items():
        for named in set(re.findall(r"\b((?:[a-z_]+/)+[a-z_]+\.py)\b", text)):
            if not any((ROOT / base / named).is_file() for base in ("", "docs", "src/eccaht")):
                absent.append((path.name, named))
        for named in set(re.findall(r"(?<!/)\beccaht(?:\.[A-Za-z_]\w*)+", text)):
            if not _is_there(named):
                absent.append((path.name, named))
    assert absent == []


def _is_there(name: str) -> bool:
    found, parts = eccaht, name.split(".")[1:]
    for number, part in enumerate(parts, start=1):
        if not hasattr(found, part):
            try:
                importlib.import_module(".".join(["eccaht", *parts[:number]]))
            except ModuleNotFoundError:
                return False
        found = getattr(found, part)
    return True


def test_pages_count_the_experiments_as_the_catalogue_does() -> None:
    paper = ROOT / "docs" / "paper"
    assert f"({len(EXPERIMENTS)} experiments," in TEXTS[paper / "claims.md"]
    cells = re.findall(r"^\| ([\w, -]+) \|", TEXTS[paper / "figures.md"], re.MULTILINE)
    assert sorted(", ".join(cell for cell in cells if cell != "id").split(", ")) == sorted(EXPERIMENTS)


def test_the_page_of_verdicts_has_the_claims_of_the_report_in_their_order() -> None:
    page = TEXTS[ROOT / "docs" / "paper" / "claims.md"]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    assert [row[0].replace("\\*", "*") for row in rows] == [claim.text.rstrip(".") for claim in CLAIMS]
    assert {row[2] for row in rows} <= {*get_args(Word)}


def test_the_site_has_every_page_and_the_reference_every_public_name() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"[\w/-]+\.md", settings))
    assert listed == {path.relative_to(ROOT / "docs").as_posix() for path in PAGES}
    reference = "".join(text for path, text in TEXTS.items() if path.parent.name in ("python", "reference"))
    assert [name for name in dir(eccaht) if f"`{name}`" not in reference] == []
