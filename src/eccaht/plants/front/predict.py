"""`Model.predict`: what each sensor should read, from the others, as a frame."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from eccaht.base.frames import frame_of
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.describe import Predictions
from eccaht.plants.model.model import Model


def predict(model: Model, windows: Windows, wrong: Sequence[str] | str) -> Any:
    """What `Model.predict` returns; the options are described there."""
    if model.normal is None:
        raise ValueError("the model does not say what is normal: calibrate on a history of at least 40 windows")
    named, size = model.places([wrong] if isinstance(wrong, str) else wrong), len(model.names)
    found = Predictions.of(model.normal, windows.values, tuple(named.tolist()))
    bands = [np.stack(found.band(k)) for k in range(size)]  # (3, T) each
    expected, low, high = model.raw(np.stack(bands, axis=-1))
    read, clock, starts = model.raw(windows.values), windows.clock, windows.starts
    columns = {"read": read, "expected": expected, "low": low, "high": high}
    columns |= {"residual": read - expected, "deviations": found.residual / found.spread}
    when = ("time", starts) if clock.row_interval is None else ("row", np.array([clock.seen(each) for each in starts]))
    keys: dict[str, Any] = {when[0]: np.repeat(when[1], size), "sensor": list(model.names) * len(starts)}
    zone = None if clock.zone is None else "UTC"
    return frame_of(keys | {name: each.ravel() for name, each in columns.items()}, zone=zone)
