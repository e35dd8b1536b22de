"""eccaht finds which few of many correlated sensor streams are anomalous with as few measurements as possible.

>>> from eccaht import Problem, Simulator, families, identify, make_policy
>>> problem = Problem(families.toeplitz(100, rho=0.8), shift=5.0, n_anomalies=3, budget=4.0)
>>> world = Simulator(problem, seed=1, anomalies=[3, 40, 77])
>>> policy = make_policy("ecc-aht", problem, seed=7, stopping=None)
>>> result = identify(policy, world.measure, max_measurements=100)
>>> result.anomalies
array([ 3, 40, 77])
"""

from eccaht import extras as _extras  # noqa: F401 -- says what to install where an optional package is missing

TYPE_CHECKING = False  # not from typing, whose import takes time in which Ctrl-C is not yet answered
if TYPE_CHECKING:
    from eccaht import checks, covariance, measurements
    from eccaht.covariance import effective_rank, families
    from eccaht.measure import pair_design
    from eccaht.policies import load_policy, make_policy, policy_names
    from eccaht.problem import Problem
    from eccaht.run.loop import identify
    from eccaht.run.simulator import Simulator
    from eccaht.shifts import UnknownShift
    from eccaht.watch import Alarm, Watch

__version__ = "0.2.0"

__all__ = [
    "Alarm",
    "Problem",
    "Simulator",
    "UnknownShift",
    "Watch",
    "checks",
    "covariance",
    "effective_rank",
    "families",
    "identify",
    "load_policy",
    "make_policy",
    "measurements",
    "pair_design",
    "policy_names",
]

# imported when they are first used: the command line must be ready for Ctrl-C before numpy and scipy are loaded
_PLACES = {
    "Alarm": "watch",
    "Problem": "problem",
    "Simulator": "run",
    "UnknownShift": "shifts",
    "Watch": "watch",
    "checks": "checks",
    "covariance": "covariance",
    "effective_rank": "covariance",
    "families": "covariance",
    "identify": "run",
    "load_policy": "policies",
    "make_policy": "policies",
    "measurements": "measurements",
    "pair_design": "measure",
    "policy_names": "policies",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = importlib.import_module(f"{__name__}.{_PLACES[name]}")
    found = globals()[name] = module if name == _PLACES[name] else getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
