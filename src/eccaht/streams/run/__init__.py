"""A policy against a world: the loop, where readings come from, and what is kept of a search."""

from eccaht.streams.run.loop import Identification, Instrument, Reading, Recorder, Step, World, identify, steps
from eccaht.streams.run.recorders import Hits, Ledger, LedgerEntry
from eccaht.streams.run.simulator import Simulator

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
    "World",
    "identify",
    "steps",
]
