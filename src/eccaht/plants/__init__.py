"""Plants: from a user's own rows to the sensors that are wrong.

From below: `data` turns files, frames and growing files into rows and windows; `model` learns normal operation from a
history; `incident` is the one engine (alarms, dates, names, drills, answers); `watch` runs it window by window and
makes events. `replay` and `diagnose` serve searches by weighted sums of sensors on the same data; `retrain` renews a
model. `front`, on top, is what users call: `eccaht` itself exports it.
"""

from eccaht.base.doors import open_rooms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from eccaht.plants.data import *
    from eccaht.plants.diagnose import *
    from eccaht.plants.incident import *
    from eccaht.plants.model import *
    from eccaht.plants.replay import *
    from eccaht.plants.watch import *

__getattr__ = open_rooms(__name__, ("data", "model", "replay", "incident", "diagnose", "watch"))
