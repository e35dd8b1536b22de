"""From a history of normal operation to a model, and new data prepared as the history was."""

from eccaht.plants.model.calibration import calibrate, calibrate_with_windows
from eccaht.plants.model.model import Model, Notation, load_model, parse_model

__all__ = ["Model", "Notation", "calibrate", "calibrate_with_windows", "load_model", "parse_model"]
