"""Where the windows of a search come from: recorded files, or one that still grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from eccaht.data.standstill import Culprit, culprits
from eccaht.identification.follow import Follower, Note, read_layout

if TYPE_CHECKING:
    from eccaht.data import Model, Windows
    from eccaht.data.windows import Sample

Missing = Literal["refuse", "allow"]


@dataclass(frozen=True)
class Source:
    """Windows of the sensors that can be searched.

    names: sensors of the model that deliver, in its order. notes: what a user should know about the others.
    follower: the growing file, if it is one. culprits: sensors left out of the search because they need none.
    n_silent: sensors that cannot be searched, because they deliver nothing, and that may be wrong all the same.
    """

    names: tuple[str, ...]
    windows: Windows | Iterator[Sample]
    notes: tuple[str, ...] = ()
    follower: Follower | None = None
    culprits: tuple[Culprit, ...] = ()
    n_silent: int = 0


def recorded(model: Model, paths: Sequence[Path], *, start: Any, stop: Any, missing: Missing) -> Source:
    """All windows of the files from start to stop; sensors that are silent throughout are left out of the search."""
    windows = model.prepare(paths, start=start, stop=stop, missing=missing)
    if not len(windows.starts):
        raise ValueError(f"the data have no row between {start or 'the beginning'} and {stop or 'the end'}")
    speaks = np.flatnonzero(~np.isnan(windows.values).all(axis=0))
    absent = _absent(model, paths) if missing == "allow" else set()
    found = tuple(culprit for culprit in culprits(windows) if culprit.sensor not in absent)
    apart = {culprit.sensor for culprit in found}
    names = tuple(model.names[k] for k in speaks if model.names[k] not in apart)
    notes = []
    if silent := [name for name in model.names if name not in names and name not in apart]:
        notes.append(f"not searched, because they deliver nothing: {', '.join(silent)}")
    if unknown := model.unknown_columns(paths):
        notes.append(f"ignored, because the model does not know them: {', '.join(unknown)}")
    return Source(names, windows.of(names), tuple(notes), culprits=found, n_silent=len(set(silent) - absent))


def followed(
    model: Model,
    paths: Sequence[Path],
    *,
    start: Any,
    stop: Any,
    missing: Missing,
    poll: float,
    timeout: float | None,
    note: Note,
) -> Source:
    """The windows of one CSV file as it grows."""
    from eccaht.data.durations import parse_time
    from eccaht.data.selection import place_of

    path, names = _followable(model, paths), model.names
    decimal_comma = bool(model.reading.get("decimal_comma"))
    notes = []
    if missing == "allow":
        layout = read_layout(path, decimal_comma)
        names = tuple(name for name in model.names if place_of(layout, name) is not None)
        if absent := [name for name in model.names if name not in names]:
            notes.append(f"not searched, because the file does not have them: {', '.join(absent)}")
    follower = Follower(
        path,
        lambda part: model.prepare([part], missing=missing),
        start=None if start is None else parse_time(start, "--start"),
        stop=None if stop is None else parse_time(stop, "--stop"),
        decimal_comma=decimal_comma,
        poll=poll,
        timeout=timeout,
        note=note,
    )
    keep = np.array([model.names.index(name) for name in names], dtype=np.intp)
    return Source(names, (window.of(keep) for window in follower), tuple(notes), follower)


def _absent(model: Model, paths: Sequence[Path]) -> set[str]:
    """Sensors of the model that no file has a column for: somebody left them out, they did not fall silent."""
    from eccaht.data.reading import listed
    from eccaht.data.selection import place_of
    from eccaht.data.sniffing import sniff

    layouts = [sniff(path, bool(model.reading.get("decimal_comma"))) for path in listed(paths)]
    return {name for name in model.names if all(place_of(layout, name) is None for layout in layouts)}


def _followable(model: Model, paths: Sequence[Path]) -> Path:
    if len(paths) != 1:
        raise ValueError(f"--follow needs one growing CSV file, not {len(paths)}: give one --data")
    if paths[0].suffix.lower() in (".gz", ".parquet", ".pq"):
        raise ValueError(f"{paths[0]} cannot be followed: only plain CSV files grow line by line")
    if not model.reading.get("time_columns"):
        raise ValueError("--follow needs rows with times, and the history of this model had none")
    return paths[0]
