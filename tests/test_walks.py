"""How many files one reads to follow a piece of work, and that docs/reference/walks.md lists them.

`python -m tests.test_walks` writes the table of that page anew.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import eccaht
from eccaht.cli.main import load, run
from eccaht.plants.incident.words import lines
from tests import walks
from tests.service import plants
from tests.service.service import PLANT, Service, running

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "walks.md"
BEGIN, END = "<!-- walks: made by python -m tests.test_walks -->\n", "<!-- end of walks -->"
MOST = {"identify": 20, "watch": 25, "a row into the service": 20}


def of_command(command: str, **options: Any) -> list[str]:
    """The files of a command from its own function on; it runs twice, because imports are no part of it."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        load(command)(**options)
        with walks.traced() as entered:
            load(command)(**options)
    return [file for file in walks.walked(entered) if file != "cli/main.py"]


def of_identify(model: str, data: str) -> list[str]:
    """The files of what `eccaht identify` calls: a model from its file, an answer, and the answer in words."""

    def identify() -> None:
        answer = eccaht.load_model(model).identify(data)
        assert lines(answer, answer.clock)[0].startswith("3 of 24 sensors")

    identify()
    with walks.traced() as entered:
        identify()
    return walks.walked(entered)


def of_a_row(folder: Path) -> list[str]:
    """The files between a request with rows and the window that they complete, stored and published."""

    times, values = plants.recording(7)
    named = [dict(zip(plants.NAMES, row, strict=True)) for row in values.tolist()]
    rows = [{"time": f"{time}Z", "values": each} for time, each in zip(times, named, strict=True)]

    def windows_of(service: Service, sent: list[dict[str, Any]]) -> Any:
        answer = service.client.post(f"/api/plants/{PLANT}/rows", json=sent, headers=service.headers["ingest"])
        return answer.json()["windows"]

    with walks.traced() as entered, running("sqlite", folder) as service:  # from the start: it begins threads
        windows_of(service, rows[: 3 * plants.ROWS])
        passed = []
        for window in (3, 5):
            entered.clear()
            assert windows_of(service, rows[window * plants.ROWS : (window + 2) * plants.ROWS]) == 2
            passed.append(walks.walked(dict(entered)))
    return [file for file in passed[0] if file in passed[1]]  # what the service does by the clock is no part of it


def all_walks(folder: Path) -> dict[str, list[str]]:
    """The three walks of the page."""
    model = str(folder / "plant.model")
    (folder / "service").mkdir()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert run(["example", "--out", str(folder)]) == 0
        drills = ("--drills", "50", "--exclude", "P-101 mode", "--out", model)
        assert run(["calibrate", str(folder / "history.csv"), *drills]) == 0
    options = {"model": Path(model), "data": [folder / "incident.csv"]}
    return {
        "identify": of_identify(model, str(folder / "incident.csv")),
        "watch": of_command("watch", **options),
        "a row into the service": of_a_row(folder / "service"),
    }


def test_a_walk_passes_few_files_and_the_page_lists_them() -> None:
    """In a program of its own, where nothing is remembered from other tests."""
    shown = [sys.executable, "-m", "tests.test_walks", "--show"]
    lines = subprocess.run(shown, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    counts = [int(count) for count in re.findall(r"\*\*(\d+)\*\*", lines[-1])]
    assert all(count <= most for count, most in zip(counts, MOST.values(), strict=True)), counts
    page = PAGE.read_text()
    listed = page[page.index(BEGIN) + len(BEGIN) : page.index(END)].splitlines()
    assert [line.split("|")[1:3] for line in listed] == [line.split("|")[1:3] for line in lines], (
        "run python -m tests.test_walks"
    )


def main() -> None:
    """Print the table, and write it into the page unless it is only to be shown."""
    with tempfile.TemporaryDirectory() as folder:
        lines = walks.table(all_walks(Path(folder)))
    print("\n".join(lines))
    if "--show" not in sys.argv:
        page = PAGE.read_text()
        before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
        PAGE.write_text(before + "\n".join(lines) + "\n" + after)


if __name__ == "__main__":
    main()
