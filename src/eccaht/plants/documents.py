"""The keys of the JSON document of an incident, with their types and meanings."""

from typing import Annotated, Any, TypedDict

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


class CheckDocument(TypedDict):
    """A sensor to read by hand, which would help to settle which sensors are wrong."""

    sensor: Annotated[str, "its name"]
    read: Annotated[Number, "what it reads in the last window of the incident"]
    expected: Annotated[Number, "what the other sensors predict for it then"]
    decides: Annotated[Number, "probability that with this check, and those before it, the answer is confident"]


class CheckedDocument(TypedDict):
    """A sensor that was read by hand."""

    sensor: Annotated[str, "its name"]
    time: Annotated[Moment, "start of the window that it is compared with"]
    value: Annotated[Number, "what was read by hand"]
    read: Annotated[Number, "what the sensor read then"]
    wrong: Annotated[bool, "do they differ by more than the check may be off?"]


class IncidentDocument(TypedDict):
    """One incident: a stretch of time with its wrong sensors."""

    onset: Annotated[Moment, "start of the first wrong window"]
    onset_interval: Annotated[list[str] | None, "95 % interval of the onset"]
    end: Annotated[Moment, "first window after it; null while it goes on"]
    changed: Annotated[bool, "does it go on as a change that lasts?"]
    named: Annotated[list[SensorDocument], "the wrong sensors, the most suspect first"]
    kinds: Annotated[list[str], "kinds of fault, in the order of `named`"]
    runner_up: Annotated[Any, "the most suspect sensor that is not named"]
    confidence: Annotated[Number, "probability that exactly these sensors are wrong; null without drills"]
    confident: Annotated[bool, "is the confidence at least 1 - alpha?"]
    sure: Annotated[bool, "the same as `confident`, for one version"]
    checks: Annotated[list[CheckDocument], "that would settle it, the most telling one first; none if it is confident"]
    checked: Annotated[list[CheckedDocument], "that were made"]
    evidence: Annotated[Number, "nats above the threshold of an alarm, the largest of its windows; at the top: of all"]
    sensors: Annotated[list[SensorDocument], "all sensors, the most suspect first"]
