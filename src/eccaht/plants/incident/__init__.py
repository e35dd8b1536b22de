"""Incidents as they are: which sensors are wrong, since when, how, and how sure that is."""
