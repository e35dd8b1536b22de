"""Collections of recordings whose incidents are known, each recognised by what its directory holds.

Servers (`eccaht.research.datasets.labelled`) have labels for each sensor. Three testbeds have labels in time:

BATADAL (Taormina et al. 2018), a water network by the hour: `history.csv.gz`, `attacks-*.csv.gz` and `truth.json`,
{attacks: [{start, stop, altered}]}, both ends inclusive.
SKAB (Katser and Kozitsin 2020), a pump by the second: directories of CSV files with the columns `anomaly` and
`changepoint`; files without them are left alone.
TEP (Downs and Vogel 1993; Chiang, Russell and Braatz 2001), a simulated chemical plant: `normal.csv.gz`,
`normal-test.csv.gz` if there is one, and `fault-*.csv.gz`, whose fault begins with row 161.

File names may differ in what the asterisk stands for, so that recordings that were held back are read alike.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.plants.data.source import read_table
from eccaht.research.datasets.labelled import Entity, entities_of, is_labelled

Kind = Literal["servers", "batadal", "skab", "tep"]
LABELS = ("anomaly", "changepoint")  # columns of SKAB that are no sensors
_ENDINGS = (".csv.gz", ".csv")


@dataclass(frozen=True)
class Testbed:
    """Recordings that are watched after one history; in SKAB the history is the beginning of the recording itself."""

    __test__ = False  # no test, whatever its name begins with

    collection: str
    name: str
    kind: Kind
    history: Path
    recordings: tuple[Path, ...]
    truth: Path | None = None

    @property
    def label(self) -> str:
        return f"{self.collection}/{self.name}"

    @property
    def files(self) -> tuple[Path, ...]:
        found = (self.history, *self.recordings, *(() if self.truth is None else (self.truth,)))
        return tuple(dict.fromkeys(found))


class FoundRecording(NamedTuple):
    """What a directory holds, and notes on the directories below it that are skipped."""

    entities: list[Entity]
    testbeds: list[Testbed]
    notes: list[str]


def find_collections(directory: Path) -> FoundRecording:
    """Read the layout of a collection, or of all collections directly below a directory.

    A directory whose only collections are folders of SKAB is one collection: its files are pooled.
    """
    if not directory.is_dir():
        raise ValueError(f"{directory} is not a directory: give a collection, or a directory of collections")
    own = kind_of(directory)
    children = [path for path in sorted(directory.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    below = {path: kind_of(path) for path in children} if own in (None, "skab") else {}
    if own is not None and set(below.values()) <= {None, "skab"}:
        below = {directory: own}
    found, skipped = FoundRecording([], [], []), []
    for path, kind in below.items():
        if kind is None:
            skipped.append(path.name)
        elif kind == "servers":
            found.entities.extend(entities_of(path))
        else:
            found.testbeds.extend(_TESTBEDS[kind](path))
    if not found.entities and not found.testbeds:
        raise ValueError(
            f"no labelled collection in {directory}: it has no truth.json beside train and test, nor files of another "
            "known layout (BATADAL, SKAB, TEP), nor has a directory below it"
        )
    found.notes.extend(f"{name} is skipped: its layout is none of the known ones" for name in skipped)
    return found


def kind_of(directory: Path) -> Kind | None:
    if is_labelled(directory):
        return "servers"
    if _sheet(directory, "history") and _sheets(directory, "attacks") and (directory / "truth.json").is_file():
        return "batadal"
    if _sheet(directory, "normal") and _sheets(directory, "fault-"):
        return "tep"
    return "skab" if next(_labelled_sheets(directory), None) else None


def _batadal(directory: Path) -> Iterator[Testbed]:
    history, truth = _sheet(directory, "history"), directory / "truth.json"
    assert history is not None
    for path in _sheets(directory, "attacks"):
        yield Testbed(_name(directory), stem(path), "batadal", history, (path,), truth)


def _skab(directory: Path) -> Iterator[Testbed]:
    for path in _labelled_sheets(directory):
        name = stem(path) if path.parent == directory else f"{path.parent.name}/{stem(path)}"
        yield Testbed(_name(directory), name, "skab", path, (path,))


def _tep(directory: Path) -> Iterator[Testbed]:
    history, quiet = _sheet(directory, "normal"), _sheet(directory, "normal-test")
    assert history is not None
    recordings = (*(() if quiet is None else (quiet,)), *_sheets(directory, "fault-"))
    yield Testbed(_name(directory), "faults", "tep", history, recordings)


_TESTBEDS: dict[Kind, Callable[[Path], Iterator[Testbed]]] = {"batadal": _batadal, "skab": _skab, "tep": _tep}


def _name(directory: Path) -> str:
    return directory.resolve().name


def stem(path: Path) -> str:
    """The name of a file without its endings.

    >>> stem(Path("fault-01.csv.gz"))
    'fault-01'
    """
    return path.name.removesuffix(".gz").removesuffix(".csv")


def _sheet(directory: Path, name: str) -> Path | None:
    return next((path for ending in _ENDINGS if (path := directory / f"{name}{ending}").is_file()), None)


def _sheets(directory: Path, begins: str = "") -> list[Path]:
    """The CSV files directly in a directory whose names begin so, 2 before 10."""
    found = [path for path in directory.iterdir() if path.name.startswith(begins) and path.name.endswith(_ENDINGS)]
    return sorted(
        found, key=lambda path: [(int(p), "") if p.isdigit() else (-1, p) for p in re.split(r"(\d+)", stem(path))]
    )


def _labelled_sheets(directory: Path) -> Iterator[Path]:
    """The files of SKAB in a directory and in those directly below it."""
    for place in (directory, *sorted(path for path in directory.iterdir() if path.is_dir())):
        yield from (path for path in _sheets(place) if set(LABELS) <= set(_columns(path)))


def _columns(path: Path) -> list[str]:
    """The names in the first line; none if the file cannot be unpacked."""
    try:
        with gzip.open(path, "rt", errors="replace") if path.suffix == ".gz" else path.open(errors="replace") as file:
            return re.split("[;,]", file.readline().strip())
    except (OSError, EOFError):
        return []


# -- rows ----------------------------------------------------------------------------------------------


class Sheet(NamedTuple):
    """Rows of a file, (T, K), in order of time."""

    path: Path
    names: tuple[str, ...]
    times: NDArray[np.datetime64]
    rows: Array

    def of(self, names: Sequence[str]) -> Array:
        absent = [name for name in names if name not in self.names]
        if absent:
            raise ValueError(f"{self.path} has no column {absent[0]!r}, which its history has")
        rows: Array = self.rows[:, [self.names.index(name) for name in names]]
        return rows


def read_sheet(path: Path) -> Sheet:
    """All columns of a file with times and a header; texts and missing values are refused."""
    table = read_table(path)
    if table.texts:
        raise ValueError(f"{path} has texts in the column {min(table.texts)!r}: these files have numbers only")
    rows = np.column_stack([table.numbers(name) for name in table.names])
    if not np.isfinite(rows).all():
        raise ValueError(f"{path} has rows with missing values: these files have none")
    return Sheet(path, table.names, table.times, rows)


def read_attacks(path: Path) -> list[tuple[np.datetime64, np.datetime64]]:
    """Beginning and end, inclusive, of the attacks that BATADAL's truth lists."""
    try:
        attacks = json.loads(path.read_text(encoding="utf-8"))["attacks"]
        ends = [(np.datetime64(each["start"], "us"), np.datetime64(each["stop"], "us")) for each in attacks]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is not a list of attacks with start and stop: {error}") from None
    if any(stop < start for start, stop in ends):
        raise ValueError(f"{path} has an attack that stops before it starts")
    return ends
