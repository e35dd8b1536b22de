"""A small plant whose truth is known: history and incident as CSV files like those of real plants.

Four sections of six sensors. Within a section all sensors follow the same disturbances, so that the noise of a sensor
can be cancelled with its neighbours. Files have what real ones have: a text status, a setpoint that never moves,
blank cells, a sensor that drops out for a while, minutes without any row.

In the incident sensors read too high ("step"), or one shows an earlier recording of itself while the load of its
section goes on changing ("replay"), or one reads too high while two of its neighbours do so ("concealed").
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from eccaht.base.arrays import Array
from eccaht.base.clock import show_time
from eccaht.base.extras import need
from eccaht.base.files import replacing
from eccaht.base.randomness import Seed, rng_for

# section -> its sensors; tag -> (usual value, standard deviation)
SECTIONS: dict[str, dict[str, tuple[float, float]]] = {
    "intake": {
        "FT-101": (42.0, 1.6),
        "FT-102": (40.5, 1.5),
        "PT-101": (3.1, 0.08),
        "PT-102": (2.9, 0.07),
        "LT-101": (61.0, 2.4),
        "TT-101": (14.2, 0.5),
    },
    "filter": {
        "FT-201": (81.0, 2.2),
        "PT-201": (4.6, 0.12),
        "PT-202": (4.1, 0.11),
        "DP-201": (0.52, 0.03),
        "TB-201": (1.8, 0.14),
        "LT-201": (55.0, 1.9),
    },
    "reactor": {
        "TT-301": (74.8, 0.9),
        "TT-302": (75.3, 0.9),
        "TT-303": (73.9, 1.0),
        "PT-301": (2.2, 0.05),
        "AT-301": (7.1, 0.06),
        "AT-302": (8.4, 0.3),
    },
    "outlet": {
        "FT-401": (38.0, 1.2),
        "FT-402": (41.0, 1.3),
        "PT-401": (5.2, 0.15),
        "PT-402": (5.0, 0.14),
        "LT-401": (70.0, 2.0),
        "AT-401": (0.8, 0.05),
    },
}
TAGS = tuple(tag for section in SECTIONS.values() for tag in section)
USUAL, DEVIATION = np.array([values for section in SECTIONS.values() for values in section.values()]).T
STATUS, SETPOINT = "P-101 mode", "SP-301"
STEP = np.timedelta64(10, "s")
HISTORY_START, INCIDENT_START = np.datetime64("2024-03-04T00:00:00"), np.datetime64("2024-03-07T06:00:00")
HISTORY_ROWS, INCIDENT_ROWS, ONSET_ROW = 2 * 8640, 4 * 360, 2 * 360  # two days; four hours, wrong from the third on
N_ANOMALIES, BIAS = 3, 1.0  # the bias is in units of a sensor's interquartile range without load
LOAD, LOAD_MEMORY = 3.0, 1.0 - 1.0 / 360  # in units of the quick disturbances; an hour of rows
SHARED = (0.45, 0.65)  # share of a sensor's variance that its section has in common
ONSET = show_time(INCIDENT_START + ONSET_ROW * STEP)
KINDS = ("step", "replay", "concealed")
FILES = ("history.csv", "incident.csv", "truth.json")
IQR = 1.3489795  # interquartile range of a standard normal


def write_example(directory: Path, seed: Seed = 0, kind: str = "step") -> list[Path]:
    """Write history.csv, incident.csv and truth.json, the same bytes for the same seed; return their paths.

    kind: what is wrong in the incident, one of `KINDS`. Plants with a replay have a load that changes within hours:
    in one that never moves a recording of another time would be as good as the reading.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind of incident {kind!r}: use {', '.join(KINDS)}")
    rng = rng_for(seed, "example", "plant")
    loadings = np.sqrt(rng.uniform(*SHARED, size=len(TAGS)))
    history = disturbed(rng_for(seed, "example", "history"), loadings, HISTORY_ROWS)
    incident = disturbed(rng_for(seed, "example", "incident"), loadings, INCIDENT_ROWS)
    if kind == "step":
        truth = _step(incident, rng)
    else:
        history += LOAD * loadings * _load(rng_for(seed, "example", "history", "load"), HISTORY_ROWS)
        incident += LOAD * loadings * _load(rng_for(seed, "example", "incident", "load"), INCIDENT_ROWS)
        truth = _replay(incident, rng_for(seed, "example", kind), concealing=kind == "concealed")
    return [
        _write_csv(directory / FILES[0], seed, HISTORY_START, USUAL + DEVIATION * history),
        _write_csv(directory / FILES[1], seed, INCIDENT_START, USUAL + DEVIATION * incident),
        _write(directory / FILES[2], json.dumps(truth | {"seed": seed}, indent=2) + "\n"),
    ]


