"""From a history of normal operation to a model, and new data prepared as the history was."""

from eccaht.model.calibration import calibrate, calibrate_with_windows
from eccaht.model.history import History
from eccaht.model.model import Model, load_model

__all__ = ["History", "Model", "calibrate", "calibrate_with_windows", "load_model"]
