"""A model brought up to date: the oldest windows dropped, new ones added, and both models drilled on the new ones.

A model file holds no rows, so the old history has to be given again; without it the new model knows the new data alone.
Level, spread, correlation and rarity of the new model are those of its windows. The unit of each sensor and what is
known of the rows within a window stay those of the old model, because window means do not show them; so both models
judge the very same numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, as_count
from eccaht.base.presentation.text import counted, listed, percent
from eccaht.plants.data.cleaning import ColumnReport, fill_continuous, fill_status
from eccaht.plants.data.windows import Windows, follows
from eccaht.plants.incident.comparison import Better, Comparison, compare_models, counted as numbers
from eccaht.plants.incident.counts import MOST_IN_ALARM, Counts
from eccaht.plants.incident.drill import RUNS, drill_history, keeping
from eccaht.plants.incident.investigate import investigate_incident
from eccaht.plants.incident.trials import FEWEST_WINDOWS
from eccaht.plants.model.estimators import estimate
from eccaht.plants.model.fitting import FEWEST_NORMAL, fit_normal
from eccaht.plants.model.history import longest_true
from eccaht.plants.model.model import Model, Notation
from eccaht.plants.show.words import changed_plant, when

_MOST_MISSING = 0.5  # share of the windows: a sensor with fewer readings would be learned from what was filled in
_SAME = 1e-12  # share of the largest value, below which windows do not vary
NOTE = (
    "fitted anew to stored windows; the unit of each sensor and what is known of the rows within a window are those "
    "of the model before"
)
Progress = Callable[[int], object]


@dataclass(frozen=True, repr=False)
class Update:
    """A model brought up to date, and what was counted for it.

    model: the new one, drilled on its own history. added, kept, dropped: windows of the new data, and of the old
    history. left_out: the incidents of the new data that the old model found, a line each; n_left_out: their windows.
    changed: all new data differ from the history as if the plant had changed, so that nothing was left out.
    comparison: both models on the new windows, None where there are too few of them. with_history: whether the rows
    of the old history were given.
    """

    model: Model
    added: int
    kept: int
    dropped: int
    left_out: tuple[str, ...]
    n_left_out: int
    changed: bool
    comparison: Comparison | None
    notes: tuple[str, ...] = ()
    with_history: bool = False

    @property
    def better(self) -> Better | None:
        """Which model is better on the new windows, beyond chance; None where that was not counted."""
        return None if self.comparison is None else self.comparison.better

    def __repr__(self) -> str:
        counts = f"{self.added} windows added, {self.kept} kept, {self.dropped} dropped, {self.n_left_out} left out"
        return f"Update({counts}; better: {self.better or 'not compared'})"

    def sentences(self) -> list[str]:
        """For people: what the new model was made of, and which of the two is better by what."""
        old = f"{self.kept} of the old history were kept and {self.dropped} dropped, the oldest first"
        if not self.kept and not self.dropped:
            why = "no row of it lies before the new data"
            if not self.with_history:
                why = "its rows were not given and a model file does not hold them"
            old = f"of the old history none, because {why}"
        made = [f"The new model: {counted(self.added, 'window')} of the new data; {old}."]
        if self.changed:
            made.append("Most sensors read otherwise than ever in the history: taken as normal from now on.")
        elif self.left_out:
            made.append(f"Left out of the new data, {counted(self.n_left_out, 'window')} in all:")
            made += [f"  {line}" for line in self.left_out]
        else:
            made.append("The old model found no incident in the new data, so nothing was left out.")
        if self.comparison is None:
            return [*made, f"Not compared: drills need {FEWEST_WINDOWS} new windows without an incident."]
        rows = [(name, getattr(self.comparison, name).counts) for name in ("old", "new")]
        made.append("Both models on the new windows, with the same faults injected:")
        made += [f"  {name}: {_in_short(counts)}" for name, counts in rows]
        return [*made, *_judged(self.comparison)]

    def as_dict(self) -> dict[str, Any]:
        """The same for programs."""
        both = self.comparison
        return {
            "added": self.added,
            "kept": self.kept,
            "dropped": self.dropped,
            "left_out": list(self.left_out),
            "left_out_windows": self.n_left_out,
            "plant_changed": self.changed,
            "better": self.better,
            "old": None if both is None else numbers(both.old),
            "new": None if both is None else numbers(both.new),
        }


_VERDICTS: dict[Better, str] = {
    "new": "The new model is better, by more than chance.",
    "old": "The old model is better, by more than chance: look at the new data before you use the new model.",
    "neither": "Neither model is better by more than chance.",
}
_BETTER_BUT_POOR = "The new model does better than the old one, by more than chance, but not well enough to rely on."


def update_model(
    model: Model,
    new: Any,
    *,
    history: Any = None,
    learn: Sequence[tuple[Any, Any]] = (),
    drills: int = RUNS,
    notation: Notation | None = None,
    stage: Callable[[str, int], object] = lambda what, total: None,  # noqa: ARG005
    progress: Progress = lambda done: None,  # noqa: ARG005
) -> Update:
    """Bring a model up to date with new rows of normal operation.

    new: data as `Model.prepare` takes them; incidents that the model finds there are left out, unless they last as a
    change, or lie in stretches to `learn`, from a time to another. history: the rows that the model was calibrated on,
    if they are still there. As many windows are kept as the old history had, the latest ones, and all of the new data.
    drills: faults for each of the two models and for the confidence of the new one; 0: none. stage, progress: are
    called with what is done, of how much, and how much is done.
    """
    as_count(drills, "drills", least=0)
    fresh = _full(model.prepare(new, bad="skip", notation=notation))
    answer = investigate_incident(model, fresh, moved=fresh.moved())
    changed = changed_plant(answer)
    wrong = np.zeros(len(fresh.starts), dtype=bool)
    right = np.zeros_like(wrong)
    for stretch in learn:
        first, last = (fresh.clock.parse(limit, "learn") for limit in stretch)
        right |= (fresh.starts >= first) & (fresh.starts < last)
    left_out = []
    for incident in () if changed else [each for each in answer.incidents if not each.changed]:  # what lasts is learnt
        inside = (fresh.starts >= incident.began) & (fresh.starts < (incident.ended or fresh.starts[-1] + 1))
        left_out += [incident] if (inside & ~right).any() else []
        wrong |= inside & ~right
    added = _only(fresh, ~wrong)
    if not len(added.starts):
        learnt = "give data of normal operation, or say which stretch to learn"
        raise ValueError(f"the old model finds an incident in all of the new data: {learnt}")
    kept, dropped = _kept(model, history, added, notation)
    fitted, windows = recalibrate(model, Windows.joined([kept, added]))
    windows = replace(windows, clock=model.clock)
    comparison = None
    if drills and len(added.starts) >= FEWEST_WINDOWS:
        stage("drilling both", 2 * drills)
        every = fitted.usual_rate
        before = model.of(fitted.names)
        comparison = compare_models(
            before, fitted, windows, every=every, runs=drills, first=len(kept.starts), progress=progress
        )
    if drills and len(windows.starts) >= FEWEST_WINDOWS:
        stage("drilling the new model", drills)
        fitted = keeping(fitted, drill_history(fitted, windows, runs=drills, progress=progress))
    lines = tuple(f"{when(each)}: {listed(each.named)}" for each in left_out)
    counts = (len(added.starts), len(kept.starts), dropped)
    return Update(fitted, *counts, lines, int(wrong.sum()), changed, comparison, fresh.notes, history is not None)


def recalibrate(model: Model, windows: Windows) -> tuple[Model, Windows]:
    """A new model of the windows, and the windows of its sensors with gaps filled.

    windows: of all sensors of the model, in its units, NaN where a sensor was silent. Sensors that are silent in more
    than half of them, or do not vary, are left out; `columns` of the new model says why.
    """
    if windows.names != model.names or windows.seconds != model.seconds:
        raise ValueError("a model is fitted anew to windows of its own sensors and length")
    if (T := len(windows.values)) < FEWEST_NORMAL:
        raise ValueError(f"a model needs at least {FEWEST_NORMAL} windows, and there are {T}: choose a longer period")
    reasons = {name: why for k, name in enumerate(model.names) if (why := _why_left_out(windows.values[:, k]))}
    names = [name for name in model.names if name not in reasons]
    if len(names) < 2:
        raise ValueError(
            f"a model needs at least 2 sensors, and {len(names)} of {len(model.names)} vary: choose another period"
        )
    kept = windows.of(names)
    values = np.column_stack([_filled(model, kept, k) for k in range(len(names))])
    part = model.of(names)
    mean, covariance = estimate(values, model.estimator, model.ridge)
    missing = np.isnan(kept.values)
    imputed = dict(zip(names, missing.mean(axis=0).tolist(), strict=True))
    fitted = replace(
        part,
        mean=mean,
        covariance=covariance,
        n_windows=T,
        first=windows.starts[0],
        last=windows.starts[-1],
        columns=tuple(_report(column, reasons, imputed) for column in model.columns),
        reading=part.reading | {"notes": [NOTE]},
        gaps=np.array([longest_true(column) for column in missing.T]),
        normal=fit_normal(np.ascontiguousarray(values), follows(windows)),
        drilled=None,
    )
    return fitted, replace(kept, values=values, model=fitted)


def _why_left_out(column: Array) -> str:
    present = column[~np.isnan(column)]
    if not present.size:
        return "empty"
    if present.size < (1.0 - _MOST_MISSING) * column.size:
        return "mostly missing"
    return "constant in windows" if np.ptp(present) <= _SAME * np.abs(present).max() else ""


def _filled(model: Model, windows: Windows, k: int) -> Array:
    column = windows.values[:, k]
    if model.reading["kinds"].get(windows.names[k]) == "status":
        return fill_status(column)
    return fill_continuous(column, windows.starts)


def _report(column: ColumnReport, reasons: dict[str, str], imputed: dict[str, float]) -> ColumnReport:
    if column.name in reasons:
        return ColumnReport(column.name, False, reasons[column.name], column.kind)
    return replace(column, imputed=imputed[column.name]) if column.kept else column


def _kept(model: Model, history: Any, added: Windows, notation: Notation | None) -> tuple[Windows, int]:
    """The latest windows of the old history, so many that there are as many in all as before, and how many are not."""
    if history is None:
        return _only(added, np.zeros(len(added.starts), dtype=bool)), 0
    old = _full(model.prepare(history, bad="skip", notation=notation))
    if not model.reading["time_columns"]:  # rows of both are counted from the same beginning: the old ones were before
        step = np.timedelta64(round(model.seconds * 1e6), "us")
        old = replace(old, starts=old.starts - (old.starts[-1] - added.starts[0] + step))
    old = _only(old, old.starts < added.starts[0])
    room = max(max(model.n_windows, len(old.starts)) - len(added.starts), 0)
    dropped = max(len(old.starts) - room, 0)
    return _only(old, np.arange(len(old.starts)) >= dropped), dropped


def _full(windows: Windows) -> Windows:
    """Those windows that have at least half of the usual rows, where one in which nothing moves counts as one row."""
    if windows.rows is None or windows.flat is None:
        return windows
    still = (windows.flat | (windows.rows == 0)).all(axis=1)
    rows = np.where(still, 1.0, windows.rows.max(axis=1))
    return _only(windows, 2 * rows >= np.median(rows))


def _only(windows: Windows, chosen: NDArray[np.bool_]) -> Windows:
    parts: dict[str, Any] = {name: getattr(windows, name) for name in ("starts", "values", "rows", "flat")}
    picked: dict[str, Any] = {name: None if part is None else part[chosen] for name, part in parts.items()}
    return replace(windows, **picked)


def _judged(both: Comparison) -> list[str]:
    """Which model is better; where the new one has too many alarms without a fault, that too."""
    counts = both.new.counts
    cautions = [counts.caution] if counts.caution else []
    if counts.share_in_alarm > MOST_IN_ALARM:
        share = f"{percent(counts.share_in_alarm)} of the time in alarm without a fault"
        what_to_do = "leave out what was not normal operation, or give more data"
        cautions.append(f"{share}: one half of the new data does what the other never did; {what_to_do}")
    verdict = _BETTER_BUT_POOR if cautions and both.better == "new" else _VERDICTS[both.better]
    return [verdict, *(f"CAUTION: with the new model {text}." for text in cautions)]


def _in_short(counts: Counts) -> str:
    alarms, expected = counts.false_alarms
    drills = f"{counts.total('found')} of {counts.drills} faults found, {counts.total('right')} with the right sensors"
    if not counts.drills:
        drills = "no fault could be injected, because it was in alarm already"
    share = f"{percent(counts.share_in_alarm)} of the time in alarm"
    return f"{drills}; {counted(alarms, 'false alarm')} ({expected:.2g} expected), {share}"
