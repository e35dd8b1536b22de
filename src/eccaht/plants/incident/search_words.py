"""The answer of a search by weighted sums, and its words: what `identify --sums` prints."""

from __future__ import annotations

import math
import textwrap
from dataclasses import replace
from typing import Any

import numpy as np

from eccaht.base.arrays import Array
from eccaht.base.clock import PLAIN, Clock
from eccaht.base.presentation.text import columns, confident, counted
from eccaht.plants.incident.answer import UNKNOWN, Answer, Incident, Interval, Suspect
from eccaht.plants.incident.search import Argument, Finding, Search
from eccaht.plants.incident.search_cautions import failed_caution
from eccaht.plants.model.gaps import Culprit
from eccaht.plants.model.model import Model
from eccaht.plants.replay import ALIKE
from eccaht.streams import Problem
from eccaht.streams.run.evidence import EMPTY, Change, name_of

_OTHERS = 4  # sensors shown below the named ones
_PARTS = 3  # weights that a line names
_WIDTH = 100
_ADVICE = {
    "stopped": "measure on (another --stopping)",
    "data_ended": "give more data, or take more from each window (--per-window, --vectors)",
    "max_measurements": "allow more measurements",
    "unfinished": "let the search go on",
}
_HOW = {
    "exact": "exact: every possible set was weighed",
    "estimated": "estimated from a population of sets",
    "unsettled": "not known: independent samples of sets, or searches, disagree",
}


def answer_of_search(search: Search, model: Model, clock: Clock = PLAIN) -> Answer:
    """The answer of a search: one incident with its named sensors, which is not dated; none if no sensor is named."""
    finding, undated = search.finding, np.datetime64("NaT", "us")
    scales = dict(zip(model.names, model.scale.tolist(), strict=True))
    incident = Incident(
        began=undated,
        began_interval=(undated, undated),
        ended=None,
        changed=False,
        sensors=(*map(_not_searched, search.failed), *(_suspect(search, k, scales) for k in finding.ranked)),
        evidence=math.nan,
        confidence=search.confidence,
        sure=search.sure,
        rankings={},
        starts=np.empty(0, dtype="datetime64[us]"),
        evidence_course=np.empty(0),
    )
    found = bool(incident.named)
    failed = [failed_caution(sensor, clock) for sensor in search.failed]
    misfit = [] if finding.fits else [_misfit(finding.fit)]
    return Answer(
        verdict="wrong" if found else "nothing" if search.sure else "undecided",
        incidents=(incident,) if found else (),
        looked_at=incident if found else replace(incident, confidence=None, sure=False),
        first=finding.first,
        last=finding.last,
        n_windows=finding.n_windows,
        evidence=math.nan,
        alpha=search.alpha,
        every=math.nan,
        quiet=search.confidence if search.sure and not found else None,
        doubts=() if found or search.sure else (_sureness(search).removeprefix("CAUTION: "),),
        cautions=(*failed, *finding.cautions, *misfit),
        search=search,
    )


def _suspect(search: Search, k: int, scales: dict[str, float]) -> Suspect:
    finding, problem, name = search.finding, search.problem, name_of(search.problem, k)
    failed = {culprit.sensor: culprit for culprit in finding.culprits}.get(name)
    shifted, size = k in finding.anomalies, [math.nan] * 3
    if shifted:
        place = int(np.searchsorted(finding.anomalies, k))
        size = [float(column[place]) for column in finding.shifts[:3]]
    raw = [scales[name] * value for value in size]
    return Suspect(
        sensor=name,
        named=shifted or failed is not None,
        belief=float(finding.beliefs[k]),
        evidence=math.nan,
        needed=math.nan,
        kind="shifted" if shifted or failed is None else failed.kind,
        size=size[0],
        size_raw=raw[0],
        size_raw_interval=Interval(*raw[1:]),
        reason=UNKNOWN,
        began=None if failed is None else failed.since,
        size_interval=Interval(*size[1:]),
        score=float(finding.scores[k]),
        shift=float(problem.shift[k]),
        shift_spread=float(problem.shift_spread[k]),
    )


