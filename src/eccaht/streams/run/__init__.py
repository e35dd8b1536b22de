"""A policy against a world: the loop, where readings come from, and what is kept of a search."""

from eccaht.streams.run.loop import (
    Identification,
    Recorder,
    Step,
    estimated_shifts,
    identify,
    search,
    stays_right,
    steps,
)
from eccaht.streams.run.recorders import Hits, Ledger, LedgerEntry
from eccaht.streams.run.world import Instrument, Reading, Simulator, Window, World

__all__ = [
    "Hits",
    "Identification",
    "Instrument",
    "Ledger",
    "LedgerEntry",
    "Reading",
    "Recorder",
    "Simulator",
    "Step",
    "Window",
    "World",
    "estimated_shifts",
    "identify",
    "search",
    "stays_right",
    "steps",
]
