"""eccaht finds which few of many correlated sensor streams are anomalous with as few measurements as possible.

>>> from eccaht import Problem, Simulator, families, make_policy, search
>>> problem = Problem(families.toeplitz(100, rho=0.8), shift=5.0, n_anomalies=3, budget=4.0)
>>> world = Simulator(problem, seed=1, anomalies=[3, 40, 77])
>>> policy = make_policy("ecc-aht", problem, seed=7, stopping=None)
>>> result = search(policy, world.measure, max_measurements=100)
>>> result.anomalies
array([ 3, 40, 77])
"""

from eccaht import aliases as _aliases  # noqa: F401 -- dotted names of earlier versions
from eccaht.base import extras as _extras  # noqa: F401 -- says what to install where an optional package is missing
from eccaht.version import __version__ as __version__

TYPE_CHECKING = False  # not from typing, whose import takes time in which Ctrl-C is not yet answered
if TYPE_CHECKING:
    from eccaht import checks, plot
    from eccaht.plants.front.detector import Detector
    from eccaht.plants.front.model import PlantModel as Model
    from eccaht.plants.front.model import calibrate, load_model
    from eccaht.plants.front.rows import load_watch
    from eccaht.plants.incident.answer import Answer
    from eccaht.plants.watch import Alarm, Watch
    from eccaht.streams import covariance, measurements
    from eccaht.streams.covariance import effective_rank, families
    from eccaht.streams.designs import pair_design
    from eccaht.streams.policies import from_ask_tell, load_policy, make_policy, policy_names, register_policy
    from eccaht.streams.problem import Problem
    from eccaht.streams.run.loop import identify, search
    from eccaht.streams.run.world import Simulator
    from eccaht.streams.shifts import UnknownShift

__all__ = [
    "Alarm",
    "Answer",
    "Detector",
    "Model",
    "Problem",
    "Simulator",
    "UnknownShift",
    "Watch",
    "calibrate",
    "checks",
    "covariance",
    "effective_rank",
    "families",
    "from_ask_tell",
    "identify",
    "load_model",
    "load_policy",
    "load_watch",
    "make_policy",
    "measurements",
    "pair_design",
    "plot",
    "policy_names",
    "register_policy",
    "search",
]

# imported when they are first used: the command line must be ready for Ctrl-C before numpy and scipy are loaded
_PLACES = {
    "Alarm": "plants.watch",
    "Answer": "plants.incident",
    "Detector": "plants.front.detector",
    "Model": "plants.front",
    "Problem": "streams.problem",
    "Simulator": "streams.run",
    "UnknownShift": "streams.shifts",
    "Watch": "plants.watch",
    "calibrate": "plants.front",
    "checks": "checks",
    "covariance": "streams.covariance",
    "effective_rank": "streams.covariance",
    "families": "streams.covariance",
    "from_ask_tell": "streams.policies",
    "identify": "streams.run",
    "load_model": "plants.front",
    "load_policy": "streams.policies",
    "load_watch": "plants.front",
    "make_policy": "streams.policies",
    "measurements": "streams.measurements",
    "pair_design": "streams.designs",
    "plot": "plot",
    "policy_names": "streams.policies",
    "register_policy": "streams.policies",
    "search": "streams.run",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = importlib.import_module(f"{__name__}.{_PLACES[name]}")
    found = globals()[name] = module if name == _PLACES[name].rpartition(".")[2] else getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
