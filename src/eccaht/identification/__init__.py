"""From windows of sensor data to named sensors, with the evidence."""

from eccaht.identification.finding import Finding, Swap, investigate
from eccaht.identification.search import DEFAULT_POLICY, Entry, search

__all__ = ["DEFAULT_POLICY", "Entry", "Finding", "Swap", "investigate", "search"]
