"""Is a calibrated model fit for use? Checks with a number, a verdict and what to do."""

from eccaht.diagnosis.checks import run_checks
from eccaht.diagnosis.expectation import Expectation, expect
from eccaht.diagnosis.report import Diagnosis, diagnose
from eccaht.diagnosis.verdicts import Check, Verdict, worst

__all__ = ["Check", "Diagnosis", "Expectation", "Verdict", "diagnose", "expect", "run_checks", "worst"]
