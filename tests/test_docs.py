"""The code in README and docs runs as printed, and what they name is there."""

import importlib
import re
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import eccaht
from eccaht import Problem
from eccaht.research.paper.catalogue import EXPERIMENTS
from eccaht.streams.policies import CATALOGUE, Policy

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TEXTS = {path: path.read_text(encoding="utf-8") for path in (*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md")}
ROOMS: tuple[str, ...] = ("checks", "plants.data", "plants.diagnose", "plants.model")
ROOMS += tuple(f"streams.{room}" for room in ("covariance", "designs", "limits", "measurements", "policies"))
ROOMS += ("streams.posterior", "streams.run")
LESSON = "policies/exploring.py"  # which docs/adding-a-policy.md lets the reader write


def code_of(page: str) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL))


@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/guide.md", "docs/batches.md", "docs/confidence.md", "docs/joint.md", "docs/instruments.md"],
)
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
    monkeypatch.setattr("eccaht.streams.policies.catalogue.CATALOGUE", dict(CATALOGUE))
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
            if not named.endswith(LESSON) and not any((ROOT / base / named).is_file() for base in ("", "src/eccaht")):
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
    assert f"({len(EXPERIMENTS)} experiments," in TEXTS[ROOT / "docs" / "reproduction.md"]
    listed = re.findall(
        r"^\| (\w+) \|.*`eccaht reproduce \1 --out results` \|$", TEXTS[ROOT / "docs" / "figures.md"], re.MULTILINE
    )
    assert sorted(listed) == sorted(EXPERIMENTS)


# what rooms export for the floors above, not for users
BETWEEN_FLOORS = {"Chunk", "Cut", "Expected", "Moved", "Notation", "Sample", "Window", "estimated_shifts"}
BETWEEN_FLOORS |= {"parse_model", "recorded_of", "stays_right", "Event", "Hearing", "PlantWatch", "Session"}
BETWEEN_FLOORS |= {"false_alarm_every", "rate_line", "Counts", "Drilled", "as_document", "drill_trials", "usual_rate"}


def test_the_site_has_every_page_and_the_reference_every_public_name() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"[\w/-]+\.md", settings))
    assert listed == {path.relative_to(ROOT / "docs").as_posix() for path in PAGES}
    reference = "".join(text for path, text in TEXTS.items() if path.parent.name == "api")
    assert [name for name in eccaht.__all__ if f"`{name}`" not in reference] == []
    shown = set(re.findall(r"^::: [\w.]+\.(\w+)$", reference, re.MULTILINE))
    rooms = [importlib.import_module(f"eccaht.{room}") for room in ROOMS]
    public = {name for room in rooms for name in room.__all__ if isinstance(getattr(room, name), type | FunctionType)}
    assert sorted(public - shown - {"Belief", "Capabilities"} - BETWEEN_FLOORS) == []  # two are among parts of a policy


def test_the_readme_shows_one_small_picture() -> None:
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", TEXTS[ROOT / "README.md"])
    assert (ROOT / picture).stat().st_size < 150_000


def test_the_readme_quotes_the_guide_for_engineers() -> None:
    """Whose commands and outputs are tested; `python docs/outputs.py` writes both."""
    (quoted,) = re.findall(r"```text\n(.*?)```", TEXTS[ROOT / "README.md"], re.DOTALL)
    guide = TEXTS[ROOT / "docs" / "engineers.md"]
    assert quoted.startswith("3 of 24 sensors are wrong")
    assert [part for part in quoted.split("...\n") if part not in guide] == []


def test_the_demo_and_the_readme_need_nothing_to_guess() -> None:
    """Both identify with a model and data alone."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n\t\t", "")
    for text in (makefile, TEXTS[ROOT / "README.md"]):
        lines = [line for line in text.splitlines() if "eccaht identify --model" in line]
        assert lines
        for line in lines:
            assert set(re.findall(r"--[a-z]+", line)) <= {"--model", "--data", "--plot", "--html"}
