"""A policy against a world: the loop, where readings come from, and what is kept of a search."""

from eccaht.run.loop import Identification, Step, identify, run_episode
from eccaht.run.replay import EndOfData, Reading, Replay
from eccaht.run.search import Entry, search
from eccaht.run.simulator import Simulator

__all__ = [
    "EndOfData",
    "Entry",
    "Identification",
    "Reading",
    "Replay",
    "Simulator",
    "Step",
    "identify",
    "run_episode",
    "search",
]
