"""What users of Python call: from a history to a model, and from new data to an answer, events or drills."""

from eccaht.plants.front.calibration import calibrate as calibrate
from eccaht.plants.front.drills import Drills as Drills
from eccaht.plants.front.reading_drills import ReadingDrills as ReadingDrills
from eccaht.plants.front.rows import RowWatch as RowWatch, load_watch as load_watch
from eccaht.plants.model.model import Model as Model, load_model as load_model
