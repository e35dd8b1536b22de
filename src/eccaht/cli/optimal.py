"""`eccaht optimal`: how near searches come to the best one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from eccaht.cli.output import Json, deliver, option, show_lines, shown_progress
from eccaht.research.experiments.optimality import CASES, POLICIES, Optimality, case, measure_optimality

_HEADER = ("problem", "policy", "readings", "error", "wrong", "best at that error", "ratio [95 %]")


def optimal(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help=f"{', '.join(CASES)}.")] = None,
    runs: Annotated[int, option("N", "Searches of each policy.", min=2)] = 1000,
    grids: Annotated[int, option("N", "Grids of the belief, from the coarsest.", min=1, max=3)] = 2,
    seed: Annotated[int, option("N", "Another seed is other searches.", min=0)] = 0,
    jobs: Annotated[int, option("N", "Processes.", min=1)] = 2,
    as_json: Json = False,
) -> None:
    """Say how near searches come to the best search there is, on small problems.

    The best search is computed by dynamic programming over the belief (docs/explanation/optimality.md). Policies run
    with their own stopping rule at alpha 0.05, and are compared with the best search that errs as often.
    """
    chosen = list(dict.fromkeys(names or CASES))
    for name in chosen:
        case(name)
    found = []
    with shown_progress("grids and policies", len(chosen) * (grids + len(POLICIES))) as bar:
        for name in chosen:
            found.append(measure_optimality(name, runs=runs, seed=seed, jobs=jobs, grids=grids, progress=bar.advance))
    settings = {"runs": runs, "seed": seed, "grids": grids}
    deliver(
        (),
        show=lambda: _show(found),
        document=lambda _: {"settings": settings, "problems": [document(problem) for problem in found]},
        as_json=as_json,
    )


def document(found: Optimality) -> dict[str, Any]:
    """What a program may want to know; None where nothing was attained."""
    policies = [line._asdict() | {"attained": _or_none(line.attained)} for line in found.beside]
    return found._asdict() | {"beside": policies}


def _or_none(number: float) -> float | None:
    return None if math.isnan(number) else number


def _show(found: Sequence[Optimality]) -> None:
    show_lines([_HEADER, *(line for problem in found for line in _lines(problem))])
    typer.echo("best: what no search with this error undercuts, to what one by the computed values took (simulated);")
    typer.echo("error: mean posterior probability that the set is wrong; ratio: to the first of the two.")
    for problem in found:
        grids = ", ".join(f"{n}: {next(iter(values.values())):.3f}" for n, values in problem.values.items())
        typer.echo(f"{problem.name}: {problem.title}; value at the first penalty by intervals of the grid {grids}")


def _lines(problem: Optimality) -> Iterator[tuple[str, ...]]:
    for line in problem.beside:
        best = f"{line.least:.2f}" + ("" if math.isnan(line.attained) else f" to {line.attained:.2f}")
        ratio = f"{line.ratio:.3f} [{line.interval[0]:.3f}, {line.interval[1]:.3f}]"
        yield problem.name, line.policy, f"{line.readings:.2f}", f"{line.error:.4f}", str(line.wrong), best, ratio
