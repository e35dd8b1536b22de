"""Streams of a problem watched for a change, with few readings a step or all of them."""

from eccaht.streams.watch.alarm import Alarm as Alarm, Kind as Kind, State as State, Time as Time
from eccaht.streams.watch.watch import Watch as Watch
