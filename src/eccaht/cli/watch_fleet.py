"""`eccaht watch --fleet`: recordings of many plants, replayed one after the other or on a cluster."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event as Flag
from typing import Any

import typer

from eccaht.base.files import regular_file
from eccaht.base.presentation.text import counted
from eccaht.cli.output import Bar, check_outputs, ended_by_signals, note, shown_progress, writable_directory
from eccaht.cli.watch import RecordedWindows, Watching, resumed
from eccaht.cli.watch_outlets import Commands, Log, Outlets, of_program
from eccaht.plants import Event, Model, PlantWatch, Session, false_alarm_every, load_model
from eccaht.plants.watch.session import moved_by

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


# -- replays -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Member:
    """A plant whose files were found in order; every: windows to a false alarm. state: where its state is kept."""

    plant: FleetPlant
    every: float
    state: Path | None

    def opened(self, reading: dict[str, Any]) -> tuple[RecordedWindows, Session]:
        """Its recording, and its session where an earlier program ended or from the beginning."""
        model, digest = shared_model(self.plant.model)
        session = resumed(self.state, model, digest, self.every)
        after = None if session is None else session.position
        windows = RecordedWindows(model, list(self.plant.data), after, whole=self.state is None, **reading)
        if session is None:
            session = Session(PlantWatch(model, false_alarm_every=self.every, decimals=windows.decimals), digest)
        return windows, session


def watch_fleet(
    directory: Path,
    false_alarms: str | None,
    state: Path | None,
    log: Path | None,
    commands: Commands | None,
    scheduler: str | None,
    reading: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Check all plants, then watch their recordings; a plant whose data break ends none of the others."""
    if scheduler is not None and state is not None:
        raise ValueError("--scheduler replays whole recordings and keeps no state: leave out --state")
    plants, faults = plants_in(directory)
    inputs = {f"the data of {plant.name}": [plant.model, *plant.data] for plant in plants} if log else {}
    check_outputs({"--log": log}, inputs)
    if state is not None:
        writable_directory(state, "--state")
    outlets = Outlets(None if log is None else Log(log), commands, as_json=as_json)
    members, sensors = list[Member](), 0
    with shown_progress("plants checked", len(plants)) as bar:
        for plant in plants:
            try:
                model, digest = shared_model(plant.model)
                every = false_alarm_every(plant.false_alarms or false_alarms, model)
                member = Member(plant, every, None if state is None else state / f"{plant.name}.state")
                source = reading["notation"].recorded(model, list(plant.data))  # as far as the first lines show
                reading["notation"].expected(model).present(source.layouts, reading["missing"])
                resumed(member.state, model, digest, every)
            except (ValueError, OSError) as error:
                faults[plant.name] = str(error)
                continue
            members.append(member)
            sensors += len(model.names)
            bar.advance()
    if faults:
        for name, text in sorted(faults.items()):
            typer.echo(f"eccaht: plant {name}: {' '.join(text.split())}", err=True)
        raise typer.Exit(2)
    program = outlets.of(None)
    text = f"started: {counted(len(members), 'plant')} with {counted(sensors, 'sensor')}"
    program.report([of_program("started", text)])
    with shown_progress("plants", len(members)) as bar:
        if scheduler is None:
            windows, broken = _here(members, reading, outlets, bar)
        else:
            windows, broken = _on_cluster(scheduler, members, reading, outlets, bar)
    program.report([of_program("stopped", f"stopped: {counted(windows, 'window')} so far")])
    outlets.finish()
    if broken:
        raise typer.Exit(1)


def _here(members: Sequence[Member], reading: dict[str, Any], outlets: Outlets, bar: Bar) -> tuple[int, bool]:
    """Replay one plant after the other; how many windows they have, and whether data of one could not be read."""
    windows, broken = 0, False
    ended, current = Flag(), list[RecordedWindows]()

    def end() -> None:
        ended.set()
        for recording in current:
            recording.end()

    with ended_by_signals(end):
        for member in members:
            name = member.plant.name
            try:
                recording, session = member.opened(reading)
            except (ValueError, OSError) as error:
                note(f"{name} cannot be read: {error}")
                broken = True
                continue
            current[:] = [recording]
            if ended.is_set():
                break
            for text in recording.notes:
                note(f"{name}: {text}")
            Watching(session, member.state, outlets.of(name)).run(recording)
            windows += session.windows
            bar.advance()
    return windows, broken


@dataclass(frozen=True)
class Replayed:
    """What a plant's recording showed: its events, and how many windows it has; error: why it could not be read."""

    events: tuple[Event, ...] = ()
    windows: int = 0
    notes: tuple[str, ...] = ()
    error: str | None = None


def replay(k: int, member: Member, reading: dict[str, Any]) -> tuple[int, Replayed]:
    """Watch all windows of the k-th plant, on a worker of a cluster."""
    try:
        recording, session = member.opened(reading)
    except (ValueError, OSError) as error:
        return k, Replayed(error=str(error))
    events = list[Event]()
    for sample, late in recording:
        moved = moved_by(recording.moved, sample, session, recording.clock)
        events += session.take(sample, recording.clock, late=late, moved=moved)
    return k, Replayed(tuple(events), session.windows, recording.notes)


def _on_cluster(
    scheduler: str, members: Sequence[Member], reading: dict[str, Any], outlets: Outlets, bar: Bar
) -> tuple[int, bool]:
    """Replay on the workers of a cluster, one plant a task, and report in the order of the plants."""
    windows, broken = 0, False
    for member, found in zip(members, _in_order(scheduler, members, reading, bar), strict=True):
        name = member.plant.name
        for text in found.notes:
            note(f"{name}: {text}")
        if found.error is not None:
            note(f"{name} cannot be read: {found.error}")
            broken = True
        outlets.of(name).report(found.events)
        windows += found.windows
    return windows, broken


def _in_order(scheduler: str, members: Sequence[Member], reading: dict[str, Any], bar: Bar) -> Iterator[Replayed]:
    """What the workers found; what comes early waits for its turn."""
    from eccaht.research.experiments.workers import workers

    tasks = [(k, replace(member, plant=member.plant.absolute()), reading) for k, member in enumerate(members)]
    waiting: dict[int, Replayed] = {}
    turn = 0
    with workers("dask", scheduler, 1) as start:
        for k, found in start(replay, tasks):
            bar.advance()
            waiting[k] = found
            while turn in waiting:
                yield waiting.pop(turn)
                turn += 1


def shared_model(path: Path) -> tuple[Model, str]:
    """The model of a file and the digest of the file; plants that have the same, also as copies, share the last few."""
    with regular_file(path, "model file") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    model = _MODELS.pop(digest, None) or load_model(path)
    while len(_MODELS) >= _KEPT:
        del _MODELS[next(iter(_MODELS))]
    _MODELS[digest] = model
    return model, digest


_MODELS: dict[str, Model] = {}  # by digest, the last used one at the end
