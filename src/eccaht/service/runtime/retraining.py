"""A new model of a plant from windows that the store has: fitted and drilled by a program of its own, compared with
the model of the plant, and taken by it only when an administrator says so.

What is found is kept in the store until it is switched to or discarded; what was running when the service ended is not.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.past import model_of_era, wrong_in
from eccaht.service.runtime.views import PlantView, moment
from eccaht.service.store import history
from eccaht.service.store.history import Span
from eccaht.service.store.store import RETRAINED, notes_of, now, record, remove_unused_model, write_note

_MOST_CELLS = 20_000_000  # windows times sensors that are learned from
_FEWEST_ROWS = 0.5  # of the usual rows of a window, as in calibration
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_AGAIN = " retrained to "
_STORED = ("plant", "digest", "asked", "by", "begun", "windows", "left_out", "found", "model", "name")
State = Literal["running", "done", "failed", "cancelled", "switched"]


@dataclass(eq=False)
class Retraining:
    """One attempt. asked: start, stop, drills and keep_alarms, as the request had them; digest: of the model before;
    left_out: windows of the period that were not learned from, by reason; model: digest of the new one, "" without."""

    plant: str
    digest: str
    asked: dict[str, Any]
    by: str
    begun: int
    state: State = "running"
    stage: str = "reading"
    share: float = 0.0
    detail: str = ""
    windows: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    found: dict[str, Any] | None = None
    model: str = ""
    name: str = ""
    task: asyncio.Task[None] | None = None

    def document(self) -> dict[str, Any]:
        names = ("state", "stage", "share", "detail", "by", "windows", "left_out", "name", "found")
        return {name: getattr(self, name) for name in names} | self.asked | {"begun": moment(self.begun)}

    def stored(self) -> str:
        return json.dumps({name: getattr(self, name) for name in _STORED})


@dataclass(frozen=True)
class ChosenWindows:
    """Windows of a period in the units of the plant's model."""

    starts: NDArray[np.int64]
    values: Array
    rows: NDArray[np.int64]
    left_out: dict[str, int]


