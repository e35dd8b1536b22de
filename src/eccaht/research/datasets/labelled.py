"""Collections of recordings whose incidents are known, each recognised by what its directory holds.

Servers have labels for each sensor. SMD (Su et al. 2019) and ASD (Li et al. 2021) come in this layout: `train/E.csv.gz`
and `test/E.csv.gz` for each entity E (rows are times, columns are metrics, no header) and `truth.json`,
{entity: [{start, stop, dims}]}, metrics from 0, rows of the test from start up to, not including, stop.

Testbeds have labels in time:
BATADAL (Taormina et al. 2018), a water network by the hour: `history.csv.gz`, `attacks-*.csv.gz` and `truth.json`,
{attacks: [{start, stop, altered}]}, both ends inclusive.
SKAB (Katser and Kozitsin 2020), a pump by the second: directories of CSV files with the columns `anomaly` and
`changepoint`; files without them are left alone.
TEP (Downs and Vogel 1993; Chiang, Russell and Braatz 2001), a simulated chemical plant: `normal.csv.gz`,
`normal-test.csv.gz` if there is one, and `fault-*.csv.gz`, whose fault begins with row 161.
Sock Shop (Ikram et al. 2022), services by the second: a directory for each case with `history.csv.gz` and
`incident.csv.gz`, which begins quiet, and `truth.json`, {case: {onset, root}}: the metric that was at fault.
An air handler (Granderson et al. 2020) by the minute: `history.csv.gz`, `test.csv.gz` and `truth.json`, {bad, good}:
the days with a fault and without.

File names may differ in what the asterisk stands for, so that recordings that were held back are read alike.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.plants import Arrays, Table, read_table

Kind = Literal["servers", "batadal", "skab", "tep", "sockshop", "hvac"]
LABELS = ("anomaly", "changepoint")  # columns of SKAB that are no sensors
_ENDINGS = (".csv.gz", ".csv")


class Segment(NamedTuple):
    """Labelled rows of the test, and the metrics that are anomalous there."""

    start: int
    stop: int
    metrics: tuple[int, ...]


@dataclass(frozen=True)
class Entity:
    """A machine, application or testbed: recordings that are watched after one history.

    In SKAB the history is the beginning of the recording itself. segments: of servers, whose one recording they label.
    """

    collection: str
    name: str
    kind: Kind
    history: Path
    recordings: tuple[Path, ...]
    truth: Path | None = None
    segments: tuple[Segment, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.collection}/{self.name}"

    @property
    def files(self) -> tuple[Path, ...]:
        found = (self.history, *self.recordings, *(() if self.truth is None else (self.truth,)))
        return tuple(dict.fromkeys(found))


class _FoundRecording(NamedTuple):
    """What a directory holds, and notes on the directories below it that are skipped."""

    entities: list[Entity]
    notes: list[str]


def find_collections(directory: Path) -> _FoundRecording:
    """Read the layout of a collection, or of all collections directly below a directory.

    A directory whose only collections are folders of SKAB is one collection: its files are pooled.
    """
    if not directory.is_dir():
        raise ValueError(f"{directory} is not a directory: give a collection, or a directory of collections")
    own = _entities(directory)
    children = [path for path in sorted(directory.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    below = {path: _entities(path) for path in children} if not own or own[0].kind == "skab" else {}
    if own and all(entity.kind == "skab" for some in below.values() for entity in some):
        below = {directory: own}
    found = [entity for some in below.values() for entity in some]
    if not found:
        raise ValueError(
            f"no labelled collection in {directory}: it has no truth.json beside train and test, nor files of another "
            "known layout (BATADAL, SKAB, TEP, Sock Shop, air handler), nor has a directory below it"
        )
    skipped = (path.name for path, some in below.items() if not some)
    return _FoundRecording(found, [f"{name} is skipped: its layout is none of the known ones" for name in skipped])


def _entities(directory: Path) -> list[Entity]:
    """Those of the first layout that the directory has; none if it has none."""
    layouts = (_servers, _batadal, _hvac, _sockshop, _tep, _skab)
    return next((found for layout in layouts if (found := list(layout(directory)))), [])


def _servers(directory: Path) -> Iterator[Entity]:
    path = directory / "truth.json"
    if not (path.is_file() and (directory / "train").is_dir()):
        return
    try:
        truth = json.loads(path.read_text(encoding="utf-8"))
        segments = {str(name): tuple(map(_segment, entries)) for name, entries in truth.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path} is not a list of segments by entity: {reason}") from None
    if not segments:
        raise ValueError(f"{path} names no entity")
    for name, labelled in sorted(segments.items(), key=lambda item: _natural(item[0])):
        train, test = (_present(directory / part, name) for part in ("train", "test"))
        yield Entity(_name(directory), name, "servers", train, (test,), path, labelled)


def _present(directory: Path, name: str) -> Path:
    path = _sheet(directory, name)
    if path is None:
        raise ValueError(f"truth.json names {name}, but there is no {directory / name}.csv.gz")
    return path


def _segment(entry: dict[str, Any]) -> Segment:
    start, stop, metrics = entry["start"], entry["stop"], entry["dims"]
    if not all(type(value) is int and value >= 0 for value in (start, stop, *metrics)) or stop <= start:
        raise ValueError(f"segment {entry} is not one of rows and metrics counted from 0")
    return Segment(start, stop, tuple(sorted(set(metrics))))


def _batadal(directory: Path) -> Iterator[Entity]:
    for path in _sheets(directory, "attacks"):
        yield from _timed(directory, stem(path), "batadal", directory, path)


def _sockshop(directory: Path) -> Iterator[Entity]:
    for case in _cases(directory):
        yield from _timed(directory, case.name, "sockshop", case, _sheet(case, "incident"))


def _hvac(directory: Path) -> Iterator[Entity]:
    yield from _timed(directory, "test", "hvac", directory, _sheet(directory, "test"))


def _timed(directory: Path, name: str, kind: Kind, place: Path, recording: Path | None) -> Iterator[Entity]:
    """A recording after the history in `place`, whose incidents `truth.json` dates."""
    history, truth = _sheet(place, "history"), directory / "truth.json"
    if history is not None and recording is not None and truth.is_file():
        yield Entity(_name(directory), name, kind, history, (recording,), truth)


def _skab(directory: Path) -> Iterator[Entity]:
    for path in _labelled_sheets(directory):
        name = stem(path) if path.parent == directory else f"{path.parent.name}/{stem(path)}"
        yield Entity(_name(directory), name, "skab", path, (path,))


def _tep(directory: Path) -> Iterator[Entity]:
    history, quiet = _sheet(directory, "normal"), _sheet(directory, "normal-test")
    faults = _sheets(directory, "fault-")
    if history is not None and faults:
        recordings = faults if quiet is None else [quiet, *faults]
        yield Entity(_name(directory), "faults", "tep", history, tuple(recordings))


def _name(directory: Path) -> str:
    return directory.resolve().name


def stem(path: Path) -> str:
    """The name of a file without its endings.

    >>> stem(Path("fault-01.csv.gz"))
    'fault-01'
    """
    return path.name.removesuffix(".gz").removesuffix(".csv")


def _natural(name: str) -> list[tuple[int, str]]:
    """Order omi-2 before omi-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _sheet(directory: Path, name: str) -> Path | None:
    return next((path for ending in _ENDINGS if (path := directory / f"{name}{ending}").is_file()), None)


