"""Files of readings as tables, and tables as windows."""

from eccaht.data.cleaning import ColumnReport
from eccaht.data.reading import Table, read_table
from eccaht.data.windows import Windows

__all__ = ["ColumnReport", "Table", "Windows", "read_table"]
