"""All checks of a model, and the verdict on the whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from eccaht.base.presentation.text import percent
from eccaht.plants.diagnose.checks import CHECKS
from eccaht.plants.diagnose.expectation import Expectation, expect, impossible, judge
from eccaht.plants.diagnose.verdicts import ALPHA, VERDICTS, Check, Verdict, actual_error
from eccaht.plants.diagnose.view import ModelView
from eccaht.plants.model.model import Model


@dataclass(frozen=True)
class Diagnosis:
    """The checks of a model and, if a search was described, what it would take."""

    view: ModelView
    checks: tuple[Check, ...]
    expectation: Expectation | None = None

    @property
    def verdict(self) -> Verdict:
        return max((check.verdict for check in self.checks), key=VERDICTS.index)

    @property
    def caution(self) -> str:
        """What the report of a search with this model must say, "" if the model is fit for use."""
        if self.verdict == "ok":
            return ""
        reasons = [f"{check.name} ({check.shown})" for check in self.checks if check.verdict == self.verdict]
        state = "not fit for use" if self.verdict == "not fit" else "to be used with care"
        text = f"the model is {state}: {', '.join(reasons)}."
        if self.verdict == "not fit" and self.error > ALPHA:
            text += f" A search with a nominal error rate of {percent(ALPHA)} errs in {percent(self.error)} or more."
        return f"{text} 'eccaht diagnose' says what to do."

    @property
    def error(self) -> float:
        """Least share of wrong results where the nominal one is ALPHA, by the worst check that is not ok."""
        factors = [check.factor for check in self.checks if check.verdict != "ok"]
        return actual_error(max(factors, default=1.0))

    def brief(self) -> dict[str, Any]:
        """The verdict, the checks that are not ok, and the actual error for the nominal ALPHA, for JSON."""
        concerned = [check.name for check in self.checks if check.verdict != "ok"]
        return {"verdict": self.verdict, "checks": concerned, "error": self.error, "promised_error": ALPHA}

    @property
    def about(self) -> str:
        model, clock = self.view.model, self.view.model.clock
        return (
            f"{len(model.names)} sensors, {model.n_windows} windows of {clock.length(model.seconds)} from "
            f"{clock.show(model.first)} to {clock.show(model.last)}{clock.said}, covariance by {model.estimator}"
            + (f" with ridge {model.ridge:g}" if model.ridge else "")
        )

    def as_dict(self) -> dict[str, Any]:
        model = self.view.model
        return {
            "verdict": self.verdict,
            "error": self.error,
            "promised_error": ALPHA,
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


def diagnose(model: Model, *, advise: bool = True, **search: Any) -> Diagnosis:
    """Check a model; with n_anomalies=, shift= and further arguments of `expect`, also simulate that search.

    advise: whether to try out remedies; without it actions name only those that need no trial.
    """
    view, expectation, simulated = ModelView(model, advise=advise), None, []
    if search:
        try:
            expectation = expect(model, **search)
            simulated = [judge(expectation)]
        except ArithmeticError as error:
            simulated = [impossible(str(error))]
    return Diagnosis(view, (*(check(view) for check in CHECKS), *simulated), expectation)