def _sheets(directory: Path, begins: str = "") -> list[Path]:
    """The CSV files directly in a directory whose names begin so, 2 before 10."""
    found = [path for path in directory.iterdir() if path.name.startswith(begins) and path.name.endswith(_ENDINGS)]
    return sorted(found, key=lambda path: _natural(stem(path)))


def _cases(directory: Path) -> list[Path]:
    found = [path for path in directory.iterdir() if _sheet(path, "history") and _sheet(path, "incident")]
    return sorted(found, key=lambda path: _natural(path.name))


def _labelled_sheets(directory: Path) -> Iterator[Path]:
    for place in (directory, *sorted(path for path in directory.iterdir() if path.is_dir())):
        yield from (path for path in _sheets(place) if set(LABELS) <= set(_columns(path)))


def _columns(path: Path) -> list[str]:
    """The names in the first line; none if the file cannot be unpacked."""
    try:
        with gzip.open(path, "rt", errors="replace") if path.suffix == ".gz" else path.open(errors="replace") as file:
            return re.split("[;,]", file.readline().strip())
    except (OSError, EOFError):
        return []


@dataclass(frozen=True)
class CaseReadings:
    """Rows of all sensors, (T, K), with times or, without, counted; `window` is the length of one row."""

    rows: Array
    names: tuple[str, ...]
    times: NDArray[np.datetime64] | None = None
    window: str | float = "1row"

    def of(self, names: Sequence[str]) -> CaseReadings:
        return replace(self, rows=self.rows[:, [self.names.index(name) for name in names]], names=tuple(names))

    def first(self, stop: int) -> CaseReadings:
        return replace(self, rows=self.rows[:stop], times=None if self.times is None else self.times[:stop])

    def after(self, start: int) -> CaseReadings:
        return replace(self, rows=self.rows[start:], times=None if self.times is None else self.times[start:])

    def source(self) -> Arrays:
        return Arrays(np.asfortranarray(self.rows), self.times, self.names, label="the rows")


