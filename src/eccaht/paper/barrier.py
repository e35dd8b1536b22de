"""Is the collapse at low effective rank intrinsic? What joint, with the exact likelihood, does where it was run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from eccaht.arrays import Index
from eccaht.paper.judges import COLLAPSE, LOW_RANK
from eccaht.paper.judging import Claim, Measure, Verdict, conclude, judged, lost_runs, short, times
from eccaht.paper.ranks import RankEnds, final_f1, rank_ends
from eccaht.paper.results import Results

METHOD, RIVAL = "joint", "ecc-aht"
_SWEEPS = ("fig17", "fig18")


def barrier(results: Mapping[str, Results]) -> Claim | None:
    """The claim that the barrier is intrinsic, to be judged by the runs of joint; None where there are none."""
    shown = [id for id in (*_SWEEPS, *LOW_RANK) if id in results and METHOD in results[id].experiment.shown]
    if not shown:
        return None
    return Claim(
        "intrinsic-barrier",
        "The collapse at low effective rank is intrinsic: exact inference meets it too.",
        "Appendix, Figures 17 and 18",
        tuple(shown),
        f"The rule for the collapse, applied to {METHOD}, which infers whole sets from the exact likelihood: F1 "
        f"lost in the fifth of the settings of lowest rank against the fifth of highest rank, the interval above "
        f"{COLLAPSE:g}; in the figures of one family, F1 missing at the end. Only figures in which {METHOD} was run "
        "(--with joint) enter; the differences from ecc-aht are for comparison.",
        _judge,
        f"Wherever {METHOD} ends right, the readings told enough: what ecc-aht loses there it loses by its inference, "
        "which scores each stream as if no other were anomalous, and not for want of information in the noise.",
    )


def _judge(given: Mapping[str, Results]) -> Verdict:
    mine = barrier(given)
    ids = () if mine is None else mine.experiments
    parts: list[Measure] = []
    others: list[Measure] = []
    for id in ids:
        for loss, *beside in _in_sweep(given[id]) if id in _SWEEPS else [_in_family(given[id], LOW_RANK[id])]:
            parts.append(loss)
            others += beside
    verdict = conclude(parts, *ids)
    return replace(verdict, measures=(*verdict.measures, *(replace(part, answer="open") for part in others)))


def _in_sweep(results: Results) -> Iterator[list[Measure]]:
    for ends in rank_ends(results):
        low, high = (final_f1(results, settings, METHOD) for settings in (ends.low, ends.high))
        rival = final_f1(results, ends.low, RIVAL)
        where = f"at effective ranks {ends.span} of {ends.kind}"
        name = f"of F1 lost by {METHOD} {where}, where it ends at {low.mean():.2f} and {RIVAL} at {rival.mean():.2f}"
        yield [
            judged(high - low, results, name, f"the noise is {ends.kind}", above=COLLAPSE),
            judged(low - rival, results, f"of F1 more than {RIVAL} {where}"),
            _saved(results, ends.low, where),
            *(_lowest(results, ends, policy) for policy in (METHOD, RIVAL)),
        ]


def _in_family(results: Results, family: str) -> list[Measure]:
    only = np.zeros(1, dtype=np.intp)
    missing = 1.0 - final_f1(results, only, METHOD)
    name = f"of F1 missing at the end with {METHOD} on {family}"
    return [
        judged(missing, results, name, f"the noise is {family}", above=COLLAPSE),
        _saved(results, only, f"on {family}"),
    ]


def _saved(results: Results, settings: Index, where: str) -> Measure:
    """Measurements until right for good, ecc-aht less joint, for each run the mean over some settings."""
    delays, lost = {}, {}
    for policy in (METHOD, RIVAL):
        columns, censored = zip(*(times(results, policy, int(k), for_good=True) for k in settings), strict=True)
        delays[policy], lost[policy] = np.mean(columns, axis=0), sum(censored)
    own, others = (short(round(float(delays[policy].mean()), 1)) for policy in (METHOD, RIVAL))
    name = f"measurements fewer than {RIVAL} until right for good {where}: {own} against {others}"
    return judged(delays[RIVAL] - delays[METHOD], results, name, note=lost_runs(lost, RIVAL))


def _lowest(results: Results, ends: RankEnds, policy: str) -> Measure:
    """F1 at the end in that setting of all where it is lowest."""
    means = [float(results.f1(int(k), policy)[:, -1].mean()) for k in ends.order]
    worst = int(np.argmin(means))
    name = f"is the lowest final F1 of {policy} among {len(means)} settings of {ends.kind}, "
    name += f"at effective rank {short(float(ends.ranks[worst]))}"
    return judged(results.f1(int(ends.order[worst]), policy)[:, -1], results, name)
