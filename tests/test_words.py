"""The dictionary: words of a private dialect, and what to write instead; filler and marks that no page keeps."""

from __future__ import annotations

import re
from pathlib import Path

import eccaht

SOURCE = Path(eccaht.__file__).parent
ROOT = Path(__file__).parents[1]
INSTEAD = {
    "told": "given, passed, recorded, reported",
    "promised?|promises": "false-alarm rate, error rate, bound",
    "nobody|somebody|anybody": "user, operator, caller, client",
    "whom": "whose, to which",
    "strangers?": "untrusted, unknown",
}
# keys of files and of the API, names that users call, and the scripts' own Promise
STAY = re.compile(
    r'["\']told["\']|["\']promise["\']|promise: |\} promise$|\.promise\b|promised_error|n_told|\bPromise\b|"nobody"'
)
# says nothing, or says that the page is not finished
FILLER = re.compile(
    r"\b(?:obviously|of course|basically|in order to|note that|utili[sz]e[sd]?|leverag(?:e[sd]?|ing)|seamless(?:ly)?"
    r"|cutting-edge|blazing(?:ly)?|easy to use|user-friendly|TODO|FIXME|XXX)\b|@@",
    re.IGNORECASE,
)
PAGES = [*ROOT.glob("docs/**/*.md"), *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "VISION"))]
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def test_no_word_of_the_old_dialect_comes_back() -> None:
    words = {re.compile(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])"): pattern for pattern in INSTEAD}
    texts = [path for ending in ("py", "js", "html") for path in SOURCE.rglob(f"*.{ending}")]
    found = []
    for path in (*texts, *PAGES):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            rest = STAY.sub("", line)
            found += [f"{path.name}:{number}: {line.strip()[:80]}" for word in words if word.search(rest)]
    assert found == []


def test_pages_are_finished_and_without_filler() -> None:
    found = []
    for path in PAGES:
        prose = CODE.sub("", path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in FILLER.finditer(prose)]
    assert found == []
