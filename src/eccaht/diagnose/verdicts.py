"""What a check answers, and how numbers become verdicts and words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from eccaht.arrays import Array

Verdict = Literal["ok", "caution", "not fit"]
VERDICTS: tuple[Verdict, ...] = ("ok", "caution", "not fit")  # from good to bad
ALPHA = 0.05  # the promise that examples are worked out for
EXCLUDED = 12  # sensors that a suggested option leaves out at most
NAMED = 6  # sensors that a sentence names; all are in `sensors`


@dataclass(frozen=True)
class Check:
    """One question about a model.

    number: what was computed, None where the model cannot tell; shown: the same with its unit, for eyes.
    limits: where the verdict changes. meaning: what the number says. action: what to do, "" if nothing.
    sensors: whom it concerns, worst first.
    factor: variance of the evidence over what a search believes it to be, 1 where the check says nothing about that.
    """

    name: str
    number: float | None
    shown: str
    verdict: Verdict
    limits: str
    meaning: str
    action: str = ""
    sensors: tuple[str, ...] = ()
    factor: float = 1.0


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on the whole: the worst of its parts.

    >>> worst(["ok", "not fit", "caution"])
    'not fit'
    """
    return max(verdicts, key=VERDICTS.index, default="ok")


def grade(number: float, caution: float, not_fit: float) -> Verdict:
    """Judge a number that is bad when large (caution < not_fit) or bad when small (caution > not_fit).

    >>> grade(2.0, caution=1.3, not_fit=3.0), grade(2.0, caution=10.0, not_fit=3.0)
    ('caution', 'not fit')
    """
    sign = 1.0 if not_fit > caution else -1.0
    if sign * number > sign * not_fit:
        return "not fit"
    return "caution" if sign * number > sign * caution else "ok"


def broken_promise(factor: float, alpha: float = ALPHA) -> float:
    """The error of a rule that promises alpha, when its evidence has `factor` times the variance that it believes.

    A wrong hypothesis gains evidence with drift -I and variance 2 I a measurement, and ever reaches log(1/alpha) with
    probability alpha. With variance 2 I f a random walk reaches it with probability alpha^(1/f). Noise that has f times
    the variance calibrated does this, and so do windows that are worth only 1/f of an independent one. This counts one
    rival; with many the error is larger.

    >>> round(broken_promise(2.0), 3)
    0.224
    """
    return float(alpha ** (1.0 / max(factor, 1.0)))


def percent(share: float) -> str:
    """A share in words.

    >>> percent(0.0), percent(0.0004), percent(0.123), percent(1.0)
    ('0 %', '0.04 %', '12 %', '100 %')
    """
    x = 100.0 * share
    return f"{x:.0f} %" if x == 0.0 or x >= 9.5 else f"{x:.1g} %"


def culprits(names: Sequence[str], badness: Array, limit: float) -> tuple[str, ...]:
    """The sensors whose badness exceeds the limit, worst first."""
    order = np.argsort(-badness, kind="stable")
    return tuple(names[k] for k in order if badness[k] > limit)


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are.

    >>> listed(["a", "b"]), listed(list("abcdefgh"))
    ('a, b', 'a, b, c, d, e, f and 2 more')
    """
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown


def excluding(names: Sequence[str]) -> str:
    """The option of `eccaht calibrate` that leaves these sensors out, at most a dozen.

    >>> excluding(["a", "b c"])
    "`--exclude 'a,b c'`"
    """
    return f"`--exclude {shlex.quote(','.join(names[:EXCLUDED]))}`"


def advice(tried: Mapping[str, str], *others: str, untried: str = "") -> str:
    """What to do: options that were tried and help, what needs no trying, and what the model cannot try.

    >>> advice({"leave it out": "`--exclude a`", "smooth": ""}, untried="give another history")
    'Leave it out (`--exclude a`). Not tried, because the model alone cannot tell: give another history.'
    """
    ways = [f"{what} ({option})" for what, option in tried.items() if option]
    text = ", or ".join([*ways, *others])
    text = f"{text[:1].upper()}{text[1:]}." if text else ""
    if untried:
        text += f" Not tried, because the model alone cannot tell: {untried}."
    return text.strip()
