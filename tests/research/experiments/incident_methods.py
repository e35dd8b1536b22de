"""A method in place of ours, so that the bench is tested without a model: z-scores, sure of what is far out."""

from eccaht.base.arrays import Index
from eccaht.research.datasets.labelled import CaseReadings
from eccaht.research.experiments.incidents_cases import Judge, Judgement, LabelledCase
from eccaht.research.experiments.rivals import z_mean


def z_scores(history: CaseReadings, known: Index, seed: int | None) -> Judge:  # noqa: ARG001
    """Name what is farther than two standard deviations; be sure if something is farther than three."""
    score = z_mean(history.rows[:, known])

    def judge(case: LabelledCase) -> Judgement:
        scores = score(case.readings.rows[:0, known], case.readings.rows[case.start :, known])
        order, named = known[(-scores).argsort(kind="stable")], known[scores > 2.0]
        return Judgement(tuple(order.tolist()), frozenset(named.tolist()), 0.9, bool(scores.max() > 3.0))

    return judge