class Retrainings:
    """The last attempt of each plant; one runs at a time. Its methods are called on the loop of the service."""

    def __init__(self, engine: Runtime) -> None:
        self._engine = engine
        self._known: dict[str, Retraining] = {}

    async def start_up(self) -> None:
        """Read what was found before the service was last ended."""

        def read() -> dict[str, str]:
            with self._engine.store.read() as connection:
                return notes_of(connection, RETRAINED)

        for plant, document in (await asyncio.to_thread(read)).items():
            self._known[plant] = Retraining(**json.loads(document), state="done", stage="done", share=1.0)

    def get(self, plant: str) -> Retraining | None:
        self._engine.check_own(plant)
        return self._known.get(plant)

    async def start(self, plant: str, asked: dict[str, Any], span: Span, who: str) -> None:
        """Begin; asked: start, stop, drills and keep_alarms; span: the period in microseconds."""
        self._engine.check_own(plant)
        view = self._engine.view(plant)
        if busy := next((one.plant for one in self._known.values() if one.state == "running"), None):
            raise ValueError(f"plant {busy} is being retrained: wait until that is done, or cancel it")
        made = Retraining(plant, view.model_digest, asked, who, now())
        if (before := self._known.get(plant)) is not None:
            await self._forget(before)
        self._known[plant] = made
        made.task = asyncio.create_task(self._run(made, view, span))
        await self._note(made, who, "retrain", asked)

    async def cancel(self, plant: str, who: str) -> None:
        found = self._of(plant, "running", "done")
        await self._end(found)
        await self._forget(found)
        found.state = "cancelled"
        await self._note(found, who, "retrain cancelled", {})

    async def switch(self, plant: str, who: str) -> None:
        """Give the plant the new model, as `put_plant` does: a new era begins."""
        found, view = self._of(plant, "done"), self._engine.view(plant)
        if view.model_digest != found.digest:
            raise ValueError(f"plant {plant} has had another model since: retrain again")
        await self._engine.put_plant(plant, found.model, view.options, who)
        await self._forget(found)
        found.state = "switched"

    async def stop(self) -> None:
        for found in self._known.values():
            await self._end(found)

    def _of(self, plant: str, *states: State) -> Retraining:
        found = self.get(plant)
        if found is None or found.state not in states:
            raise ValueError(f"plant {plant} has no new model {'to switch to' if states == ('done',) else 'to cancel'}")
        return found

    async def _end(self, found: Retraining) -> None:
        if found.task is not None and not found.task.done():
            found.task.cancel()
            await asyncio.gather(found.task, return_exceptions=True)

    async def _forget(self, found: Retraining) -> None:
        """What was found is not to be switched to any more; the model stays where a plant has it."""

        def write() -> None:
            with self._engine.store.begin() as connection:
                write_note(connection, RETRAINED, found.plant, None)
                remove_unused_model(connection, found.model)

        if found.model:
            await asyncio.to_thread(write)
            found.model = ""

    async def _note(self, found: Retraining, who: str, action: str, document: dict[str, Any]) -> None:
        def write() -> None:
            with self._engine.store.begin() as connection:
                record(connection, who, action, found.plant, document)

        await asyncio.to_thread(write)

    async def _run(self, made: Retraining, view: PlantView, span: Span) -> None:
        try:
            with TemporaryDirectory(prefix="eccaht-retrain-") as name:
                folder = Path(name)
                await asyncio.to_thread(self._prepare, made, view, span, folder)
                await _work(made, folder)
                made.found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
                made.model, _ = await self._engine.add_model((folder / "new.model").read_bytes(), made.name, made.by)
            await asyncio.to_thread(self._keep, made)
            made.state, made.stage, made.share = "done", "done", 1.0
        except asyncio.CancelledError:
            made.state = "cancelled"
            raise
        except Exception as error:  # whatever it is, the service goes on, and people see what it was
            made.state, made.detail = "failed", " ".join(str(error).split())[:500] or type(error).__name__

    def _keep(self, made: Retraining) -> None:
        with self._engine.store.begin() as connection:
            write_note(connection, RETRAINED, made.plant, made.stored())

    def _prepare(self, made: Retraining, view: PlantView, span: Span, folder: Path) -> None:
        with self._engine.store.read() as connection:
            chosen = chosen_windows(connection, view, span, keep_alarms=made.asked["keep_alarms"])
            (folder / "old.model").write_bytes(history.model_content(connection, view.model_digest))
            before = history.model_name(connection, view.model_digest)
        made.windows, made.left_out = len(chosen.starts), chosen.left_out
        last = view.model.clock.show(np.datetime64(int(chosen.starts[-1]), "us")) if len(chosen.starts) else ""
        made.name = f"{before.partition(_AGAIN)[0][:60]}{_AGAIN}{last}"
        np.savez(folder / "windows.npz", starts=chosen.starts, values=chosen.values, rows=chosen.rows)
        asked = {"every": view.threshold_every, "runs": made.asked["drills"]}
        (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")


async def _work(made: Retraining, folder: Path) -> None:
    """Run the program, follow its progress, and end it if this is cancelled."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "eccaht.service.runtime.retrainer", str(folder)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **_ONE_THREAD},
    )
    assert program.stdout is not None
    assert program.stderr is not None
    try:
        async for line in program.stdout:
            progress = json.loads(line)
            made.stage, made.share = progress["stage"], progress["share"]
        problem = (await program.stderr.read()).decode(errors="replace").strip()
        if await program.wait():
            raise ValueError(problem.splitlines()[-1] if problem else "the program that retrains ended early")
    finally:
        if program.returncode is None:
            with suppress(ProcessLookupError):
                program.kill()
            await program.wait()


def chosen_windows(
    connection: sa.Connection, view: PlantView, span: Span, *, keep_alarms: bool = False
) -> ChosenWindows:
    """The windows of a period that a model may learn from: not those of alarms, nor those with few rows.

    A sensor that was stuck or out of range is silent meanwhile. Windows of another length, of an earlier model, are
    left out.
    """
    model, left_out = view.model, dict.fromkeys(("alarm", "few rows", "other length"), 0)
    count = history.count_in(connection, view.name, span)
    if count * len(model.names) > _MOST_CELLS:
        most = _MOST_CELLS // len(model.names)
        raise ValueError(
            f"the period has {count} windows, and at most {most} can be learned from: choose a shorter one"
        )
    starts, values, rows = [np.empty(0, np.int64)], [np.empty((0, len(model.names)))], [np.empty(0, np.int64)]
    for era, digest in history.eras_in(connection, view.name, span):
        other = model_of_era(connection, view, digest)
        found = history.past(connection, view.name, era, span, len(other.names))
        if other.seconds != model.seconds:
            left_out["other length"] += len(found.starts)
            continue
        known = [name for name in model.names if name in other.names]
        mine, theirs = model.places(known), other.places(known)
        read = np.full((len(found.starts), len(model.names)), np.nan)
        read[:, mine] = model.scaled(other.raw(found.values[:, theirs], theirs), mine)
        starts.append(found.starts)
        values.append(read)
        rows.append(found.rows)
    at, scaled, rows_of = np.concatenate(starts), np.concatenate(values), np.concatenate(rows)
    good = np.ones(len(at), dtype=bool)
    for wrong in wrong_in(connection, view, span):
        inside = (at >= wrong.onset) & (at < wrong.over)
        if wrong.in_alarm:
            good &= keep_alarms | ~inside
        else:
            scaled[np.ix_(inside, model.places(wrong.named))] = np.nan
    left_out["alarm"] = int((~good).sum())
    few = good & (rows_of < _FEWEST_ROWS * np.median(rows_of)) if len(at) else good
    left_out["few rows"] = int(few.sum())
    good &= ~few
    return ChosenWindows(at[good], scaled[good], rows_of[good], left_out)
