"""Watching streams round the clock: an alarm in time, rarely a false one, and the streams named."""

from eccaht.watch.watch import Alarm, Watch

__all__ = ["Alarm", "Watch"]
