"""Where the windows of a search come from: recorded files, or one that still grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from eccaht.model.follow import Follower, Note
from eccaht.model.standstill import Culprit, culprits

if TYPE_CHECKING:
    from eccaht.data.clock import Clock
    from eccaht.data.windows import Windows
    from eccaht.model.model import Model
    from eccaht.model.preparing import Notation

Missing = Literal["refuse", "allow"]


@dataclass(frozen=True)
class Source:
    """Windows of the sensors that can be searched.

    names: sensors of the model that deliver, in its order. notes: what a user should know before the search.
    follower: the growing file, if it is one. culprits: sensors left out of the search because they need none.
    n_silent: sensors that cannot be searched, because they deliver nothing, and that may be wrong all the same.
    """

    names: tuple[str, ...]
    windows: Windows | Follower
    notes: tuple[str, ...] = ()
    follower: Follower | None = None
    culprits: tuple[Culprit, ...] = ()
    n_silent: int = 0

    @property
    def clock(self) -> Clock:
        """What the times of the windows mean; of a growing file known once there was one."""
        return self.follower.clock if self.follower is not None else self.windows.clock

    @property
    def all_notes(self) -> list[str]:
        """What a user should know, once the search is over."""
        return [*self.notes, *(self.follower.notes if self.follower is not None else ())]


def recorded(
    model: Model, paths: Sequence[Path], *, start: Any, stop: Any, missing: Missing, notation: Notation | None = None
) -> Source:
    """All windows of the files from start to stop; sensors that are silent throughout are left out of the search."""
    from eccaht.model.preparing import absent_names

    windows = model.prepare(paths, start=start, stop=stop, missing=missing, bad="skip", notation=notation)
    if not len(windows.starts):
        raise ValueError(f"the data have no row between {start or 'the beginning'} and {stop or 'the end'}")
    speaks = np.flatnonzero(~np.isnan(windows.values).all(axis=0))
    absent = absent_names(model, paths, notation) if missing == "allow" else set()
    found = tuple(culprit for culprit in culprits(windows) if culprit.sensor not in absent)
    apart = {culprit.sensor for culprit in found}
    names = tuple(model.names[k] for k in speaks if model.names[k] not in apart)
    notes = list(windows.notes)
    if silent := [name for name in model.names if name not in names and name not in apart]:
        notes.append(f"not searched, because they deliver nothing: {', '.join(silent)}")
    if unknown := model.unknown_columns(paths, notation):
        notes.append(f"ignored, because the model does not know them: {', '.join(unknown)}")
    return Source(names, windows.of(names), tuple(notes), culprits=found, n_silent=len(set(silent) - absent))


def followed(
    model: Model,
    paths: Sequence[Path],
    *,
    start: Any,
    stop: Any,
    missing: Missing,
    notation: Notation,
    poll: float,
    timeout: float | None,
    note: Note,
) -> Source:
    """The windows of one CSV file as it grows."""
    follower = Follower(
        model,
        _followable(model, paths),
        start=start,
        stop=stop,
        missing=missing,
        notation=notation,
        poll=poll,
        timeout=timeout,
        note=note,
    )
    names, notes = model.names, []
    if missing == "allow":
        names = follower.sensors()
        if absent := [name for name in model.names if name not in names]:
            notes.append(f"not searched, because the file does not have them: {', '.join(absent)}")
    return Source(names, follower, tuple(notes), follower)


def _followable(model: Model, paths: Sequence[Path]) -> Path:
    if len(paths) != 1:
        raise ValueError(f"--follow needs one growing CSV file, not {len(paths)}: give one --data")
    if paths[0].suffix.lower() in (".gz", ".parquet", ".pq"):
        raise ValueError(f"{paths[0]} cannot be followed: only plain CSV files grow line by line")
    if not model.reading.get("time_columns"):
        raise ValueError("--follow needs rows with times, and the history of this model had none")
    return paths[0]
