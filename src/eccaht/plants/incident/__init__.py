"""Incidents as they are: which sensors are wrong, since when, how, and how sure that is."""

from eccaht.plants.incident.answer import Answer
from eccaht.plants.incident.counts import Counts, Drilled
from eccaht.plants.incident.document import as_document
from eccaht.plants.incident.drill import drill_history, drill_trials
from eccaht.plants.incident.investigate import investigate_incident, usual_rate

__all__ = [
    "Answer",
    "Counts",
    "Drilled",
    "as_document",
    "drill_history",
    "drill_trials",
    "investigate_incident",
    "usual_rate",
]