def read_sheet(path: Path, names: Sequence[str] | None = None) -> CaseReadings:
    """A file with times and a header: all columns, or those of its history, in that order."""
    table = read_table(path)
    sheet = CaseReadings(_numbers(table, path), table.names, table.times)
    absent = [name for name in names or () if name not in table.names]
    if absent:
        raise ValueError(f"{path} has no column {absent[0]!r}, which its history has")
    return sheet if names is None else sheet.of(names)


def read_rows(path: Path) -> Array:
    """All rows of a file without times and header, (T, K)."""
    return _numbers(read_table(path, header=False, count_rows=True), path)


def _numbers(table: Table, path: Path) -> Array:
    """All columns of a table side by side; texts and missing values are refused."""
    if table.texts:
        raise ValueError(f"{path} has texts in the column {min(table.texts)!r}: these files have numbers only")
    rows = np.column_stack([table.numbers(name) for name in table.names])
    if not np.isfinite(rows).all():
        raise ValueError(f"{path} has rows with missing values: these files have none")
    return rows


def read_entity(entity: Entity) -> tuple[CaseReadings, CaseReadings]:
    """Train and test, checked against each other and the segments; metrics are named by number."""
    train, test = read_rows(entity.history), read_rows(entity.recordings[0])
    if train.shape[1] != test.shape[1]:
        raise ValueError(f"{entity.label} has {train.shape[1]} metrics in train and {test.shape[1]} in test")
    for segment in entity.segments:
        if segment.stop > len(test) or max(segment.metrics, default=0) >= test.shape[1]:
            raise ValueError(f"{entity.label}: {segment} lies outside of the test, {len(test)} x {test.shape[1]}")
    names = tuple(f"metric {k}" for k in range(train.shape[1]))
    return CaseReadings(train, names), CaseReadings(test, names)


Span = tuple[np.datetime64, np.datetime64, tuple[str, ...]]  # beginning and end, inclusive; sensors, if known


def read_spans(entity: Entity) -> list[Span]:
    """The incidents that the truth of a testbed dates: attacks, a fault that goes on, or days with faults."""
    assert entity.truth is not None
    try:
        document = json.loads(entity.truth.read_text(encoding="utf-8"))
        if entity.kind == "batadal":
            attacks = document["attacks"]
            spans = [_span(each["start"], each["stop"], each.get("altered", ())) for each in attacks]
        elif entity.kind == "hvac":
            spans = [_span(f"{day}T00:00", f"{day}T23:59:59.999999") for day in document["bad"]]
        else:
            case = document[entity.name]
            spans = [_span(case["onset"], "9999-12-31", [case["root"]])]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{entity.truth} does not date the incidents of {entity.name}: {error}") from None
    if any(stop < start for start, stop, _ in spans):
        raise ValueError(f"{entity.truth} has an incident that stops before it starts")
    return spans


def _span(start: str, stop: str, sensors: Sequence[str] = ()) -> Span:
    return np.datetime64(start, "us"), np.datetime64(stop, "us"), tuple(map(str, sensors))
