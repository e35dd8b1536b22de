"""Where commands write, how they show that they are at work, and how they print numbers."""

import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import typer

from eccaht.base.extras import need
from eccaht.base.files import NotWritten, destination
from eccaht.base.presentation.text import (
    Bar as Bar,  # commands get all that they show with from here
    columns,
    shown_progress as shown_progress,
)
from eccaht.base.statistics import Delay, Estimate

FAMILIES = (
    *("toeplitz", "equicorrelation", "block", "circulant", "graph", "kronecker"),
    *("exponential", "rbf", "spectral-mixture", "identity"),
)
STREAMS, MOST_STREAMS = 128, 1_000_000
PLOTS = (".png", ".pdf", ".svg")
_NONE: Mapping[str, Any] = MappingProxyType({})

Inputs = Mapping[str, Iterable[Path | None] | Path | None]  # by option or argument


def check_outputs(
    outputs: Mapping[str, Path | None], inputs: Inputs = _NONE, endings: Mapping[str, Sequence[str]] = _NONE
) -> None:
    """Refuse, before any work, a file that cannot be written or that would cost another one, each by its option."""
    wanted = [(option, path) for option, path in outputs.items() if path is not None]
    for option, path in wanted:
        if option in endings and path.suffix not in endings[option]:
            raise ValueError(f"{option} {path} must end in {' or '.join(endings[option])}")
        _check_place(option, path)
    _check_distinct(wanted, inputs)


