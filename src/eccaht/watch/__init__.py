"""Watching streams round the clock: an alarm in time, rarely a false one, and the streams named."""

from eccaht.streams.alarm import Alarm
from eccaht.watch.watch import Watch

__all__ = ["Alarm", "Watch"]
