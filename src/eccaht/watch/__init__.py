"""Watching streams round the clock: an alarm in time, rarely a false one, and the streams named."""

from eccaht.watch.alarm import Alarm
from eccaht.watch.kept import count_watch
from eccaht.watch.watch import Watch

__all__ = ["Alarm", "Watch", "count_watch"]
