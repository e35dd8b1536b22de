"""`eccaht identify` on whole windows: which sensors are wrong, from when to when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import typer

from eccaht.base.arrays import as_positive, check_alpha
from eccaht.base.files import replacing
from eccaht.cli.output import PLOTS, Inputs, check_outputs, deliver, note, saved, shown_progress
from eccaht.cli.parsing import parse_number
from eccaht.plants.data.table import between, check_limits
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.answer import Answer
from eccaht.plants.incident.document import as_document
from eccaht.plants.incident.words import lines
from eccaht.plants.model.constants import Moved, moved_constants
from eccaht.plants.model.model import Model, load_model
from eccaht.plants.model.prepare import Notation

_PAGES = (".html", ".htm")
_READ = 0.4  # share of the time that reading takes, about


class WholeReadings(NamedTuple):
    """What was read: windows of the sensors of the model that the data have, and the first one to look at.

    moved: columns that never changed in the history and do from there on.
    """

    model: Model
    windows: Windows
    first: int | None
    moved: list[Moved]


@dataclass(frozen=True)
class Stretch:
    """The data to look at, and how they are written."""

    model: Path
    data: list[Path]
    start: str | None
    stop: str | None
    missing: Literal["refuse", "allow"]
    notation: Notation

    def read(self) -> WholeReadings:
        """Read the data; the windows before `start` too: they say what was normal just before."""
        check_limits(self.start, self.stop)
        model = load_model(self.model)
        source = self.notation.recorded(model, self.data)
        options: dict[str, Any] = {"missing": self.missing, "bad": "skip", "notation": self.notation}
        windows = model.prepare(source, stop=self.stop, **options)
        notes = list(windows.notes)
        if absent := [name for name in model.names if source.lacks(name)]:
            notes.append(f"not looked at, because the data do not have them: {', '.join(absent)}")
            windows = windows.of([name for name in model.names if name not in absent])
        if unknown := model.unknown_columns(source):
            notes.append(f"ignored, because the model does not know them: {', '.join(unknown)}")
        first = self._first(windows)
        moved = moved_constants(model, source, start=self.start, stop=self.stop, notation=self.notation)
        return WholeReadings(model, replace(windows, notes=tuple(notes)), first, moved)

    def _first(self, windows: Windows) -> int | None:
        start, _ = between(windows.clock, self.start, self.stop)
        first = 0 if start is None else int(np.searchsorted(windows.starts, start))
        if first >= len(windows.starts):
            raise ValueError(
                f"the data have no row between {self.start or 'the beginning'} and {self.stop or 'the end'}"
            )
        return None if start is None else first


def identify_whole(
    stretch: Stretch,
    *,
    anomalies: str | None,
    least: float | None,
    alpha: float,
    plot: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Look at the stretch and print which sensors are wrong."""
    inputs: Inputs = {"--model": stretch.model, "--data": stretch.data}
    check_outputs({"--plot": plot, "--html": html}, inputs, {"--plot": PLOTS, "--html": _PAGES})
    if html is not None:
        find_spec("matplotlib")  # if it is missing, that is reported before the work starts
    options: dict[str, Any] = {"alpha": check_alpha(alpha)}
    options |= {} if least is None else {"least": as_positive(least, "--least")}
    options |= {} if anomalies is None else {"number": parse_number(anomalies)}
    from eccaht.plants.incident.investigate import investigate_incident  # as late as the work, which alone needs it

    with shown_progress("reading the data", 1.0) as bar:
        model, windows, first, moved = stretch.read()
        sensors = len(windows.names)
        _check_number(options.get("number"), sensors)
        bar.stage(f"looking for incidents of {sensors} sensors", _READ)
        answer = investigate_incident(model, windows, start=first, moved=moved, **options)
    clock, notes = windows.clock, list(dict.fromkeys([*windows.notes, *answer.notes]))
    for text in notes:
        note(text)

    def document(files: list[str]) -> dict[str, Any]:
        settings = {"start": stretch.start, "stop": stretch.stop, "anomalies": options.get("number"), "least": least}
        settings |= {"alpha": alpha, "missing": stretch.missing, "sensors": sensors}
        contents = {"settings": settings, **as_document(answer, clock), "timezone": clock.zone}
        return contents | {"notes": notes, "files": files}

    def show() -> None:
        for line in lines(answer, clock):
            typer.echo(line)

    writes = [saved(plot, lambda path: _draw(answer, windows, path))]
    writes.append(saved(html, lambda path: _write_page(replace(answer, notes=tuple(notes)), windows, stretch, path)))
    deliver(writes, show=show, document=document, as_json=as_json)


def _check_number(number: int | tuple[int, int] | None, sensors: int) -> None:
    most = number[1] if isinstance(number, tuple) else number
    if most is not None and sensors <= most:
        raise ValueError(f"--anomalies {most} needs more than the {sensors} sensors that are there")


def _draw(answer: Answer, windows: Windows, path: Path) -> None:
    from eccaht.base.presentation.style import save_picture
    from eccaht.plants.incident.picture import draw

    save_picture(draw(answer, clock=windows.clock), path)


def _write_page(answer: Answer, windows: Windows, stretch: Stretch, path: Path) -> None:
    from eccaht.plants.incident.page import write

    files = ", ".join(file.name for file in stretch.data)
    about = [f"Model: {stretch.model.name}", f"Data: {files}", f"Windows of {windows.clock.length(windows.seconds)}"]
    text = write(answer, clock=windows.clock, about=about)
    with replacing(path) as file:
        file.write(text.encode("utf-8", errors="backslashreplace"))
