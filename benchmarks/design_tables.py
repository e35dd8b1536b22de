"""The rows of part 2 as tables: one line a case, one column a solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.designs import OURS, RIVALS
from benchmarks.jobs import Row
from benchmarks.tables import Column, Table, milliseconds, scientific, times

_KEY = ("family", "shifts", "limit")
_CASE = [Column(key, {"limit": "L1 limit"}.get(key, key), right=False) for key in _KEY]
_RIVALS_NOTE = (
    "clarabel and piqp are called directly, each with the formulation that served it best: clarabel with "
    "-t <= c <= t, sum(t) <= B, piqp with c = p - m, p, m >= 0 and its dense algebra. Only setup and solve "
    "are timed, not the assembly of their matrices. `tight` sets all tolerances to 1e-12. OSQP is called "
    "through cvxpy with default settings, the problem written anew."
)
_SCALE_NOTE = (
    "clarabel, piqp and `OSQP scaled` get S divided by the optimal value, so that their optimum is 1 and "
    "absolute tolerances mean what they say. No user could do that beforehand (at rbf the optimum is near "
    "1e-7 or 1e-3); `OSQP` gets S as it is."
)


def tables(rows: Sequence[Row]) -> list[Table]:
    """Times, errors and violations side by side, and the long form of all."""
    return [_times(rows), _excesses(rows), _violations(rows), _unsolved(rows), _long(rows)]


def _pivot(rows: Sequence[Row], value: Callable[[Row], Any]) -> list[Row]:
    """One row a case with the value of each solver under the solver's name."""
    cases: dict[tuple[str, ...], Row] = {}
    for row in rows:
        case = cases.setdefault(tuple(row[key] for key in _KEY), {key: row[key] for key in _KEY})
        case[row["solver"]] = value(row)
        if row["kkt_residual"] is not None:
            case["kkt_residual"] = row["kkt_residual"]
    return list(cases.values())


def _times(rows: Sequence[Row]) -> Table:
    cases = _pivot(rows, lambda row: row["median_s"])
    for case in cases:
        case["ratio"] = min(case[name] for name in RIVALS) / case["eccaht"]
        case["ratio_dense"] = min(case[name] for name in RIVALS) / case["eccaht dense"]
    columns = [
        *_CASE,
        *(Column(name, name, milliseconds) for name in (*OURS, *RIVALS)),
        Column("ratio", "gain", times),
        Column("ratio_dense", "gain, dense", times),
    ]
    notes = [
        "K = 128. Medians over the same pairs, solvers taking turns. eccaht's time includes its KKT "
        "certificate; `eccaht dense` gets the same full matrix as the others.",
        "`gain`: time of the fastest of the others over eccaht's, whatever its accuracy (table 2b).",
        _RIVALS_NOTE,
        _SCALE_NOTE,
        "Equicorrelation with equal shifts has no binding limit: the unlimited optimum uses two streams.",
    ]
    return Table("design_time", "2a. Time of a design, ms", columns, cases, notes)


def _excesses(rows: Sequence[Row]) -> Table:
    cases = _pivot(rows, lambda row: row["excess"])
    columns = [
        *_CASE,
        Column("kkt_residual", "eccaht KKT residual", scientific),
        *(Column(name, name, scientific) for name in ("eccaht dense", *RIVALS)),
    ]
    notes = [
        "Evaluated from each solver's weights in extended precision; of several pairs the value of largest "
        "magnitude. Negative: better than eccaht's, or outside the limit (table 2c).",
        "The KKT residual is the largest violation of the optimality conditions, relative to max|D|.",
    ]
    title = "2b. Relative excess of c'S c / (c'D)^2 over eccaht's value"
    return Table("design_error", title, columns, cases, notes)


def _violations(rows: Sequence[Row]) -> Table:
    columns = [*_CASE, *(Column(name, name, scientific) for name in (*OURS, *RIVALS))]
    cases = _pivot(rows, lambda row: row["violation"])
    notes = ["Largest of |c|_1 / (B c'D) - 1 over the pairs."]
    return Table("design_violation", "2c. Violation of the L1 limit", columns, cases, notes)


def _unsolved(rows: Sequence[Row]) -> Table:
    pairs = {"pairs": max(row["pairs"] for row in rows)}
    cases = [pairs | case for case in _pivot(rows, lambda row: row["unsolved"])]
    failed = [case for case in cases if any(case[name] for name in RIVALS)]
    columns = [*_CASE, Column("pairs", "pairs"), *(Column(name, name) for name in RIVALS)]
    notes = ["By the solvers' own account; cases without any are left out."]
    return Table("design_unsolved", "2d. Pairs on which a tolerance was not met", columns, failed, notes)


def _long(rows: Sequence[Row]) -> Table:
    return Table("design", "2. All", [Column(key, key) for key in rows[0]], rows, on_screen=False)