def _not_searched(culprit: Culprit) -> Suspect:
    """A sensor that stopped or fell silent before the search."""
    name, kind, since = culprit
    nan = math.nan
    return Suspect(name, True, nan, nan, nan, kind, nan, nan, Interval(nan, nan), UNKNOWN, since)


# -- words ---------------------------------------------------------------------------------------------


def search_lines(answer: Answer, clock: Clock = PLAIN) -> list[str]:
    """The question, a table, the verdict, how confident it is, the runner-up, and what speaks most for each sensor."""
    search = _search_of(answer)
    short = _short_windows(search.finding)
    texts = [search_headline(answer, clock), *(f"CAUTION: {text}" for text in answer.cautions)]
    texts += [f"Note: {short}." if short else "", _sureness(search), _runner_up(search), _doubted(search)]
    texts += search_reasons(search, clock).values()
    wrap = textwrap.TextWrapper(_WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    wrapped = [line for text in texts for line in wrap.wrap(text)]
    return [_opening(search, clock), *columns(_table(answer)), *wrapped]


def search_headline(answer: Answer, clock: Clock = PLAIN) -> str:
    search = _search_of(answer)
    finding, until = search.finding, clock.show(search.decided)
    if finding.entries[0].vector is not None:
        spent = f"{counted(finding.n_measurements, 'window')} read whole"
    else:
        spent = f"{counted(finding.n_measurements, 'measurement')} in {counted(finding.n_windows, 'window')}"
    end = {
        "stopped": f"stopped at {until} after {spent}",
        "data_ended": f"the data ended at {until} after {spent}, with no reason to stop before",
        "max_measurements": f"all measurements were used by {until}, {spent}",
        "unfinished": f"so far, at {until} after {spent}",
    }[finding.reason]
    skipped = finding.n_skipped
    passed = f"; {counted(skipped, 'window')} without the sensors asked for" if skipped else ""
    since = f"unchanged since measurement {finding.settled} ({clock.show(finding.settled_time)})"
    failed = (f"{name} ({kind})" for name, kind, _ in (*search.failed, *finding.culprits))
    names = ", ".join(dict.fromkeys([*failed, *finding.names]))
    what = f"Named {names}" if names else "Nothing is wrong" if search.sure else "Undecided, no sensor is named"
    return f"{what}: {end}{passed}. This is {since}."


def search_reasons(search: Search, clock: Clock = PLAIN) -> dict[str, str]:
    """Why each sensor was named by the search, by sensor: the measurement that speaks most for it."""
    return {name_of(search.problem, each.change.out): _why(search, each, clock) for each in search.arguments()}


def _search_of(answer: Answer) -> Search:
    assert answer.search is not None
    return answer.search


def _opening(search: Search, clock: Clock) -> str:
    problem = search.problem
    least, most = problem.sizes
    which = f"{least} to {most}" if least != most else "one" if most == 1 else f"{most}"
    kinds = {_assumed(problem, k) for k in range(problem.size)}
    if len(kinds) == 1:
        size = f"{kinds.pop()} robust units"
    elif problem.unknown_shift:
        size = "unknown sizes" if problem.shift_spread.all() else "known or unknown sizes"
    else:
        size = f"{problem.shift.min():+g} to {problem.shift.max():+g} robust units"
    windows = f"windows of {clock.length(search.seconds)} from {clock.show(search.finding.first)}{clock.said}"
    verb = "is" if most == 1 else "are"
    return f"Which {which} of {problem.size} sensors {verb} shifted by {size}? {search.policy}, {windows}"


def _table(answer: Answer) -> list[list[str]]:
    """Header and rows: the sensors that the search named by evidence, then the next ones."""
    search = _search_of(answer)
    n, searched = len(search.finding.anomalies), answer.sensors[len(search.failed) :]
    rows = [["", "sensor", "belief", search.scores, "assumed", "estimated (95 %)", "in raw units (95 %)"]]
    for rank, (k, suspect) in enumerate(zip(search.finding.ranked[: n + _OTHERS], searched, strict=False), 1):
        cells = [suspect.sensor, f"{suspect.belief:.3f}", f"{suspect.score:+.2f}", _assumed(search.problem, k)]
        cells += [_sized(suspect.size, suspect.size_interval), _sized(suspect.size_raw, suspect.size_raw_interval)]
        rows.append([f"{rank} {'named' if rank <= n else '-'}", *cells])
    return rows


def _sureness(search: Search) -> str:
    """The probability of the set, or where the policy knows none, the exact log-odds against single swaps."""
    finding, rival, confidence = search.finding, search.finding.rival, search.finding.confidence
    other = _changed(search.problem, rival)
    behind = f"best rival {other}, evidence {rival.log_odds:.2f} behind (2.3 more: ten times less likely)"
    advice = f"To settle it, {_ADVICE[finding.reason]}."
    if confidence is None:
        if rival.log_odds <= 0:
            return f"CAUTION: by their exact likelihood the readings rather fit the set {other}. {advice}"
        if not search.reached:
            return f"CAUTION: {behind}; error level {search.alpha:g} asks for {search.threshold:.2f}. {advice}"
        return f"This policy knows no probability of the set; {behind} ({search.threshold:.2f} needed)."
    if confidence.how == "unsettled":
        return f"CAUTION: the confidence is {_HOW['unsettled']}; {behind}. {advice}"
    stated = f"{confident(confidence.probability)} ({_HOW[confidence.how]})"
    if not finding.holds:
        by = "its own history refutes" if finding.refuted else "the readings refute"
        return f"Confidence: {stated} only if the model held, which {by}; {behind}."
    if search.reached:
        return f"Confidence: {stated}; {behind}."
    asked = f"error level {search.alpha:g} asks for {confident(1.0 - search.alpha)}"
    return f"CAUTION: the confidence is only {stated}; {asked}; {behind}. {advice}"


def _changed(problem: Problem, change: Change) -> str:
    out, into = name_of(problem, change.out), name_of(problem, change.into)
    if change.out == EMPTY:
        return f"with {into} added"
    return f"without {out}" if change.into == EMPTY else f"with {into} in place of {out}"


def _runner_up(search: Search) -> str:
    finding, problem = search.finding, search.problem
    name = name_of(problem, finding.runner_up)
    if not finding.names:
        return f"Most suspect: {name}, with a belief of {finding.beliefs[finding.runner_up]:.3f}."
    weakest = finding.anomalies[finding.scores[finding.anomalies].argmin()]
    return (
        f"Runner-up: {name}, whose {search.scores} is {finding.margin:.2f} below that of "
        f"{name_of(problem, int(weakest))}, the weakest named sensor."
    )


def _doubted(search: Search) -> str:
    """Named sensors that are more likely normal: possible where the number of anomalies was given."""
    least, most = search.problem.sizes
    doubted = [k for k in search.finding.anomalies if search.finding.beliefs[k] < 0.5]
    if not doubted or least != most:
        return ""
    names = ", ".join(f"{name_of(search.problem, k)} ({search.finding.beliefs[k]:.3f})" for k in doubted)
    perhaps = "no sensor is wrong" if most == 1 else f"fewer than {most} sensors are wrong"
    return f"CAUTION: low belief in {names}: perhaps {perhaps} (--anomalies 0-{most})."


def _why(search: Search, argument: Argument, clock: Clock) -> str:
    change, name = argument.change, name_of(search.problem, argument.change.out)
    instead = "without it" if change.into == EMPTY else f"with {name_of(search.problem, change.into)} instead"
    return (
        f"Why {name}: at {clock.show(argument.entry.time)} {_weights(search.problem, argument.weights)} read "
        f"{argument.reading:+.2f} (noise {argument.noise:.2f}); expected {argument.expected:+.2f} with {name} in "
        f"the set, {argument.expected_otherwise:+.2f} {instead}. Evidence {argument.evidence:+.2f}."
    )


def _misfit(fit: float) -> str:
    """The caution if the readings cannot come from the named set."""
    chance = f"{fit:.0e}" if fit > 1e-99 else "below 1e-99"
    return (
        f"the readings fit no set well, not even this one (the probability of readings as bad is {chance}): the shifts "
        "may be of another size (--shift unknown:SCALE), more sensors wrong than you allow, or the history no longer "
        "what is normal."
    )


def _short_windows(finding: Finding) -> str:
    """How many windows had so few rows that they are noisier than usual, "" if none."""
    short = {entry.window: entry.inflation for entry in finding.entries if entry.inflation > ALIKE}
    texts = []
    if short:
        count = len({entry.window for entry in finding.entries})
        texts.append(
            f"{len(short)} of {count} windows had fewer rows than usual and count for less: their noise variance is up "
            f"to {max(short.values()):.3g} times the usual"
        )
    if finding.n_short:
        texts.append(
            f"{finding.n_short} windows had too few rows for this policy, which cannot weigh them, and do not count"
        )
    return "; ".join(texts)


def _assumed(problem: Problem, k: int) -> str:
    """The shift as it was given, in words: known, or unknown with its likely size."""
    mean, spread = problem.shift[k], problem.shift_spread[k]
    if not spread:
        return f"{mean:+g}"
    return f"about {mean:+g}" if mean else f"about +/-{spread:g}"


def _sized(value: float, interval: Interval) -> str:
    """A value with its interval, or nothing.

    >>> _sized(1.0, Interval(0.5, 1.5)), _sized(math.nan, Interval(0.5, 1.5))
    ('+1 (+0.5 to +1.5)', '')
    """
    shown = f"{value:+.3g} ({interval.low:+.3g} to {interval.high:+.3g})"
    return shown if math.isfinite(value + interval.low + interval.high) else ""


def _weights(problem: Problem, c: Array) -> str:
    """The largest weights in words.

    >>> _weights(Problem([[1.0, 0.0], [0.0, 1.0]], shift=1.0, n_anomalies=1, budget=1.0), np.array([0.5, -0.25]))
    '0.50 x 0 - 0.25 x 1'
    """
    order = np.argsort(-np.abs(c), kind="stable")
    order = order[c[order] != 0.0]
    text = " ".join(f"{'-' if c[k] < 0 else '+'} {abs(c[k]):.2f} x {name_of(problem, int(k))}" for k in order[:_PARTS])
    more = len(order) - _PARTS
    return text.removeprefix("+ ") + (f" and {counted(more, 'smaller weight')}" if more > 0 else "")


# -- for programs --------------------------------------------------------------------------------------


def search_document(search: Search, clock: Clock = PLAIN) -> dict[str, Any]:
    """What only a search has, for programs."""
    finding, problem, rival = search.finding, search.problem, search.finding.rival
    return {
        "policy": search.policy,
        "budget": problem.budget,
        "settled": search.sure,
        "confidence": None if finding.confidence is None else finding.confidence._asdict(),
        "fits": finding.fits,
        "fit": finding.fit,
        "model_verdict": None if finding.diagnosis is None else finding.diagnosis.brief(),
        "runner_up": {
            "sensor": name_of(problem, finding.runner_up),
            "margin": finding.margin if math.isfinite(finding.margin) else None,
        },
        "best_rival": {
            "without": name_of(problem, rival.out) or None,
            "with": name_of(problem, rival.into) or None,
            "log_odds": rival.log_odds,
            "threshold": search.threshold if finding.confidence is None else None,
        },
        "reason": finding.reason,
        "measurements": finding.n_measurements,
        "windows_skipped": finding.n_skipped,
        "windows_too_short": finding.n_short,
        "largest_inflation": max(entry.inflation for entry in finding.entries),
        "decided": clock.exact(search.decided),
        "same_set_since": {"measurement": finding.settled, "window": clock.exact(finding.settled_time)},
        "why": [_argument(search, argument, clock) for argument in search.arguments()],
    }


def _argument(search: Search, argument: Argument, clock: Clock) -> dict[str, Any]:
    c, problem = argument.weights, search.problem
    return {
        "sensor": name_of(problem, argument.change.out) or None,
        "instead": name_of(problem, argument.change.into) or None,
        "measurement": argument.entry.number,
        "window": clock.exact(argument.entry.time),
        "weights": {name_of(problem, i): float(c[i]) for i in np.flatnonzero(c).tolist()},
        "reading": argument.reading,
        "noise": argument.noise,
        "expected": argument.expected,
        "expected_if_swapped": argument.expected_otherwise,
        "evidence": argument.evidence,
    }
