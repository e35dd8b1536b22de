"""A watch as a file: plain numbers in an archive, safe to load if untrusted; that of a model holds the model too."""

from __future__ import annotations

from os import PathLike
from typing import Any

from numpy.typing import NDArray

from eccaht.base.archive import check_keys, read_archive, write_archive
from eccaht.plants.model.model import Model
from eccaht.plants.watch.plant_state import built_plant, plant_state
from eccaht.plants.watch.watch import Watch
from eccaht.streams.watch.steps import StepWatch
from eccaht.streams.watch.steps_state import built_steps, steps_state

_KIND, _VERSION = "watch", 3
_MODEL = "model."


def save_watch(watch: Watch, path: str | PathLike[str]) -> None:
    """Write a watch; an existing file is replaced only once the new one is complete."""
    engine = watch.engine
    if isinstance(engine, StepWatch):
        state, arrays = steps_state(engine)
        model = None
    else:
        state, arrays = plant_state(engine)
        model, of_model = engine.model.parts()
        arrays = arrays | {f"{_MODEL}{name}": array for name, array in of_model.items()}
    write_archive(path, _KIND, _VERSION, {"state": state, "model": model}, arrays)


def load_watch(path: str | PathLike[str]) -> Watch:
    """Read a watch that goes on exactly where it was saved."""
    return read_archive(path, _KIND, _VERSION, _build)


def _build(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Watch:
    check_keys(header, {"state", "model"}, "header")
    if header["model"] is None:
        return Watch.of(built_steps(header["state"], arrays))
    of_model = {name.removeprefix(_MODEL): array for name, array in arrays.items() if name.startswith(_MODEL)}
    rest = {name: array for name, array in arrays.items() if not name.startswith(_MODEL)}
    return Watch.of(built_plant(Model.build(header["model"], of_model), header["state"], rest))
