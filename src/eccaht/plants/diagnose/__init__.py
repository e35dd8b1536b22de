"""Is a calibrated model fit for searches by weighted sums? Checks with a number, a verdict and what to do."""

from eccaht.plants.diagnose.report import PURPOSE, Diagnosis, Expectation, diagnose, expect
from eccaht.plants.diagnose.view import Check, Verdict

__all__ = ["PURPOSE", "Check", "Diagnosis", "Expectation", "Verdict", "diagnose", "expect"]
