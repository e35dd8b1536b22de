"""Whether the barrier is intrinsic is decided by joint where it was run, and by nothing where it was not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import ArrayLike

from eccaht.research.paper.catalogue import EXPERIMENTS
from eccaht.research.paper.claims import claims_about
from eccaht.research.paper.experiment import Setting
from eccaht.research.paper.results import Results
from eccaht.research.paper.verdicts import Claim, Verdict

RUNS, HORIZON = 10, 50
NEVER = HORIZON + 1
SPREAD = np.arange(RUNS) % 3
Times = Callable[[Setting, str], ArrayLike]


def fabricated(id: str, when: Times, *names: str) -> Results:
    experiment = replace(EXPERIMENTS[id], horizon=HORIZON).beside(*names)
    hits = {}
    for k, setting in enumerate(experiment.settings):
        for policy in experiment.shown:
            times = np.broadcast_to(np.asarray(when(setting, policy)), RUNS)
            hits[k, policy] = (5 * (np.arange(1, HORIZON + 1) >= times[:, None])).astype(np.int32)
    return Results(experiment, 0, hits)


def low_rank(setting: Setting) -> bool:
    shape = setting.arguments
    return shape.get("alpha", 0) > 0.985 or shape.get("length_scale", 0) > 4


def barrier(given: dict[str, Results]) -> list[Claim]:
    return [claim for claim in claims_about(given) if claim.id == "intrinsic-barrier"]


def verdict(when: Times, *ids: str) -> Verdict:
    given = {id: fabricated(id, when, "joint") for id in ids}
    (claim,) = barrier(given)
    assert claim.experiments == ids
    return claim.verdict(given)


def test_without_joint_there_is_no_such_claim() -> None:
    plain = {id: fabricated(id, lambda *_: 20, "joint-pair") for id in ("fig18", "fig15")}
    assert barrier(plain) == []
    assert barrier({}) == []
    assert barrier({"fig5a": fabricated("fig5a", lambda *_: 20, "joint")}) == []


def test_it_stands_where_joint_collapses_too_and_falls_where_it_does_not() -> None:
    ids = ("fig17", "fig18", "fig15")
    falls = verdict(lambda s, policy: 9 + SPREAD if policy == "joint" or not low_rank(s) else NEVER, *ids)
    assert falls.word == "does not hold"
    assert len([part for part in falls.measures if part.answer == "no"]) == 4
    stands = verdict(lambda s, _: NEVER if s.family == "rbf" else 9, "fig15")
    assert stands.word == "holds"
    half = verdict(lambda s, _: NEVER if low_rank(s) and s.family == "rbf" else 9, "fig17", "fig18")
    assert half.sentence == "partly: holds on rbf, not on spectral mixture or spectral mixture of unit variance"


def test_numbers_beside_ecc_aht_are_those_of_the_runs() -> None:
    found = verdict(lambda s, policy: 10 + SPREAD if policy == "joint" else NEVER if low_rank(s) else 30, "fig18")
    loss, more, saved, lowest, rivals = found.measures
    assert (loss.value, more.value) == (0.0, 1.0)
    assert "where it ends at 1.00 and ecc-aht at 0.00" in loss.name
    assert saved.value == pytest.approx(HORIZON - 10 - SPREAD.mean())
    assert saved.name.endswith(f"{10 + SPREAD.mean():.1f} against {HORIZON}")
    assert saved.note == f"a lower bound, cut off at the horizon: {8 * RUNS} runs of ecc-aht"
    assert (lowest.value, rivals.value) == (1.0, 0.0)
    assert all(part.answer == "open" for part in (more, saved, lowest, rivals))
    assert found.traced_to == ("fig18/summary.csv", "claims/runs.csv")


def test_a_family_is_judged_by_what_is_missing_at_the_end() -> None:
    missing, saved = verdict(lambda _, policy: 10 if policy == "joint" else 25, "fig16").measures
    assert (missing.value, missing.answer) == (0.0, "no")
    assert saved.value == 15
    assert "on kronecker: 10 against 25" in saved.name
