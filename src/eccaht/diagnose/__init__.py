"""Is a calibrated model fit for use? Checks with a number, a verdict and what to do."""

from eccaht.diagnose.expectation import Expectation, expect
from eccaht.diagnose.report import Diagnosis, diagnose
from eccaht.diagnose.verdicts import Check, Verdict

__all__ = ["Check", "Diagnosis", "Expectation", "Verdict", "diagnose", "expect"]
