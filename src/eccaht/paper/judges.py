"""One judge for each claim: which numbers it asks of the runs, and what would make them speak for the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from eccaht.arrays import Array
from eccaht.measure import pair_design
from eccaht.paper.asymptotics import SEED, slopes
from eccaht.paper.judging import (
    FEWEST,
    Answer,
    Measure,
    Verdict,
    conclude,
    difference,
    judged,
    lost_runs,
    rank_correlation,
    short,
    times,
)
from eccaht.paper.ranks import final_f1, rank_ends
from eccaht.paper.results import Results
from eccaht.paper.stopping_errors import ALPHA
from eccaht.paper.stopping_errors import EXPERIMENT as STOPPING
from eccaht.problem import Problem

Given = Mapping[str, Results]
BASELINES = ("round-robin", "random-sparse")
LOW_RANK, HIGH_RANK = (
    {"fig10": "equicorrelation", "fig15": "rbf", "fig16": "kronecker"},
    {"fig3b": "toeplitz", "fig11": "block", "fig12": "circulant", "fig13": "graph", "fig14": "exponential"},
)
REGULARIZED = tuple(f"fig{k}" for k in range(19, 27))
FAR, TEN, MARGIN = 2.0, 10.0, 1.5  # factors: "far behind", "an order of magnitude", "matches"
COLLAPSE = 0.2  # loss of F1 that we call a collapse
CLOSE = 0.1  # relative difference from a limit that counts as having reached it
_OPPOSITE: dict[Answer, Answer] = {"yes": "no", "no": "yes", "open": "open"}


def independent(given: Given) -> Verdict:
    """fig5a: fewer measurements than either baseline."""
    return conclude((difference(given["fig5a"], rival) for rival in BASELINES), "fig5a")


def widening(given: Given) -> Verdict:
    """fig5a, fig5b: how much larger the lead over each baseline is with correlation."""
    plain, correlated = given["fig5a"], given["fig5b"]
    parts = []
    for rival in BASELINES:
        before, after = (np.array(difference(results, rival).sample) for results in (plain, correlated))
        runs = min(len(before), len(after))
        name = f"measurements by which the lead over {rival} grows from S = I to rho 0.5"
        parts.append(judged(after[:runs] - before[:runs], plain, name, f"the rival is {rival}"))
    return conclude(parts, "fig5a", "fig5b")


def large(given: Given) -> Verdict:
    """fig5c: how many times as long the baselines take."""
    return conclude((_ratio(given["fig5c"], rival, above=TEN) for rival in BASELINES), "fig5c")


def ablation(given: Given) -> Verdict:
    """fig2: cost-free not slower than ecc-aht; No-QP and random at least twice as long, by mean and by median."""
    results = given["fig2"]
    free = difference(results, "ecc-aht", "cost-free")
    free = replace(
        free, name="measurements fewer than ecc-aht for cost-free", when="cost-free against ecc-aht is meant"
    )
    few = results.runs < FEWEST
    free = replace(free, answer="open" if few else "no" if free.answer == "no" else "yes")  # not slower is enough
    far = [_ratio(results, rival, above=FAR) for rival in ("simple-difference", "random-sparse")]
    value = float(np.median(far[0].sample))
    middle = replace(far[0], name="times as long for simple-difference in the median run", value=value)
    middle = replace(middle, interval=None, sample=(), note="", when="the median run counts")
    middle = replace(middle, answer="open" if few else "yes" if middle.value >= FAR else "no")
    wrong = times(results, "ecc-aht", for_good=True)[1]
    count = Measure(f"of {results.runs} runs of ecc-aht wrong at the end", wrong, None, (), "no" if wrong else "yes")
    problem = results.experiment.settings[0].problem()
    name = f"is the budget from which the limit binds for no pair of streams; here B = {problem.budget:g}"
    limit = Measure(name, unlimited_budget(problem), None, (), "open")
    verdict = conclude([free, *far, middle], "fig2")
    return replace(verdict, measures=(*verdict.measures, count, limit))


def correlation(given: Given) -> Verdict:
    """fig7: rank correlation of delay and rho, for positive and for negative rho."""
    results = given["fig7"]
    x, delays, lost = _sweep(results, "ecc-aht")
    parts = []
    for side, where in {"rho from 0 up": x >= -1e-9, "rho from the most negative up to 0": x <= 1e-9}.items():
        if where.sum() > 1:
            sample = [rank_correlation(x[where], run[where]) for run in delays]
            note = lost_runs({"ecc-aht": int(lost[where].sum())})
            parts.append(
                _falls(sample, results, f"rank correlation of delay and rho, {side}", f"{side} is meant", note)
            )
    return conclude(parts, "fig7")


def anomaly_count(given: Given) -> Verdict:
    """fig8: measurements for each further anomaly, against the baselines."""
    results = given["fig8"]
    slopes, lost = {}, {}
    for name in ("ecc-aht", *BASELINES):
        x, delays, lost[name] = _sweep(results, name)
        slopes[name] = np.polyfit(x, delays.T, 1)[0]
    parts = []
    for rival in BASELINES:
        own, others = slopes["ecc-aht"].mean(), slopes[rival].mean()
        name = f"measurements fewer for each further anomaly than {rival}, {short(own)} against {short(others)}"
        note = lost_runs({name: int(lost[name].sum()) for name in ("ecc-aht", rival)}, rival)
        parts.append(judged(slopes[rival] - slopes["ecc-aht"], results, name, f"the rival is {rival}", note=note))
    return conclude(parts, "fig8")


def budget(given: Given) -> Verdict:
    """fig9: rank correlation of delay and B, below and above the budget from which no design is limited."""
    results = given["fig9"]
    enough = unlimited_budget(results.experiment.settings[0].problem())
    x, delays, lost = _sweep(results, "ecc-aht")
    parts = []
    first = x[x >= enough].min(initial=np.inf)  # the first budget that limits nothing ends the lower range
    for side, where in {"below": x <= first, "from": x >= enough}.items():
        if where.sum() > 1:
            sample = [rank_correlation(x[where], run[where]) for run in delays]
            note = lost_runs({"ecc-aht": int(lost[where].sum())})
            same = int((np.ptp(delays[:, where], axis=1) == 0).sum())
            name = f"rank correlation of delay and B {side} {enough:.2f}, where the limit stops binding"
            if same:
                name += f"; the same delay at each of these budgets in {same} of {results.runs} runs"
            when = f"B is below {enough:.2f}, where the limit binds" if side == "below" else f"B is over {enough:.2f}"
            part = _falls(sample, results, name, when, note)
            parts.append(replace(part, answer="no") if 2 * same >= results.runs >= FEWEST else part)
    return conclude(parts, "fig9")


def hierarchical(given: Given) -> Verdict:
    """fig3a: fewer measurements than HDS."""
    return conclude([difference(given["fig3a"], "hds")], "fig3a")


def randomized(given: Given) -> Verdict:
    """fig3b: not slower than TTTS-Challenger by more than the margin."""
    results = given["fig3b"]
    first = _ratio(results, "ttts-challenger", above=1 / MARGIN)
    good = _ratio(results, "ttts-challenger", above=1 / MARGIN, for_good=True)
    when = ("first reaching F1 0.95 counts", "staying there counts")
    return conclude([replace(part, when=words) for part, words in zip((first, good), when, strict=True)], "fig3b")


def losses(given: Given) -> Verdict:
    """fig10, fig15, fig16: is the fastest rival ahead of ecc-aht? The other families for comparison."""
    parts: list[Measure] = []
    others: list[Measure] = []
    for id, family in {**LOW_RANK, **HIGH_RANK}.items():
        results = given[id]
        delays = {name: times(results, name, for_good=True) for name in results.experiment.policies}
        rival = min((name for name in delays if name != "ecc-aht"), key=lambda name: delays[name][0].mean())
        note = lost_runs({name: delays[name][1] for name in (rival, "ecc-aht")}, "ecc-aht")
        gap = delays["ecc-aht"][0] - delays[rival][0]
        name = f"measurements more than {rival} on {family}"
        (parts if id in LOW_RANK else others).append(judged(gap, results, name, f"the noise is {family}", note=note))
    verdict = conclude(parts, *LOW_RANK, *HIGH_RANK)
    return replace(verdict, measures=(*verdict.measures, *others))


def collapse(given: Given) -> Verdict:
    """fig17, fig18: final F1 at the highest ranks less that at the lowest."""
    parts = []
    for id in ("fig17", "fig18"):
        results = given[id]
        for ends in rank_ends(results):
            low, high = (final_f1(results, settings, "ecc-aht") for settings in (ends.low, ends.high))
            name = f"of F1 lost at effective ranks {ends.span} of {ends.kind}, where it ends at {low.mean():.2f}"
            parts.append(judged(high - low, results, name, f"the noise is {ends.kind}", above=COLLAPSE))
    return conclude(parts, "fig17", "fig18")


def regularization(given: Given) -> Verdict:
    """fig19 to fig26 against the plain runs: measurements saved by believing S + 0.01 I."""
    plain = {family: id for id, family in {**LOW_RANK, **HIGH_RANK}.items()}
    low: list[Measure] = []
    high: list[Measure] = []
    for id in REGULARIZED:
        for k, setting in enumerate(given[id].experiment.settings):
            if not setting.options.get("regularize"):
                continue
            before, lost = times(given[plain[setting.family]], "ecc-aht", for_good=True)
            after, still = times(given[id], "ecc-aht", k, for_good=True)
            runs = min(len(before), len(after))
            note = lost_runs({"plain": lost, "regularized": still}, "plain")
            name = f"measurements saved on {setting.family}"
            part = judged(before[:runs] - after[:runs], given[id], name, setting.family, note=note)
            (low if setting.family in LOW_RANK.values() else high).append(part)
    helped, helped_too = ([part.when for part in parts if part.answer == "yes"] for parts in (low, high))
    verdict = conclude([*low, *high], *LOW_RANK, *HIGH_RANK, *REGULARIZED)
    if len(helped) == len(low) and not helped_too:
        return replace(verdict, word="holds", condition="")
    if helped:
        also = f", but it helps on {', '.join(helped_too)} too" if helped_too else ""
        return replace(verdict, word="holds only if", condition=f"the noise is {' or '.join(helped)}{also}")
    if helped_too or any(part.answer == "no" for part in low):
        return replace(verdict, word="does not hold", condition="")
    return replace(verdict, word="not decided", condition="no effect is seen where it should help")


def stopping(given: Given) -> Verdict:
    """The announced sets that are wrong, with Clopper-Pearson intervals."""
    from scipy.stats import binomtest

    results, parts = given["stopping"], []
    for k, setting in enumerate(results.experiment.settings):
        wrong = results.f1(k, "ecc-aht")[:, -1] < 1
        count, runs = int(wrong.sum()), len(wrong)
        low, high = binomtest(count, runs).proportion_ci(0.95, method="exact")
        name = f"% of {runs} announced sets wrong on {setting.label}"
        answer: Answer = "no" if low > ALPHA else "yes" if high <= ALPHA else "open"
        share, ends = 100 * count / runs, (100 * float(low), 100 * float(high))
        sample = tuple(wrong.astype(float).tolist())
        parts.append(Measure(name, share, ends, sample, answer, f"the noise is that of {setting.label}"))
    verdict = conclude(parts, "stopping")
    return replace(verdict, traced_to=("stopping/summary.csv", "stopping/runs.csv"))


def asymptotics(_: Given) -> Verdict:
    """Searches run on to tiny alpha: measurements for each nat of log(1/alpha), times Gamma*."""
    parts, runs = [], Results(STOPPING, SEED, {})
    for k, setting in enumerate(STOPPING.settings):
        sample, lost = slopes(k)
        name = f"times 1/Gamma* for each nat of log(1/alpha) on {setting.label}"
        note = f"left out: {lost} of {len(sample) + lost} runs that did not stop" if lost else ""
        part = judged(
            np.log(sample), runs, name, f"the noise is that of {setting.label}", above=1.0, factor=True, note=note
        )
        low, high = part.interval or (-np.inf, np.inf)
        answer: Answer = "no" if low > 1 + CLOSE or high < 1 - CLOSE else "open"
        parts.append(replace(part, answer="yes" if low > 1 - CLOSE and high < 1 + CLOSE else answer))
    return replace(conclude(parts), traced_to=("claims/runs.csv",))


def untested(reason: str) -> Verdict:
    """A claim that these experiments do not reach."""
    return Verdict("not tested here", condition=reason)


def unlimited_budget(problem: Problem) -> float:
    """The smallest budget at which the L1 limit binds for no pair of streams."""
    free = Problem(problem.covariance, shift=problem.shift, n_anomalies=problem.n_anomalies, budget=1e9)
    needed, (shift, K) = 0.0, (problem.shift, problem.size)
    for i in range(K - 1):
        for j in range(i + 1, K):
            weights = pair_design(free, i, j).weights
            needed = max(needed, 1e9 / float(shift[i] * weights[i] - shift[j] * weights[j]))
    return needed


def _ratio(results: Results, rival: str, *, above: float, for_good: bool = False) -> Measure:
    """How many times as long the rival takes as ecc-aht: geometric mean over the runs."""
    (a, lost), (b, rivals_lost) = (times(results, name, for_good=for_good) for name in ("ecc-aht", rival))
    name = f"times as long for {rival}" + (" until right for good" if for_good else "")
    note = lost_runs({"ecc-aht": lost, rival: rivals_lost}, rival)
    return judged(np.log(b / a), results, name, f"the rival is {rival}", above=above, factor=True, note=note)


def _sweep(results: Results, policy: str) -> tuple[Array, Array, Array]:
    """The x of the settings, delays (runs, settings), and how many runs of each setting were cut off."""
    settings = results.experiment.settings
    columns, lost = zip(*(times(results, policy, k) for k in range(len(settings))), strict=True)
    return np.array([setting.x for setting in settings]), np.stack(columns, axis=1), np.array(lost)


def _falls(sample: list[float], results: Results, name: str, when: str, note: str) -> Measure:
    """A coefficient that speaks for the claim where it is negative."""
    part = judged(sample, results, name, when, note=note)
    return replace(part, answer=_OPPOSITE[part.answer])
