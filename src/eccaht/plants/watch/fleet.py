"""Many plants: where each has its model and data, what those with the same model share, and one replayed alone."""

from __future__ import annotations

import hashlib
import tomllib
from collections import deque
from dataclasses import dataclass, replace
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from eccaht.base.files import regular_file
from eccaht.plants.data.source import Missing
from eccaht.plants.model.model import Model, load_model
from eccaht.plants.model.prepare import Notation
from eccaht.plants.watch.events import Event
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.session import Session
from eccaht.plants.watch.watchers import WatchedPlant
from eccaht.streams.covariance import Diagonal

SETTINGS = "plant.toml"
MODELS, DATA = (".model", ".eccaht"), (".csv", ".csv.gz", ".parquet", ".pq")
_LARGEST_SETTINGS = 1 << 20  # bytes
_KEPT = 16  # models that are kept though no plant that is watched now has them


@dataclass(frozen=True)
class FleetPlant:
    """Where a plant has its model and its data; false_alarms: a rate, as for `--false-alarms`."""

    name: str
    model: Path
    data: tuple[Path, ...]
    false_alarms: str | None = None

    def absolute(self) -> FleetPlant:
        """The same for a process in another directory."""
        return replace(self, model=self.model.absolute(), data=tuple(path.absolute() for path in self.data))


def plants_in(directory: Path) -> tuple[list[FleetPlant], dict[str, str]]:
    """The plants of a directory, by name: a folder each; and what is wrong with folders that are none."""
    if not directory.is_dir():
        raise ValueError(f"there is no directory {directory}: give one with a folder for each plant")
    plants, faults = [], {}
    for folder in sorted(directory.iterdir()):
        if folder.is_dir() and not folder.name.startswith("."):
            try:
                plants.append(plant_in(folder))
            except (ValueError, OSError) as error:
                faults[folder.name] = str(error)
    if not plants and not faults:
        raise ValueError(f"{directory} has no plants: make a folder for each, with its model and its data")
    return plants, faults


def plant_in(folder: Path) -> FleetPlant:
    """The plant of a folder: what its plant.toml says, else the one model and all data files in it."""
    said = _settings(folder / SETTINGS)
    models = [folder / said["model"]] if "model" in said else _files(folder, MODELS)
    if len(models) != 1:
        found = ", ".join(path.name for path in models) or "none"
        raise ValueError(f"it needs one model, *.model or *.eccaht, or 'model = ...' in {SETTINGS}: found {found}")
    data = [folder / name for name in said["data"]] if "data" in said else _files(folder, DATA)
    if not data:
        raise ValueError(f"it has no data: add CSV or Parquet files, or 'data = [...]' in {SETTINGS}")
    for path, what in ((models[0], "model file"), *((path, "data file") for path in data)):
        regular_file(path, what).close()
    return FleetPlant(folder.name, models[0], tuple(data), said.get("false_alarms"))


def _files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.lower().endswith(endings))


def _settings(path: Path) -> dict[str, Any]:
    """What a plant.toml says, checked; nothing if there is none."""
    if not path.exists():
        return {}
    with regular_file(path, "settings") as file:
        text = file.read(_LARGEST_SETTINGS)
    try:
        said = tomllib.loads(text.decode())
    except ValueError as error:
        raise ValueError(f"{SETTINGS} cannot be read: {error}") from None
    if isinstance(said.get("data"), str):
        said["data"] = [said["data"]]
    kinds = {"model": str, "data": list, "false_alarms": str}
    for key, value in said.items():
        if key not in kinds:
            raise ValueError(f"{SETTINGS} says {key[:40]!r}, which is none of {', '.join(kinds)}")
        if not isinstance(value, kinds[key]) or (key == "data" and not all(isinstance(name, str) for name in value)):
            raise ValueError(f"{SETTINGS}: {key} must be a text" + (" or a list of texts" if key == "data" else ""))
    return said


# -- what plants share ---------------------------------------------------------------------------------


class SharedModels:
    """A model once for all plants that have it; digest: of its file."""

    def __init__(self, model: Model, digest: str) -> None:
        self.model, self.digest = lean(model), digest

    def session(self, every: float, decimals: dict[str, int | None] | None = None) -> Session:
        """A plant that is watched from now on; every: windows to a false alarm; decimals: of the readings, if known."""
        watch = PlantWatch(self.model, false_alarm_every=every, decimals=decimals)
        return Session(self.model, WatchedPlant(watch), self.digest)

    def restored(self, path: str | PathLike[str]) -> Session:
        """A plant that is watched on from a kept state."""
        return Session.load(path, self.model, WatchedPlant.restored, self.digest)


def lean(model: Model) -> Model:
    """The model without what only `diagnose` and `identify` need, which is more than half of it; it cannot be saved."""
    K = len(model.names)
    squares = np.zeros((0, K, K))
    summary = replace(model.summary, coarse=np.zeros((0, K)), half_covariances=squares, within=squares)
    return replace(model, covariance=Diagonal(model.covariance.diagonal()), summary=summary)


class Models:
    """Model files, each read once for all plants that have the same, also as copies; forgotten when no plant is left.

    The last few are kept, so that plants may come one after the other.
    """

    def __init__(self) -> None:
        self._known: WeakValueDictionary[str, SharedModels] = WeakValueDictionary()
        self._last: deque[SharedModels] = deque(maxlen=_KEPT)

    def of(self, path: Path) -> SharedModels:
        """The model of a file; any fault of it is a ValueError of one line."""
        with regular_file(path, "model file") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        shared = self._known.get(digest)
        if shared is None:
            shared = self._known[digest] = SharedModels(load_model(path), digest)
        if shared not in self._last:
            self._last.append(shared)
        return shared

    def __len__(self) -> int:
        return len(self._known)


# -- replays -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Replayed:
    """What a plant's recording showed: its events, and how many windows it has; error: why it could not be read."""

    events: tuple[Event, ...] = ()
    windows: int = 0
    notes: tuple[str, ...] = ()
    error: str | None = None


def replay(plant: FleetPlant, every: float, missing: Missing = "refuse", notation: Notation | None = None) -> Replayed:
    """Watch all windows of a plant's data; every: windows to a false alarm."""
    try:
        shared = _models().of(plant.model)
        windows = shared.model.prepare(list(plant.data), missing=missing, bad="skip", notation=notation)
    except (ValueError, OSError) as error:
        return Replayed(error=str(error))
    session = shared.session(every, windows.decimals)
    events = [event for sample in windows.samples() for event in session.take(sample, windows.clock)]
    return Replayed(tuple(events), session.windows, windows.notes)


@cache
def _models() -> Models:
    return Models()
