"""A policy against a world: the loop, where readings come from, and what is kept of a search."""

from eccaht.streams.run.loop import (
    Hits,
    Identification,
    Step,
    estimated_shifts,
    search,
    stays_right,
    steps,
)
from eccaht.streams.run.world import Instrument, Reading, Simulator, World

__all__ = [
    "Hits",
    "Identification",
    "Instrument",
    "Reading",
    "Simulator",
    "Step",
    "World",
    "estimated_shifts",
    "search",
    "stays_right",
    "steps",
]
