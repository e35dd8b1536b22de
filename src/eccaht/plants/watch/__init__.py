"""Watching streams round the clock: an alarm in time, rarely a false one, and the streams named."""

from eccaht.plants.watch.watch import Watch
from eccaht.streams.watch.alarm import Alarm

__all__ = ["Alarm", "Watch"]
