"""The version and what the project says of itself are one truth each, wherever they are written."""

import re
import tomllib
from pathlib import Path

import pytest

from eccaht import __version__
from eccaht.cli.main import run

ROOT = Path(__file__).parents[1]
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_version_is_that_of_the_package_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    source = (ROOT / PROJECT["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert f'__version__ = "{__version__}"' in source
    assert f"\nversion: {__version__}\n" in CITATION
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"eccaht {__version__}\n"
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == __version__


def test_one_sentence_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    description = PROJECT["project"]["description"]
    sentence = f"eccaht {description[0].lower()}{description[1:]}"
    assert f"\n**{sentence}**\n" in README
    assert f"\n**{sentence}**\n" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert f"\nsite_description: {description}\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert run(["--help"]) == 0
    assert description in " ".join(capsys.readouterr().out.split())


def test_the_paper_is_cited_with_its_number_and_its_code() -> None:
    number, code = "2601.17430", "https://github.com/VincentdeCristo/ECC-AHT"
    assert f"doi: 10.48550/arXiv.{number}\n" in CITATION
    for text in (CITATION, README, (ROOT / "docs" / "paper" / "claims.md").read_text(encoding="utf-8")):
        assert f"https://arxiv.org/abs/{number}" in text
        assert code in text
        assert "Yang" in text
        assert "Xing" in text
