"""Is a calibrated model fit for use? Checks with a number, a verdict and what to do."""

from eccaht.plants.diagnose.report import Diagnosis, Expectation, diagnose, expect
from eccaht.plants.diagnose.view import Check, Verdict

__all__ = ["Check", "Diagnosis", "Expectation", "Verdict", "diagnose", "expect"]
