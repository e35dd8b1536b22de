"""Where rows of data enter, and where they become windows."""

from eccaht.plants.data.cleaning import ColumnReport
from eccaht.plants.data.recorded import Expected, recorded_of
from eccaht.plants.data.source import Arrays, Chunk, Source, read_table
from eccaht.plants.data.windows import Batch, Cut, Moved, Sample, Table, Windows

__all__ = [
    "Arrays",
    "Batch",
    "Chunk",
    "ColumnReport",
    "Cut",
    "Expected",
    "Moved",
    "Sample",
    "Source",
    "Table",
    "Windows",
    "read_table",
    "recorded_of",
]
