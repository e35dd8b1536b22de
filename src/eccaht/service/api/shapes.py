"""What requests and answers look like."""

from __future__ import annotations

from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator

from eccaht.plants import documents
from eccaht.plants.model.model_file import LONGEST_TEXT
from eccaht.plants.watch.plant import State
from eccaht.service.parts import Line, Text, readable
from eccaht.service.runtime.past import SensorState
from eccaht.service.runtime.views import PlantState, Severity
from eccaht.service.settings import PlantOptions

PlantName = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
Number = Annotated[int, Path(ge=1, le=2**62)]
Moment = Annotated[str | None, Query(max_length=64, description="as 2026-05-01T08:00, on the clock of the plant")]
Points = Annotated[int, Query(ge=2, le=2000)]
Limit = Annotated[int, Query(ge=1, le=500)]
Before = Annotated[int | None, Query(ge=1, le=2**62)]
Sensors = Annotated[list[str], Query(max_length=24)]
Numbers = list[float | None]


def model_of(document: Any) -> Any:
    """A document that commands print, as an answer of the service: one schema for both."""
    fields: dict[str, Any] = {key: (_field_type(kind), ...) for key, kind in get_type_hints(document).items()}
    made: type[BaseModel] = create_model(document.__name__, __doc__=document.__doc__, **fields)
    return made


@cache
def _field_type(kind: Any) -> Any:
    if is_typeddict(kind):
        return model_of(kind)
    inside = tuple(map(_field_type, get_args(kind)))
    if get_origin(kind) in (Union, UnionType):
        return reduce(or_, inside)
    return list[inside[0]] if get_origin(kind) is list else kind  # type: ignore[valid-type]


if TYPE_CHECKING:
    from eccaht.plants.documents import IncidentDocument as IncidentAnswer
else:
    IncidentAnswer = model_of(documents.IncidentDocument)


class ProblemShape(BaseModel):
    """What went wrong, in one line."""

    detail: str


class SourceShape(BaseModel):
    """What a source says of itself."""

    state: Literal["connecting", "running", "waiting", "broken"]
    since: str
    detail: str
    rows: int
    last: str | None


class PlantNow(BaseModel):
    """What there is to know of a plant at a glance."""

    name: str
    state: PlantState = Field(description="waiting: no window so far; no-data: it is not watched, `no_data` says why")
    evidence: float | None
    severity: Severity | None
    acknowledged: bool
    position: str | None
    windows: int
    named: list[str]
    onset: str | None
    no_data: str | None
    watched_by: str | None
    still: dict[str, list[str]]
    shelved: dict[str, str]
    sources: dict[str, SourceShape]


class PlantRow(PlantNow):
    """A plant among others; sensors: how many."""

    sensors: int


class Plants(BaseModel):
    """All plants."""

    plants: list[PlantRow]


class FaultNow(BaseModel):
    """The alarm that goes on."""

    raised: str
    onset: str
    onset_interval: tuple[str, str]
    named: list[str]
    kinds: list[str]
    sizes: Numbers
    beliefs: list[float]
    confidence: float | None


class SuspectNow(BaseModel):
    """A sensor that may be wrong."""

    sensor: str
    belief: float
    kind: str | None
    size: float | None


class AskedSensor(BaseModel):
    """A sensor to read next, and why."""

    sensor: str
    why: str


class NextReadings(BaseModel):
    """What to read in a window. window: its start; deadline: until when its rows may come; null if not known yet."""

    sensors: list[AskedSensor]
    window: str | None
    deadline: str | None


class PlantShape(PlantNow):
    """A plant as it is now."""

    model_digest: str
    model: str
    seconds: float
    timezone: str | None
    row_seconds: float | None
    sensors: list[str]
    threshold_every: float
    false_alarm_rate: str
    drilled: bool
    fault: FaultNow | None
    still_since: dict[str, str]
    suspects: list[SuspectNow]
    asked: list[AskedSensor]
    late: int
    duplicate: int
    ahead: int
    held: int
    options: PlantOptions
    offsets: dict[str, float] = Field(description="what operators called normal, less what was, in units of readings")
    restorable: bool = Field(description="whether the last of that can be taken back")


class Delivered(BaseModel):
    """What became of rows."""

    rows: int
    late: int
    duplicate: int
    windows: int
    unknown: list[str]
    ahead: int
    held: int


class EventDocument(BaseModel):
    """An event of a plant."""

    event: str
    time: str
    text: str
    number: int | None
    onset: str | None
    onset_interval: tuple[str, str] | None
    named: list[str]
    kinds: list[str]
    sizes: Numbers
    beliefs: list[float]
    confidence: float | None
    sensors: list[str]
    count: int | None
    asked: list[str] = []
    notice: str | None = None
    plant: str
    at: int | None = None  # microseconds


class Events(BaseModel):
    """Events, the newest first; more: whether there are older ones; next: what `before` is for those."""

    events: list[EventDocument]
    more: bool
    next: str | None


