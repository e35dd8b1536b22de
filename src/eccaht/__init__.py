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

_CALIBRATE, _IDENTIFY = "write eccaht.calibrate(history)", "write model.identify(data) of a calibrated model"
_HINTS = dict.fromkeys(("fit", "train", "learn", "read_csv", "read_parquet"), _CALIBRATE)
_HINTS |= dict.fromkeys(("detect", "diagnose", "identify", "anomalies"), _IDENTIFY)
_HINTS |= dict.fromkeys(("load", "open", "read_model", "from_file"), "write eccaht.load_model(path)")
_HINTS |= {name: f"write model.{name}(...) of a calibrated model" for name in ("predict", "drill", "watch", "update")}
__getattr__, __dir__ = attach(__name__, __file__, _HINTS)
