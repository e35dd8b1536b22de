"""`eccaht session`: a search that another program drives, one JSON object a line.

With a state file every change is on the disk before it is answered, so that a session that is killed goes on exactly.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TextIO

import numpy as np
import typer

from eccaht.base.arrays import Array, as_count
from eccaht.base.files import exclusive
from eccaht.cli.imports import Imports, import_policies
from eccaht.cli.output import check_outputs, option
from eccaht.cli.session_lines import REQUESTS
from eccaht.cli.session_problem import check_names, parse_object, read_policy
from eccaht.streams import BudgetWarning, Policy, Problem, load_policy
from eccaht.version import __version__

_LONGEST = 1 << 26  # bytes of a line
_PATIENCE, _PAUSE = 2.0, 0.05  # seconds to wait for an earlier session to end
_SAME = 1e-9  # weights that other programs print with fewer digits are still those asked for

Answer = dict[str, Any]


def session(
    problem: Annotated[Path, typer.Argument(metavar="PROBLEM.json", help="What is searched, and how.")],
    state: Annotated[Path | None, option("FILE", "Keep the search here; go on with it if it is there.")] = None,
    import_: Imports = None,
) -> None:
    """Let another program drive a search, by JSON lines on stdin and stdout.

    One request a line, one answer a line: {"do": "ask"} gives the weights to measure, {"do": "tell", "reading": 1.5}
    takes the reading, {"do": "decision"} names the streams. A bad line is answered by {"error": ...} and changes
    nothing. With --state a session that is killed goes on exactly where it was. See
    docs/how-to/drive-from-other-programs.md.
    """
    check_outputs({"--state": state}, {"PROBLEM.json": problem})
    with ExitStack() as held:
        if state is not None:
            _wait_for(state, held)
        answers = held.enter_context(_answers_alone())
        import_policies(import_)
        search = LineSession(read_policy(problem), state)
        for line in lines(sys.stdin.buffer):
            print(json.dumps(search.answer(line), allow_nan=False), file=answers, flush=True)
            if search.ended:
                return


@contextmanager
def _answers_alone() -> Iterator[TextIO]:
    """Standard output for the answers; what a policy of the user's own prints goes to standard error."""
    answers = sys.stdout
    with redirect_stdout(sys.stderr):
        yield answers


def lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file to its end; of one that is too long the beginning, which is no JSON."""
    while line := file.readline(_LONGEST):
        whole = line
        while len(line) == _LONGEST and not line.endswith(b"\n"):
            line = file.readline(_LONGEST)
        yield whole


class LineSession:
    """A search that answers requests; state: the file that holds it after each change."""

    def __init__(self, policy: Policy, state: Path | None = None) -> None:
        self.policy, self.state, self.ended = policy, state, False
        self._asked: Array | None = None  # the measurement of the last ask, until a reading is taken
        if state is not None:
            if state.exists():
                self._load(policy)
            self.policy.save(state)  # or the first reading would show that it cannot be written

    def answer(self, line: bytes) -> Answer:
        """What is printed for a line; one that is refused leaves the search as it was."""
        returned: Answer = {}
        try:
            request = parse_object(line)
            returned = _returned(request)
            answer = self._answer(request)
        except Exception as error:
            if not isinstance(error, ValueError):
                self._undo(error)
            answer = {"error": " ".join(str(error).split()) or type(error).__name__, "n_told": self.policy.n_told}
        return answer | returned

    def _answer(self, request: Answer) -> Answer:
        do = request.get("do")
        if not isinstance(do, str) or do not in REQUESTS:
            raise ValueError(f"do must be one of {', '.join(REQUESTS)}, not {do!r:.40}")
        keys = REQUESTS[do].__required_keys__
        check_names(request, keys, keys | REQUESTS[do].__optional_keys__, do)
        given = {name: value for name, value in request.items() if name not in ("do", "id")}
        carry_out: Callable[..., Answer] = getattr(self, f"_{do}")
        return carry_out(**given)

    # -- what changes the search -----------------------------------------------------------------------

    def _ask(self, batch: int | None = None, available: list[bool] | None = None) -> Answer:
        before = self._standing
        try:
            weights = self.policy.ask(batch=batch, available=available)
        except ValueError:
            self._standing = before
            raise
        self._keep()
        self._asked = weights if batch is None else None
        key, rows = ("weights", weights) if batch is None else ("batch", weights)
        answer = {key: rows.tolist(), "n_told": self.policy.n_told}
        if (names := self.policy.problem.names) is not None:
            named = [_by_name(row, names) for row in np.atleast_2d(rows)]
            answer["by_name"] = named[0] if batch is None else named
        return answer

    @property
    def _standing(self) -> tuple[Any, ...]:
        """What asking changes; a question that is refused must not cost the measurement that stands."""
        policy = self.policy
        return policy._choice, policy._available, policy._rng.bit_generator.state

    @_standing.setter
    def _standing(self, before: tuple[Any, ...]) -> None:
        policy = self.policy
        policy._choice, policy._available, policy._rng.bit_generator.state = before

    def _tell(self, reading: float, weights: Any = None, inflation: float = 1.0, number: int | None = None) -> Answer:
        if self._repeated(number, 1):
            return self._taken(repeated=True)
        c = self._only_one() if weights is None else self._exact(weights)
        return self._take(lambda: self.policy.tell(c, reading, inflation=inflation), [c])

    def _tell_many(self, readings: Any, weights: Any, number: int | None = None) -> Answer:
        if not isinstance(weights, list) or not weights:
            raise ValueError("weights must be a list of measurements")
        if self._repeated(number, len(weights)):
            return self._taken(repeated=True)
        rows = [self._exact(each) for each in weights]
        return self._take(lambda: self.policy.tell_many(np.array(rows), readings), rows)

    def _observe(self, values: Any, number: int | None = None) -> Answer:
        if self._repeated(number, 1):
            return self._taken(repeated=True)
        if isinstance(values, list):
            values = [math.nan if value is None else value for value in values]
        return self._take(lambda: self.policy.observe(values), [])

    def _forget(self, weights: Any) -> Answer:
        c = self._exact(weights)
        return self._take(lambda: self.policy.forget(c), [])

    def _take(self, change: Callable[[], None], rows: list[Array]) -> Answer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)  # said of every such reading, below
            change()
        self._keep()
        self._asked = None
        within = self.policy.problem.measurements
        beyond = next((within.beyond(c) for c in rows if not within.allows(c)), None)
        return self._taken() | ({} if beyond is None else {"warning": f"{beyond}: they count"})

    def _repeated(self, number: Any, readings: int) -> bool:
        """Was it taken before? A number that is neither that nor the next is refused."""
        if number is None or as_count(number, "number", least=1) <= (taken := self.policy.n_told):
            return number is not None
        if number != taken + readings:
            raise ValueError(f"number {number} does not follow {taken} readings: {taken + readings} is next")
        return False

    def _only_one(self) -> Array:
        """The measurement that was asked for and not read."""
        if self._asked is not None:
            return self._asked
        pending = self.policy.pending
        if len(pending) == 1:
            return pending[0]
        if len(pending):
            raise ValueError(f"{len(pending)} measurements are pending: give the weights of the one that was read")
        raise ValueError("nothing was asked for since the last reading: ask first, or give weights")

    def _exact(self, weights: Any) -> Array:
        """These weights, or those asked for that they are but for the last digits."""
        c = self.policy.problem.checked_measurement(weights)
        for asked in (*(() if self._asked is None else (self._asked,)), *self.policy.pending):
            if np.abs(c - asked).max() <= _SAME * np.abs(asked).max():
                return asked
        return c

    # -- what only reads -------------------------------------------------------------------------------

    def _taken(self, **more: Any) -> Answer:
        return {"n_told": self.policy.n_told, "should_stop": bool(self.policy.should_stop()), **more}

    def _should_stop(self) -> Answer:
        return self._taken()

    def _decision(self) -> Answer:
        policy = self.policy
        confidence, shifts = policy.confidence, policy.shifts
        return {
            "anomalies": policy.decision.tolist(),
            "names": None if policy.problem.names is None else list(policy.decision_names),
            "confidence": None if confidence is None else _number(confidence.probability),
            "how": None if confidence is None else confidence.how,
            "fit": _number(policy.fit),
            "lead": _number(policy.lead),
            "beliefs": [_number(belief) for belief in policy.beliefs.tolist()],
            "shifts": None if shifts is None else [_number(shift) for shift in shifts[0].tolist()],
        } | self._taken()

    def _status(self) -> Answer:
        policy, names = self.policy, self.policy.problem.names
        return {
            "eccaht": __version__,
            "policy": "composed" if policy.recipe is None else policy.recipe.name,
            "streams": policy.problem.size,
            "names": None if names is None else list(names),
            "can": asdict(policy.can),
            "pending": policy.pending.tolist(),
        } | self._taken()

    def _save(self, file: str | None = None) -> Answer:
        if file is None and self.state is None:
            raise ValueError("save needs a file, or the session --state")
        try:
            self.policy.save(self.state if file is None else file)  # type: ignore[arg-type]
        except OSError as error:
            raise ValueError(str(error)) from None
        return self._taken()

    def _quit(self) -> Answer:
        self.ended = True
        return self._taken()

    # -- the state -------------------------------------------------------------------------------------

    def _keep(self) -> None:
        if self.state is not None:
            self.policy.save(self.state)

    def _load(self, fresh: Policy) -> None:
        """Go on from the state, which must be one of the same search."""
        assert self.state is not None
        self.policy = load_policy(self.state)
        if not _same_search(self.policy, fresh):
            raise ValueError(f"--state {self.state} is of another problem or policy: give another file, or remove it")
        choice = self.policy._choice
        self._asked = None if choice is None else choice.weights

    def _undo(self, error: Exception) -> None:
        """Go back to the last state that was written; without one a search that failed half-way cannot go on."""
        if self.state is None:
            raise ValueError(f"the search cannot go on: {type(error).__name__}: {error}") from error
        self._load(self.policy)


def _returned(request: Answer) -> Answer:
    """The id of a request, if it has one that can be printed."""
    if "id" not in request:
        return {}
    try:
        json.dumps(request["id"], allow_nan=False)
    except (ValueError, RecursionError):
        raise ValueError("id holds a number that JSON does not have, or is too deep") from None
    return {"id": request["id"]}


def _by_name(weights: Array, names: tuple[str, ...]) -> dict[str, float]:
    return {names[k]: float(weights[k]) for k in np.flatnonzero(weights)}


def _number(value: float | None) -> float | None:
    """A number that JSON has."""
    return None if value is None or not math.isfinite(value) else float(value)


def _same_search(one: Policy, other: Policy) -> bool:
    """Are they made by the same recipe for the same problem?"""
    return _plain(one.recipe) == _plain(other.recipe) and _same_problem(one.problem, other.problem)


def _plain(recipe: Any) -> Any:
    """A recipe as a file has it, in which a tuple is a list."""
    return None if recipe is None else json.loads(json.dumps(asdict(recipe), default=np.ndarray.tolist))


def _same_problem(one: Problem, other: Problem) -> bool:
    if one.size != other.size:
        return False
    probe = np.random.default_rng(0).standard_normal(one.size)
    S, T = (problem.covariance.matvec(probe) for problem in (one, other))
    vectors = ("shift", "shift_spread", "mean")
    return (
        (one.names, one.sizes, one.readout_noise, one.measurements)
        == (other.names, other.sizes, other.readout_noise, other.measurements)
        and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in vectors)
        and bool(np.abs(S - T).max() <= 1e-12 * np.abs(T).max())
    )


def _wait_for(state: Path, held: ExitStack) -> None:
    """Be the only session of this state; one whose program has ended may need a moment to end, too."""
    busy = f"another session uses --state {state}: let it end, or give another file"
    lock, until = state.with_name(f"{state.name}.lock"), time.monotonic() + _PATIENCE
    while True:
        try:
            held.enter_context(exclusive(lock, busy))
            return
        except ValueError:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
