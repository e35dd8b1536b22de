"""Sensors that are silent or stuck just now, followed window by window and kept in a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.archive import check_keys
from eccaht.data.windows import Sample
from eccaht.model.model import Model
from eccaht.model.standstill import KINDS, Kind
from eccaht.model.standstill import Watcher as Standstill
from eccaht.stored import check_bounded

_SUMS = ("rows", "lasted", "longest")


class Stillness(Standstill):
    """The sensors of a model that deliver nothing, or one value, for longer than they ever did in its history."""

    def __init__(self, model: Model) -> None:
        super().__init__(model, model.names)

    def now(self, kind: Kind) -> dict[str, np.datetime64]:
        """Those that do so in the last window, and since when."""
        j = KINDS.index(kind)
        return {self.names[k]: self._since[j, k] for k in np.flatnonzero(self._still()[j]).tolist()}

    def look(self, sample: Sample) -> Sample:
        """Take a window; what was found long ago is forgotten."""
        self._found.clear()
        return super().look(sample)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file must keep."""
        sums = {name: getattr(self, f"_{name}") for name in _SUMS}
        return sums | {
            "since": self._since.astype("datetime64[us]").astype(np.int64),
            "last": self._last,
            "windows": np.array([self._windows]),
        }

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from kept arrays, or say what is wrong with them."""
        check_keys(arrays, {*_SUMS, "since", "last", "windows"}, "record of standstills")
        shape = self._rows.shape
        parts = [arrays[name] for name in (*_SUMS, "since")]
        if any(part.shape != shape for part in parts) or arrays["last"].shape != shape[1:]:
            raise ValueError("its record of standstills is damaged")
        for name in _SUMS:
            check_bounded(arrays[name], "record of standstills", 2.0**53)
            setattr(self, f"_{name}", arrays[name].astype(np.float64))
        windows = arrays["windows"]
        if windows.shape != (1,) or windows.dtype.kind != "i" or windows[0] < 0 or arrays["since"].dtype.kind != "i":
            raise ValueError("its record of standstills is damaged")
        self._since, self._last = arrays["since"].astype("datetime64[us]"), arrays["last"].astype(np.float64)
        self._windows = int(windows[0])
