from . import checks as checks, covariance as covariance, measurements as measurements
from .plants.front import Model as Model, calibrate as calibrate, load_model as load_model, load_watch as load_watch
from .plants.front.detector import Detector as Detector
from .plants.answer import Answer as Answer
from .streams.covariance import effective_rank as effective_rank, families as families
from .streams.designs import pair_design as pair_design
from .streams.policies import (
    from_ask_tell as from_ask_tell,
    load_policy as load_policy,
    make_policy as make_policy,
    policy_names as policy_names,
    register_policy as register_policy,
)
from .streams.problem import Problem as Problem
from .streams.run import Simulator as Simulator, search as search
from .streams.shifts import UnknownShift as UnknownShift
from .streams.watch.alarm import Alarm as Alarm
from .streams.watch.watch import Watch as Watch
from .version import __version__ as __version__
