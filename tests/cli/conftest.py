"""What holds for all tests of commands."""

from collections.abc import Callable
from typing import Any

import pytest

from eccaht.base.files import write_archive
from eccaht.cli.watch_outlets import Document, Log, json_line
from tests.cli.watched import Killed


@pytest.fixture(autouse=True)
def _plain_pictures(plain_pictures: None) -> None:
    """What pictures look like is tested elsewhere."""


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], list[str]]:
    """Kills at the n-th of all moments before, within and after the writing of a file, and counts them."""
    moments: list[str] = []
    last: list[int | None] = [None]

    def moment(name: str) -> None:
        moments.append(name)
        if last[0] is not None and len(moments) > last[0]:
            raise Killed

    def write_state(*arguments: Any) -> None:
        moment("before the state is written")
        write_archive(*arguments)
        moment("after the state was written")

    def write_line(log: Log, document: Document) -> None:
        moment("before a line is logged")
        try:
            moment("while a line is logged")
        except Killed:
            with log._path.open("a") as file:
                file.write(json_line(document)[:20])
            raise
        write(log, document)
        moment("after a line was logged")

    write = Log.write
    monkeypatch.setattr("eccaht.plants.watch.session.write_archive", write_state)
    monkeypatch.setattr(Log, "write", write_line)

    def at(number: int | None) -> list[str]:
        moments.clear()
        last[0] = number
        return moments

    return at
