"""Labelled collections of sensor data, and generated plants."""
