"""`eccaht session`: a search that another program drives, one JSON object a line.

Every change is on the disk before it is answered, so that a session that is killed goes on exactly.
"""

from __future__ import annotations

import inspect
import json
import math
import sys
import warnings
from contextlib import ExitStack, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from eccaht.base.arrays import Array, as_count
from eccaht.base.files import exclusive, strict_json
from eccaht.base.presentation.text import did_you_mean
from eccaht.cli.imports import Imports, import_policies
from eccaht.streams import BudgetWarning, load_policy
from eccaht.version import __version__

REQUESTS = ("ask", "tell", "tell_many", "observe", "forget", "decision", "status")
_SAME = 1e-9  # weights that other programs print with fewer digits are still those asked for

Answer = dict[str, Any]


def session(
    search: Annotated[Path, typer.Argument(metavar="SEARCH", help="What policy.save wrote; the search is kept there.")],
    import_: Imports = None,
) -> None:
    """Let another program drive a search, by JSON lines on stdin and stdout.

    One request a line, one answer a line: {"do": "ask"} gives the weights to measure, {"do": "tell", "reading": 1.5}
    takes the reading, {"do": "decision"} names the streams. A bad line is answered by {"error": ...} and changes
    nothing. A session that is killed goes on exactly where it was. See docs/how-to/drive-from-other-programs.md.
    """
    answers = sys.stdout
    with ExitStack() as held:
        busy = f"another session uses {search}: let it end, or give another file"
        held.enter_context(exclusive(search.with_name(f"{search.name}.lock"), busy))
        held.enter_context(redirect_stdout(sys.stderr))  # a policy of the user's own may print
        import_policies(import_)
        driven = LineSession(search)
        for line in sys.stdin.buffer:
            print(json.dumps(driven.answer(line), allow_nan=False), file=answers, flush=True)


