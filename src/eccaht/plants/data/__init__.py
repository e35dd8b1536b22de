"""Where rows of data enter, and where they become windows."""

from eccaht.plants.data.cleaning import ColumnReport as ColumnReport
from eccaht.plants.data.recorded import Expected as Expected, recorded_of as recorded_of
from eccaht.plants.data.source import Arrays as Arrays, Chunk as Chunk, Source as Source, read_table as read_table
from eccaht.plants.data.windows import (
    Batch as Batch,
    Cut as Cut,
    Moved as Moved,
    Sample as Sample,
    Table as Table,
    Windows as Windows,
)
