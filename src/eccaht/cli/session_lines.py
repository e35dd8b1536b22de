"""The lines of `eccaht session` and the file that it begins with: their keys, types and meanings.

The JSON schemas of the reference are made of these, and requests are checked against their keys.
"""

# no postponed annotations: which keys a TypedDict requires would be lost

from typing import Annotated, Any, Literal, NotRequired, TypedDict

ByName = dict[str, float]
Weights = list[float] | ByName
Sizes = float | str | list[float | str] | dict[str, float | str]
Id = Annotated[Any, "returned in the answer as it is"]
Number = Annotated[
    int, "n_told once this is taken; a line whose number was reached before changes nothing, so it may be repeated"
]


class FamilyNoise(TypedDict):
    """The covariance of a family, of unit variances."""

    family: Annotated[str, "toeplitz, equicorrelation or another function of eccaht.families"]
    streams: NotRequired[Annotated[int, "how many streams; kronecker takes shape instead"]]
    rho: NotRequired[float]
    length_scale: NotRequired[float]
    alpha: NotRequired[float]
    nugget: NotRequired[float]
    p: NotRequired[float]
    seed: NotRequired[int]
    size: NotRequired[int]
    shape: NotRequired[list[int]]
    unit_variance: NotRequired[bool]


class ModelNoise(TypedDict):
    """Covariance, mean and names of a model, in its robust units."""

    model: Annotated[str, "a file that `eccaht calibrate` wrote; relative names are those beside this file"]


class SessionProblem(TypedDict):
    """What `eccaht session` reads first."""

    covariance: Annotated[
        FamilyNoise | ModelNoise | list[list[float]] | str,
        "a family, a model, a matrix, or a .csv or .npy file of one; relative names are those beside this file",
    ]
    shift: Annotated[Sizes, "size of an anomaly, or unknown:SCALE[:positive|:negative]; one, one a stream, or by name"]
    anomalies: Annotated[int | list[int], "how many streams are anomalous, or [least, most]"]
    budget: NotRequired[Annotated[float, "limit on the sum of |weights|"]]
    measurements: NotRequired[
        Annotated[
            list[dict[str, Any]],
            'instead of a budget, rules that all hold: {"rule": NAME, ...}, NAME and arguments of eccaht.measurements',
        ]
    ]
    mean: NotRequired[Annotated[float | list[float] | ByName, "nominal mean, one, one a stream, or by name"]]
    names: NotRequired[Annotated[list[str], "names of the streams"]]
    readout_noise: NotRequired[Annotated[float, "standard deviation of what the instrument adds to a reading"]]
    policy: NotRequired[Annotated[str, "the algorithm, joint unless given"]]
    options: NotRequired[Annotated[dict[str, Any], "options of the algorithm"]]
    stopping: NotRequired[Annotated[str | int | None, "stopping rule, number of measurements, or null for none"]]
    alpha: NotRequired[Annotated[float, "error level of the stopping rule, 0.05 unless given"]]
    seed: NotRequired[Annotated[int, "of the policy's random numbers, 0 unless given"]]


# -- requests ------------------------------------------------------------------------------------------


class AskRequest(TypedDict):
    """Which measurement next? The same one until a reading is given."""

    do: Literal["ask"]
    batch: NotRequired[Annotated[int, "so many new measurements, which are then pending"]]
    available: NotRequired[Annotated[list[bool], "which streams can be measured now"]]
    id: NotRequired[Id]


class TellRequest(TypedDict):
    """The reading of a measurement."""

    do: Literal["tell"]
    reading: Annotated[float, "what the instrument read"]
    weights: NotRequired[Annotated[Weights, "of the measurement; without them the one asked for"]]
    inflation: NotRequired[Annotated[float, "its noise variance over the usual one"]]
    number: NotRequired[Number]
    id: NotRequired[Id]


