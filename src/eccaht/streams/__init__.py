"""Streams with a known covariance: search them with few measurements, or watch them.

From below: `covariance` and `shifts` describe noise and faults, `measurements` says which weights are allowed,
`problem` puts these together; `posterior` holds what is believed, `designs` chooses a measurement, `policies` composes
both with a rule of `stopping`; `run` owns the loop, `limits` says what no search can beat, `watch` raises alarms.
"""

from eccaht.base.doors import open_rooms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from eccaht.streams.covariance import *
    from eccaht.streams.designs import *
    from eccaht.streams.limits import *
    from eccaht.streams.measurements import *
    from eccaht.streams.policies import *
    from eccaht.streams.posterior import *
    from eccaht.streams.problem import *
    from eccaht.streams.run import *
    from eccaht.streams.sets import *
    from eccaht.streams.shifts import *
    from eccaht.streams.stopping import *
    from eccaht.streams.watch import *

__getattr__ = open_rooms(
    __name__,
    (
        "shifts",
        "covariance",
        "measurements",
        "sets",
        "problem",
        "posterior",
        "designs",
        "stopping",
        "limits",
        "policies",
        "run",
        "watch",
    ),
)
