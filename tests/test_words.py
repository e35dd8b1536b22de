"""The dictionary: words of a private dialect, and what to write instead."""

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


def test_no_word_of_the_old_dialect_comes_back() -> None:
    words = {re.compile(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])"): pattern for pattern in INSTEAD}
    texts = [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.js"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    found = []
    for path in texts:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            rest = STAY.sub("", line)
            found += [f"{path.name}:{number}: {line.strip()[:80]}" for word in words if word.search(rest)]
    assert found == []
