"""Watching streams round the clock: an alarm in time, rarely a false one, and the streams named."""

from eccaht.plants.watch.events import Event as Event
from eccaht.plants.watch.hearing import Hearing as Hearing
from eccaht.plants.watch.plant import PlantWatch as PlantWatch
from eccaht.plants.watch.session import (
    Session as Session,
    false_alarm_every as false_alarm_every,
    rate_line as rate_line,
)
from eccaht.streams import Alarm as Alarm
