"""Streams of a problem, whose covariance is known, watched for steps: quickest detection, and which streams moved."""

from eccaht.streams.watch.alarm import Alarm, Kind, State, Time

__all__ = ["Alarm", "Kind", "State", "Time"]
