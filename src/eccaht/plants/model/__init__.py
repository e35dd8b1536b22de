"""From a history of normal operation to a model, and new data prepared as the history was."""

from eccaht.plants.model.calibration import calibrate, calibrate_with_windows
from eccaht.plants.model.history import History
from eccaht.plants.model.model import Model, load_model

__all__ = ["History", "Model", "calibrate", "calibrate_with_windows", "load_model"]
