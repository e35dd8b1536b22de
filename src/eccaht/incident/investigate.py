"""An incident, investigated: windows in, an answer out, with nothing to guess."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eccaht.arrays import Array, check_alpha
from eccaht.data.windows import Windows
from eccaht.incident.answer import Answer, Interval, Reason, Suspect
from eccaht.incident.describe import Case, courses, evidence_course, rankings, suspect
from eccaht.incident.drill import Drilled, kept, moments_of
from eccaht.incident.judge import Judge, Judgement
from eccaht.incident.onset import LONGEST, Onset, onset_of, scan
from eccaht.incident.usual import simulated_quiet
from eccaht.model.constants import Moved
from eccaht.model.model import Model
from eccaht.model.normal import FEWEST_BEFORE, Normal
from eccaht.presentation.text import listed

_MANY = 0.5  # share of the sensors; where more are named, it may be the plant that changed
Progress = Callable[[float], object]
Number = int | tuple[int, int] | None


@dataclass(frozen=True)
class _Asked:
    """What was asked of windows [first, last); lacking: sensors of the model without a column in the data.

    searched: whether the stretch to judge had to be found among them.
    """

    first: int
    last: int
    number: Number
    least: float | None
    alpha: float
    correlation: bool
    lacking: tuple[str, ...]
    moved: tuple[Moved, ...]
    searched: bool


def investigate_incident(
    model: Model,
    windows: Windows,
    start: int | None = None,
    stop: int | None = None,
    *,
    locate: bool = True,
    number: Number = None,
    least: float | None = None,
    alpha: float = 0.05,
    correlation: bool = True,
    moved: Sequence[Moved] = (),
    progress: Progress = lambda share: None,  # noqa: ARG005
) -> Answer:
    """Name the sensors that are wrong in windows [start, stop), with the kind of fault, its onset and why.

    windows: of the sensors of the model, in its order; those before `start` say what was normal just before. If some
    sensors are left out, the others are judged without them, and without a confidence: drills had all of them.
    start: None: found. locate: look for the onset after `start` too; otherwise it is the start.
    number: how many sensors are wrong, or at least and at most, if that is known. least: the smallest deviation that
    matters, in robust units. alpha: the share of quiet stretches in which something may be named.
    correlation: use what the sensors share. moved: columns that never changed in the history and do now, as
    `eccaht.model.constants.moved_constants` finds them; they are named before all others.
    The confidence is that of the drills, which were told nothing but the stretch: where more is told, there is none.
    """
    whole, model = model, _of_windows(model, windows)
    normal, drilled = _normal_of(model), kept(whole)
    values, moments = windows.values, moments_of(windows)
    first, last = start or 0, len(values) if stop is None else min(stop, len(values))
    if last <= first:
        raise ValueError("there is no window to look at: move the start or the stop")
    quiet = simulated_quiet(normal) if drilled is None else drilled.quiet.of(whole.places(model.names))
    judge = Judge(normal, quiet, check_alpha(alpha), correlation)
    searched = locate and (start is None or last - first > LONGEST)
    lacking = tuple(name for name in whole.names if name not in model.names)
    asked = _Asked(first, last, number, least, alpha, correlation, lacking, tuple(moved), searched)
    begin, passed = first, None
    if searched:
        begin, passed = scan(judge, values, moments, first, last, progress)
    end = min(last, begin + LONGEST)
    judgement = _judged(judge, values, moments, (begin, end), _less(number, len(moved)))
    if passed is not None and number is None and passed <= 0.0:
        judgement = judgement.without_alarm()
    onset = Onset(begin, begin, begin)
    if judgement.named and (locate or start is None):
        onset = onset_of(judgement, values, begin)
    if least is not None:
        judgement = _large(judgement, least)
    case = Case(model, windows, judge, judgement, onset, begin, end)
    return _answer(case, drilled, asked)


def _of_windows(model: Model, windows: Windows) -> Model:
    """The model of the sensors that the windows have."""
    if windows.names == model.names:
        return model
    part = model.of(windows.names)
    if windows.names != part.names:
        raise ValueError("the windows must have the sensors of the model, in its order: use model.prepare")
    return part


def _normal_of(model: Model) -> Normal:
    if model.normal is None:
        raise ValueError("the model does not describe normal operation: calibrate it again")
    return model.normal


def _less(number: Number, already: int) -> Number:
    """How many sensors are left to name once some are."""
    if number is None or not already:
        return number
    if isinstance(number, int):
        return max(number - already, 0)
    return max(number[0] - already, 0), max(number[1] - already, 0)


def _judged(judge: Judge, values: Array, moments: Array, place: tuple[int, int], number: Number) -> Judgement:
    """Judge a stretch; a range for the number moves the answer to its nearest end."""
    if not isinstance(number, tuple):
        return judge(values, moments, *place, number=number)
    found = judge(values, moments, *place)
    nearest = min(max(len(found.named), number[0]), number[1])
    return found if nearest == len(found.named) else judge(values, moments, *place, number=nearest)


def _large(judgement: Judgement, least: float) -> Judgement:
    """The judgement without sensors whose deviation is below what matters."""
    sizes = np.sqrt(np.nanmean(np.square(judgement.evidence.deviations), axis=0))
    small = [k for k in judgement.named if k not in judgement.standing and sizes[k] < least]
    return judgement.without(small)


def _answer(case: Case, drilled: Drilled | None, asked: _Asked) -> Answer:
    judgement, windows = case.judgement, case.windows
    factor = 1.0 if drilled is None else drilled.factor
    beliefs = judgement.beliefs(factor)
    judged = [suspect(case, k, float(beliefs[k])) for k in judgement.order]
    suspects = (*(_moved(each, len(judged)) for each in asked.moved), *judged)
    uncounted = list(_uncounted(case, drilled, asked))
    confidence = None if uncounted or drilled is None else drilled.promise.confidence(judgement)
    named = [each for each in suspects if each.named]
    others = [each for each in suspects if not each.named]
    starts = windows.starts
    onset, interval = None, None
    if judgement.named:
        onset, interval = starts[case.onset.best], (starts[case.onset.first], starts[case.onset.last])
    elif asked.moved:
        onset = min(each.since for each in asked.moved)
    return Answer(
        sensors=suspects,
        onset=onset,
        onset_interval=interval,
        first=starts[asked.first],
        last=starts[asked.last - 1],
        n_windows=asked.last - asked.first,
        evidence=judgement.statistic,
        threshold=judgement.threshold,
        confidence=confidence,
        sure=confidence is not None and confidence >= 1.0 - asked.alpha,
        posterior=judgement.posterior(factor),
        alpha=asked.alpha,
        runner_up=others[0].sensor if others else None,
        rankings=rankings(case),
        starts=case.shown_starts,
        evidence_course=evidence_course(case),
        courses=courses(case, [each.sensor for each in judged if each.named] + [each.sensor for each in others[:1]]),
        cautions=(*uncounted, *_cautions(case, named, len(suspects))),
        drill="" if drilled is None else drilled.counts.line(None if windows.clock.counted else windows.seconds),
        searched=asked.searched,
    )


def _moved(column: Moved, sensors: int) -> Suspect:
    """A column that never changed in the history, among `sensors` others: no evidence weighs it, it is seen."""
    by, unknown = column.read - column.usual, float("nan")
    return Suspect(
        sensor=column.name,
        named=True,
        belief=1.0 - 1.0 / sensors,  # as that of a sensor that stands still
        evidence=unknown,
        needed=unknown,
        kind="moved",
        size=unknown,
        size_raw=by,
        size_raw_interval=Interval(by, by),
        reason=Reason(unknown, unknown, (), column.read, column.usual),
        since=column.since,
    )


def _uncounted(case: Case, drilled: Drilled | None, asked: _Asked) -> Iterator[str]:
    """Why no drill has counted how often such an answer is right; nothing where drills have."""
    none = "no confidence was counted"
    if drilled is None:
        yield (
            "no drills: what is usual was simulated from the model, which life exceeds, and no confidence can be given;"
            " calibrate without --no-drill"
        )
        return
    if not drilled.counts.holds:
        yield f"on drills of the history sure answers were wrong more often than promised, so {none} that could be kept"
    if asked.lacking:
        yield f"drills were counted with all sensors; without {listed(asked.lacking)} {none}"
    if asked.number is not None:
        yield f"drills were counted with nothing told; with a given number of sensors {none}"
    if asked.least is not None:
        yield f"drills were counted with nothing told; with a smallest deviation that matters {none}"
    if not asked.correlation:
        yield f"drills were counted with what the sensors share; without it {none}"
    if _another_answer(case, drilled.counts.alpha, asked):
        levels = f"{drilled.counts.alpha:g}; with {asked.alpha:g}"
        yield f"drills were counted with an error level of {levels} the answer may be another one, for which {none}"
    elif asked.searched and case.judgement.basis == "nothing":
        yield f"drills were told where to look; a search of more windows finds less, so {none} for nothing found"
    if np.isnan(drilled.promise.confidence(case.judgement)):
        yield f"no drill had such an answer, so {none}"


def _another_answer(case: Case, drilled: float, asked: _Asked) -> bool:
    """Whether the error level of the drills may have given another answer: the level decides what is an alarm."""
    alarm, stricter = case.judgement.alarm, asked.alpha < drilled
    if asked.alpha == drilled or alarm is stricter:  # an alarm of the stricter level is one of the other
        return False
    if asked.searched:  # the other level would have looked for the stretch by other thresholds
        return True
    yardstick = case.judge.quiet.yardstick(case.end - case.begin)
    return alarm != (case.judgement.statistic > yardstick.threshold(drilled))


def _cautions(case: Case, named: list[Suspect], sensors: int) -> Iterator[str]:
    if case.judge.normal.level == "local" and case.begin < FEWEST_BEFORE:
        yield (
            f"only {case.begin} windows come before: their level is that of the history; begin the data an hour earlier"
        )
    if len(named) > _MANY * sensors:
        yield (
            f"{len(named)} of {sensors} sensors left their normal operation: the plant may have changed, rather than so"
            " many sensors failed"
        )
