"""Tables for users as frames of the library that they have: pandas if it is installed, else polars."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from eccaht.base.extras import need


def frame_of(columns: Mapping[str, Sequence[Any]], *, zone: str | None = None) -> Any:
    """A frame of columns of the same length, None where there is no value; zone: of the times among them, if known.

    >>> list(frame_of({"sensor": ["a", "b"], "belief": [0.9, None]}).columns)
    ['sensor', 'belief']
    """
    plain = {name: _plain(values) for name, values in columns.items()}
    if find_spec("pandas") is None:
        need("polars")
        import polars as pl

        table = pl.DataFrame([pl.Series(name, values) for name, values in plain.items()])
        return table if zone is None else table.with_columns(pl.col(pl.Datetime).dt.replace_time_zone(zone))
    import pandas as pd

    frame = pd.DataFrame({name: pd.Series(values) for name, values in plain.items()})
    for name in frame.select_dtypes("datetime") if zone is not None else ():
        frame[name] = frame[name].dt.tz_localize(zone)
    return frame


def _plain(values: Sequence[Any]) -> Any:
    """Numbers and times as arrays; a column without any value has none of a kind to guess."""
    if isinstance(values, np.ndarray):
        return values
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, np.datetime64) for value in present):
        return np.array([np.datetime64("NaT") if value is None else value for value in values], "datetime64[us]")
    if present and all(isinstance(value, float) for value in present):
        return np.array([np.nan if value is None else value for value in values])
    return list(values)
