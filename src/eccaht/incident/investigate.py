"""An incident, investigated: windows in, an answer out, with nothing to guess."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eccaht.arrays import Array, check_alpha
from eccaht.data.windows import Windows
from eccaht.incident.answer import Answer, Suspect
from eccaht.incident.describe import Case, courses, evidence_course, rankings, suspect
from eccaht.incident.drill import Drilled, kept, moments_of
from eccaht.incident.judge import Judge, Judgement
from eccaht.incident.onset import LONGEST, Onset, onset_of, scan
from eccaht.incident.usual import simulated_quiet
from eccaht.model.model import Model
from eccaht.model.normal import FEWEST_BEFORE, Normal

_MANY = 0.5  # share of the sensors; where more are named, it may be the plant that changed
Progress = Callable[[float], object]


def investigate_incident(
    model: Model,
    windows: Windows,
    start: int | None = None,
    stop: int | None = None,
    *,
    locate: bool = True,
    number: int | tuple[int, int] | None = None,
    least: float | None = None,
    alpha: float = 0.05,
    correlation: bool = True,
    progress: Progress = lambda share: None,  # noqa: ARG005
) -> Answer:
    """Name the sensors that are wrong in windows [start, stop), with the kind of fault, its onset and why.

    windows: of all sensors of the model, in its order; those before `start` say what was normal just before.
    start: None: found. locate: look for the onset after `start` too; otherwise it is the start.
    number: how many sensors are wrong, or at least and at most, if that is known. least: the smallest deviation that
    matters, in robust units. alpha: the share of quiet stretches in which something may be named.
    correlation: use what the sensors share.
    """
    normal = _normal_of(model, windows)
    drilled = kept(model)
    values, moments = windows.values, moments_of(windows)
    first, last = start or 0, len(values) if stop is None else min(stop, len(values))
    if last <= first:
        raise ValueError("there is no window to look at: move the start or the stop")
    quiet = simulated_quiet(normal) if drilled is None else drilled.quiet
    judge = Judge(normal, quiet, check_alpha(alpha), correlation)
    begin, passed = first, None
    if locate and (start is None or last - first > LONGEST):
        begin, passed = scan(judge, values, moments, first, last, progress)
    end = min(last, begin + LONGEST)
    judgement = _judged(judge, values, moments, (begin, end), number)
    if passed is not None and number is None and passed <= 0.0:
        judgement = judgement.without_alarm()
    onset = Onset(begin, begin, begin)
    if judgement.named and (locate or start is None):
        onset = onset_of(judgement, values, begin)
    if least is not None:
        judgement = _large(judgement, least)
    case = Case(model, windows, judge, judgement, onset, begin, end)
    return _answer(case, drilled, (first, last), alpha)


def _normal_of(model: Model, windows: Windows) -> Normal:
    if model.normal is None:
        raise ValueError("the model does not describe normal operation: calibrate it again")
    if windows.names != model.names:
        raise ValueError("the windows must have the sensors of the model, in its order: use model.prepare")
    return model.normal


def _judged(
    judge: Judge, values: Array, moments: Array, place: tuple[int, int], number: int | tuple[int, int] | None
) -> Judgement:
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


def _answer(case: Case, drilled: Drilled | None, stretch: tuple[int, int], alpha: float) -> Answer:
    judgement, windows = case.judgement, case.windows
    factor = 1.0 if drilled is None else drilled.factor
    beliefs = judgement.beliefs(factor)
    suspects = tuple(suspect(case, k, float(beliefs[k])) for k in judgement.order)
    confidence = None if drilled is None else drilled.promise.confidence(judgement.margins)
    known = confidence is not None and confidence == confidence
    named = [each for each in suspects if each.named]
    others = [each for each in suspects if not each.named]
    starts = windows.starts
    return Answer(
        sensors=suspects,
        onset=starts[case.onset.best] if named else None,
        onset_interval=(starts[case.onset.first], starts[case.onset.last]) if named else None,
        first=starts[stretch[0]],
        last=starts[stretch[1] - 1],
        n_windows=stretch[1] - stretch[0],
        evidence=judgement.statistic,
        threshold=judgement.threshold,
        confidence=confidence if known else None,
        sure=bool(known and confidence is not None and confidence >= 1.0 - alpha),
        posterior=judgement.posterior(factor),
        alpha=alpha,
        runner_up=others[0].sensor if others else None,
        rankings=rankings(case),
        starts=case.shown_starts,
        evidence_course=evidence_course(case),
        courses=courses(case, [each.sensor for each in [*named, *others[:1]]]),
        cautions=tuple(_cautions(case, drilled, named)),
        drill="" if drilled is None else drilled.counts.line(None if windows.clock.counted else windows.seconds),
    )


def _cautions(case: Case, drilled: Drilled | None, named: list[Suspect]) -> list[str]:
    cautions = []
    if drilled is None:
        cautions.append(
            "no drills: what is usual was simulated from the model, which life exceeds, and no confidence can be given;"
            " calibrate without --no-drill"
        )
    elif not drilled.counts.holds:
        cautions.append("on drills of the history sure answers were wrong more often than promised")
    if case.judge.normal.level == "local" and case.begin < FEWEST_BEFORE:
        cautions.append(
            f"only {case.begin} windows come before: their level is that of the history; begin the data an hour earlier"
        )
    if len(named) > _MANY * len(case.model.names):
        cautions.append(
            f"{len(named)} of {len(case.model.names)} sensors left their normal operation: the plant may have changed,"
            " rather than so many sensors failed"
        )
    return cautions
