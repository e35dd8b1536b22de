"""Conformance suites that users run on their own parts: policies, covariances, posteriors, sources.

>>> from eccaht import checks, families
>>> checks.check_covariance(families.toeplitz(8, rho=0.5))
{}

What it returns are the checks that did not apply, with the reason. The first property that does not hold raises a
`CheckFailure`, an AssertionError of one line; an error that the part itself raises comes through as it is.
"""

from eccaht.checks.covariance import check_covariance as check_covariance
from eccaht.checks.policy import check_policy as check_policy
from eccaht.checks.posterior import check_posterior as check_posterior
from eccaht.checks.source import check_source as check_source
from eccaht.checks.suite import CheckFailure as CheckFailure
