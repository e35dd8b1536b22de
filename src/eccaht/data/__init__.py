"""Where rows of data enter, and where they become windows."""

from eccaht.data.cleaning import ColumnReport
from eccaht.data.source import Arrays, Source, as_source, read_table
from eccaht.data.table import Table
from eccaht.data.windows import Batch, Windower, Windows

__all__ = ["Arrays", "Batch", "ColumnReport", "Source", "Table", "Windower", "Windows", "as_source", "read_table"]