def writable_directory(path: Path, option: str = "--out", files: Iterable[str] = (), inputs: Inputs = _NONE) -> Path:
    """Return the directory, made if need be, after proving that a file, and each of these files, can be written."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"{option} {path} is a file: give a directory")
    inside = [path / name for name in files]
    for file in inside:
        destination(file)
    _check_distinct([(option, file) for file in inside], inputs)
    try:
        path.mkdir(parents=True, exist_ok=True)
        _prove_writable(path)
    except OSError as error:
        raise ValueError(f"cannot write to {option} {path}: {error.strerror}; give another directory") from None
    return path


def _check_place(option: str, path: Path) -> None:
    if path.suffix in PLOTS:
        need("matplotlib")
    try:
        target = destination(path)
    except ValueError as error:
        raise ValueError(f"{option} {error}") from None
    if not target.parent.is_dir():
        lacking = f"there is no directory {target.parent}"
        raise ValueError(f"cannot write {option} {path}: {lacking}, give a file in a directory that exists")
    try:
        _prove_writable(target.parent)
    except OSError as error:
        raise ValueError(f"cannot write {option} {path}: {error.strerror}; give another place") from None


def _prove_writable(directory: Path) -> None:
    with tempfile.TemporaryFile(dir=directory):  # permissions alone do not show it: the disk may be read-only or full
        pass


def _check_distinct(outputs: Iterable[tuple[str, Path]], inputs: Inputs) -> None:
    """No output is an input, another output, or the file that standard output or standard error goes to."""
    several = {option: [given] if isinstance(given, Path) else given or () for option, given in inputs.items()}
    seen = [(option, path) for option, paths in several.items() for path in paths if path is not None]
    for option, path in outputs:
        for other, taken in seen:
            if same_file(path, taken):
                raise ValueError(f"{option} {path} would overwrite {other} {taken}: give another file")
        for number, name in ((1, "standard output"), (2, "standard error")):
            with suppress(OSError):
                if os.path.samestat(os.fstat(number), path.stat()):
                    raise ValueError(f"{option} {path} is where {name} goes: give another file")
        seen.append((option, path))


def same_file(one: Path, other: Path) -> bool:
    """Do two names mean one file, through links of either kind?"""
    try:
        return one.samefile(other)
    except OSError:  # one is not there
        return os.path.realpath(one) == os.path.realpath(other)


def deliver(
    writes: Iterable[Iterator[Path]],
    *,
    show: Callable[[], object],
    document: Callable[[list[str]], Mapping[str, Any]],
    as_json: bool,
) -> None:
    """Print what was found, then write the files, so that a full disk costs nothing but the files.

    writes: each names its files as it writes them. show: prints. document: makes what is printed instead with as_json,
    from the names of the files that were written.
    """
    unprinted: OSError | None = None  # standard output may be closed or full: the files are written all the same
    if not as_json:
        try:
            show()
            sys.stdout.flush()
        except OSError as error:
            unprinted = error
    files: list[str] = []
    failures: list[OSError] = []
    for write in writes:
        try:
            for path in write:
                files.append(str(path))
        except OSError as error:
            failures.append(error)
    if as_json:
        typer.echo(json.dumps(document(files), allow_nan=False))
    elif files and unprinted is None:
        typer.echo(f"Saved {', '.join(files)}")
    if unprinted is not None and not failures:
        raise unprinted
    if failures:
        names = ", ".join(str(error.filename) for error in failures)
        raise NotWritten(failures[0].errno, failures[0].strerror or str(failures[0]), names)


def saved(path: Path | None, write: Callable[[Path], object]) -> Iterator[Path]:
    """Write a file, if one was asked for."""
    if path is not None:
        write(path)
        yield path


def note(text: str) -> None:
    """Say something beside the result, where it does not mix with it."""
    typer.echo(f"Note: {text}", err=True)


@contextmanager
def ended_by_signals(end_work: Callable[[], object]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end what is done now, not the program; a second one ends the program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        restore()
        end_work()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        restore()


def show_lines(rows: Sequence[Sequence[str]]) -> None:
    """Print a table in columns."""
    typer.echo("\n".join(columns(rows)))


def show_mean(value: Delay | Estimate, places: int | None = None) -> str:
    """Mean and interval, with one decimal place below 100 and none above if `places` does not say."""
    mean, *ends = (
        _rounded(x, int(abs(x) < 100) if places is None else places) for x in (value.mean, *(value.interval or ()))
    )
    return mean + (f" [{', '.join(ends)}]" if ends else "")


def _rounded(x: float, places: int) -> str:
    return f"{round(x, places) + 0.0:.{places}f}"  # never -0.0


def option(metavar: str | None, help: str, *names: str, **limits: Any) -> Any:
    """An option: what stands for its value in the help, and what it is for; `min` and `max` limit a number."""
    return typer.Option(*names, metavar=metavar, help=help, **limits)


FAMILY_NAMES = ", ".join(FAMILIES)
Json = Annotated[bool, option(None, "Print one JSON document instead.", "--json")]
Jobs = Annotated[int | None, option("N", "Processes. [default: all cores]", min=1)]
Seed = Annotated[int, option("N", "Another seed is another set of runs.", min=0)]
Runs = Annotated[int, option("N", "Runs of each policy.", min=1, max=100_000)]
Budget = Annotated[float, option("B", "Limit on a measurement: sum of |weights|.")]
PolicyName = Annotated[str, option("NAME", "'eccaht policies' lists them.")]
Policies = Annotated[str | None, option("NAMES", "With commas between; NAME-diagonal ignores correlation.")]
ModelOrNoise = Annotated[Path | None, option("MODEL", "What 'eccaht calibrate' wrote.")]
Streams = Annotated[int | None, option("K", f"How many streams. [default: {STREAMS}]", min=2, max=MOST_STREAMS)]
Rho = Annotated[
    float | None, option(None, "Correlation of the family; of spectral-mixture the common factor. [default: 0.8]")
]
Missing = Annotated[Literal["refuse", "allow"], option(None, "What to do if the data lack sensors of the model.")]
Timezone = Annotated[
    str | None, option("ZONE", "Of times without an offset and of what is shown. [default: the history's]")
]
NoHeader = Annotated[bool, option(None, "The data have no column names.", "--no-header")]
DecimalComma = Annotated[
    bool | None, option(None, "Numbers are written as 1,5. [default: found by itself]", show_default=False)
]
