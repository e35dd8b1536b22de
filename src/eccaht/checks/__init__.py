"""Conformance suites that users run on their own parts."""

from eccaht.checks.posterior import check_posterior

__all__ = ["check_posterior"]
