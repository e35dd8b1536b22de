"""The criterion of each claim: which numbers it asks of the runs, and what would make them speak for the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.research.experiments.looks import shown_name
from eccaht.research.paper.results import Results, error_table, slopes, unlimited_budget
from eccaht.research.paper.verdicts import (
    FEWEST,
    Answer,
    Measure,
    RankEnds,
    Verdict,
    conclude,
    final_f1,
    in_words,
    judged,
    lead,
    lost_runs,
    rank_correlation,
    rank_ends,
    short,
)

Given = Mapping[str, Results]
BASELINES = ("round-robin", "random-sparse")
LOW_RANK, HIGH_RANK = (
    {"fig10": "equicorrelation", "fig15": "rbf", "fig16": "kronecker"},
    {"fig3b": "toeplitz", "fig11": "block", "fig12": "circulant", "fig13": "graph", "fig14": "exponential"},
)
SWEEPS = ("fig17", "fig18")
REGULARIZED = tuple(f"fig{k}" for k in range(19, 27))
FAR, TEN, MARGIN = 2.0, 10.0, 1.5  # factors: "far behind", "an order of magnitude", "matches"
NO_QP = "against No-QP"
COLLAPSE = 0.2  # loss of F1 that we call a collapse
CLOSE = 0.1  # relative difference from a limit that counts as having reached it
_OPPOSITE: dict[Answer, Answer] = {"yes": "no", "no": "yes", "open": "open"}


def ahead(id: str, *rivals: str, at_least: float | None = None) -> Callable[[Given], Verdict]:
    """Fewer measurements than each rival, or that many times fewer."""
    return lambda given: conclude((lead(given[id], rival, at_least=at_least) for rival in rivals), id)


def widening(given: Given) -> Verdict:
    """fig5a, fig5b: how much larger the lead over each baseline is with correlation."""
    plain, correlated = given["fig5a"], given["fig5b"]
    parts = []
    for rival in BASELINES:
        before, after = (np.array(lead(results, rival).sample) for results in (plain, correlated))
        runs = min(len(before), len(after))
        name = f"measurements by which the lead over {rival} grows from S = I to rho 0.5"
        parts.append(judged(after[:runs] - before[:runs], plain, name, f"against {rival}"))
    return conclude(parts, "fig5a", "fig5b")


def ablation(given: Given) -> Verdict:
    """fig2: cost-free not slower than ecc-aht; No-QP and random at least twice as long, by mean and by median."""
    results = given["fig2"]
    few = results.runs < FEWEST
    free = lead(results, "ecc-aht", "cost-free", name="measurements saved by cost-free against ecc-aht")
    answer: Answer = "open" if few else "no" if free.answer == "no" else "yes"  # not slower is enough
    free = replace(free, answer=answer, when="against cost-free")
    longer = f"times as many measurements for {shown_name('simple-difference')}"
    no_qp = replace(lead(results, "simple-difference", at_least=FAR, name=longer), when=NO_QP)
    random = lead(results, "random-sparse", at_least=FAR)
    value = float(np.median(no_qp.sample))
    answer = "open" if few else "yes" if value >= FAR else "no"
    when = NO_QP if answer == no_qp.answer else f"in the median run {NO_QP}"
    middle = Measure(f"{longer} in the median run", value, None, (), answer, when)
    wrong = int(results.times("ecc-aht", for_good=True)[1].sum())
    count = Measure(f"of {results.runs} runs of ecc-aht wrong at the end", wrong, None, (), "no" if wrong else "yes")
    problem = results.experiment.settings[0].problem()
    name = f"is the budget from which the limit binds for no pair of streams; here B = {problem.budget:g}"
    limit = Measure(name, unlimited_budget(problem), None, (), "open")
    return conclude([free, no_qp, random, middle], "fig2", beside=[count, limit])


def correlation(given: Given) -> Verdict:
    """fig7: rank correlation of delay and rho, for positive and for negative rho."""
    results = given["fig7"]
    x, delays, lost = _sweep(results, "ecc-aht")
    sides = {"rho from 0 up": x >= -1e-9, "negative rho": x <= 1e-9}
    parts = (
        _falls(results, x, delays, lost, where, f"rank correlation of delay and rho for {side}", f"for {side}")
        for side, where in sides.items()
        if where.sum() > 1
    )
    return conclude(parts, "fig7")


def anomaly_count(given: Given) -> Verdict:
    """fig8: measurements for each further anomaly, against the baselines."""
    results = given["fig8"]
    slope, lost = {}, {}
    for name in ("ecc-aht", *BASELINES):
        x, delays, lost[name] = _sweep(results, name)
        slope[name] = np.polyfit(x, delays.T, 1)[0]
    parts = []
    for rival in BASELINES:
        own, others = slope["ecc-aht"].mean(), slope[rival].mean()
        name = f"measurements saved for each further anomaly against {rival}: {short(own)} against {short(others)}"
        note = lost_runs({name: lost[name] for name in ("ecc-aht", rival)}, rival)
        parts.append(judged(slope[rival] - slope["ecc-aht"], results, name, f"against {rival}", note=note))
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
            same = int((np.ptp(delays[:, where], axis=1) == 0).sum())
            limit = f"{enough:.2f}, where the limit stops binding"
            name = "rank correlation of delay and B " + (f"up to {limit}" if side == "below" else f"from {limit}")
            if same:
                name += f"; the same delay at each of these budgets in {same} of {results.runs} runs"
            when = f"below B = {enough:.2f}, where the limit binds" if side == "below" else f"from B = {enough:.2f} up"
            part = _falls(results, x, delays, lost, where, name, when)
            parts.append(replace(part, answer="no") if 2 * same >= results.runs >= FEWEST else part)
    return conclude(parts, "fig9")


def randomized(given: Given) -> Verdict:
    """fig3b: not slower than TTTS-Challenger by more than the margin."""
    results = given["fig3b"]
    when = {"for reaching F1 0.95": False, "for staying there": True}
    parts = (
        replace(lead(results, "ttts-challenger", at_least=1 / MARGIN, for_good=for_good), when=words)
        for words, for_good in when.items()
    )
    return conclude(parts, "fig3b")


def losses(given: Given) -> Verdict:
    """fig10, fig15, fig16: is the fastest rival ahead of ecc-aht? The other families for comparison."""
    parts: list[Measure] = []
    others: list[Measure] = []
    for id, family in {**LOW_RANK, **HIGH_RANK}.items():
        results = given[id]
        delays = {name: results.times(name, for_good=True) for name in results.experiment.policies}
        rival = min((name for name in delays if name != "ecc-aht"), key=lambda name: delays[name][0].mean())
        note = lost_runs({name: delays[name][1] for name in (rival, "ecc-aht")}, "ecc-aht")
        gap = delays["ecc-aht"][0] - delays[rival][0]
        name = f"measurements lost to {rival} on {family}"
        (parts if id in LOW_RANK else others).append(judged(gap, results, name, f"on {family}", note=note))
    return conclude(parts, *LOW_RANK, *HIGH_RANK, beside=others)


def collapse(given: Given) -> Verdict:
    """fig17, fig18: final F1 at the highest ranks less that at the lowest."""
    parts = []
    for results in (given[id] for id in SWEEPS):
        for ends in rank_ends(results):
            low, high = (final_f1(results, settings, "ecc-aht") for settings in (ends.low, ends.high))
            name = f"of F1 lost {ends.where}, where F1 ends at {low.mean():.2f}"
            parts.append(judged(high - low, results, name, f"on {ends.kind}", above=COLLAPSE))
    return conclude(parts, *SWEEPS)


def regularization(given: Given) -> Verdict:
    """fig19 to fig26 against the plain runs: measurements saved by believing S + 0.01 I."""
    plain = {family: id for id, family in {**LOW_RANK, **HIGH_RANK}.items()}
    low: list[Measure] = []
    high: list[Measure] = []
    for id in REGULARIZED:
        for k, setting in enumerate(given[id].experiment.settings):
            if not setting.options.get("regularize"):
                continue
            before, lost = given[plain[setting.family]].times("ecc-aht", for_good=True)
            after, still = given[id].times("ecc-aht", k, for_good=True)
            runs = min(len(before), len(after))
            note = lost_runs({"plain": lost, "regularized": still}, "plain")
            name = f"measurements saved on {setting.family}"
            part = judged(before[:runs] - after[:runs], given[id], name, f"on {setting.family}", note=note)
            (low if setting.family in LOW_RANK.values() else high).append(part)
    helped, helped_too = ([part.when for part in parts if part.answer == "yes"] for parts in (low, high))
    verdict = conclude([*low, *high], *LOW_RANK, *HIGH_RANK, *REGULARIZED)
    if len(helped) == len(low) and not helped_too:
        return replace(verdict, word="holds", condition="")
    lacking = in_words((part.when for part in low if part.answer != "yes"), "or")
    if helped:
        missing, also = f", no effect seen {lacking}" * bool(lacking), f"; it helps {in_words(helped_too)} too"
        return replace(verdict, word="partly", condition=f"helps {in_words(helped)}{missing}{also * bool(helped_too)}")
    if helped_too or any(part.answer == "no" for part in low):
        helps = f"it helps {in_words(helped_too)} only" if helped_too else ""
        return replace(verdict, word="does not hold", condition=helps)
    return replace(verdict, word="not decided", condition=f"no effect seen {lacking}, where it should help")


def stopping(given: Given) -> Verdict:
    """The share of wrong sets among those at which the rule stopped, with Clopper-Pearson intervals."""
    results, parts = given["stopping"], []
    counted = zip(*error_table(results).values(), results.cells.items(), strict=True)
    for label, alpha, runs, _, share, low, high, _, ((k, _), found) in counted:
        answer: Answer = "no" if low > alpha else "yes" if high <= alpha else "open"
        wrong = found[:, 0] < results.experiment.settings[k].n_anomalies
        name, sample = f"% of {runs} announced sets wrong on {label}", tuple(wrong.astype(float).tolist())
        ends = 100 * float(low), 100 * float(high)
        parts.append(Measure(name, 100 * float(share), ends, sample, answer, f"on {label}"))
    verdict = conclude(parts, "stopping")
    return replace(verdict, traced_to=("stopping/summary.csv", "stopping/runs.csv"))


def asymptotics(given: Given) -> Verdict:
    """Searches continued to tiny alpha: measurements for each nat of log(1/alpha), times Gamma*."""
    results, parts = given["asymptotics"], []
    for k, setting in enumerate(results.experiment.settings):
        sample, lost = slopes(results, k)
        name = f"times 1/Gamma* for each nat of log(1/alpha) on {setting.label}"
        when = f"on {setting.label}"
        note = f"left out: {lost} of {results.runs} runs that did not stop" if lost else ""
        if not sample.size:
            parts.append(Measure(name, np.nan, None, (), "open", when, note))
            continue
        part = judged(np.log(sample), results, name, when, above=1.0, factor=True, note=note)
        low, high = part.interval if part.interval and len(sample) >= FEWEST else (-np.inf, np.inf)
        answer: Answer = "no" if low > 1 + CLOSE or high < 1 - CLOSE else "open"
        parts.append(replace(part, answer="yes" if low > 1 - CLOSE and high < 1 + CLOSE else answer))
    return conclude(parts, "asymptotics")


def intrinsic_barrier(given: Given) -> Verdict:
    """The rule for the collapse, applied to joint wherever it was run; ecc-aht for comparison."""
    ids, parts, others = with_joint(given), list[Measure](), list[Measure]()
    for id in ids:
        for loss, *beside in _joint_in_sweep(given[id]) if id in SWEEPS else _joint_in_family(given[id], LOW_RANK[id]):
            parts.append(loss)
            others += [replace(part, answer="open") for part in beside]
    return conclude(parts, *ids, beside=others)


def with_joint(given: Given) -> tuple[str, ...]:
    """The experiments about low rank in which joint was run."""
    return tuple(id for id in (*SWEEPS, *LOW_RANK) if id in given and "joint" in given[id].experiment.shown)


def _joint_in_sweep(results: Results) -> Iterator[list[Measure]]:
    for ends in rank_ends(results):
        low, high = (final_f1(results, settings, "joint") for settings in (ends.low, ends.high))
        rival = final_f1(results, ends.low, "ecc-aht")
        name = f"of F1 lost by joint {ends.where}, where it ends at {low.mean():.2f} and ecc-aht at {rival.mean():.2f}"
        yield [
            judged(high - low, results, name, f"on {ends.kind}", above=COLLAPSE),
            judged(low - rival, results, f"of F1 more than ecc-aht {ends.where}"),
            _saved_by_joint(results, ends.low, ends.where),
            *(_lowest(results, ends, policy) for policy in ("joint", "ecc-aht")),
        ]


def _joint_in_family(results: Results, family: str) -> Iterator[list[Measure]]:
    missing, name = 1.0 - results.arrivals[0, "joint"].final, f"of F1 missing at the end with joint on {family}"
    loss = judged(missing, results, name, f"on {family}", above=COLLAPSE)
    yield [loss, _saved_by_joint(results, [0], f"on {family}")]


def _saved_by_joint(results: Results, settings: Iterable[int], where: str) -> Measure:
    """Measurements until right for good, ecc-aht less joint, for each run the mean over some settings."""
    delays, lost = {}, {}
    for policy in ("joint", "ecc-aht"):
        times, lost[policy] = results.sweep(policy, settings, for_good=True)
        delays[policy] = times.mean(axis=1)
    own, others = (short(round(float(times.mean()), 1)) for times in delays.values())
    name = f"measurements saved against ecc-aht until right for good {where}: {own} against {others}"
    return judged(delays["ecc-aht"] - delays["joint"], results, name, note=lost_runs(lost, "ecc-aht"))


def _lowest(results: Results, ends: RankEnds, policy: str) -> Measure:
    finals = [results.arrivals[int(k), policy].final for k in ends.order]
    worst = int(np.argmin([float(final.mean()) for final in finals]))
    name = f"is the lowest final F1 of {policy} among {len(finals)} settings of {ends.kind}, "
    name += f"at effective rank {short(float(ends.ranks[worst]))}"
    return judged(finals[worst], results, name)


def _sweep(results: Results, policy: str) -> tuple[Array, Array, NDArray[np.bool_]]:
    """The x of the settings, delays and which of them were cut off, both (runs, settings)."""
    settings = results.experiment.settings
    return np.array([setting.x for setting in settings]), *results.sweep(policy, range(len(settings)))


def _falls(
    results: Results, x: Array, delays: Array, lost: NDArray[np.bool_], where: NDArray[np.bool_], name: str, when: str
) -> Measure:
    """The rank correlation of delay and x in a part of the sweep, which speaks for the claim where it is negative."""
    sample = [rank_correlation(x[where], run[where]) for run in delays]
    part = judged(sample, results, name, when, note=lost_runs({"ecc-aht": lost[:, where]}))
    return replace(part, answer=_OPPOSITE[part.answer])