class DoneShape(BaseModel):
    """What an operator's order led to."""

    events: list[EventDocument]


class RequestShape(BaseModel):
    """What a request holds; what is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class Nothing(RequestShape):
    """An empty object."""


class Unshelve(RequestShape):
    """A sensor to take back."""

    sensor: Line = Field(min_length=1, max_length=LONGEST_TEXT)


class Shelve(Unshelve):
    """A sensor to leave out, and for how long."""

    duration: Line = Field(min_length=1, max_length=40, examples=["2h"])


class HandReading(Unshelve):
    """A sensor that was read by hand: the value, and one standard deviation of its error."""

    value: float = Field(allow_inf_nan=False)
    noise: float = Field(gt=0, allow_inf_nan=False)


class Comment(RequestShape):
    """A comment to an incident."""

    text: Text = Field(min_length=1, max_length=4000)


class PutPlant(PlantOptions):
    """A plant: the digest of its model and how it is watched."""

    model: str = Field(pattern=r"^[0-9a-f]{64}$")

    _readable = field_validator("sources", mode="before")(readable)


class ModelRow(BaseModel):
    """A model that was uploaded."""

    digest: str
    name: str
    size: int
    uploaded: str
    by: str


class ModelsShape(BaseModel):
    """All models."""

    models: list[ModelRow]


class Uploaded(BaseModel):
    """A model that is kept."""

    digest: str
    sensors: int


class EvidenceShape(BaseModel):
    """The evidence over time: the largest of each bin, and the worst state."""

    time: list[str]
    evidence: Numbers
    state: list[State | None]
    threshold: float


class CourseShape(BaseModel):
    """A sensor over time: mean, least and largest of each bin, and the band that the others predict."""

    value: Numbers
    low: Numbers
    high: Numbers
    band_low: Numbers
    band_high: Numbers


class Series(BaseModel):
    """Sensor series, downsampled: one of every `one_of` windows."""

    time: list[str]
    series: dict[str, CourseShape]
    one_of: int


class Correlation(BaseModel):
    """What sensors share in normal operation."""

    sensors: list[str]
    matrix: list[list[float]]


class IncidentRow(BaseModel):
    """An alarm among others; named: the sensors in alarm now, or at its end, and confidence: that in exactly these.
    joined: when sensors joined that it did not begin with."""

    number: int
    time: str
    onset: str | None
    over: str | None
    named: list[str]
    joined: dict[str, str]
    confidence: float | None
    acknowledged: bool


class Incidents(BaseModel):
    """Alarms, the newest first; more: whether there are older ones."""

    incidents: list[IncidentRow]
    more: bool


class Similar(BaseModel):
    """An earlier alarm with the same sensors; likeness: what both sets share of all their sensors."""

    number: int
    time: str
    named: list[str]
    likeness: float


class CommentRow(BaseModel):
    """A comment."""

    at: str
    who: str
    text: str


class ActionShape(BaseModel):
    """What a user did."""

    id: int
    at: str
    who: str
    action: str
    plant: str | None
    document: dict[str, Any]


class IncidentShape(BaseModel):
    """All of an alarm. answer: what all its windows say, as `eccaht identify` says it of an incident; null where no
    sensor is named or the windows are no longer kept. why: the reasons for people."""

    alarm: EventDocument
    course: list[EventDocument]
    severity: Severity
    answer: IncidentAnswer | None
    why: list[str]
    similar: list[Similar]
    comments: list[CommentRow]
    actions: list[ActionShape]


class Audit(BaseModel):
    """Who did what, the newest first."""

    audit: list[ActionShape]
    more: bool


class Alert(BaseModel):
    """A message of the outbox."""

    id: int
    plant: str
    number: int
    channel: str
    kind: str
    status: str
    tries: int
    next_at: str | None
    document: dict[str, Any]


class Outbox(BaseModel):
    """Alerts, the newest first."""

    outbox: list[Alert]
    more: bool


class Trend(BaseModel):
    """A sensor in raw units: the mean, the least and the largest window mean of each bin."""

    value: Numbers
    low: Numbers
    high: Numbers


class Trends(BaseModel):
    """Sensors over time. windows: that were read, one of `one_of`; first, last: ends of all that is stored."""

    time: list[str]
    series: dict[str, Trend]
    seconds: float
    windows: int
    one_of: int
    first: str | None
    last: str | None


class SensorRow(BaseModel):
    """A sensor as it is now.

    since: when it went wrong; until: when it is no longer shelved. kind, size: of what is wrong with it. value: the
    mean of the last window that has it, and heard: the start of that window. recent: the same of the last windows.
    """

    sensor: str
    state: SensorState
    since: str | None
    until: str | None
    kind: str | None
    size: float | None
    value: float | None
    heard: str | None
    recent: Numbers


class SensorsShape(BaseModel):
    """All sensors of a plant, in the order of its model."""

    sensors: list[SensorRow]
