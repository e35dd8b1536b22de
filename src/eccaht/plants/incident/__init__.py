"""Incidents as they are: which sensors are wrong, since when, how, and how confident that is."""

from eccaht.plants.incident.counts import Counts, Drilled
from eccaht.plants.incident.drill import drill_history, drill_trials
from eccaht.plants.incident.investigate import investigate_incident

__all__ = [
    "Counts",
    "Drilled",
    "drill_history",
    "drill_trials",
    "investigate_incident",
]
