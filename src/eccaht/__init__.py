"""eccaht finds the few wrong sensors among many correlated ones by differences that cancel the noise they share.

>>> from eccaht import Problem, Simulator, families, make_policy, search
>>> problem = Problem(families.toeplitz(100, rho=0.8), shift=5.0, n_anomalies=3, budget=4.0)
>>> world = Simulator(problem, seed=1, anomalies=[3, 40, 77])
>>> policy = make_policy("ecc-aht", problem, seed=7, stopping=None)
>>> result = search(policy, world.measure, max_measurements=100)
>>> result.anomalies
array([ 3, 40, 77])
"""

from eccaht.base.lazy import attach
from eccaht.version import __version__ as __version__

__getattr__, __dir__ = attach(__name__, __file__)
