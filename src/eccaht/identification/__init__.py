"""From windows of sensor data to named sensors, with the evidence."""

from eccaht.identification.finding import Finding, investigate
from eccaht.identification.record import Change, Record
from eccaht.identification.search import Entry, search

__all__ = ["Change", "Entry", "Finding", "Record", "investigate", "search"]
