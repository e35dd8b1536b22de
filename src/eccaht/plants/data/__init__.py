"""Where rows of data enter, and where they become windows."""

from eccaht.plants.data.cleaning import ColumnReport
from eccaht.plants.data.source import Arrays, Source, as_source, read_table
from eccaht.plants.data.table import Table
from eccaht.plants.data.windows import Batch, Windower, Windows

__all__ = ["Arrays", "Batch", "ColumnReport", "Source", "Table", "Windower", "Windows", "as_source", "read_table"]
