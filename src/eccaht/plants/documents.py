"""The keys of the JSON documents that commands print, with their types and meanings.

`docs/reference/answers.md` and the JSON schemas beside it are made of these; tests hold documents against them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

Number = float | None
Moment = str | None


class Weight(TypedDict):
    """A sensor that an expectation or a difference rests on."""

    sensor: Annotated[str, "its name"]
    weight: Annotated[Number, "weight of its reading: in robust units of a prediction, in their own of a difference"]


class DifferenceDocument(TypedDict):
    """The difference that shows the fault: what a sensor reads less what the others predict for it."""

    weights: Annotated[list[Weight], "all its sensors, the sensor itself, with the weight 1, first"]
    usual: Annotated[Number, "what it is worth in normal operation, just before the onset"]
    read: Annotated[Number, "its mean since the onset"]
    deviation: Annotated[Number, "one standard deviation of it in normal operation"]
    size: Annotated[Number, "`read` less `usual`, in standard deviations"]
    scatter: Annotated[Number, "root mean square of the same by windows, where 1 is usual"]


class SensorDocument(TypedDict):
    """One sensor in the light of an incident."""

    sensor: Annotated[str, "its name"]
    named: Annotated[bool, "is it one of the wrong sensors?"]
    kind: Annotated[Moment, "kind of fault, such as step, drift, noise, stuck, silent; null unless named"]
    since: Annotated[Moment, "since when it stands still or delivers nothing"]
    belief: Annotated[Number, "probability that the sensor is wrong, 0 to 1"]
    evidence: Annotated[Number, "evidence against the sensor, in nats: how rare its readings are"]
    evidence_needed: Annotated[Number, "evidence from which on it is named, in nats"]
    size: Annotated[Number, "size of the fault, in robust units"]
    size_low: Annotated[Number, "lower end of its 95 % interval"]
    size_high: Annotated[Number, "upper end of its 95 % interval"]
    size_raw: Annotated[Number, "size of the fault, in units of the readings"]
    size_raw_low: Annotated[Number, "lower end of its 95 % interval"]
    size_raw_high: Annotated[Number, "upper end of its 95 % interval"]
    z_alone: Annotated[Number, "mean distance from its level before the onset, in spreads of the sensor in the history"]
    z_given: Annotated[Number, "mean distance from what the other sensors predict, in spreads of what that leaves"]
    read: Annotated[Number, "mean reading since the onset"]
    expected: Annotated[Number, "what the other sensors predict for it"]
    predictors: Annotated[list[Weight], "the sensors that this prediction rests on most"]
    difference: Annotated[DifferenceDocument | None, "of its readings and those of others; null unless named"]
    why: Annotated[Moment, "one sentence for people; null unless named"]


class IncidentDocument(TypedDict):
    """One incident: a stretch of time with its wrong sensors."""

    onset: Annotated[Moment, "start of the first wrong window"]
    onset_interval: Annotated[list[str] | None, "95 % interval of the onset"]
    end: Annotated[Moment, "first window after it; null while it goes on"]
    changed: Annotated[bool, "did it end as a small change that lasts?"]
    named: Annotated[list[SensorDocument], "the wrong sensors, the most suspect first"]
    kinds: Annotated[list[str], "kinds of fault, in the order of `named`"]
    runner_up: Annotated[Any, "the most suspect sensor that is not named"]
    confidence: Annotated[Number, "probability that exactly these sensors are wrong; null without drills"]
    confident: Annotated[bool, "is the confidence at least 1 - alpha?"]
    sure: Annotated[bool, "the same as `confident`, for one version"]
    evidence: Annotated[Number, "nats above the threshold of an alarm, the largest of its windows; at the top: of all"]
    sensors: Annotated[list[SensorDocument], "all sensors, the most suspect first"]


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
