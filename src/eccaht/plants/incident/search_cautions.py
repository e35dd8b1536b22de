"""What windows show beside the result of a search: a frozen record, sensors that stopped, shifts of the other sign."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.base.clock import Clock
from eccaht.plants.model.gaps import Culprit
from eccaht.plants.replay import Replay
from eccaht.streams import Problem, SetPrior, SufficientStatistics, Window, log_ratio_of_many
from eccaht.streams.run.evidence import name_of

ODDS = math.log(20.0)  # log-odds of free signs over the assumed ones, from which on there is a caution
_LARGEST, _WINDOWS = 200, 20  # sensors and windows that are looked at


def data_cautions(problem: Problem, replay: Replay, decision: Index) -> Iterator[str]:
    """What the windows show without a search: a frozen record, sensors that stopped, shifts of the other sign."""
    if replay.repeated:
        yield _frozen(replay.repeated, replay.clock)
    for culprit in replay.culprits:
        yield failed_caution(culprit, replay.clock)
    others = other_signs(problem, replay.read_from, decision)
    if others is not None:
        yield _sign(problem, others)


def failed_caution(culprit: Culprit, clock: Clock) -> str:
    """A sensor that stopped moving or fell silent, and was not searched."""
    return (
        f"{culprit.text(clock)}, longer than ever in the history. It is named without a search; the confidence is "
        "about the other sensors."
    )


def _frozen(repeated: Sequence[np.datetime64], clock: Clock) -> str:
    one = len(repeated) == 1
    when = f"at {clock.show(repeated[0])}" if one else f"from {clock.show(repeated[0])} to {clock.show(repeated[-1])}"
    what = "a window repeats" if one else f"{len(repeated)} windows repeat"
    return (
        f"{what} the one before in every sensor ({when}), as when a historian has frozen. Repetitions do not count as "
        "evidence."
    )


def _sign(problem: Problem, others: _OtherSigns) -> str:
    turned = problem.shift[others.turned]
    names = ", ".join(name_of(problem, k) for k in others.turned)
    size = float(np.median(np.abs(turned)))
    way = f"--shift unknown:{size:g}"
    if others.turned.size == others.members.size and abs(np.sign(turned).sum()) == turned.size:
        way = f"--shift {'-' if turned[0] > 0 else ''}{size:g} or {way}"
    return (
        f"the readings prefer shifts of the other sign in {names} (evidence {others.log_odds:.1f} over any set of the "
        f"assumed sign): try {way}."
    )


class _OtherSigns(NamedTuple):
    """The most likely set if every sign is free, those of it that have the other sign, and its log-odds."""

    members: Index
    turned: Index
    log_odds: float


def other_signs(problem: Problem, windows: Sequence[Window], decision: Index) -> _OtherSigns | None:
    """The best set with free signs, if it beats every set with the assumed ones, and the empty set, by ODDS; else None.

    All sensors of the windows are looked at, not only the weighted sums of them that a search has read: these were
    chosen to separate sets of the assumed sign. At most 20 windows are used; above 200 sensors there is no check.
    Before the readings either sign is as likely as the other, so each member of the free set costs log 2. Shifts of
    unknown size are taken at their prior mean; where both signs are allowed already the answer is None.
    """
    if not problem.shift.all() or problem.size > _LARGEST:
        return None
    spread = np.linspace(0, len(windows) - 1, min(len(windows), _WINDOWS)).round().astype(int)
    evidence = SufficientStatistics(problem.replace(shift=problem.shift))
    for window in (windows[t] for t in spread):
        evidence.add_vector(window.values, None if window.excess is None else window.excess.dense())
    prior = SetPrior(problem.size, *problem.sizes)
    decided = np.isin(np.arange(problem.size), decision).astype(float)
    starts = (np.zeros(problem.size), decided)
    assumed = max(_climb(evidence, prior, start, free=False)[1] for start in starts)
    signs, best = max((_climb(evidence, prior, start, free=True) for start in starts), key=lambda found: found[1])
    nothing = -math.log(prior.most - prior.least + 1)  # the empty set, also where a number was given
    log_odds = best - np.count_nonzero(signs) * math.log(2.0) - max(assumed, nothing)
    turned = np.flatnonzero(signs < 0)
    return _OtherSigns(np.flatnonzero(signs), turned, log_odds) if turned.size and log_odds > ODDS else None


def _climb(evidence: SufficientStatistics, prior: SetPrior, signs: Array, *, free: bool) -> tuple[Array, float]:
    """Signs of every stream (0 if it is no member) that no single change betters, and their log-posterior.

    The log-likelihood of signs s against the empty set is b's - s'G s / 2.
    """
    K = prior.n_streams
    G, b = evidence.rows(np.arange(K))[:, :K], evidence.linear[:K]

    def log_posterior(s: Array) -> float:
        return log_ratio_of_many(s, b, G) + float(prior.log_prior[np.count_nonzero(s)])

    def grown(s: Array) -> Array:
        """With the stream outside it that adds most to the likelihood."""
        field = b - G @ s
        gains = np.where(s != 0.0, -np.inf, (np.abs(field) if free else field) - 0.5 * G.diagonal())
        k = int(gains.argmax())
        return _put(s, k, -1.0 if free and field[k] < 0 else 1.0)

    def changed(s: Array) -> Iterator[Array]:
        """One more member, and every member left out or replaced."""
        n = np.count_nonzero(s)
        if n < prior.most:
            yield grown(s)
        for i in np.flatnonzero(s).tolist():
            rest = _put(s, i, 0.0)
            if n > prior.least:
                yield rest
            yield grown(rest)

    while np.count_nonzero(signs) < prior.least:
        signs = grown(signs)
    while True:
        value, best = log_posterior(signs), max(changed(signs), key=log_posterior)
        if log_posterior(best) <= value + 1e-9 * max(1.0, evidence.misfit):
            return signs, value
        signs = best


def _put(signs: Array, k: int, sign: float) -> Array:
    changed = signs.copy()
    changed[k] = sign
    return changed
