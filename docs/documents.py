"""The keys of the JSON documents that commands print, with their types and meanings.

`docs/reference/answers.md` and the JSON schemas beside it are made of these; tests hold documents against them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from eccaht.plants.documents import (
    CheckDocument as CheckDocument,
    CheckedDocument as CheckedDocument,
    DifferenceDocument as DifferenceDocument,
    IncidentDocument as IncidentDocument,
    Moment,
    Number,
    SensorDocument as SensorDocument,
    Weight as Weight,
)


class Ranked(TypedDict):
    """A place in a ranking."""

    sensor: Annotated[str, "its name"]
    score: Annotated[Number, "its score"]


class AnswerDocument(IncidentDocument):
    """What `eccaht identify --json` prints. The keys of an incident, at the top, are those of the largest one."""

    headline: Annotated[str, "the answer in one sentence"]
    verdict: Annotated[Literal["wrong", "nothing", "undecided"], "the answer in one word"]
    alpha: Annotated[Number, "error level that was asked for"]
    false_alarm_every: Annotated[Number, "false-alarm rate: mean time between false alarms, in windows"]
    doubts: Annotated[list[str], "why it is undecided"]
    cautions: Annotated[list[str], "what a user should know before acting on it"]
    drill: Annotated[dict[str, str] | None, "what drills on the history found, under `text`"]
    start: Annotated[Moment, "first window that was judged"]
    stop: Annotated[Moment, "start of the last one"]
    windows: Annotated[int, "windows that were judged"]
    incidents: Annotated[list[IncidentDocument], "all incidents, in order of time"]
    rankings: Annotated[dict[str, list[Ranked]], "plain rankings, for comparison"]
    settings: NotRequired[Annotated[dict[str, Any], "the options that were given"]]
    timezone: NotRequired[Annotated[str | None, "zone of all times"]]
    notes: NotRequired[Annotated[list[str], "how the data were read"]]
    files: NotRequired[Annotated[list[str], "files that were written"]]


class ColumnDocument(TypedDict):
    """What became of a column of the history."""

    name: Annotated[str, "its name"]
    kept: Annotated[bool, "is it a sensor of the model?"]
    reason: Annotated[str, "why it was dropped"]
    kind: Annotated[str, "continuous or status"]
    imputed: Annotated[float, "share of its rows that were filled"]
    scaled_by: Annotated[str, "iqr, or std where the interquartile range is 0"]
    constant: NotRequired[Annotated[float, "its one value, if it never changed"]]
    low: NotRequired[Annotated[float, "its smallest reading, if it changed and was dropped"]]
    high: NotRequired[Annotated[float, "its largest reading, if it changed and was dropped"]]


class UpdateDocument(TypedDict):
    """What `eccaht calibrate --update` compared."""

    added: Annotated[int, "windows of the new data"]
    kept: Annotated[int, "windows of the old history that were kept"]
    dropped: Annotated[int, "windows of the old history that were dropped, the oldest first"]
    left_out: Annotated[list[str], "incidents of the new data that were left out, a line each"]
    left_out_windows: Annotated[int, "their windows"]
    plant_changed: Annotated[bool, "did all new data differ as if the plant had changed, so that nothing was left out?"]
    better: Annotated[str | None, "new, old or neither, beyond chance; null if it was not counted"]
    old: Annotated[dict[str, Any] | None, "counts of the old model on the new windows"]
    new: Annotated[dict[str, Any] | None, "counts of the new model on the same windows"]


class CalibrationDocument(TypedDict):
    """What `eccaht calibrate --json` prints."""

    model: Annotated[str | None, "file of the model; null if it could not be written"]
    sensors: Annotated[list[str], "the sensors of the model"]
    n_windows: Annotated[int, "windows of the history"]
    window_seconds: Annotated[float, "length of a window"]
    first: Annotated[str, "start of the first window"]
    last: Annotated[str, "start of the last window"]
    timezone: Annotated[str | None, "zone of all times"]
    estimator: Annotated[str, "how the covariance was estimated"]
    ridge: Annotated[float, "what was added to its diagonal"]
    columns: Annotated[list[ColumnDocument], "every column of the history"]
    drill: Annotated[str | None, "what drills found, in one line; null without drills"]
    false_alarm_every: Annotated[float, "false-alarm rate that the history can carry: windows between false alarms"]
    notes: Annotated[list[str], "how the history was read"]
    update: NotRequired[Annotated[UpdateDocument, "with `--update` alone: the new model beside the old one"]]
