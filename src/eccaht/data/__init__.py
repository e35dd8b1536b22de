"""From a user's files to what the mathematics works on: reading, cleaning, windows, calibration, model files."""

from eccaht.data.calibration import calibrate
from eccaht.data.cleaning import ColumnReport
from eccaht.data.history import History
from eccaht.data.model import Model, load_model
from eccaht.data.reading import Table, read_table
from eccaht.data.windows import Windows

__all__ = ["ColumnReport", "History", "Model", "Table", "Windows", "calibrate", "load_model", "read_table"]
