"""From a history of normal operation to a model, and new data prepared as the history was."""

from eccaht.plants.model.calibration import calibrate as calibrate, calibrate_with_windows as calibrate_with_windows
from eccaht.plants.model.model import (
    Model as Model,
    Notation as Notation,
    load_model as load_model,
    parse_model as parse_model,
)
