"""Conformance suites that users run on their own parts: policies, covariance operators, posteriors, sources.

>>> from eccaht import checks, families
>>> checks.check_covariance(families.toeplitz(8, rho=0.5))
{}

What it returns are the checks that did not apply, with the reason. The first property that does not hold raises a
`CheckFailure`, an AssertionError of one line. `policy_checks` and `covariance_checks` list the single checks, so that
pytest can run each as a test of its own.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from eccaht.checks.covariance import check_covariance, covariance_checks
    from eccaht.checks.policy import check_policy, policy_checks
    from eccaht.checks.posterior import check_posterior
    from eccaht.checks.source import check_source
    from eccaht.checks.suite import CheckFailure

_PLACES = {
    "CheckFailure": "suite",
    "check_covariance": "covariance",
    "check_policy": "policy",
    "check_posterior": "posterior",
    "check_source": "source",
    "covariance_checks": "covariance",
    "policy_checks": "policy",
}

__all__ = [
    "CheckFailure",
    "check_covariance",
    "check_policy",
    "check_posterior",
    "check_source",
    "covariance_checks",
    "policy_checks",
]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
