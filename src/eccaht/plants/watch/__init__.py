"""Watching streams round the clock: an alarm in time, rarely a false one, and the streams named."""

from eccaht.plants.watch.events import Event, Hearing
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.session import Session, false_alarm_every, rate_line
from eccaht.streams import Alarm

__all__ = ["Alarm", "Event", "Hearing", "PlantWatch", "Session", "false_alarm_every", "rate_line"]
