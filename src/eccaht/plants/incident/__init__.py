"""Incidents as they are: which sensors are wrong, since when, how, and how confident that is."""

from eccaht.plants.incident.counts import Counts as Counts, Drilled as Drilled
from eccaht.plants.incident.drill import drill_history as drill_history, drill_trials as drill_trials
from eccaht.plants.incident.investigate import investigate_incident as investigate_incident
