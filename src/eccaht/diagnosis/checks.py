"""All checks of a model, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Callable

from eccaht.data.model import Model
from eccaht.diagnosis.evidence import Evidence
from eccaht.diagnosis.history_checks import check_drift, check_independence, check_stability, check_windows
from eccaht.diagnosis.sensor_checks import (
    check_condition,
    check_duplicates,
    check_imputed,
    check_normality,
    check_rank,
    check_stuck,
)
from eccaht.diagnosis.verdicts import Check

CHECKS: tuple[Callable[[Evidence], Check], ...] = (
    check_windows,
    check_independence,
    check_drift,
    check_stability,
    check_normality,
    check_duplicates,
    check_condition,
    check_rank,
    check_stuck,
    check_imputed,
)


def run_checks(model: Model) -> list[Check]:
    """Check a model."""
    seen = Evidence(model)
    return [check(seen) for check in CHECKS]
