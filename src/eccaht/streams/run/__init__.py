"""A policy against a world: the loop, where readings come from, and what is kept of a search."""

from eccaht.streams.run.loop import (
    Hits as Hits,
    Identification as Identification,
    Step as Step,
    estimated_shifts as estimated_shifts,
    search as search,
    stays_right as stays_right,
    steps as steps,
)
from eccaht.streams.run.world import (
    Instrument as Instrument,
    Reading as Reading,
    Simulator as Simulator,
    World as World,
)
