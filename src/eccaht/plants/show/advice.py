"""What to do where the plant has changed: commands or calls with the user's own files, times and options."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eccaht.plants.answer import Answer, Question

_BEGINNING = 3  # the first third of the data stands for the history where no start was given
_IN_SECONDS = np.timedelta64(300, "s")  # a time within data that last so long needs no fractions of seconds


def settling_commands(question: Question, until: str) -> tuple[str, str]:
    """Calibrate on the rows before a time, and look at those after it."""
    history, asked = {**question.calibrating, "stop": until}, {**question.asking, "start": until}
    if not question.model:
        data = _in_python(question)
        return (
            f"model = eccaht.calibrate({', '.join([data, *_arguments(history)])})",
            f"answer = model.identify({', '.join([data, *_arguments(asked)])})",
        )
    new = _beside(question.model, "new")
    return (
        _command("calibrate", *question.data, *_options(history), "--out", new),
        _command("identify", "--model", new, *_data_options(question), *_options(asked)),
    )


def update_command(question: Question) -> str:
    """Let the model learn these rows."""
    if not question.model:
        return f"model = model.update({_in_python(question)}).model"
    update = ("calibrate", "--update", question.model, *_data_options(question), *_options(question.updating))
    return _command(*update, "--out", _beside(question.model, "updated"))


def _beside(model: str, what: str) -> str:
    """A file beside the model, whose directory can be written to."""
    path = Path(model)
    return str(path.with_name(f"{path.stem}-{what}{path.suffix}"))


def _data_options(question: Question) -> list[str]:
    return [part for path in question.data for part in ("--data", path)]


def _in_python(question: Question) -> str:
    return "data" if not question.data else repr(question.data[0] if len(question.data) == 1 else list(question.data))


def what_to_do(answer: Answer) -> tuple[str, ...]:
    """What settles an answer that is undecided because the plant has changed; a line that is indented is a command."""
    start = answer.settings.get("start")
    until = start or _third(answer)
    well = f"before {until}" if start else "in the first third of the data (or change the time)"
    return (
        f"What to do: if all was well {well}, learn from that:",
        *(f"    {line}" for line in settling_commands(answer.question, until)),
        "If the plant stays like this, and nothing in these rows is wrong, let the model learn them:",
        f"    {update_command(answer.question)}",
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
