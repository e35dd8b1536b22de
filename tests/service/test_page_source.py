"""What holds for the files of the page, without a browser."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import eccaht

PAGE = Path(eccaht.__file__).parent / "service" / "page"
SCRIPTS = sorted(PAGE.glob("*.js"))
_STRICT = [
    "--noEmit", "--allowJs", "--checkJs", "--strict", "--noUnusedLocals", "--noUnusedParameters", "--noImplicitReturns",
    "--target", "es2023", "--module", "es2022", "--moduleResolution", "bundler", "--lib", "es2023,dom,dom.iterable",
    "--types", "",
]  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_small_checked_and_writes_text_only(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.startswith("// @ts-check\n")
    assert text.count("\n") <= 350
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|https?://(?!www\.w3)", text
    )
    for imported in re.findall(r'(?:from|import\()\s*"([^"]+)"', text):
        assert (PAGE / imported).is_file(), imported


def test_the_page_allows_a_strict_policy() -> None:
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)
    for address in re.findall(r'(?:src|href)="([^"#]+)"', text):
        assert address.startswith("/api/") or (PAGE / address.removeprefix("/static/")).is_file(), address


def test_every_class_of_the_style_sheet_is_used() -> None:
    used = "".join(path.read_text(encoding="utf-8") for path in [*SCRIPTS, PAGE / "index.html"])
    style = (PAGE / "style.css").read_text(encoding="utf-8")
    names = set(re.findall(r"\.([a-z][a-z-]+)(?=[^{}]*\{)", style))
    assert {name for name in names if not re.search(rf"\b{name}\b", used)} == set()


def test_types_of_the_scripts_hold() -> None:
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("the types of the page are checked where TypeScript is installed: npm install --global typescript")
    found = subprocess.run([compiler, *_STRICT, *map(str, SCRIPTS)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
