"""The claims of the paper's theory, with the rule by which each is judged: section 4, appendices C, E and F.

Numbers of theorems and lemmas are those of the article, where they count together with remarks.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np

from eccaht.base.arrays import Array
from eccaht.research.paper.lemmas import fastest_single, off_diagonal
from eccaht.research.paper.results import Results, slopes
from eccaht.research.paper.verdicts import (
    CLOSE,
    OPPOSITE,
    Claim,
    Measure,
    Verdict,
    at_the_limit,
    claimed,
    conclude,
    exact,
    judged,
    lead,
    share,
)
from eccaht.streams import Problem, effective_rank
from eccaht.streams.limits import gamma_star

UNLIKELY = 0.05
RIDGES = np.geomspace(1e-3, 1e3, 13)

THEOREMS: list[Claim] = []
_claim = partial(claimed, THEOREMS)


@_claim("speed-limit", "Section 4.1, equation 6")
def speed_limit() -> Verdict:
    """No search needs fewer than log(1/alpha)/Gamma* readings.

    A counterexample: 4 streams of shift 1, the first 2 anomalous and correlated by 0.9. Gamma* of equation 5, the best
    rate of one measurement (all signs enumerated), is compared with the rate of a mix of measurements, which the
    two-stage search of the revision attains as alpha falls; a factor above 1 speaks against the claim.
    """
    single = _example()[0]
    mix = gamma_star(_PROBLEM, [0, 1], mix=True).lower
    return conclude([exact(mix / single, "times Gamma* is the rate of a mix of measurements", mix <= single)])


@_claim("oracle", "Section 3.3; Appendix F, Proposition F.10")
def oracle() -> Verdict:
    """Gamma* is the best worst case over exchanges of single streams.

    In the same example both are computed by enumerating all signs; they must be equal.
    """
    single, swaps = _example()
    return conclude([exact(swaps / single, "times Gamma* is the value over single exchanges", swaps <= 1.001 * single)])


@_claim("blind", "Section 4.3, after Theorem 4.3; Figure 2", "lemmas", "fig2")
def blind(lemmas: Results, fig2: Results) -> Verdict:
    """Ignoring correlation means a smaller rate and more readings.

    Gamma_diag < Gamma*: the least Gamma*/Gamma_diag of the true sets of each kind of correlated noise exceeds 1; the
    policy `diagonal` needs more measurements than ECC-AHT, the interval of the difference above 0.
    """
    parts = []
    for label, column in _columns(lemmas, "worth"):
        if label != "independent streams":
            least = float(column.min())
            name = f"is the least Gamma*/Gamma_diag of {column.size} sets on {label}"
            parts.append(exact(least, name, least > 1.0, f"on {label}"))
    return conclude([*parts, lead(fig2, "diagonal")], "lemmas", "fig2")


@_claim("stopping", "Section 4.2, Theorem 4.2; Appendix F.1", "stopping")
def stopping(results: Results) -> Verdict:
    """The stopping rule errs with probability at most alpha.

    ECC-AHT with the gap rule, to which step 1 of the proof passes, at alpha = 0.05: the Clopper-Pearson interval of the
    share of wrong sets at most 5 % in each setting; wholly above 5 % speaks against the claim. Beside it, of the wrong
    sets, how many are less likely than the true one by the exact likelihood of the same readings.
    """
    parts, misled = [], list[Array]()
    for (k, policy), found in results.cells.items():
        label, n = results.experiment.settings[k].label, results.experiment.settings[k].n_anomalies
        alpha, wrong = results.experiment.policy_options[policy]["alpha"], found[:, 0] < n
        parts.append(share(wrong, alpha, f"announced sets wrong on {label}", f"on {label}"))
        misled.append(found[wrong, 2] > 0.0)
    less_likely = np.concatenate(misled)
    name = "wrong sets less likely than the true one by the exact likelihood"
    beside = [share(less_likely, 1.0, name, "")] if less_likely.size else []
    verdict = conclude(parts, "stopping", beside=beside)
    return replace(verdict, traced_to=("stopping/summary.csv", "stopping/runs.csv"))


@_claim("asymptotics", "Sections 4.2 and 4.3, Theorems 4.2 and 4.3", "asymptotics")
def asymptotics(results: Results) -> Verdict:
    """The mean stopping time is log(1/alpha)/Gamma* but for terms of lower order.

    Searches of ECC-AHT with the gap rule: measurements from alpha = 1e-20 to 1e-80 for each nat of log(1/alpha), times
    Gamma* of the true set, the rate of the best single measurement (docs/explanation/limits.md); the interval within a
    tenth of 1 in each setting. A slope above 1 is more than any C1 log log(1/alpha) + C2 of Theorem 4.2 makes up for.
    """
    parts = (replace(part, answer=at_the_limit(part)) for part in _slopes(results))
    return conclude(parts, "asymptotics")


@_claim("ridge-rank", "Appendix C.6, Corollary C.3", "table1")
def ridge_rank(results: Results) -> Verdict:
    """The effective rank of S + aI increases with a, up to K.

    The entropy of the eigenvalue shares p grows by a multiple of the sum of (K p_i - 1) log p_i, a sum of products of
    like sign about p_i = 1/K, so it holds. Computed for 13 ridges from 0.001 to 1000 on each family of table 1: every
    rank exceeds the one before, and the last is within 1 % of K.
    """
    raised, full = [], []
    for setting in results.experiment.settings:
        S = setting.covariance().dense()
        ranks = np.array([effective_rank(S + a * np.eye(len(S))) for a in (0.0, *RIDGES)])
        raised += (np.diff(ranks) > 0.0).tolist()
        full.append(ranks[-1] / len(S))
    grows = exact(sum(raised), f"of {len(raised)} steps from ridge to ridge raise the rank", all(raised))
    return conclude([grows, exact(min(full), "of K is the least rank at a = 1000", min(full) > 0.99)], "table1")


@_claim("incoherence", "Appendices C.5 and E.3, Assumption E.2", "table1")
def incoherence(results: Results) -> Verdict:
    """The assumptions on the noise are mild.

    Lemma E.6 says something only where no two streams are correlated by 1/2 or more, which most families of table 1
    must then meet. (Shifts are equal in all experiments: the kappa of Assumption E.3 is 1.)
    """
    met = sum(off_diagonal(setting.problem()) < 0.5 for setting in results.experiment.settings)
    count = len(results.experiment.settings)
    return conclude([exact(met, f"of {count} families have no correlation of 1/2", 2 * met > count)], "table1")


@_claim("cross-terms", "Appendix E.3, Lemma E.4", "lemmas", "table1")
def cross_terms(lemmas: Results, table1: Results) -> Verdict:
    """The cross-terms of other anomalies are small.

    They are C (h_i^2 + h_j^2), where C tends to 0 with flat noise and Theorem E.7 asks for C up to 1/4. The mean of C
    over the readings of a search whose pair is a true and a false stream, for that pair alone: the whole interval below
    1/4. (On flat noise its sign is the one that helps.) Beside it step 1 of the proof: the chi-square distance of a
    spectrum from a flat one is at most twice its KL distance.
    """
    results = lemmas
    parts = (_mean(results, *each, "is C (1/4 is allowed)", above=0.25) for each in _columns(results, "cross_term"))
    excess = []
    for setting in table1.experiment.settings:
        K, ranks = setting.covariance().size, setting.ranks()
        excess.append((K / ranks.participation - 1.0) / (2.0 * np.log(K / ranks.shannon)))
    step = exact(max(excess), "times the bound of step 1, on the worst family of table 1", max(excess) <= 1.0)
    return conclude(map(_flip, parts), "lemmas", beside=[step])


@_claim("drift", "Section 3.5; Appendix E, Lemma E.5", "lemmas")
def drift(results: Results) -> Verdict:
    """Each reading is expected to raise true above false streams.

    The text says that several anomalies shift all scores by a common term. Share of the readings, with a true and a
    false stream as the pair measured, by which some false stream is expected to gain on some true one: none.
    """
    parts = []
    for label, column in _columns(results, "backward"):
        part = _mean(results, label, 100.0 * column, "% of readings drive some pair the wrong way")
        parts.append(replace(part, answer="no" if column.max() > 0.0 else "yes"))
    return conclude(parts, "lemmas")


@_claim("coverage", "Appendix E, Lemma E.6", "lemmas")
def coverage(results: Results) -> Verdict:
    """A reading made for one pair tells all pairs apart.

    Share of the pairs whose contrast is at least 1/2 - rho of that of the pair measured, where no two streams are
    correlated by 1/2 or more (elsewhere the lemma promises nothing): above 90 %, by the whole interval.
    """
    settings = {setting.label: setting for setting in results.experiment.settings}
    some = (each for each in _columns(results, "covered") if off_diagonal(settings[each[0]].problem()) < 0.5)
    parts = (_mean(results, label, 100.0 * x, "% of pairs covered", above=100.0 * (1.0 - CLOSE)) for label, x in some)
    return conclude(parts, "lemmas")


@_claim("ranking", "Section 3.5; Appendix E, Theorem E.7", "lemmas")
def ranking(results: Results) -> Verdict:
    """Scores rank wrongly with probability at most exp(-c shift^2 Lambda_T).

    Searches (of 400 readings, of 2000 where the set was wrong in the last 100 of them) at whose end a pair is ranked
    wrongly although the bound, with the smallest c of the theorem (C = 1/4) and summed over all pairs, gives that less
    than 5 %: the Clopper-Pearson interval of their share at most 5 %; wholly above speaks against the claim.
    """
    parts = []
    for setting, (label, column) in zip(results.experiment.settings, _columns(results, "exponent"), strict=True):
        n, K = setting.n_anomalies, setting.covariance().size
        beyond = column > np.log(n * (K - n) / UNLIKELY)
        parts.append(share(beyond, UNLIKELY, f"searches ranked against the bound on {label}", f"on {label}"))
    return conclude(parts, "lemmas")


@_claim("settling", "Appendix F, Lemma F.3", "lemmas")
def settling(results: Results) -> Verdict:
    """From a time T_rank on the champion is the true set.

    But for a probability alpha/4: with alpha = 0.2, the Clopper-Pearson interval of the searches that are not right for
    good within 2000 readings at most 5 %; wholly above speaks against the claim. (The proof divides by the least that
    any reading says about any pair, which is 0, see the convergence of the design.)
    """
    parts = (
        share(np.isnan(column), UNLIKELY, f"searches not settled on {label}", f"on {label}")
        for label, column in _columns(results, "settled")
    )
    return conclude(parts, "lemmas")


@_claim("hardest", "Appendix F, Lemma F.3, part 2", "lemmas")
def hardest(results: Results) -> Verdict:
    """The measurement says least about the challenger.

    The challenger is the hardest rival. Share of the readings after T_rank for which no single exchange is harder:
    above 90 % by the whole interval.
    """
    parts = []
    for label, x in _columns(results, "hardest"):
        name = "% of readings measure the rival they tell least about"
        parts.append(_mean(results, label, 100.0 * x, name, above=100.0 * (1.0 - CLOSE)))
    return conclude(parts, "lemmas")


@_claim("design", "Section 4.3; Appendix F, Lemma F.4", "lemmas")
def design(results: Results) -> Verdict:
    """The measurements converge to one that attains Gamma*.

    The information of a reading about the pair it tells least of, over Gamma*, mean of the readings after T_rank:
    within a tenth of 1 by the whole interval.
    """
    return _near_one(results, _columns(results, "design"), "of Gamma* is the least that a reading says of a pair")


@_claim("growth", "Appendix F, Lemma F.5", "lemmas")
def growth(results: Results) -> Verdict:
    """The log-likelihood ratio grows by Gamma* a reading.

    The exact log-likelihood of the true set less that of its nearest single exchange, at the end of searches that are
    right for good, for each reading and over Gamma*: within a tenth of 1 by the whole interval.
    """
    settled, readings, gamma = (dict(_columns(results, name)) for name in ("settled", "readings", "gamma"))
    rates = (
        (label, np.where(np.isnan(settled[label]), np.nan, nats / readings[label] / gamma[label]))
        for label, nats in _columns(results, "nats")
    )
    return _near_one(results, rates, "of Gamma* a reading")


@_claim("concentration", "Appendix F, Lemma F.6", "lemmas")
def concentration(results: Results) -> Verdict:
    """The log-likelihood ratio concentrates like a sub-Gaussian sum.

    Its squared deviation, at the end and for the nearest single exchange, from the sum of the expected nats of the
    readings, over the variance proxy of the proof times their number: below 1 by the whole interval.
    """
    parts = []
    readings, expected = (dict(_columns(results, name)) for name in ("readings", "expected_nats"))
    for setting, (label, nats) in zip(results.experiment.settings, _columns(results, "nats"), strict=True):
        inverse = np.linalg.inv(setting.covariance().dense())
        proxy = setting.shift**2 * (inverse.diagonal()[:, None] + inverse.diagonal() - 2.0 * inverse).max()
        squares = (nats - expected[label]) ** 2 / (proxy * readings[label])
        parts.append(_flip(_mean(results, label, squares, "times the proxy", above=1.0)))
    return conclude(parts, "lemmas")


@_claim("pairwise", "Appendix F, Proposition F.7 and Lemma F.8", "lemmas")
def pairwise(results: Results) -> Verdict:
    """The least lead of scores is the least likelihood ratio, up to constants.

    (Lemma F.8 is algebra: it holds where log-likelihoods add up over streams.) Searches at whose end the exact ratio
    favours the true set over every single exchange and the scores do not: none.
    """
    leads, nats = (dict(_columns(results, name)) for name in ("lead", "nats"))
    parts = []
    for label, scores in leads.items():
        opposed = (scores <= 0.0) & (nats[label] > 0.0)
        part = share(opposed, 1.0, f"searches wrong by their scores alone on {label}", f"on {label}")
        parts.append(replace(part, answer="no" if opposed.any() else "yes"))
    return conclude(parts, "lemmas")


_CORRELATED = np.eye(4)
_CORRELATED[0, 1] = _CORRELATED[1, 0] = 0.9
_PROBLEM = Problem(_CORRELATED, shift=1.0, n_anomalies=2, budget=100.0)


def _example() -> tuple[float, float]:
    """Of the counterexample, the best rate of one measurement: against all rivals, and single exchanges."""
    truth = np.array([1.0, 1.0, 0.0, 0.0])
    rivals = np.array([truth - np.isin(range(4), rival) for rival in combinations(range(4), 2) if rival != (0, 1)])
    swaps = rivals[np.abs(rivals).sum(axis=1) == 2.0]
    return fastest_single(_CORRELATED, rivals), fastest_single(_CORRELATED, swaps)


def _columns(results: Results, name: str) -> Iterator[tuple[str, Array]]:
    place = results.experiment.columns.index(name)
    for (k, _), found in results.cells.items():
        yield results.experiment.settings[k].label, found[:, place]


def _mean(results: Results, label: str, column: Array, name: str, above: float = 0.0) -> Measure:
    seen = column[~np.isnan(column)]
    if not seen.size:
        return Measure(f"{name} on {label}", np.nan, None, (), "open", f"on {label}")
    return judged(seen, results, f"{name} on {label}", f"on {label}", above=above)


def _flip(part: Measure) -> Measure:
    return replace(part, answer=OPPOSITE[part.answer])


def _near_one(results: Results, columns: Iterable[tuple[str, Array]], name: str) -> Verdict:
    parts = (_mean(results, *each, name) for each in columns)
    return conclude((replace(part, answer=at_the_limit(part)) for part in parts), "lemmas")


def _slopes(results: Results, above: float = 1.0) -> Iterator[Measure]:
    for k, setting in enumerate(results.experiment.settings):
        sample, lost = slopes(results, k)
        name, when = f"times 1/Gamma* for each nat of log(1/alpha) on {setting.label}", f"on {setting.label}"
        note = f"left out: {lost} of {results.runs} runs that did not stop" if lost else ""
        if sample.size:
            yield judged(np.log(sample), results, name, when, above=above, factor=True, note=note)
        else:
            yield Measure(name, np.nan, None, (), "open", when, note)
