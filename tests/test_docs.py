"""The code in README and docs runs as printed."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht import Problem
from eccaht.policies import CATALOGUE, Policy

ROOT = Path(__file__).parents[1]


def code_of(page: str) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL))


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md", "docs/confidence.md"])
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = code_of(page)
    assert code
    exec(compile(code, page, "exec"), {"__name__": "__main__"})


def test_the_policy_of_adding_a_policy_passes_the_suite(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = code_of("docs/adding-a-policy.md")
    part, checked = code.split("from eccaht.checks import check_policy")
    assert len([line for line in part.splitlines() if line.strip()]) < 40
    assert 'check_policy("exploring")' in checked
    code = code.replace("from __future__ import annotations\n", "")
    monkeypatch.setattr("eccaht.policies.catalogue.CATALOGUE", dict(CATALOGUE))
    page: dict[str, Any] = {"__name__": "adding_a_policy"}
    exec(compile(code, "docs/adding-a-policy.md", "exec"), page)
    assert capsys.readouterr().out.startswith("{'saving': 'only policies built by make_policy can be saved: ")
    assert isinstance(page["build"](Problem(np.eye(4), shift=2.0, n_anomalies=1, budget=1.0), 0), Policy)


def test_texts_cite_what_a_reader_has() -> None:
    """The paper and docs/, not the notes from which the program was written."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    code = [path for folder in ("src", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    assert len(code) > 100
    assert [path.name for path in (*pages, *code) if re.search(r"\bSPEC\b", path.read_text(encoding="utf-8"))] == []
    cited = {page for path in code for page in re.findall(r"docs/[a-z-]+\.md", path.read_text(encoding="utf-8"))}
    assert sorted(page for page in cited if not (ROOT / page).is_file()) == []
