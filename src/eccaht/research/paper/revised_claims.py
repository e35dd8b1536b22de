"""The claims of the paper's revision, each with the rule by which the searches are judged, and ours beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from eccaht.base.arrays import Array
from eccaht.base.statistics import clopper_pearson
from eccaht.research.paper.results import Results
from eccaht.research.paper.revised import PROCEDURES, information_limit
from eccaht.research.paper.verdicts import (
    OPPOSITE,
    Answer,
    Claim,
    Given,
    Measure,
    Verdict,
    at_the_limit,
    claimed,
    conclude,
    judged,
    short,
)

_VERIFIED = "ecc-aht-verified"
_THEIRS = PROCEDURES[:3]  # the last one is joint
REVISED_CLAIMS: list[Claim] = []
_claim = partial(claimed, REVISED_CLAIMS)


@_claim("revised-errors", "Revision, coverage table", "revised-errors", "revised-coverage")
def errors(given: Given) -> Verdict:
    """Decisions by the exact likelihood of all sets with the boundary log((M - 1) / delta) are wrong with
    probability at most delta, whatever is measured.

    The Clopper-Pearson interval of the share of wrong sets is not above alpha, for each procedure.
    """
    parts, beside = list[Measure](), list[Measure]()
    for id in ("revised-errors", "revised-coverage"):
        results = given[id]
        for k, row in results.experiment.cells:
            (parts if row in _THEIRS else beside).append(_errors(results, k, row))
    return conclude(parts, "revised-errors", "revised-coverage", beside=beside)


@_claim("revised-rate", "Revision, achievability theorem and rate figure", "revised-rate")
def attains(given: Given) -> Verdict:
    """The two-stage construction attains the information rate: mean readings times Gamma* over log(1/delta)
    tends to 1.

    Readings for each nat of log(1/alpha) between alpha 1e-24 and 1e-48, times Gamma* of the true set for a mix:
    the interval within 10% of 1.
    """
    results = given["revised-rate"]
    slopes = list(_slopes(results, "two-stage"))
    parts = [replace(part, answer=at_the_limit(part)) for part in slopes[::2]]
    others = [part for row in ("oracle-design", "joint-union") for part in _slopes(results, row)]
    return conclude(parts, "revised-rate", beside=[*slopes[1::2], *(replace(part, answer="open") for part in others)])


@_claim("revised-no-theorem", "Revision, overview", "revised-rate")
def no_theorem(given: Given) -> Verdict:
    """For Algorithm 1 no rate optimality is claimed any more.

    Its readings for each nat of log(1/alpha) are above the limit by more than 10%.
    """
    results = given["revised-rate"]
    slopes = list(_slopes(results, _VERIFIED))
    parts = [replace(part, answer=OPPOSITE[at_the_limit(part)]) for part in slopes[::2]]
    return conclude(parts, "revised-rate", beside=slopes[1::2])


@_claim("revised-contrast", "Revision, ablation table", "revised-ablation")
def plain_contrast(given: Given) -> Verdict:
    """Under Toeplitz noise the plain difference of two streams can need fewer readings than the optimised
    contrast.

    Fewer readings with the plain contrast, the interval of the difference above 0.
    """
    results = given["revised-ablation"]
    parts = [
        _fewer(results, k, "plain-contrast", _VERIFIED)
        for k, setting in enumerate(results.experiment.settings)
        if setting.family == "toeplitz"
    ]
    return conclude(parts, "revised-ablation")


@_claim("revised-budget", "Revision, budget sweep", "revised-sweeps")
def budget_free(given: Given) -> Verdict:
    """The number of readings does not depend on the budget B.

    The same seeds take the same number of readings at every budget.
    """
    results = given["revised-sweeps"]
    settings = [k for k, setting in enumerate(results.experiment.settings) if setting.label == "budget B"]
    readings = np.stack([_readings(results, k, _VERIFIED) for k in settings])
    same = int((readings == readings[0]).all(axis=0).sum())
    name = f"of {results.runs} searches take the same number of readings at B = 1, 2 and 4"
    part = Measure(name, same, None, (), "yes" if same == results.runs else "no", "at these budgets")
    return conclude([part], "revised-sweeps")


@_claim("revised-joint", "eccaht, docs/explanation/joint.md", "revised-ablation")
def ours(given: Given) -> Verdict:
    """Ours: with the same boundary, joint needs fewer readings than Algorithm 1.

    Fewer readings with the same boundary, the interval of the difference above 0. Beside it: what the boundary
    of joint's own rule (glr) saves.
    """
    results = given["revised-ablation"]
    settings = range(len(results.experiment.settings))
    parts = [_fewer(results, k, "joint-union", _VERIFIED) for k in settings]
    boundary = (replace(_fewer(results, k, "joint", "joint-union"), answer="open") for k in settings)
    return conclude(parts, "revised-ablation", beside=boundary)


def _readings(results: Results, k: int, row: str) -> Array:
    return results.cells[k, row][:, 1].astype(float)


def _errors(results: Results, k: int, row: str) -> Measure:
    setting, (hits, _, stopped) = results.experiment.settings[k], results.cells[k, row].T
    alpha, wrong = setting.options["alpha"], (hits < setting.n_anomalies) & (stopped > 0)
    interval = clopper_pearson(int(wrong.sum()), wrong.size)
    answer: Answer = "yes" if interval[1] <= alpha else "no" if interval[0] > alpha else "open"
    where = f"{setting.label}, K = {setting.arguments['K']}, alpha {alpha:g}"
    name = f"of the sets of {row} wrong ({int(wrong.sum())} of {wrong.size}; {where})"
    return Measure(name, float(wrong.mean()), interval, tuple(wrong.astype(float)), answer, f"for {row}")


def _slopes(results: Results, row: str) -> Iterator[Measure]:
    """Readings for each nat of log(1/alpha) between the two smallest alphas, in those of the limit: 1 is the limit."""
    settings = results.experiment.settings
    for family in dict.fromkeys(setting.family for setting in settings):
        *_, before, last = (k for k, setting in enumerate(settings) if setting.family == family)
        limit = information_limit(settings[last])
        assert limit is not None
        nats = math.log(settings[before].options["alpha"] / settings[last].options["alpha"])
        more = _readings(results, last, row) - _readings(results, before, row)
        label = settings[last].label
        name = f"times the least readings for each nat of log(1/alpha), {row} on {label}"
        yield judged(more / nats * limit, results, name, f"on {label}")
        whole = _readings(results, last, row) * limit / math.log(1.0 / settings[last].options["alpha"])
        name = f"times the least readings in all at alpha {settings[last].options['alpha']:g}, {row} on {label}"
        yield replace(judged(whole, results, name), answer="open")


def _fewer(results: Results, k: int, row: str, rival: str) -> Measure:
    ours, theirs, label = _readings(results, k, row), _readings(results, k, rival), results.experiment.settings[k].label
    name = f"readings fewer for {row} than for {rival} on {label}: {short(ours.mean())} against {short(theirs.mean())}"
    return judged(theirs - ours, results, name, f"on {label}")
