from .data import (
    Arrays as Arrays,
    Batch as Batch,
    Chunk as Chunk,
    Cut as Cut,
    Expected as Expected,
    Moved as Moved,
    Sample as Sample,
    Source as Source,
    Table as Table,
    Windows as Windows,
    read_table as read_table,
    recorded_of as recorded_of,
)
from .model import (
    Model as Model,
    Notation as Notation,
    calibrate as calibrate,
    calibrate_with_windows as calibrate_with_windows,
    load_model as load_model,
    parse_model as parse_model,
)
from .replay import Replay as Replay
from .answer import Answer as Answer
from .incident import (
    Counts as Counts,
    drill_history as drill_history,
    investigate_incident as investigate_incident,
)
from .watch import (
    Event as Event,
    Hearing as Hearing,
    PlantWatch as PlantWatch,
    Session as Session,
    false_alarm_every as false_alarm_every,
    rate_line as rate_line,
)
