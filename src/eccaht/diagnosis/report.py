"""All checks of a model, and the verdict on the whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from eccaht.data.model import Model
from eccaht.diagnosis.checks import CHECKS
from eccaht.diagnosis.evidence import Evidence
from eccaht.diagnosis.expectation import Expectation, expect, impossible, judge
from eccaht.diagnosis.verdicts import Check, Verdict, worst


@dataclass(frozen=True)
class Diagnosis:
    """The checks of a model and, if a search was described, what it would take."""

    evidence: Evidence
    checks: tuple[Check, ...]
    expectation: Expectation | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return worst(check.verdict for check in self.checks)

    @property
    def about(self) -> str:
        """The model in a sentence."""
        model, clock = self.evidence.model, self.evidence.model.clock
        return (
            f"{len(model.names)} sensors, {model.n_windows} windows of {clock.length(model.seconds)} from "
            f"{clock.show(model.first)} to {clock.show(model.last)}{clock.said}, covariance by {model.estimator}"
            + (f" with ridge {model.ridge:g}" if model.ridge else "")
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        model = self.evidence.model
        return {
            "verdict": self.verdict,
            "model": {
                "sensors": list(model.names),
                "windows": model.n_windows,
                "window_seconds": model.seconds,
                "first": model.clock.exact(model.first),
                "last": model.clock.exact(model.last),
                "estimator": model.estimator,
                "ridge": model.ridge,
            },
            "checks": [asdict(check) for check in self.checks],
            "expectation": None if self.expectation is None else self.expectation.as_dict(),
        }


def diagnose(model: Model, **search: Any) -> Diagnosis:
    """Check a model; with n_anomalies=, shift= and further arguments of `expect`, also simulate that search."""
    seen = Evidence(model)
    expectation, verdicts = None, []
    if search:
        try:
            expectation = expect(model, **search)
            verdicts = [judge(expectation)]
        except ArithmeticError as error:
            verdicts = [impossible(str(error))]
    return Diagnosis(seen, (*(check(seen) for check in CHECKS), *verdicts), expectation)
