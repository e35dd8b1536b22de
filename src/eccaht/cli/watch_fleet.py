"""`eccaht watch --fleet`: many plants in one process, or replayed on a cluster."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag
from time import monotonic
from typing import Any

import typer

from eccaht.base.files import NotWritten
from eccaht.base.presentation.text import counted
from eccaht.cli.output import Bar, check_outputs, note, shown_progress, writable_directory
from eccaht.cli.search_view import ended_by_signals
from eccaht.cli.watch_outlets import Commands, Log, Outlets, OutletsOfPlant, of_program
from eccaht.cli.watch_session import Watching, check_rate
from eccaht.cli.watch_windows import Growing, RecordedWindows
from eccaht.plants.model.model import Model
from eccaht.plants.watch.fleet import FleetPlant, Models, Replayed, SharedModels, plants_in, replay
from eccaht.plants.watch.rates import false_alarm_every
from eccaht.plants.watch.session import Session

_HELD = 500  # files that stay open; of more plants each is opened when it has changed
_OFTEN = 10  # looks at a growing file in the length of a window, at most
_AGAIN = 30.0  # seconds until a file that could not be read is tried again
_SAVING = 0.1  # share of the time in which states of plants without events are saved
_HEAD = 1 << 16  # bytes in which two lines of a growing file are looked for


@dataclass(frozen=True)
class Fleet:
    """The options as they were given; waits: seconds between looks and until the end, None without --follow."""

    directory: Path
    waits: tuple[float, float | None] | None
    false_alarms: str | None
    state: Path | None
    log: Path | None
    commands: Commands | None
    as_json: bool
    scheduler: str | None
    reading: dict[str, Any]

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.scheduler is not None and self.waits is not None:
            raise ValueError("--scheduler replays recordings: leave out --follow")
        if self.scheduler is not None and self.state is not None:
            raise ValueError("--scheduler replays whole recordings and keeps no state: leave out --state")


@dataclass(frozen=True)
class Member:
    """A plant whose files were found in order; every: windows to a false alarm. state: where its state is kept."""

    plant: FleetPlant
    every: float
    state: Path | None

    def session(self, shared: SharedModels) -> Session:
        """Where an earlier program ended, or from the beginning."""
        if self.state is None or not self.state.exists():
            return shared.session(self.every)
        return check_rate(shared.restored(self.state), self.every, self.state)


def watch_fleet(fleet: Fleet) -> None:
    """Check all plants, then watch them; a plant whose data break ends none of the others."""
    fleet.check()
    plants, faults = plants_in(fleet.directory)
    inputs = {f"the data of {plant.name}": [plant.model, *plant.data] for plant in plants} if fleet.log else {}
    check_outputs({"--log": fleet.log}, inputs)
    if fleet.state is not None:
        writable_directory(fleet.state, "--state")
    outlets = Outlets(None if fleet.log is None else Log(fleet.log), fleet.commands, as_json=fleet.as_json)
    models, members, follows, sensors = Models(), list[Member](), list[Follow](), 0
    with shown_progress("plants checked", len(plants)) as bar:
        for plant in plants:
            try:
                shared = models.of(plant.model)
                member = _checked(fleet, plant, shared.model)
                session = member.session(shared)
            except (ValueError, OSError) as error:
                faults[plant.name] = str(error)
                continue
            members.append(member)
            sensors += len(shared.model.names)
            if fleet.waits is not None:
                follows.append(Follow(fleet, member, shared, session, outlets, held=len(plants) <= _HELD))
            bar.advance()
    if faults:
        for name, text in sorted(faults.items()):
            typer.echo(f"eccaht: plant {name}: {' '.join(text.split())}", err=True)
        raise typer.Exit(2)
    program = OutletsOfPlant(outlets, None)
    text = f"started: {counted(len(members), 'plant')} with {counted(sensors, 'sensor')}"
    program.report([of_program("started", text)])
    if fleet.waits is not None:
        rounds = Rounds(follows, *fleet.waits)
        with ended_by_signals(rounds.end):
            rounds.run()
        windows, broken = sum(each.watching.session.windows for each in follows), any(each.broken for each in follows)
    else:
        with shown_progress("plants", len(members)) as bar:
            replays = _on_cluster if fleet.scheduler is not None else _replayed
            windows, broken = replays(fleet, members, outlets, bar)
    program.report([of_program("stopped", f"stopped: {counted(windows, 'window')} so far")])
    outlets.finish()
    if broken:
        raise typer.Exit(1)


def _checked(fleet: Fleet, plant: FleetPlant, model: Model) -> Member:
    """The plant, if its data can be read as the model's history was, as far as their first lines show."""
    every = false_alarm_every(plant.false_alarms or fleet.false_alarms, model)
    notation, missing = fleet.reading["notation"], fleet.reading["missing"]
    if fleet.waits is not None:
        if len(plant.data) > 1:
            raise ValueError(f"--follow needs one growing CSV file, not {len(plant.data)}: name it in its plant.toml")
        _growing(fleet, plant, model, None)
    if fleet.waits is None or _has_rows(plant.data[0]):
        source = notation.recorded(model, list(plant.data))
        notation.expected(model).present(source.layouts, missing)
    return Member(plant, every, None if fleet.state is None else fleet.state / f"{plant.name}.state")


