"""What users of Python call: from a history to a model, and from new data to an answer, events or drills."""

from eccaht.plants.front.calibration import calibrate
from eccaht.plants.front.drills import Drills
from eccaht.plants.front.rows import RowWatch, load_watch
from eccaht.plants.model.model import Model, load_model

__all__ = ["Drills", "Model", "RowWatch", "calibrate", "load_model", "load_watch"]
