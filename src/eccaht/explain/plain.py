"""What is plain from the data beside the search, in words: cautions that come with a finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from eccaht.data.clock import Clock
from eccaht.explain.signs import OtherSigns
from eccaht.model.standstill import Culprit
from eccaht.problem import Problem
from eccaht.run.recorders import LedgerEntry
from eccaht.run.replay import Replay


def plain_cautions(problem: Problem, replay: Replay, others: OtherSigns | None) -> Iterator[str]:
    """About the record as a whole, single sensors, and the sign that was assumed."""
    if replay.repeated:
        yield _frozen(replay.repeated, replay.clock)
    for culprit in replay.culprits:
        yield culprit_caution(culprit, replay.clock)
    if others is not None:
        yield _sign(problem, others)


def culprit_caution(culprit: Culprit, clock: Clock) -> str:
    """A sensor that needs no search."""
    return (
        f"{culprit.told(clock)}, longer than ever in the history. It is named apart; the confidence is about the other "
        "sensors."
    )


def misfit_caution(fit: float) -> str:
    """Readings that the named set cannot have made."""
    chance = f"{fit:.0e}" if fit > 1e-99 else "below 1e-99"
    return (
        f"the readings fit no set well, not even this one (the probability of readings as bad is {chance}): the shifts "
        "may be of another size (--shift unknown:SCALE), more sensors wrong than you allow, or the history no longer "
        "what is normal."
    )


def short_windows(entries: Sequence[LedgerEntry], passed_over: int, alike: float) -> str:
    """How many windows had fewer rows than usual, "" if none to speak of."""
    short = {entry.window: entry.inflation for entry in entries if entry.inflation > alike}
    texts = []
    if short:
        count = len({entry.window for entry in entries})
        texts.append(
            f"{len(short)} of {count} windows had fewer rows than usual and count for less: their noise variance is up "
            f"to {max(short.values()):.3g} times the usual"
        )
    if passed_over:
        texts.append(
            f"{passed_over} windows had too few rows for this policy, which cannot weigh them, and do not count"
        )
    return "; ".join(texts)


def _frozen(repeated: Sequence[np.datetime64], clock: Clock) -> str:
    one = len(repeated) == 1
    when = f"at {clock.show(repeated[0])}" if one else f"from {clock.show(repeated[0])} to {clock.show(repeated[-1])}"
    what = "a window repeats" if one else f"{len(repeated)} windows repeat"
    return (
        f"{what} the one before in every sensor ({when}), as when a historian has frozen. Repetitions do not count as "
        "evidence."
    )


def _sign(problem: Problem, others: OtherSigns) -> str:
    turned = others.turned
    names = ", ".join(str(k) if problem.names is None else problem.names[k] for k in turned)
    size = float(np.median(np.abs(problem.shift[turned])))
    sign = "-" if (problem.shift[turned] > 0).all() else "" if (problem.shift[turned] < 0).all() else "+/-"
    way = f"--shift {sign}{size:g} or --shift unknown:{size:g}"
    if others.turned.size < others.members.size or sign == "+/-":
        way = f"--shift unknown:{size:g}"
    return (
        f"the readings prefer shifts of the other sign in {names} (log-odds {others.log_odds:.1f} over any set of the "
        f"assumed sign): try {way}."
    )
