"""All checks of a model, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Callable

from eccaht.diagnose.history_checks import check_drift, check_independence, check_stability, check_windows
from eccaht.diagnose.sensor_checks import (
    check_condition,
    check_duplicates,
    check_imputed,
    check_normality,
    check_rank,
    check_stuck,
)
from eccaht.diagnose.verdicts import Check
from eccaht.diagnose.view import ModelView
from eccaht.model.model import Model

CHECKS: tuple[Callable[[ModelView], Check], ...] = (
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
    seen = ModelView(model)
    return [check(seen) for check in CHECKS]
