"""Streams of a problem, whose covariance is known, watched for steps: quickest detection, and which streams moved."""

from eccaht.streams.watch.alarm import Alarm as Alarm, Kind as Kind, State as State, Time as Time