def _step(incident: Array, rng: np.random.Generator) -> dict[str, Any]:
    """Three sensors of different sections read too high; what truth.json says of it."""
    sections = sorted(rng.choice(len(SECTIONS), N_ANOMALIES, replace=False).tolist())
    tags = [list(section) for section in SECTIONS.values()]
    anomalies = [str(rng.choice(tags[k])) for k in sections]
    bias = _raise(incident, anomalies)
    return {"anomalies": anomalies, "onset": ONSET, "bias": bias, "bias_in_robust_units": BIAS}


def _replay(incident: Array, rng: np.random.Generator, *, concealing: bool) -> dict[str, Any]:
    """One sensor shows the two hours before the onset again; or one reads too high and two neighbours do that."""
    section = list(SECTIONS)[int(rng.integers(len(SECTIONS)))]
    first, *others = rng.choice(list(SECTIONS[section]), N_ANOMALIES, replace=False).tolist()
    raised, replayed = ([first], others) if concealing else ([], [first])
    bias = _raise(incident, raised)
    shown = [TAGS.index(tag) for tag in replayed]
    incident[ONSET_ROW:, shown] = incident[:ONSET_ROW, shown]
    truth = {"anomalies": [*raised, *replayed], "onset": ONSET, "bias": bias}
    return truth | {"replayed": replayed, "replayed_from": show_time(INCIDENT_START)}


def _raise(incident: Array, tags: list[str]) -> dict[str, float]:
    """Let sensors read too high from the onset on; by how much."""
    places = [TAGS.index(tag) for tag in tags]
    incident[ONSET_ROW:, places] += BIAS * IQR
    return {tag: round(BIAS * IQR * DEVIATION[k], 4) for tag, k in zip(tags, places, strict=True)}


def disturbed(rng: np.random.Generator, loadings: Array, rows: int) -> Array:
    """Standardised readings, (rows, K): disturbances of the section plus those of the sensor, both of short memory."""
    shared = np.repeat(_noise(rng, rows, len(SECTIONS), memory=0.35), len(TAGS) // len(SECTIONS), axis=1)
    own = _noise(rng, rows, len(TAGS), memory=0.2)
    return loadings * shared + np.sqrt(1.0 - loadings**2) * own


def _load(rng: np.random.Generator, rows: int) -> Array:
    """The load of each section, which changes within hours, for each of its sensors, (rows, K)."""
    return np.repeat(_noise(rng, rows, len(SECTIONS), LOAD_MEMORY), len(TAGS) // len(SECTIONS), axis=1)


def _noise(rng: np.random.Generator, rows: int, columns: int, memory: float) -> Array:
    """Unit-variance autoregressive noise of order 1."""
    white = rng.standard_normal((rows, columns))
    white[1:] *= np.sqrt(1.0 - memory**2)  # the first row is in equilibrium already
    noise: Array = lfilter([1.0], [1.0, -memory], white, axis=0)
    return noise


def _write_csv(path: Path, seed: Seed, start: np.datetime64, values: Array) -> Path:
    need("polars")
    import polars as pl

    rng = rng_for(seed, "example", path.name)
    rows = len(values)
    blank = _blanks(rng, rows)
    times = np.datetime_as_string(start + np.arange(rows) * STEP, unit="s")
    columns: dict[str, Any] = {"time": np.char.replace(times, "T", " ")}
    for k, (tag, usual) in enumerate(zip(TAGS, USUAL, strict=True)):
        cells = np.round(values[:, k], 3 - int(np.floor(np.log10(usual))))
        columns[tag] = pl.Series(np.where(blank[:, k], np.nan, cells)).fill_nan(None)
    columns[STATUS] = _modes(rng, rows)
    columns[SETPOINT] = np.full(rows, 75.0)
    gap = int(rng.integers(rows // 8, rows // 4))
    length = rows // 240  # minutes without any row: 12 in the history, 1 in the incident
    kept = np.ones(rows, dtype=bool)
    kept[gap : gap + length] = False
    return _write(path, pl.DataFrame(columns).filter(pl.Series(kept)).write_csv())


def _blanks(rng: np.random.Generator, rows: int) -> NDArray[np.bool_]:
    """Single blank cells, and one sensor that drops out for a fortieth of the time."""
    blank = rng.random((rows, len(TAGS))) < 0.002
    start = int(rng.integers(rows // 2, 3 * rows // 4))
    blank[start : start + rows // 40, int(rng.integers(len(TAGS)))] = True
    return blank


def _modes(rng: np.random.Generator, rows: int) -> list[str]:
    """The modes of a pump: by hand for ten minutes now and then, but only in the first half of each file."""
    manual = np.zeros(rows, dtype=bool)
    for start in rng.integers(0, rows // 2 - 60, size=max(1, rows // 1440)).tolist():
        manual[start : start + 60] = True
    return ["MANUAL" if now else "AUTO" for now in manual]


def _write(path: Path, text: str) -> Path:
    with replacing(path) as file:
        file.write(text.encode())
    return path
