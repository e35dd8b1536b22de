"""What to do where the plant has changed: commands or calls with the user's own files, times and options."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from eccaht.plants.incident.answer import Answer

_BEGINNING = 3  # the first third of the data stands for the history where no start was given
_IN_SECONDS = np.timedelta64(300, "s")  # a time within data that last so long needs no fractions of seconds


@dataclass(frozen=True)
class Again:
    """How data were read and what was asked, so that it can be asked again.

    data: their paths as they were given, none for frames and arrays. model: path of the model file, "" in Python.
    calibrating: options that a calibration on these data needs. asking: those of `identify`, without start.
    updating: those of an update.
    """

    data: tuple[str, ...] = ()
    model: str = ""
    calibrating: Mapping[str, Any] = field(default_factory=dict)
    asking: Mapping[str, Any] = field(default_factory=dict)
    updating: Mapping[str, Any] = field(default_factory=dict)

    def settling(self, until: str) -> tuple[str, str]:
        """Calibrate on the rows before a time, and look at those after it."""
        history, asked = {**self.calibrating, "stop": until}, {**self.asking, "start": until}
        if not self.model:
            data = self._in_python
            return (
                f"model = eccaht.calibrate({', '.join([data, *_arguments(history)])})",
                f"answer = model.identify({', '.join([data, *_arguments(asked)])})",
            )
        return (
            _command("calibrate", *self.data, *_options(history), "--out", self._beside("new")),
            _command("identify", "--model", self._beside("new"), *self._data_options, *_options(asked)),
        )

    @property
    def update(self) -> str:
        """Let the model learn these rows."""
        if not self.model:
            return f"model = model.update({self._in_python}).model"
        update = ("calibrate", "--update", self.model, *self._data_options, *_options(self.updating))
        return _command(*update, "--out", self._beside("updated"))

    def _beside(self, what: str) -> str:
        """A file beside the model, whose directory can be written to."""
        model = Path(self.model)
        return str(model.with_name(f"{model.stem}-{what}{model.suffix}"))

    @property
    def _data_options(self) -> list[str]:
        return [part for path in self.data for part in ("--data", path)]

    @property
    def _in_python(self) -> str:
        return "data" if not self.data else repr(self.data[0] if len(self.data) == 1 else list(self.data))


def what_to_do(answer: Answer) -> tuple[str, ...]:
    """What settles an answer that is undecided because the plant has changed; a line that is indented is a command."""
    start = answer.settings.get("start")
    until = start or _third(answer)
    well = f"before {until}" if start else "in the first third of the data (or change the time)"
    return (
        f"What to do: if all was well {well}, learn from that:",
        *(f"    {line}" for line in answer.again.settling(until)),
        "If the plant stays like this, and nothing in these rows is wrong, let the model learn them:",
        f"    {answer.again.update}",
    )


def _third(answer: Answer) -> str:
    """The end of the first third of the data, as `--start` and `--stop` take it."""
    length = answer.last - answer.first
    time = answer.first + length // _BEGINNING
    if length > _IN_SECONDS and answer.clock.row_interval is None:
        time = time.astype("datetime64[s]").astype(answer.first.dtype)
    return answer.clock.show(time).removeprefix("row ").replace(" ", "T")


def _command(*words: str) -> str:
    return shlex.join(["eccaht", *words])


def _options(options: Mapping[str, Any]) -> list[str]:
    """Options as they are typed: none where nothing was given, one for each of several values.

    >>> _options({"stop": None, "no_header": True, "exclude": ["a b", "c"]})
    ['--no-header', '--exclude', 'a b', '--exclude', 'c']
    """
    words: list[str] = []
    for name, value in options.items():
        if name == "header":
            words += [] if value in (None, True) else ["--no-header"]
        elif value is True or value is False:
            words += [_option(name if value else f"no_{name}")]
        elif isinstance(value, list):
            words += [word for each in value for word in (_option(name), str(each))]
        elif isinstance(value, tuple):
            words += [_option(name), "-".join(map(str, value))]
        elif value is not None:
            words += [_option(name), str(value)]
    return words


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _arguments(options: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in options.items() if value is not None]
