"""Algorithms from elsewhere: anything with ask() and tell(c, y) in the place of a belief and a chooser."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from eccaht.base.arrays import Array, Index, as_floats, frozen
from eccaht.streams.policies.catalogue import Entry
from eccaht.streams.policies.parts import Choice, Parts, View
from eccaht.streams.posterior import Belief, Capabilities, Ranker, Ranking
from eccaht.streams.problem import Problem
from eccaht.streams.stopping import Own

# of ask and tell: one reading at a time, all equally noisy, and no scores of a known meaning
_PLAIN = Capabilities(log_odds=False, batches=False, shared_noise=False)
_MOST_SEED = 2**32  # what every random generator takes


def from_ask_tell(
    build: Callable[..., Any],
    *,
    log_odds: bool = False,
    open_number: bool = False,
    unknown_shift: bool = False,
    order_matters: bool = False,
    constraints: bool = False,
) -> Entry:
    """Make an Entry for `register_policy` of anything that has ask(), which returns K weights, and tell(c, y).

    build(problem, seed) makes the object anew for each run; further arguments of it are options of the policy. The
    object names streams by `decision` (their numbers) or by `scores` (K numbers, of which the n largest count).
    should_stop() is its stopping rule; without it the caller decides when to stop. Attributes may be methods without
    arguments.

    What cannot be seen is declared: log_odds: are its scores log-likelihood ratios? open_number, unknown_shift: does it
    take such problems? order_matters: does relabelling the streams change the search? constraints: does it honour
    other constraints than the L1 budget? It takes no batches, whole vectors or readings that share noise.

    It cannot be saved: a file would not know what the object remembers.

    >>> class InTurn:
    ...     def __init__(self, problem, seed):
    ...         self.sums, self.t = np.zeros(problem.size), 0
    ...     def ask(self):
    ...         return np.eye(len(self.sums))[self.t % len(self.sums)]
    ...     def tell(self, c, y):
    ...         self.sums, self.t = self.sums + c * y, self.t + 1
    ...     @property
    ...     def scores(self):
    ...         return self.sums
    >>> from_ask_tell(InTurn).can.batches
    False
    """
    if not callable(build):
        raise ValueError(
            f"build must be a function of (problem, seed) that makes a new object for each run, not {build!r:.80}"
        )
    can = replace(
        _PLAIN,
        log_odds=log_odds,
        open_number=open_number,
        unknown_shift=unknown_shift,
        order_matters=order_matters,
    )
    summary = (inspect.getdoc(build) or "an algorithm with ask and tell").partition("\n")[0]
    source = f"{getattr(build, '__module__', '?')}.{getattr(build, '__qualname__', type(build).__name__)}"
    return Entry(summary, source, _composing(build, can), can, constraints=constraints)


def _composing(build: Callable[..., Any], can: Capabilities) -> Callable[..., Parts]:
    """The function that an Entry needs; its signature shows the options of `build`."""

    def compose(problem: Problem, *, rng: np.random.Generator, **options: Any) -> Parts:
        outside = AskTell(problem, build(problem, int(rng.integers(_MOST_SEED)), **options), can)
        return Parts(outside, outside, outside.stop)

    try:
        options = list(inspect.signature(build).parameters.values())[2:]
    except (TypeError, ValueError):  # of a class in C
        options = []
    own = [option.replace(kind=option.KEYWORD_ONLY) for option in options if option.kind != option.VAR_KEYWORD]
    plain = [inspect.Parameter("problem", inspect.Parameter.POSITIONAL_ONLY)]
    plain += [inspect.Parameter("rng", inspect.Parameter.KEYWORD_ONLY)]
    compose.__signature__ = inspect.Signature([*plain, *own])  # type: ignore[attr-defined]
    compose.__module__ = getattr(build, "__module__", None) or __name__
    return compose


class AskTell(Belief):
    """An object with ask and tell as the belief and the chooser of a policy."""

    foresees = False

    def __init__(self, problem: Problem, made: Any, can: Capabilities) -> None:
        who = type(made).__name__
        for name in ("ask", "tell"):
            if not callable(getattr(made, name, None)):
                raise ValueError(f"{who} has no {name}(): a policy needs ask() and tell(c, y)")
        if not any(hasattr(made, name) for name in ("decision", "scores")):
            raise ValueError(f"{who} has neither decision nor scores, so it names no streams: add one of them")
        self.problem, self._made, self.can = problem, made, can
        self.stop = Own(self._is_over) if callable(getattr(made, "should_stop", None)) else None
        self._asked: Array | None = None  # what it asked for since the last reading
        self._answer: tuple[Array, Index | None] | None = None  # scores and decision after the last reading

    def choose(self, view: View) -> Choice:  # noqa: ARG002
        return Choice(self._ask())

    def record(self, c: Array) -> None:
        """Nothing to do: `update` has taken the reading already."""

    def _is_over(self, n_readings: int) -> bool:  # noqa: ARG002
        return bool(self._made.should_stop())

    def _ask(self) -> Array:
        if self._asked is None:
            try:
                weights = self.problem.checked_measurement(self._made.ask()).copy()
            except ValueError as error:
                raise ValueError(f"ask() of {type(self._made).__name__}: {error}") from None
            if not self.problem.measurements.allows(weights):
                norm, within = float(np.abs(weights).sum()), self.problem.measurements
                raise ValueError(
                    f"ask() of {type(self._made).__name__} gave weights of |c|_1 = {norm:.6g} that {within!r} does "
                    "not allow: scale them down"
                )
            self._asked = frozen(weights)
        return self._asked

    def update(self, c: Array, y: float) -> None:
        self._made.tell(c.copy(), y)
        self._asked = self._answer = None

    @property
    def scores(self) -> Array:
        return self._current()[0]

    @property
    def beliefs(self) -> Array:
        """Of its own, by its log-odds, or 1 for the streams that it names and 0 for the others; equals share."""
        if (own := _attribute(self._made, "beliefs")) is not None:
            return frozen(self._vector(own, "beliefs"))
        scores, members = self._current()
        if self.can.log_odds:
            return expit(scores)
        if members is not None:
            return np.isin(np.arange(self.problem.size), members).astype(float)
        n = self.problem.sizes[1]
        last = np.partition(scores, -n)[-n]  # those that tie for the last place share it
        above, tied = scores > last, scores == last
        return above + tied * ((n - above.sum()) / tied.sum())

    def ranking(self, rank: Ranker) -> Ranking:
        scores, members = self._current()
        if members is None and self.problem.sizes[0] != self.problem.sizes[1]:
            who = type(self._made).__name__
            raise ValueError(f"{who} has no decision, which it needs where the number of anomalies is open: add it")
        if members is None:
            return rank(scores, self.problem.known_number)
        others = np.delete(np.arange(scores.size), members)
        if not members.size or not others.size:
            return Ranking(members, -1, -1, 0.0)
        weakest, strongest = int(members[scores[members].argmin()]), int(others[scores[others].argmax()])
        return Ranking(members, weakest, strongest, float(scores[weakest] - scores[strongest]))

    def _current(self) -> tuple[Array, Index | None]:
        """Its scores, and its decision if it has one: 1 for the named streams are the scores where it has no others."""
        if self._answer is None:
            scores, named = (_attribute(self._made, name) for name in ("scores", "decision"))
            members = None if named is None else self._members(named)
            if scores is None:
                values = np.zeros(self.problem.size)
                values[[] if members is None else members] = 1.0
            else:
                values = self._vector(scores, "scores")
            self._answer = frozen(values), members
        return self._answer

    def _vector(self, values: Any, what: str) -> Array:
        found = as_floats(values, what).copy()
        if found.shape != (self.problem.size,) or np.isnan(found).any():
            whose = f"{what} of {type(self._made).__name__}"
            raise ValueError(f"{whose} must be {self.problem.size} numbers, not an array of shape {found.shape}")
        return found

    def _members(self, named: Any) -> Index:
        whose, (least, most) = f"decision of {type(self._made).__name__}", self.problem.sizes
        members = np.unique(np.asarray(named)) if np.ndim(named) == 1 else np.empty(0)
        whole = np.ndim(named) == 1 and (not len(named) or np.issubdtype(members.dtype, np.integer))
        if not whole or members.size != len(named) or not ((members >= 0) & (members < self.problem.size)).all():
            raise ValueError(
                f"{whose} must be distinct numbers of streams below {self.problem.size}, not {named!r:.80}"
            )
        if not least <= members.size <= most:
            number = str(least) if least == most else f"{least} to {most}"
            raise ValueError(f"{whose} names {members.size} streams, but {number} are anomalous")
        return members.astype(np.intp)


def _attribute(made: Any, name: str) -> Any:
    """An attribute, or what a method of that name returns; None where there is none."""
    found = getattr(made, name, None)
    return found() if callable(found) else found
