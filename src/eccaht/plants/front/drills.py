"""What drills found, for users: a line, a table, a picture, a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from eccaht.base.codec import state_of
from eccaht.base.extras import need
from eccaht.base.frames import frame_of
from eccaht.base.presentation.text import percent, shown_progress
from eccaht.base.statistics import clopper_pearson
from eccaht.plants.data.windows import Windows
from eccaht.plants.front.identify import data_of
from eccaht.plants.incident.counts import MOST_IN_ALARM, Counts, Drilled, kept
from eccaht.plants.incident.drill import ALPHA, RUNS, drill_trials
from eccaht.plants.incident.trials import Trial
from eccaht.plants.model.model import Model
from eccaht.plants.watch.session import false_alarm_every

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# a count of a cell, and its key in documents
_KEYS = {
    "found": "found",
    "right": "sets_right",
    "at_alarm": "sets_right_at_alarm",
    "onset": "onset_within_2",
    "end": "end_within_5",
    "sensors": "sensors_faulty",
    "named": "sensors_found",
}


@dataclass(frozen=True, repr=False)
class Drills:
    """Faults that were injected into quiet data of a plant, and what was made of them.

    drilled: the counts. settings, windows, trials, notes: of new drills; those that a model keeps have none.
    """

    model: Model
    drilled: Drilled
    settings: dict[str, Any] = field(default_factory=dict)
    windows: Windows | None = None
    trials: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> Counts:
        return self.drilled.counts

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, for people."""
        return self.counts.sentences(
            self.model.timed_seconds, "your own history" if self.windows is None else "these data"
        )

    @property
    def line(self) -> str:
        """All of it in one line."""
        return " ".join(self.sentences)

    def __repr__(self) -> str:
        return f"Drills({self.line})"

    def to_frame(self) -> Any:
        """One row for each kind and range of sizes of faults; pandas if it is installed, else polars."""
        rows = [_cell_row(cell) for cell in self.to_dict()["kinds"]]
        return frame_of({name: [row[name] for row in rows] for name in rows[0]} if rows else {})

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw the share of faults found and the delay; path: also save it there, as .png, .pdf or .svg."""
        need("matplotlib")
        from eccaht.base.presentation.style import for_notebooks
        from eccaht.plants.show.drill_picture import draw

        return for_notebooks(draw(self.counts, line=self.line), path)

    def to_dict(self) -> dict[str, Any]:
        """What `eccaht drill --json` prints, without the names of files."""
        begun = self.counts.quiet.begun
        starts = () if self.windows is None else self.windows.starts[list(begun)]
        clock = self.model.clock if self.windows is None else self.windows.clock
        return {
            "line": self.line,
            **_document(self.drilled, self.model.timed_seconds),
            "quiet_alarms": [clock.exact(start) for start in starts],
            "trials": [_trial(trial, self.model.names) for trial in self.trials],
            "notes": list(self.notes),
        }


def drill(
    model: Model,
    data: Any,
    asked: Mapping[str, Any],
    *,
    names: Sequence[str] | None = None,
    times: ArrayLike | None = None,
    progress: bool = True,
) -> Drills:
    """What `Model.drill` returns, where the options are described; asked: those that need new drills."""
    options = {name: value for name, value in asked.items() if value is not None}
    if data is None:
        if options:
            raise ValueError(f"{next(iter(options))} needs new drills: give quiet data that the model has not seen")
        if (found := kept(model)) is None:
            raise ValueError(
                "the model has no drills: give quiet data, or calibrate with drills on at least 100 windows"
            )
        return Drills(model, found)
    settings: dict[str, Any] = {"runs": RUNS, "seed": 0, "alpha": ALPHA} | options
    settings["every"] = false_alarm_every(settings.pop("false_alarms", None), model, "false_alarms")
    with shown_progress("reading the data", shown=progress) as bar:
        windows = model.prepare(data_of(model, data, names, times), bad="skip")
        bar.total(settings["runs"], "drills")
        result, trials = drill_trials(model, windows, **settings, unseen=True, progress=bar.advance)
    notes = (*windows.notes, *seen_before(model, windows), *not_quiet(result.counts))
    return Drills(model, result, settings=settings, windows=windows, trials=tuple(trials), notes=notes)


def seen_before(model: Model, windows: Windows) -> Iterator[str]:
    """Drills in windows that the model was fitted to are easier than life."""
    if model.clock.row_interval is not None:  # rows are counted from the first: their numbers say nothing about time
        return
    seen = int(((windows.starts >= model.first) & (windows.starts <= model.last)).sum())
    if seen:
        yield (
            f"{seen} of the {len(windows.starts)} windows lie in the time of the history that the model was calibrated "
            "on: counts on data that it has seen may be too good"
        )


def not_quiet(counts: Counts) -> Iterator[str]:
    """That what was given as quiet is not."""
    if counts.caution or counts.share_in_alarm > MOST_IN_ALARM:
        yield (
            f"the data are in alarm for {percent(counts.share_in_alarm)} of the time without an injected fault: drill "
            "on a time when nothing was wrong"
        )


def _document(drilled: Drilled, seconds: float | None) -> dict[str, Any]:
    counts = drilled.counts
    confident, wrong = counts.confident
    alarms, expected = counts.false_alarms
    return {
        "alpha": counts.alpha,
        "faults": counts.drills,
        **{key: counts.total(name) for name, key in _KEYS.items()},
        "confident": confident,
        "confident_and_wrong": wrong,
        "confident_and_wrong_interval": clopper_pearson(wrong, confident) if confident else None,
        "confidence_holds": counts.holds,
        "quiet_windows": counts.quiet.windows,
        "quiet_hours": None if seconds is None else counts.quiet.windows * seconds / 3600.0,
        "false_alarm_every": counts.every,
        "alarms": alarms,
        "alarms_expected": expected,
        "time_in_alarm": counts.share_in_alarm,
        "kinds": [
            {
                "kind": cell.kind,
                "sizes": [cell.low, cell.high] if cell.high else None,
                "faults": cell.drills,
                **{key: getattr(cell, name) for name, key in _KEYS.items()},
                "confident": cell.confident,
                "confident_and_wrong": cell.wrong,
                "delay": cell.delay if cell.found else None,
                "share": cell.share,
                "interval": cell.interval,
            }
            for cell in counts.cells
        ],
        "confidence": {name: part for name, part in state_of(drilled).items() if name != "counts"},
    }


def _cell_row(cell: dict[str, Any]) -> dict[str, Any]:
    """A cell of the document without lists: both ends of an interval are columns."""
    sizes, interval = cell["sizes"] or (None, None), cell["interval"]
    rest = {name: value for name, value in cell.items() if name not in ("kind", "sizes", "interval")}
    ends = {"share_low": float(interval[0]), "share_high": float(interval[1])}
    return {"kind": cell["kind"], "size_from": sizes[0], "size_to": sizes[1], **rest, **ends}


def _trial(trial: Trial, names: Sequence[str]) -> dict[str, Any]:
    sets = {"sensors": trial.truth, "named": trial.named, "named_at_alarm": trial.raised}
    numbers = ("kind", "size", "lasted", "found", "delay", "onset_error", "end_error", "right", "right_at_alarm")
    return {name: getattr(trial, name) for name in numbers} | {
        key: [names[k] for k in places] for key, places in sets.items()
    }