class TellManyRequest(TypedDict):
    """Readings of one moment, which share its noise."""

    do: Literal["tell_many"]
    readings: list[float]
    weights: list[Weights]
    number: NotRequired[Number]
    id: NotRequired[Id]


class ObserveRequest(TypedDict):
    """A reading of every stream."""

    do: Literal["observe"]
    values: Annotated[list[float | None] | dict[str, float | None], "null, or no name, where a stream was not read"]
    number: NotRequired[Number]
    id: NotRequired[Id]


class ForgetRequest(TypedDict):
    """Give up a pending measurement: its reading will not come."""

    do: Literal["forget"]
    weights: Weights
    id: NotRequired[Id]


class ReadRequest(TypedDict):
    """Look at the search, which changes nothing; `quit` ends the session."""

    do: Literal["decision", "should_stop", "status", "quit"]
    id: NotRequired[Id]


class SaveRequest(TypedDict):
    """Write the search; `eccaht.load_policy` reads it in Python."""

    do: Literal["save"]
    file: NotRequired[Annotated[str, "where; without it the file of --state"]]
    id: NotRequired[Id]


SessionRequest = AskRequest | TellRequest | TellManyRequest | ObserveRequest | ForgetRequest | ReadRequest | SaveRequest
REQUESTS: dict[str, Any] = {
    "ask": AskRequest,
    "tell": TellRequest,
    "tell_many": TellManyRequest,
    "observe": ObserveRequest,
    "forget": ForgetRequest,
    **dict.fromkeys(("decision", "should_stop", "status", "quit"), ReadRequest),
    "save": SaveRequest,
}


# -- answers -------------------------------------------------------------------------------------------


class Asked(TypedDict):
    """The answer to ask."""

    weights: Annotated[list[float], "one a stream"]
    by_name: NotRequired[Annotated[ByName, "those that are not 0, where the streams have names"]]
    n_told: int
    id: NotRequired[Any]


class AskedBatch(TypedDict):
    """The answer to ask with a batch."""

    batch: Annotated[list[list[float]], "one row a measurement, one weight a stream"]
    by_name: NotRequired[list[ByName]]
    n_told: int
    id: NotRequired[Any]


class Accepted(TypedDict):
    """The answer to tell, tell_many, observe, forget, should_stop, save and quit."""

    n_told: Annotated[int, "how many readings were taken so far"]
    should_stop: Annotated[bool, "does the stopping rule hold?"]
    repeated: NotRequired[Annotated[bool, "true where this reading had been taken before"]]
    warning: NotRequired[Annotated[str, "about weights beyond what is allowed, whose reading counts"]]
    id: NotRequired[Any]


class Decided(TypedDict):
    """The answer to decision."""

    anomalies: Annotated[list[int], "the streams believed anomalous, counted from 0"]
    names: Annotated[list[str] | None, "their names"]
    confidence: Annotated[float | None, "posterior probability of exactly these streams"]
    how: Annotated[str | None, "exact, estimated or unsettled"]
    fit: Annotated[float | None, "probability of readings as bad as these if they are right; near 0 the model is wrong"]
    lead: Annotated[float | None, "by how much the set leads, in nats for joint policies"]
    beliefs: Annotated[list[float], "of each stream, the probability that it is anomalous"]
    shifts: Annotated[list[float] | None, "estimated shifts of these streams"]
    n_told: int
    should_stop: bool
    id: NotRequired[Any]


class Status(TypedDict):
    """The answer to status."""

    eccaht: Annotated[str, "the version"]
    policy: str
    streams: int
    names: list[str] | None
    can: Annotated[dict[str, bool], "what the policy can do"]
    pending: Annotated[list[list[float]], "measurements of batches without a reading"]
    n_told: int
    should_stop: bool
    id: NotRequired[Any]


class RefusedLine(TypedDict):
    """The answer to a line that was refused; the search is as it was before."""

    error: str
    n_told: int
    id: NotRequired[Any]


SessionAnswer = Asked | AskedBatch | Accepted | Decided | Status | RefusedLine
