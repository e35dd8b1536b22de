"""What to keep in mind beside the result of a search, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from eccaht.base.clock import Clock
from eccaht.plants.explain.signs import OtherSigns
from eccaht.plants.model.standstill import Culprit
from eccaht.plants.replay import ALIKE, Replay
from eccaht.streams.problem import Problem
from eccaht.streams.run.evidence import name_of

if TYPE_CHECKING:
    from eccaht.plants.explain.finding import Finding


def data_cautions(problem: Problem, replay: Replay, others: OtherSigns | None) -> Iterator[str]:
    """What the windows show without a search: a frozen record, sensors that stopped, shifts of the other sign."""
    if replay.repeated:
        yield _frozen(replay.repeated, replay.clock)
    for culprit in replay.culprits:
        yield failed_caution(culprit, replay.clock)
    if others is not None:
        yield _sign(problem, others)


def failed_caution(culprit: Culprit, clock: Clock) -> str:
    """A sensor that stopped moving or fell silent, and was not searched."""
    return (
        f"{culprit.text(clock)}, longer than ever in the history. It is named without a search; the confidence is "
        "about the other sensors."
    )


def misfit_caution(fit: float) -> str:
    """The caution if the readings cannot come from the named set."""
    chance = f"{fit:.0e}" if fit > 1e-99 else "below 1e-99"
    return (
        f"the readings fit no set well, not even this one (the probability of readings as bad is {chance}): the shifts "
        "may be of another size (--shift unknown:SCALE), more sensors wrong than you allow, or the history no longer "
        "what is normal."
    )


def short_windows(finding: Finding) -> str:
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


def _frozen(repeated: Sequence[np.datetime64], clock: Clock) -> str:
    one = len(repeated) == 1
    when = f"at {clock.show(repeated[0])}" if one else f"from {clock.show(repeated[0])} to {clock.show(repeated[-1])}"
    what = "a window repeats" if one else f"{len(repeated)} windows repeat"
    return (
        f"{what} the one before in every sensor ({when}), as when a historian has frozen. Repetitions do not count as "
        "evidence."
    )


def _sign(problem: Problem, others: OtherSigns) -> str:
    turned = problem.shift[others.turned]
    names = ", ".join(name_of(problem, k) for k in others.turned)
    size = float(np.median(np.abs(turned)))
    way = f"--shift unknown:{size:g}"
    if others.turned.size == others.members.size and abs(np.sign(turned).sum()) == turned.size:
        way = f"--shift {'-' if turned[0] > 0 else ''}{size:g} or {way}"
    return (
        f"the readings prefer shifts of the other sign in {names} (log-odds {others.log_odds:.1f} over any set of the "
        f"assumed sign): try {way}."
    )
