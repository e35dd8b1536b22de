"""Our engine among the methods that watch recordings, with default options, as `watch` and `identify` run it.

Beside its alarms it dates incidents and ranks sensors, as `identify` does.
"""

from __future__ import annotations

import numpy as np

from eccaht.base.arrays import Index
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.comparison import compare
from eccaht.plants.incident.describe import gaps_before
from eccaht.plants.incident.investigate import investigate_incident
from eccaht.plants.incident.recording import run_engine
from eccaht.plants.model.calibration import calibrate_with_windows
from eccaht.research.experiments.detection_alarms import Alarms
from eccaht.research.experiments.incidents_cases import CaseReadings


class Ours:
    """One history, calibrated; `rate` of false alarms is per row."""

    def __init__(self, history: CaseReadings, rate: float, seed: int) -> None:  # noqa: ARG002
        self.model, _ = calibrate_with_windows(history.source())
        rows = max(float(self.model.summary.row_counts[0]), 1.0)  # of a window
        self.every = max(1.0 / (rate * rows), 1.0)

    def __call__(self, new: CaseReadings) -> Alarms:
        """The alarms of the engine at the given rate."""
        windows = self._prepared(new)
        normal, _ = compare(self.model, windows)
        gaps = self.model.summary.gaps * self.model.n_windows
        run = run_engine(normal, windows.values, self.every, gaps=gaps, missing=gaps_before(windows).tolist())
        first = _first_rows(windows, new)
        on = np.zeros(len(new.rows), dtype=bool)
        for begun, over, _ in run.alarms:
            on[first[begun] : None if over is None else first[over]] = True
        return Alarms(on, np.array([first[begun] for begun, _, _ in run.alarms], dtype=np.intp))

    def onset(self, new: CaseReadings) -> int | None:
        """The row with which the largest incident of a recording begins; None if nothing is found in it."""
        windows = self._prepared(new)
        answer = investigate_incident(self.model, windows, every=self.every)
        if answer.onset is None:
            return None
        return int(_first_rows(windows, new)[int(np.searchsorted(windows.starts, answer.onset))])

    def ranked(self, new: CaseReadings, start: int, stop: int) -> list[str]:
        """The sensors of rows [start, stop), the most suspect first."""
        windows = self._prepared(new)
        first = _first_rows(windows, new)
        place, end = (int(np.searchsorted(first, row)) for row in (start, stop))
        answer = investigate_incident(self.model, windows, place, end, locate=False, every=self.every)
        return [suspect.sensor for suspect in answer.sensors]

    def _prepared(self, new: CaseReadings) -> Windows:
        return self.model.prepare(new.source())


def _first_rows(windows: Windows, readings: CaseReadings) -> Index:
    if readings.times is None:
        step = len(readings.rows) / len(windows.values)
        return np.floor(np.arange(len(windows.values)) * step).astype(np.intp)
    return np.searchsorted(readings.times, windows.starts).astype(np.intp)