def _has_rows(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(_HEAD).count(b"\n") > 1


def _growing(fleet: Fleet, plant: FleetPlant, model: Model, after: Any) -> Growing:
    """The growing file of a plant, of which notes carry the plant's name."""

    def say(text: str) -> None:
        note(f"{plant.name}: {text}")

    return Growing(model, list(plant.data), after, poll=0.0, timeout=None, say=say, **fleet.reading)


# -- recordings ----------------------------------------------------------------------------------------


def _replayed(fleet: Fleet, members: Sequence[Member], outlets: Outlets, bar: Bar) -> tuple[int, bool]:
    """Replay one plant after the other; how many windows they have, and whether data of one could not be read."""
    models, windows, broken = Models(), 0, False
    ended, current = Flag(), list[RecordedWindows]()

    def end() -> None:
        ended.set()
        for recording in current:
            recording.end()

    with ended_by_signals(end):
        for member in members:
            shared, plant = models.of(member.plant.model), member.plant
            session = member.session(shared)
            try:
                whole = member.state is None
                recording = RecordedWindows(
                    shared.model, list(plant.data), session.position, whole=whole, **fleet.reading
                )
            except (ValueError, OSError) as error:
                note(f"{plant.name} cannot be read: {error}")
                broken = True
                continue
            current[:] = [recording]
            if ended.is_set():
                break
            for text in recording.notes:
                note(f"{plant.name}: {text}")
            Watching(session, member.state, OutletsOfPlant(outlets, plant.name)).run(recording)
            windows += session.windows
            bar.advance()
    return windows, broken


def _on_cluster(fleet: Fleet, members: Sequence[Member], outlets: Outlets, bar: Bar) -> tuple[int, bool]:
    """Replay on the workers of a cluster, one plant a task, and report in the order of the plants."""
    windows, broken = 0, False
    for member, found in zip(members, _in_order(fleet, members, bar), strict=True):
        name = member.plant.name
        for text in found.notes:
            note(f"{name}: {text}")
        if found.error is not None:
            note(f"{name} cannot be read: {found.error}")
            broken = True
        OutletsOfPlant(outlets, name).report(found.events)
        windows += found.windows
    return windows, broken


def _in_order(fleet: Fleet, members: Sequence[Member], bar: Bar) -> Iterator[Replayed]:
    """What the workers found; what comes early waits for its turn."""
    from eccaht.research.experiments.workers import workers

    missing, notation = fleet.reading["missing"], fleet.reading["notation"]
    tasks = [(k, member.plant.absolute(), member.every, missing, notation) for k, member in enumerate(members)]
    waiting: dict[int, Replayed] = {}
    turn = 0
    with workers("dask", fleet.scheduler, 1) as start:
        for k, found in start(_numbered, tasks):
            bar.advance()
            waiting[k] = found
            while turn in waiting:
                yield waiting.pop(turn)
                turn += 1


def _numbered(k: int, *arguments: Any) -> tuple[int, Replayed]:
    return k, replay(*arguments)


# -- growing files -------------------------------------------------------------------------------------


class Follow:
    """One plant whose file grows; due: when it is looked at next. broken: why it cannot be read now."""

    def __init__(
        self, fleet: Fleet, member: Member, shared: SharedModels, session: Session, outlets: Outlets, *, held: bool
    ) -> None:
        self._fleet, self._plant, self._shared, self._held = fleet, member.plant, shared, held
        self.watching = Watching(
            session, member.state, OutletsOfPlant(outlets, member.plant.name), saved_every=math.inf
        )
        assert fleet.waits is not None
        self._interval = max(fleet.waits[0], shared.model.seconds / _OFTEN)
        self._source: Growing | None = None
        self.due, self.broken = 0.0, ""

    def look(self) -> bool:
        """Take the windows that are complete now; whether there was anything new."""
        try:
            if self._source is None:
                self._source = _growing(self._fleet, self._plant, self._shared.model, self.watching.session.position)
            new, windows = self._source.look(held=self._held)
            for sample, late in windows:
                self.watching.take(sample, late, self._source.clock)
        except NotWritten:
            raise
        except (ValueError, OSError) as error:
            self._break(str(error))
            return False
        if self.broken and new:
            note(f"{self._plant.name} can be read again")
            self.broken = ""
        self.due = 0.0 if new else monotonic() + self._interval
        return new

    def _break(self, why: str) -> None:
        """Report, once, that the file cannot be read, and begin anew with it later."""
        if why != self.broken:
            note(f"{self._plant.name} cannot be read, tried again every {_AGAIN:g} seconds: {why}")
        self.close()
        self.broken, self.due = why, monotonic() + _AGAIN

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
        self._source = None


class Rounds:
    """Looks at all plants in turn, a piece of each file at a time, until `end` or so long without a new row."""

    def __init__(self, follows: Sequence[Follow], poll: float, timeout: float | None) -> None:
        self._follows, self._poll, self._timeout = follows, poll, timeout
        self._ended, self._unsaved = Flag(), dict[Follow, None]()  # in the order in which they wait
        self._begun, self._spent = monotonic(), 0.0
        self.end = self._ended.set

    def run(self) -> None:
        """Report what an earlier program may not have reported, go round, and save all states."""
        try:
            self._go_round()
        finally:
            for follow in self._follows:
                follow.close()
        for follow in self._follows:
            if follow.watching.unsaved:
                follow.watching.save()

    def _go_round(self) -> None:
        for follow in self._follows:
            follow.watching.begin()
        heard = monotonic()
        while not self._ended.is_set():
            for follow in self._follows:
                if self._ended.is_set():
                    break
                if follow.due <= monotonic():
                    if follow.look():
                        heard = monotonic()
                    if follow.watching.unsaved:
                        self._unsaved[follow] = None
                    self._save_one()
            if self._timeout is not None and monotonic() - heard >= self._timeout:
                if not any(follow.look() for follow in self._follows):  # a slow round may have come late to some
                    break
                heard = monotonic()
            while self._save_one() and not self._ended.is_set():
                pass
            self._ended.wait(min(self._poll, max(min(each.due for each in self._follows) - monotonic(), 0.0)))

    def _save_one(self) -> bool:
        """Save the state that waits longest, if enough time has passed since other savings; whether it was.

        States without an event may be old: the windows since then are in the data.
        """
        now = monotonic()
        if not self._unsaved or self._spent > _SAVING * (now - self._begun):
            return False
        follow = next(iter(self._unsaved))
        del self._unsaved[follow]
        if follow.watching.unsaved:  # and not saved with an event since
            follow.watching.save()
        self._spent += monotonic() - now
        return True
