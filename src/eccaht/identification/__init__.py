"""From windows of sensor data to named sensors, with the evidence."""

from eccaht.identification.finding import Finding, Swap, investigate
from eccaht.identification.search import Entry, search

__all__ = ["Entry", "Finding", "Swap", "investigate", "search"]
