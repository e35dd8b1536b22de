"""New data to search: windows of a CSV file as it grows, or of a recording, of the sensors that can be searched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eccaht.base.clock import Clock, between, check_limits
from eccaht.plants.data.growing import GrowingFile, Note
from eccaht.plants.data.recorded import Missing
from eccaht.plants.data.windower import Windower, latest_believed
from eccaht.plants.data.windows import Batch, Moved, Sample, Windows
from eccaht.plants.model.gaps import Culprit, culprits
from eccaht.plants.model.model import Model, Notation, scaled_readings

_LATE = 10  # windows whose rows may all be late without a word


class _Cutter:
    """Rows of a growing file, cut into windows of all sensors of the model."""

    def __init__(self, model: Model, source: GrowingFile) -> None:
        self._model, self._source = model, source
        self._windower: Windower | None = None
        self._late = 0  # rows, when a window was last complete; never reached again once it was reported

    def add(self, batch: Batch) -> Windows:
        """The windows that these rows complete."""
        model, source = self._model, self._source
        if self._windower is None:  # the clock is known from the first row on
            self._windower = Windower(model.names, model.seconds, source.clock)
        scaled = np.full((len(batch.times), len(model.names)), np.nan, order="F")
        for k, name in enumerate(source.names):
            column = scaled_readings(model, source, name, batch.values[:, k], batch.times, source.faults)
            scaled[:, model.names.index(name)] = column
        complete = self._windower.add(Batch(batch.times, scaled), latest_believed(source.clock))
        source.faults.late = self._windower.n_late
        self._listen(any_window=len(complete.starts) > 0)
        return complete

    def _listen(self, *, any_window: bool) -> None:
        """Say it if rows come and all of them too late, so that there is no window to say anything of."""
        assert self._windower is not None
        source, late = self._source, self._windower.n_late
        if any_window:
            self._late = late
        elif late - self._late > _LATE * float(self._model.summary.row_counts[0]):
            source.say(f"no data: the last {late - self._late} rows of {source.path} came too late for their windows")
            self._late = 1 << 62

    def all(self, batches: Iterable[Batch]) -> Iterator[Windows]:
        """The windows that each batch of rows completes, and the last one."""
        yield from map(self.add, batches)
        if self._windower is not None:
            self._source.leave_out(self._windower.drop_doubted())
            yield self._windower.finish()


class Follower:
    """Yields one window after the other while a CSV file grows, with the sensors in `names`.

    A window is complete once a row of a later window has arrived, and the last one when following ends: as the file
    says (see GrowingFile), or at the time `stop`. Rows that come too late for their window are left out and
    counted.

    An error after the first window ends the following as the end of the data would, with a note.
    """

    def __init__(
        self,
        model: Model,
        path: Path,
        *,
        start: Any = None,
        stop: Any = None,
        missing: Missing = "refuse",
        notation: Notation | None = None,
        poll: float = 1.0,
        timeout: float | None = None,
        note: Note = lambda _: None,
    ) -> None:
        check_limits(start, stop)
        expected = (notation or Notation()).expected(model)
        self.file = GrowingFile(path, expected, missing=missing, poll=poll, timeout=timeout, note=note)
        self.end = self.file.end
        self._start, self._stop = start, stop
        self._cutter = _Cutter(model, self.file)

    @property
    def clock(self) -> Clock:
        """What the times mean, known from the first row on."""
        return self.file.clock

    @property
    def counts(self) -> list[str]:
        """How many bad lines and values, and rows that came too late, there were so far."""
        return self.file.faults.notes()

    @property
    def notes(self) -> list[str]:
        """All that a user should know once it is over."""
        return [*self.file.said, *self.counts]

    def __iter__(self) -> Iterator[Sample]:
        some = False
        try:
            for window in self._samples():
                first, last = between(self.clock, self._start, self._stop)
                if last is not None and window.start >= last:
                    break
                if first is None or window.start >= first:
                    some = True
                    yield window
        except (ValueError, OSError) as error:
            if not some:
                raise
            self.file.say(f"following ended: {error}")
        if not some:
            raise ValueError(self._nothing())

    def _samples(self) -> Iterator[Sample]:
        for windows in self._cutter.all(self.file.batches()):
            if not self.file.cut_short:  # otherwise the last window lacks rows that were not read
                yield from windows.of(self.file.names).samples()

    def _nothing(self) -> str:
        """The message for a search that got no window: what was waited for."""
        file, bad = self.file, "; ".join(self.counts)
        what = f"waited for {file.waits_for}"
        if file.last is not None:
            start = f"{self._start}" if self._start is not None else "the start"
            what = f"waited for a window from {start} on, of its {file.rows} rows the last is at"
            what = f"{what} {file.clock.show(file.last)}"
        return f"nothing was read from {file.path}: {what}" + (f"; {bad}" if bad else "")


# -- what can be searched ------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchableWindows:
    """Windows of the sensors that can be searched.

    names: sensors of the model that deliver, in its order. notes: what a user should know before the search.
    follower: the growing file, if it is one.
    culprits: sensors left out of the search because they are already known to have failed.
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
        """What the times of the windows mean; for a growing file known after the first window."""
        return self.windows.clock

    @property
    def all_notes(self) -> list[str]:
        """What a user should know, once the search is over."""
        return [*self.notes, *(self.follower.notes if self.follower is not None else ())]


