"""What every posterior over sets must do, whatever it is made of: compared with all sets on small problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from operator import methodcaller
from unittest import SkipTest

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.base.codec import restore, state_of
from eccaht.checks.suite import CheckFailure, by_name, require, require_equal, run_all
from eccaht.streams import (
    Confidence,
    Enumeration,
    Likelihood,
    Posterior,
    Problem,
    SetPrior,
    SufficientStatistics,
    UnknownShift,
    families,
    likelihood_of,
    neighbourhood,
)
from eccaht.streams.policies.parts import check_able

Build = Callable[[Likelihood, SetPrior, np.random.Generator], Posterior]

_K, _SEEDS = 12, 8
_ROUNDING = 1e-9  # of what is called exact
_ESTIMATED, _CAUTIOUS = 0.1, 0.3  # of estimates, on average over seeds; a confidence may be so much too low
_PLAIN = 0.2  # a MAP set of at least this probability must be among the candidates


def check_posterior(build: Build, *, skip: Mapping[str, str] | None = None) -> dict[str, str]:
    """Check a posterior: build(likelihood, prior, rng) makes it, as for make_policy("joint", posterior=build).

    On problems whose sets can all be enumerated: marginals, confidence and advantage (what is called "exact" to
    rounding, what is called "estimated" to 0.1 on average over seeds; a confidence may be lower), the MAP set among the
    candidates, hypotheses that add up to 1 and differ, the same answers from the same seed, and a saved state that goes
    on bit for bit. skip: checks to leave out, by name, with the reason.

    >>> check_posterior(Enumeration)
    {}
    """
    reasons = {world.name: _cannot(build, world) for world in _worlds()}
    left_out = {name: reason for name, reason in reasons.items() if reason is not None}
    trials = [_Trial(build, world) for world in _worlds() if world.name not in left_out]
    return left_out | run_all(_CHECKS, skip, trials)


@dataclass(frozen=True)
class _World:
    """A problem and its readings, each of which adds itself to the statistics."""

    name: str
    problem: Problem
    readings: tuple[Callable[[SufficientStatistics], None], ...]
    whole: bool  # are they whole vectors?

    @property
    def prior(self) -> SetPrior:
        return SetPrior(_K, *self.problem.sizes)


def _worlds() -> Iterator[_World]:
    """Small problems of every kind; few readings leave much in doubt, many leave little."""
    known = Problem(families.toeplitz(_K, rho=0.6), shift=2.0, n_anomalies=2, budget=3.0)
    yield _world("few readings", known, 3, seed=1)
    yield _world("many readings", known, 20, seed=2)
    yield _world("open number", known.replace(n_anomalies=(0, 3)), 8, seed=3)
    yield _world("unknown shifts", known.replace(shift=UnknownShift(3.0)), 12, seed=4)
    yield _world("whole vectors", known.replace(n_anomalies=(0, 3)), 2, seed=5, whole=True)


def _world(name: str, problem: Problem, count: int, *, seed: int, whole: bool = False) -> _World:
    rng = np.random.default_rng(seed)
    moved = problem.mean.copy()
    moved[[2, 7]] += 2.0
    readings: list[Callable[[SufficientStatistics], None]] = []
    for _ in range(count):
        if whole:
            readings.append(methodcaller("add_vector", moved + problem.covariance.sample(rng, 1)[0]))
        else:
            c = problem.covariance.solve(rng.standard_normal(_K))  # cancels common noise
            noise = np.sqrt(problem.noise_variance(c)) * rng.standard_normal()
            readings.append(methodcaller("add", c, float(c @ moved + noise)))
    return _World(name, problem, tuple(readings), whole)


def _cannot(build: Build, world: _World) -> str | None:
    """Why a posterior leaves this world out, as it declares."""
    require(callable(build), f"build must be a function of (likelihood, prior, rng), not {build!r}")
    can = _Run(build, world, 0).posterior.can
    try:
        check_able(can, world.problem, "it declares that it")
    except ValueError as error:
        return str(error)
    return "it declares that it takes no whole vectors" if world.whole and not can.whole_vectors else None


class _Run:
    """A posterior that is given the readings of a world."""

    def __init__(self, build: Build, world: _World, seed: int, n_given: int = 0) -> None:
        self.world, self.rng, self.n_given = world, np.random.default_rng(seed), n_given
        evidence = SufficientStatistics(world.problem)
        for add in world.readings[:n_given]:
            add(evidence)
        self.likelihood = likelihood_of(evidence)
        self.posterior = build(self.likelihood, world.prior, self.rng)

    def tell(self, count: int | None = None) -> _Run:
        """The next so many readings, or all."""
        for add in self.world.readings[self.n_given :][:count]:
            add(self.likelihood.evidence)
            self.posterior.update()
            self.n_given += 1
        return self

    def answers(self) -> dict[str, Array]:
        """All that it says of its best set and the rivals of that."""
        candidates = self.posterior.candidates()
        answers = {"candidates": candidates.astype(float)}
        if self.posterior.can.posterior:
            around = neighbourhood(self.likelihood, self.world.prior, candidates[0])
            confidence = self.posterior.confidence(around)
            answers["confidence"] = np.array(0.0 if confidence is None else confidence.probability)
            answers["marginals"] = np.asarray(self.posterior.marginals(), dtype=float)
            answers["advantage"] = np.array(self.posterior.advantage(around))
            found = self.posterior.in_doubt(around)
            answers |= {f"in_doubt.{name}": np.asarray(part) for name, part in found._asdict().items()}
        return answers


class _Trial:
    """A world, one posterior a seed that was given all its readings, and the truth by enumeration of all sets."""

    def __init__(self, build: Build, world: _World) -> None:
        self.build, self.world, self.where = build, world, f"on the problem {world.name!r}"
        truth = _Run(Enumeration, world, 0, n_given=len(world.readings))
        truth.posterior.update()
        self.exact = truth.posterior
        self.around = neighbourhood(truth.likelihood, world.prior, self.exact.candidates()[0])
        self.probability = _confidence(self.exact.confidence(self.around), self.where).probability

    @cached_property
    def runs(self) -> list[_Run]:
        return [_Run(self.build, self.world, seed).tell() for seed in range(_SEEDS)]


def _candidates(trials: list[_Trial]) -> None:
    """They are possible sets, and a MAP set that is plain is among them."""
    for trial in trials:
        prior = trial.world.prior
        for run in trial.runs:
            sets = _possible(prior, run.posterior.candidates(), f"the candidates {trial.where}")
            there = bool((prior.keys(sets) == prior.keys(trial.around.members[None])).any())
            missing = f"the MAP set, of probability {trial.probability:.2g}, is not among the candidates {trial.where}"
            require(there or trial.probability < _PLAIN, missing)


def _probabilities(trials: list[_Trial]) -> None:
    """Marginals, confidence and advantage against all sets."""
    for trial in _probable(trials):
        where, around, right = trial.where, trial.around, trial.probability
        given = [_confidence(run.posterior.confidence(around), where) for run in trial.runs]
        how = "exact" if all(confidence.how == "exact" for confidence in given) else "estimated"
        reach, cautious = (_ROUNDING, _ROUNDING) if how == "exact" else (_ESTIMATED, _CAUTIOUS)
        marginals = np.array([run.posterior.marginals() for run in trial.runs], dtype=float)
        require(marginals.shape == (_SEEDS, _K), f"marginals() must be {_K} numbers {where}")
        error = np.abs(marginals.mean(axis=0) - trial.exact.marginals())
        wrong = f"{how} marginals {where} are off by {error.max():.2g} (stream {error.argmax()}), allowed is {reach:g}"
        require(error.max() <= reach, wrong)
        claimed = [confidence.probability for confidence in given if confidence.how != "unsettled"]
        mean = float(np.mean(claimed)) if claimed else right
        wrong = f"the {how} confidence {where} is {mean:.4g}, but of all sets the probability is {right:.4g}"
        require(right - cautious <= mean <= right + reach, wrong)
        lead, most = trial.exact.advantage(around), max(run.posterior.advantage(around) for run in trial.runs)
        wrong = f"the advantage {where} is {most:.6g}, although the best rival leaves {lead:.6g}"
        require(most <= max(lead, 0.0) + 1e-6, wrong)


def _confidence(found: Confidence | None, where: str) -> Confidence:
    if not isinstance(found, Confidence) or found.how not in ("exact", "estimated", "unsettled"):
        raise CheckFailure(f"confidence() must be a Confidence, exact, estimated or unsettled, {where}, not {found!r}")
    possible = -_ROUNDING <= found.probability <= 1.0 + _ROUNDING
    require(possible, f"the confidence {where} is {found.probability}, which is no probability")
    return found


def _hypotheses(trials: list[_Trial]) -> None:
    """Those in doubt are possible sets whose probabilities add up to 1, and some differ."""
    for trial in _probable(trials):
        where, prior = trial.where, trial.world.prior
        for run in trial.runs:
            found = run.posterior.in_doubt(trial.around)
            total = float(found.chance.sum())
            proper = abs(total - 1.0) <= 1e-6 and (found.chance >= 0.0).all()
            require(proper, f"the probabilities of in_doubt add up to {total:.6g} {where}, not to 1, or are negative")
            sets = _possible(prior, np.column_stack([found.rest[found.row], found.stream]), f"in_doubt {where}")
            require(len(prior.distinct(sets)[0]) > 1, f"in_doubt leaves one set {where}: there is nothing to separate")
            empty = found.shift[found.stream == prior.n_streams]
            require(not empty.any(), f"in_doubt has shifts of EMPTY slots {where}")


def _probable(trials: list[_Trial]) -> list[_Trial]:
    found = [trial for trial in trials if trial.runs[0].posterior.can.posterior]
    if not found:
        raise SkipTest("it declares no posterior")
    return found


def _possible(prior: SetPrior, rows: Index, what: str) -> Index:
    whole = isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.size and np.issubdtype(rows.dtype, np.integer)
    require(whole, f"{what} must be a table of whole numbers, one set a row, not {rows!r:.80}")
    try:
        prior.check(rows)
    except ValueError as error:
        raise CheckFailure(f"{what}: {error}") from None
    return rows


def _same_seed(trials: list[_Trial]) -> None:
    """The same seed gives the same answers, bit for bit."""
    for trial in trials:
        again = _Run(trial.build, trial.world, 0).tell()
        first = _Run(trial.build, trial.world, 0).tell()
        _require_same(again, first, f"two posteriors of the same seed differ {trial.where}")


def _saving(trials: list[_Trial]) -> None:
    """After half of the readings, a state that is kept and goes on."""
    for trial in trials:
        half = len(trial.world.readings) // 2
        first = _Run(trial.build, trial.world, 4).tell(half)
        second = _Run(trial.build, trial.world, 4, n_given=half)
        prior, evidence = trial.world.prior, first.likelihood.evidence
        sizes = {"K": prior.n_streams, "n": prior.most, "t": evidence.n_readings}
        restore(second.posterior, deepcopy(state_of(first.posterior)), sizes)
        second.rng.bit_generator.state = first.rng.bit_generator.state
        _require_same(second.tell(), first.tell(), f"a restored posterior goes on differently {trial.where}")


def _require_same(found: _Run, expected: _Run, message: str) -> None:
    answers = found.answers()
    for name, answer in expected.answers().items():
        require_equal(answers[name], answer, f"{message}: {name}")


_CHECKS = by_name(_candidates, _probabilities, _hypotheses, _same_seed, _saving)
