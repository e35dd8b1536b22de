"""What users of Python call: from a history to a model, and from new data to an answer, events or drills."""

from eccaht.plants.front.drills import Drills
from eccaht.plants.front.model import PlantModel, calibrate, load_model
from eccaht.plants.front.model import PlantModel as Model
from eccaht.plants.front.rows import RowWatch, load_watch

__all__ = ["Drills", "Model", "PlantModel", "RowWatch", "calibrate", "load_model", "load_watch"]