def recorded(
    model: Model, data: Any, *, start: Any, stop: Any, missing: Missing, notation: Notation | None = None
) -> SearchableWindows:
    """All windows of the data from start to stop; sensors that are silent throughout are left out of the search."""
    check_limits(start, stop)
    source = (notation or Notation()).recorded(model, data)
    windows = model.prepare(source, start=start, stop=stop, missing=missing, bad="skip", notation=notation)
    if not len(windows.starts):
        raise ValueError(f"the data have no row between {start or 'the beginning'} and {stop or 'the end'}")
    speaks = np.flatnonzero(~np.isnan(windows.values).all(axis=0))
    absent = {name for name in model.names if source.lacks(name)} if missing == "allow" else set()
    found = tuple(culprit for culprit in culprits(windows) if culprit.sensor not in absent)
    failed = {culprit.sensor for culprit in found}
    names = tuple(model.names[k] for k in speaks if model.names[k] not in failed)
    notes = list(windows.notes)
    if silent := [name for name in model.names if name not in names and name not in failed]:
        notes.append(f"not searched, because they deliver nothing: {', '.join(silent)}")
    if unknown := model.unknown_columns(source):
        notes.append(f"ignored, because the model does not know them: {', '.join(unknown)}")
    return SearchableWindows(names, windows.of(names), tuple(notes), culprits=found, n_silent=len(set(silent) - absent))


def followed(model: Model, paths: Sequence[Path], *, missing: Missing, **options: Any) -> SearchableWindows:
    """The windows of one CSV file as it grows; the options are those of `Follower`."""
    follower = Follower(model, _followable(model, paths), missing=missing, **options)
    names, notes = model.names, []
    if missing == "allow":
        names = follower.file.present()
        if absent := [name for name in model.names if name not in names]:
            notes.append(f"not searched, because the file does not have them: {', '.join(absent)}")
    return SearchableWindows(names, follower, tuple(notes), follower)


def _followable(model: Model, paths: Sequence[Path]) -> Path:
    if len(paths) != 1:
        raise ValueError(f"--follow needs one growing CSV file, not {len(paths)}: give one --data")
    if paths[0].suffix.lower() in (".gz", ".parquet", ".pq"):
        raise ValueError(f"{paths[0]} cannot be followed: only plain CSV files grow line by line")
    if not model.reading.get("time_columns"):
        raise ValueError("--follow needs rows with times, and the history of this model had none")
    return paths[0]


def moved_constants(
    model: Model, data: Any, *, start: Any = None, stop: Any = None, notation: Notation | None = None
) -> list[Moved]:
    """The constants of the history that are none in new data, in the order of their columns.

    data, start, stop, notation: as for `Model.prepare`, whose windows know the same (`Windows.moved`). Columns that the
    data do not have are left out.
    """
    return model.prepare(data, start=start, stop=stop, missing="allow", bad="skip", notation=notation).moved()