class LineSession:
    """The search in a file, which answers requests; the file holds it after each change.

    A request {"do": NAME, ...} calls the method of that name with the other keys.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asked: Array | None = None  # the measurement of the last ask, until a reading is taken
        self._load()
        self.policy.save(path)  # or the first reading would show that it cannot be written

    def answer(self, line: bytes) -> Answer:
        """What is printed for a line; one that is refused leaves the search as it was."""
        request: Answer = {}
        try:
            request = _object_in(line)
            do, given = request.get("do"), {name: request[name] for name in request if name not in ("do", "id")}
            if do not in REQUESTS:
                raise ValueError(f"do must be one of {', '.join(REQUESTS)}, not {do!r:.40}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", BudgetWarning)  # the answer has it
                answer: Answer = _called(getattr(self, f"_{do}"), given, str(do))
        except Exception as error:
            if not isinstance(error, ValueError):
                self._load()
            answer = {
                "error": " ".join(str(error).split()) or type(error).__name__,
                "n_readings": self.policy.n_readings,
            }
        return answer | ({"id": request["id"]} if "id" in request else {})

    # -- what changes the search -----------------------------------------------------------------------

    def _ask(self, batch: int | None = None, available: list[bool] | None = None) -> Answer:
        policy = self.policy
        before = policy._choice, policy._available, policy._rng.bit_generator.state
        try:
            weights = policy.ask(batch=batch, available=available)
        except ValueError:  # a question that is refused must not cost the measurement that stands
            policy._choice, policy._available, policy._rng.bit_generator.state = before
            raise
        policy.save(self._path)
        self._asked = weights if batch is None else None
        answer = {"weights" if batch is None else "batch": weights.tolist(), "n_readings": policy.n_readings}
        if (names := policy.problem.names) is not None:
            named = [{names[k]: float(row[k]) for k in np.flatnonzero(row)} for row in np.atleast_2d(weights)]
            answer["by_name"] = named[0] if batch is None else named
        return answer

    def _tell(self, reading: float, weights: Any = None, number: int | None = None) -> Answer:
        if self._repeated(number, 1):
            return self._should_stop() | {"repeated": True}
        c = self._only_one() if weights is None else self._exact(weights)
        self.policy.tell(c, reading)
        return self._taken(c)

    def _tell_many(self, readings: Any, weights: Any, number: int | None = None) -> Answer:
        if not isinstance(weights, list) or not weights:
            raise ValueError("weights must be a list of measurements")
        if self._repeated(number, len(weights)):
            return self._should_stop() | {"repeated": True}
        rows = [self._exact(each) for each in weights]
        self.policy.tell_many(np.array(rows), readings)
        return self._taken(*rows)

    def _observe(self, values: Any, number: int | None = None) -> Answer:
        if self._repeated(number, 1):
            return self._should_stop() | {"repeated": True}
        if isinstance(values, list):
            values = [math.nan if value is None else value for value in values]
        self.policy.observe(values)
        return self._taken()

    def _forget(self, weights: Any) -> Answer:
        self.policy.forget(self._exact(weights))
        return self._taken()

    def _taken(self, *measured: Array) -> Answer:
        """Keep a change and answer it; measurements beyond what is allowed count, with a warning."""
        self.policy.save(self._path)
        self._asked = None
        within = self.policy.problem.measurements
        beyond = [within.beyond(c) for c in measured if not within.allows(c)]
        return self._should_stop() | ({"warning": f"{beyond[0]}: they count"} if beyond else {})

    def _repeated(self, number: Any, readings: int) -> bool:
        """Was it taken before? A number that is neither that nor the next is refused."""
        if number is None or as_count(number, "number", least=1) <= (taken := self.policy.n_readings):
            return number is not None
        if number != taken + readings:
            raise ValueError(f"number {number} does not follow {taken} readings: {taken + readings} is next")
        return False

    def _only_one(self) -> Array:
        """The measurement that was asked for and not read."""
        pending = self.policy.pending if self._asked is None else [self._asked]
        if len(pending) != 1:
            raise ValueError(f"{len(pending)} measurements are pending: ask first, or give the weights that were read")
        return pending[0]

    def _exact(self, weights: Any) -> Array:
        """These weights, or those asked for that they are but for the last digits."""
        c = self.policy.problem.checked_measurement(weights)
        for asked in (*(() if self._asked is None else (self._asked,)), *self.policy.pending):
            if np.abs(c - asked).max() <= _SAME * np.abs(asked).max():
                return asked
        return c

    # -- what only reads -------------------------------------------------------------------------------

    def _should_stop(self) -> Answer:
        return {"n_readings": self.policy.n_readings, "should_stop": bool(self.policy.should_stop())}

    def _decision(self) -> Answer:
        policy = self.policy
        confidence, shifts = policy.confidence, policy.shifts
        return self._should_stop() | {
            "anomalies": policy.decision.tolist(),
            "names": None if policy.problem.names is None else list(policy.decision_names),
            "confidence": None if confidence is None else _number(confidence.probability),
            "how": None if confidence is None else confidence.how,
            "fit": _number(policy.fit),
            "lead": _number(policy.lead),
            "beliefs": [_number(belief) for belief in policy.beliefs.tolist()],
            "shifts": None if shifts is None else [_number(shift) for shift in shifts[0].tolist()],
        }

    def _status(self) -> Answer:
        policy, names = self.policy, self.policy.problem.names
        return self._should_stop() | {
            "eccaht": __version__,
            "policy": "composed" if policy.recipe is None else policy.recipe.name,
            "streams": policy.problem.size,
            "names": None if names is None else list(names),
            "can": asdict(policy.can),
            "pending": policy.pending.tolist(),
        }

    def _load(self) -> None:
        """Go on from the file, as it was last written."""
        self.policy = load_policy(self._path)
        choice = self.policy._choice
        self._asked = None if choice is None else choice.weights


def _object_in(text: bytes) -> Answer:
    """A JSON object in which no key stands twice and every number is finite."""
    try:
        found = strict_json(text)
    except (RecursionError, UnicodeDecodeError):
        raise ValueError("it is no JSON object") from None
    if not isinstance(found, dict):
        raise ValueError(f"it must be a JSON object in braces, not a {type(found).__name__}")
    return found


def _called(method: Any, given: Answer, what: str) -> Answer:
    """Call it with the keys of an object."""
    parameters = inspect.signature(method).parameters
    for name in given:
        if name not in parameters:
            near = did_you_mean(name, parameters) or f": it takes {', '.join(parameters)}"
            raise ValueError(f"{what} has no {name[:40]!r}{near}")
    for name, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and name not in given:
            raise ValueError(f"{what} lacks {name!r}")
    answer: Answer = method(**given)
    return answer


def _number(value: float | None) -> float | None:
    """A number that JSON has."""
    return None if value is None or not math.isfinite(value) else float(value)
