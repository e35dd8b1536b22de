"""A policy against a world: the loop, where readings come from, and what is kept of a search."""

from eccaht.run.loop import Identification, Instrument, Reading, Recorder, Step, World, identify, steps
from eccaht.run.recorders import Hits, Ledger, LedgerEntry
from eccaht.run.replay import EndOfData, Replay
from eccaht.run.simulator import Simulator

__all__ = [
    "EndOfData",
    "Hits",
    "Identification",
    "Instrument",
    "Ledger",
    "LedgerEntry",
    "Reading",
    "Recorder",
    "Replay",
    "Simulator",
    "Step",
    "World",
    "identify",
    "steps",
]
