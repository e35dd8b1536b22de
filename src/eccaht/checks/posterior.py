"""What every posterior over sets must do, whatever it is made of: compared with all sets on small problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from operator import methodcaller
from unittest import SkipTest

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.checks.suite import CheckFailure, attempt, by_name, require, require_parts, run_all
from eccaht.streams import (
    Capabilities,
    Confidence,
    Enumeration,
    Hypotheses,
    Likelihood,
    Neighbourhood,
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
_PARTS = ("can", "update", "candidates", "marginals", "in_doubt", "confidence", "advantage", "state", "restore")
_ROUNDING = 1e-9  # of what is called exact
_ESTIMATED, _CAUTIOUS = 0.1, 0.3  # of estimates, on average over seeds; a confidence may be so much too low
_WHOLE, _FLOATS = "iu", "f"  # kinds of numbers
_HOW = ("exact", "estimated", "unsettled")
_PLAIN = 0.2  # a MAP set of at least this probability must be among the candidates


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

    def statistics(self, count: int | None = None) -> SufficientStatistics:
        """Those of the first so many readings, or of all."""
        evidence = SufficientStatistics(self.problem)
        for add in self.readings[:count]:
            add(evidence)
        return evidence


def check_posterior(build: Build, *, skip: Mapping[str, str] | None = None) -> dict[str, str]:
    """Check a posterior: build(likelihood, prior, rng) makes it, as for make_policy("joint", posterior=build).

    On problems whose sets can all be enumerated: marginals, confidence and advantage (what is called "exact" to
    rounding, what is called "estimated" to 0.1 on average over seeds; a confidence may be lower), the MAP set among the
    candidates, hypotheses that add up to 1 and differ, the same answers from the same seed, and a saved state that goes
    on bit for bit. skip: checks to leave out, by name, with the reason. Returns those and what it declares it cannot
    do, with the reason; the first property that does not hold raises a CheckFailure of one line.

    >>> check_posterior(Enumeration)
    {}
    """
    subject = _Subject(build)
    return subject.left_out | run_all(_CHECKS, skip, lambda: (subject,))


class _Subject:
    """A posterior on every problem that it takes, and the reasons for those that it does not."""

    def __init__(self, build: Build) -> None:
        require(callable(build), f"build must be a function of (likelihood, prior, rng), not {build!r}")
        self.build, self.worlds, self.left_out = build, list[_World](), dict[str, str]()
        for world in _worlds():
            reason = attempt(partial(_cannot, build, world), f"build on the problem {world.name!r}")
            if reason:
                self.left_out[world.name] = reason
            else:
                self.worlds.append(world)

    @cached_property
    def trials(self) -> list[tuple[list[_Run], _Truth]]:
        """Of each problem, one posterior a seed that was given all readings, and the truth."""
        seeds = range(_SEEDS)
        return [([_Run(self.build, world, seed).tell() for seed in seeds], _Truth(world)) for world in self.worlds]

    @property
    def probable(self) -> list[tuple[list[_Run], _Truth]]:
        found = [(runs, truth) for runs, truth in self.trials if runs[0].posterior.can.posterior]
        if not found:
            raise SkipTest("it declares no posterior")
        return found


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
    posterior = _Run(build, world, 0).posterior
    require_parts(posterior, _PARTS, "build(likelihood, prior, rng) returned no posterior")
    can = posterior.can
    require(isinstance(can, Capabilities), f"can must be Capabilities, not {can!r}")
    try:
        check_able(can, world.problem, "it declares that it")
    except ValueError as error:
        return str(error)
    return "it declares that it takes no whole vectors" if world.whole and not can.whole_vectors else None


class _Run:
    """A posterior that is given the readings of a world."""

    def __init__(self, build: Build, world: _World, seed: int, n_told: int = 0) -> None:
        self.world, self.rng, self.n_told = world, np.random.default_rng(seed), n_told
        self.likelihood = likelihood_of(world.statistics(n_told))
        self.posterior = build(self.likelihood, world.prior, self.rng)

    def tell(self, count: int | None = None) -> _Run:
        """The next so many readings, or all."""
        for add in self.world.readings[self.n_told :][:count]:
            add(self.likelihood.evidence)
            self.posterior.update()
            self.n_told += 1
        return self

    def answers(self, around: Neighbourhood) -> dict[str, Array]:
        """All that it says of a set and its rivals."""
        posterior, answers = self.posterior, {"candidates": self.posterior.candidates().astype(float)}
        if not posterior.can.posterior:
            return answers
        marginals, confidence, hypotheses = self.marginals(), self.confidence(around), posterior.in_doubt(around)
        answers |= {"marginals": marginals, "confidence": np.array(confidence.probability)}
        answers |= {"advantage": np.array(posterior.advantage(around))}
        return answers | {f"in_doubt.{name}": np.asarray(part) for name, part in hypotheses._asdict().items()}

    def marginals(self) -> Array:
        marginals = self.posterior.marginals()
        if marginals is None:
            raise CheckFailure("marginals are None, although it declares a posterior")
        return marginals

    def confidence(self, around: Neighbourhood) -> Confidence:
        confidence = self.posterior.confidence(around)
        if confidence is None:
            raise CheckFailure("the confidence is None, although it declares a posterior")
        return confidence


class _Truth:
    """All sets with their probabilities, and the neighbourhood of the MAP set."""

    def __init__(self, world: _World) -> None:
        self.where, self.evidence = f"on the problem {world.name!r}", world.statistics()
        likelihood = likelihood_of(self.evidence)
        self.exact = Enumeration(likelihood, world.prior, np.random.default_rng(0))
        self.exact.update()
        self.around = neighbourhood(likelihood, world.prior, self.exact.candidates()[0])
        self.probability = self.exact.confidence(self.around).probability


def _answers(subject: _Subject) -> None:
    """Every answer is of the type and shape that it must have."""
    for (run, *_), truth in subject.trials:
        where, posterior = truth.where, run.posterior
        _require_array(posterior.candidates(), (None, run.world.prior.most), f"candidates() {where}", _WHOLE)
        require(len(posterior.candidates()), f"candidates() {where} must hold a set at least")
        state = posterior.state()
        require(isinstance(state, Mapping), f"state() {where} must be a dict of arrays, not {type(state).__name__!r}")
        for name, array in state.items():
            _require_array(array, None, f"the state {name!r} {where}", _FLOATS)
        if posterior.can.posterior:
            _require_array(run.marginals(), (_K,), f"marginals() {where}", _FLOATS)
            _require_confidence(run.confidence(truth.around), where)
            advantage = posterior.advantage(truth.around)
            number = isinstance(advantage, Real) and not np.isnan(float(advantage))
            require(number, f"advantage() {where} must be a number, not {advantage!r}")
            found = posterior.in_doubt(truth.around)
            right, kind = isinstance(found, Hypotheses), type(found).__name__
            require(right, f"in_doubt() {where} must be Hypotheses, not {kind!r}")
            for name, numbers in (("row", _WHOLE), ("stream", _WHOLE), ("shift", _FLOATS), ("chance", _FLOATS)):
                _require_array(getattr(found, name), (len(found.row),), f"{name} of in_doubt() {where}", numbers)


def _require_array(found: object, shape: tuple[int | None, ...] | None, what: str, kind: str) -> None:
    """Fail unless it is an array of this shape (None: of any length) and kind of numbers."""
    require(isinstance(found, np.ndarray), f"{what} must be an array, not {type(found).__name__!r}")
    array = np.asarray(found)
    numbers = "whole numbers" if kind == _WHOLE else "floats"
    require(array.dtype.kind in kind, f"{what} must hold {numbers}, not {array.dtype}")
    if shape is not None:
        pairs = zip(shape, array.shape, strict=False)
        fits = array.ndim == len(shape) and all(want in (None, have) for want, have in pairs)
        wanted = " x ".join("any" if want is None else str(want) for want in shape)
        require(fits, f"{what} must be of {wanted} numbers, not of the shape {array.shape}")


def _require_confidence(found: Confidence, where: str) -> None:
    good = isinstance(found, Confidence) and isinstance(found.probability, Real)
    require(good, f"confidence() {where} must be a Confidence, not {found!r}")
    require(found.how in _HOW, f"confidence() {where} is {found.how!r}: it must be one of {', '.join(_HOW)}")
    require(-_ROUNDING <= found.probability <= 1.0 + _ROUNDING, f"confidence() {where} is {found.probability}")


def _candidates(subject: _Subject) -> None:
    """They are possible sets, and a MAP set that is plain is among them."""
    for runs, truth in subject.trials:
        for run in runs:
            prior = run.world.prior
            sets = _possible(prior, run.posterior.candidates(), f"the candidates {truth.where}")
            there = bool((prior.keys(sets) == prior.keys(truth.around.members[None])).any())
            lacking = f"the MAP set, of probability {truth.probability:.2g}, is not among the candidates {truth.where}"
            require(there or truth.probability < _PLAIN, lacking)


def _probabilities(subject: _Subject) -> None:
    """Marginals, confidence and advantage against all sets."""
    for runs, truth in subject.probable:
        where, exact, around, right = truth.where, truth.exact, truth.around, truth.probability
        given = [run.confidence(around) for run in runs]
        how = "exact" if all(confidence.how == "exact" for confidence in given) else "estimated"
        reach, cautious = (_ROUNDING, _ROUNDING) if how == "exact" else (_ESTIMATED, _CAUTIOUS)
        error = np.abs(np.mean([run.marginals() for run in runs], axis=0) - exact.marginals())
        wrong = f"{how} marginals {where} are off by {error.max():.2g} (stream {error.argmax()}), allowed is {reach:g}"
        require(error.max() <= reach, wrong)
        claimed = [confidence.probability for confidence in given if confidence.how != "unsettled"]
        mean = float(np.mean(claimed)) if claimed else right
        wrong = f"the {how} confidence {where} is {mean:.4g}, but of all sets the probability is {right:.4g}"
        require(right - cautious <= mean <= right + reach, wrong)
        lead, most = exact.advantage(around), max(run.posterior.advantage(around) for run in runs)
        wrong = f"the advantage {where} is {most:.6g}, although the best rival leaves {lead:.6g}"
        require(most <= max(lead, 0.0) + 1e-6, wrong)


def _hypotheses(subject: _Subject) -> None:
    """Those in doubt are possible sets whose probabilities add up to 1, and some differ."""
    for runs, truth in subject.probable:
        for run in runs:
            _check_hypotheses(run, truth.around, truth.where)


def _check_hypotheses(run: _Run, around: Neighbourhood, where: str) -> None:
    prior, hypotheses = run.world.prior, run.posterior.in_doubt(around)
    total = float(hypotheses.chance.sum())
    require(abs(total - 1.0) <= 1e-6, f"the probabilities of in_doubt add up to {total:.6g} {where}, not to 1")
    require((hypotheses.chance >= 0.0).all(), f"in_doubt has negative probabilities {where}")
    rows = np.hstack([hypotheses.rest[hypotheses.row], hypotheses.stream[:, None]])
    sets = _possible(prior, rows, f"in_doubt {where}")
    require(len(prior.distinct(sets)[0]) > 1, f"in_doubt leaves one set {where}: there is nothing to separate")
    empty = hypotheses.shift[hypotheses.stream == prior.n_streams]
    require(not empty.any(), f"in_doubt has shifts of EMPTY slots {where}")


def _statistics(subject: _Subject) -> None:
    """The readings and the questions so far have changed nothing in the likelihood."""
    for runs, truth in subject.trials:
        for name, array in truth.evidence.state().items():
            same = np.array_equal(array, runs[0].likelihood.evidence.state()[name])
            require(same, f"the posterior changes the statistics of its likelihood ({name}) {truth.where}")


def _same_seed(subject: _Subject) -> None:
    """The same seed gives the same answers, bit for bit."""
    for world in subject.worlds:
        first, second = (_Run(subject.build, world, 3).tell() for _ in range(2))
        _require_same(first, second, f"two posteriors of the same seed differ on the problem {world.name!r}")


def _saving(subject: _Subject) -> None:
    """After half of the readings, a state that is kept and goes on."""
    for world in subject.worlds:
        where, half = f"on the problem {world.name!r}", len(world.readings) // 2
        first, second = _Run(subject.build, world, 4).tell(half), _Run(subject.build, world, 4, n_told=half)
        state = {name: array.copy() for name, array in first.posterior.state().items()}
        for name, array in state.items():
            plain = array.dtype == np.float64 and array.ndim <= 2 and np.isfinite(array).all()
            require(plain, f"the state {name!r} is no vector or table of finite float64 numbers {where}")
        second.posterior.restore(state)
        second.rng.bit_generator.state = first.rng.bit_generator.state
        _require_same(first.tell(), second.tell(), f"a restored posterior goes on differently {where}")


def _require_same(first: _Run, second: _Run, message: str) -> None:
    around = neighbourhood(first.likelihood, first.world.prior, first.posterior.candidates()[0])
    others = second.answers(around)
    for name, answer in first.answers(around).items():
        require(np.array_equal(answer, others[name]), f"{message}: {name}")


def _possible(prior: SetPrior, rows: Index, what: str) -> Index:
    try:
        return prior.checked(rows.astype(float))
    except ValueError as error:
        raise CheckFailure(f"{what}: {error}") from None


_CHECKS = by_name(_answers, _candidates, _probabilities, _hypotheses, _statistics, _same_seed, _saving)
