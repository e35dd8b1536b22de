"""Records of a search: every measurement with the two sets it compared and the change in scores, or hits alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index, inner
from eccaht.base.clock import PLAIN, Clock
from eccaht.base.files import replacing
from eccaht.streams.policies import Policy
from eccaht.streams.problem import Problem
from eccaht.streams.run.evidence import Change, Evidence, WholeWindows, name_of
from eccaht.streams.run.loop import Pair, Recorder, Step

if TYPE_CHECKING:
    import polars as pl

    from eccaht.streams.covariance.base import Excess

SUFFIXES = (".csv", ".parquet")
_MOVED = 0.005  # a score that moved less is not listed
_SEPARATOR = "; "
_PAIRED = ("weights", "moved")  # columns in which a cell lists sensors with one number each


class Hits(Recorder):
    """Counts the true anomalies in the decision after each step, of which F1 and every delay are functions.

    >>> from eccaht import Simulator, families, make_policy
    >>> from eccaht.streams.run import steps
    >>> problem = Problem(families.identity(8), shift=6.0, n_anomalies=1, budget=1.0)
    >>> policy, world = make_policy("ecc-aht", problem, stopping=None), Simulator(problem)
    >>> hits = Hits(world.anomalies)
    >>> table = [(*step, policy.lead, hits.counts[-1]) for step in steps(policy, world, limit=10, recorders=[hits])]
    >>> len(table), hits.counts[-1]
    (10, 1)
    """

    def __init__(self, anomalies: Sequence[int] | Index) -> None:
        self.counts: list[int] = []
        self._truth = frozenset(np.asarray(anomalies).tolist())

    def after(self, policy: Policy, step: Step) -> None:  # noqa: ARG002
        self.counts.append(len(self._truth.intersection(policy.decision.tolist())))

    def over(self, horizon: int) -> NDArray[np.int32]:
        """The counts after measurements 1 to `horizon`; the last count is repeated where the search ended earlier."""
        missing = horizon - len(self.counts)
        return np.pad(np.array(self.counts, dtype=np.int32), (0, missing), mode="edge")


@dataclass(frozen=True)
class LedgerEntry:
    """One measurement.

    Two hypotheses are compared: the set held before the reading, and the same set with its `champion` replaced by its
    `challenger`: the pair measured, or else the change that the earlier readings find hardest to rule out. Where
    the number of anomalies is open there may be no champion or no challenger (-1). `expected` and `expected_swapped`
    are the mean readings under either, with shifts as known, or as estimated before it.

    A window observed as a whole vector is shown as the weighted sum that separates the two sets as well as the vector.
    """

    number: int  # from 1
    window: int
    time: np.datetime64  # start of the window
    weights: Array
    reading: float
    noise: float  # standard deviation of the reading
    champion: int
    challenger: int
    expected: float
    expected_swapped: float
    evidence: float  # what the reading adds to the log-odds of the held set over the other
    held: Index  # the set before the reading
    decision: Index  # and after it
    moved: Array  # change of every score, (K,)
    values: Array  # what every sensor read in the window, NaN where it delivered nothing, (K,)
    scores: Array  # after the reading, (K,)
    lead: float
    vector: Array | None = None  # the window, if it was observed as a whole vector
    inflation: float = 1.0  # noise variance over that of a window with all its rows
    excess: Excess | None = None  # noise that missing rows add to a window observed as a whole vector


class Ledger(Recorder):
    """Keeps every measurement of a policy with the two sets it compared and the change in scores.

    `entries` holds them, `save` writes them as a table, `evidence` is what all of them say about sets of sensors.
    """

    def __init__(self, policy: Policy) -> None:
        if policy.n_told and policy.likelihood is None:
            raise ValueError(
                f"this policy was given {policy.n_told} readings that the ledger lacks: begin the ledger with the "
                "search, or use joint, which keeps what all readings say"
            )
        self._policy = policy
        self.problem, self.evidence = policy.problem, Evidence(policy.problem, policy.likelihood)
        self.entries: list[LedgerEntry] = []
        self._windows = WholeWindows(policy.problem)

    def before(self, policy: Policy, pair: Pair | None) -> None:
        """Compare the measured pair if it straddles the edge of the set, else the change hardest to rule out."""
        if policy is not self._policy:
            raise ValueError("a ledger is about one policy: make another Ledger for this one")
        held, evidence = policy.decision, self.evidence
        straddles = pair is not None and pair[0] in held and pair[1] not in held
        change = Change(*pair, 0.0) if pair is not None and straddles else evidence.best_change(held)
        other = change.of(held)
        odds, near, far = evidence.log_odds(held, other), evidence.shifts(held), evidence.shifts(other)
        self._before = held, policy.scores.copy(), change, other, odds, near, far

    def after(self, policy: Policy, step: Step) -> None:
        held, before, change, other, odds, near, far = self._before
        if not step.whole:
            self.evidence.add(step.weights, step.reading, step.inflation)
        c, y, noise, inflation = self._shown(step, held, other)
        scores = policy.scores.copy()
        self.entries.append(
            LedgerEntry(
                number=len(self.entries) + 1,
                window=step.window,
                time=step.time,
                weights=c,
                reading=y,
                noise=noise,
                champion=change.out,
                challenger=change.into,
                expected=inner(c, self.problem.mean + near),
                expected_swapped=inner(c, self.problem.mean + far),
                evidence=self.evidence.log_odds(held, other) - odds,
                held=held,
                decision=policy.decision,
                moved=scores - before,
                values=np.full(c.size, np.nan) if step.values is None else step.values,
                scores=scores,
                lead=policy.lead,
                vector=step.values if step.whole else None,
                inflation=inflation,
                excess=step.excess,
            )
        )

    def save(self, path: str | Path, clock: Clock = PLAIN) -> Path:
        """Write .csv, in which a list is one cell `name=number; name=number`, or .parquet, in which it is a list.

        A measurement compares the set held with the one in which challenger replaces champion: `expected` and
        `expected_if_swapped` are the mean readings under either, `evidence` is the log-likelihood ratio.
        """
        path = Path(path)
        table = [_row(self.problem, entry) for entry in self.entries]
        with replacing(path) as file:
            if path.suffix == ".csv":
                file.write(_csv(table, clock).encode())
            elif path.suffix == ".parquet":
                _frame(table, clock).write_parquet(file)
            else:
                raise ValueError(f"a ledger ends in {' or '.join(SUFFIXES)}, not {path.name!r}")
        return path

    def _shown(self, step: Step, held: Index, other: Index) -> tuple[Array, float, float, float]:
        """Weights, reading, noise and inflation of the weighted sum read, or of one equivalent to the vector."""
        if step.values is None or not step.whole:
            noise = np.sqrt(step.inflation * self.problem.noise_variance(step.weights))
            return step.weights, step.reading, float(noise), step.inflation
        shift = self.problem.shift
        size = np.where(shift == 0.0, 1.0, shift)  # a shift of unknown sign has mean 0: the ledger shows it as 1
        difference = np.zeros(shift.size)
        difference[held] += size[held]
        difference[other] -= size[other]
        c, y, noise = self._windows.contrast(step.values, difference, step.excess)
        inflation = 1.0
        if step.excess is not None and noise > 0.0:
            inflation = noise**2 / max(noise**2 - step.excess.quad(c), np.finfo(float).tiny)
        return c, y, noise, inflation


# -- the ledger as a table -----------------------------------------------------------------------------


def _row(problem: Problem, entry: LedgerEntry) -> dict[str, Any]:
    """An entry with names in place of numbers; lists where a cell holds several."""
    return {
        "measurement": entry.number,
        "time": entry.time,
        "window": entry.window,
        "weights": _pairs(problem, entry.weights, np.flatnonzero(entry.weights)),
        "reading": entry.reading,
        "noise": entry.noise,
        "set": [name_of(problem, k) for k in entry.held],
        "champion": name_of(problem, entry.champion),
        "challenger": name_of(problem, entry.challenger),
        "expected": entry.expected,
        "expected_if_swapped": entry.expected_swapped,
        "evidence": entry.evidence,
        "moved": _pairs(problem, entry.moved, np.flatnonzero(np.abs(entry.moved) >= _MOVED)),
        "lead": entry.lead,
        "set_after": [name_of(problem, k) for k in entry.decision],
    }


def _frame(table: list[dict[str, Any]], clock: Clock) -> pl.DataFrame:
    import polars as pl

    rows = []
    for row in table:
        lists = {key: [{"sensor": name, "value": value} for name, value in row[key]] for key in _PAIRED}
        # rows without times have numbers
        time = row["time"].item() if clock.row_interval is None else clock.show(row["time"])
        rows.append(row | lists | {"time": time})
    pairs = pl.List(pl.Struct({"sensor": pl.String, "value": pl.Float64}))
    kind = pl.Datetime("us") if clock.row_interval is None else pl.String()
    frame = pl.DataFrame(rows, schema_overrides={"weights": pairs, "moved": pairs, "time": kind})
    if clock.zone is None:
        return frame
    return frame.with_columns(pl.col("time").dt.replace_time_zone("UTC").dt.convert_time_zone(clock.zone_for_tables))


def _csv(table: list[dict[str, Any]], clock: Clock) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(table[0]) if table else [], lineterminator="\n")
    writer.writeheader()
    for row in table:
        lists = {key: _SEPARATOR.join(row[key]) for key in ("set", "set_after")}
        lists |= {key: _SEPARATOR.join(f"{name}={value:.6g}" for name, value in row[key]) for key in _PAIRED}
        writer.writerow(row | lists | {"time": clock.exact(row["time"])})
    return text.getvalue()


def _pairs(problem: Problem, values: Array, which: Index) -> list[tuple[str, float]]:
    """Sensors and their values, the largest first."""
    order = which[np.argsort(-np.abs(values[which]), kind="stable")]
    return [(name_of(problem, k), float(values[k])) for k in order]
