"""Where readings come from."""

from eccaht.environments.replay import EndOfData, Reading, Replay
from eccaht.environments.simulated import Simulator

__all__ = ["EndOfData", "Reading", "Replay", "Simulator"]
