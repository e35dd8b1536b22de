"""`eccaht limits`: how few measurements any search could need."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eccaht.cli.compare import FAMILIES
from eccaht.cli.output import counting

if TYPE_CHECKING:
    from eccaht.limits import Limits
    from eccaht.problem import Problem

_STREAMS = 128
_MEANING = {
    "entropy": "nats to learn: the uncertainty about which set it is",
    "first reading": "nats at most from the first reading, and from each reading of a plan made in advance",
    "any reading": "nats at most from a reading chosen after others",
    "fixed plan": "measurements at least, if they are all planned in advance",
    "entropy bound": "measurements at least on average, however they are chosen",
    "Gamma* single": "nats a reading against the hardest rival, one measurement repeated",
    "Gamma* mix": "the same for the best mix of measurements: no search is faster in the long run",
    "diagonal": "the same if the streams were independent",
    "correlation": "times faster than that: what correlation is worth",
    "lower bound": "measurements at least on average, if wrong at most once in {wrong:g} whatever the set",
}


def limits(
    model: Annotated[Path | None, typer.Option(metavar="MODEL", help="What 'eccaht calibrate' wrote.")] = None,
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"Or noise: {', '.join(FAMILIES)}. [default: toeplitz]")
    ] = None,
    streams: Annotated[
        int | None, typer.Option(min=2, metavar="K", help=f"How many streams. [default: {_STREAMS}]")
    ] = None,
    rho: Annotated[float | None, typer.Option(help="Correlation of the family. [default: 0.8]")] = None,
    length_scale: Annotated[float | None, typer.Option(help="Instead of --rho, for exponential and rbf.")] = None,
    alpha_mix: Annotated[float | None, typer.Option(help="Weight of the common factor: spectral-mixture.")] = None,
    anomalies: Annotated[int, typer.Option(min=1, metavar="N", help="How many streams are anomalous.")] = 5,
    shift: Annotated[float, typer.Option(metavar="D", help="Size of an anomaly.")] = 3.0,
    budget: Annotated[float, typer.Option(metavar="B", help="Limit on a measurement: sum of |weights|.")] = 5.0,
    alpha: Annotated[float, typer.Option(metavar="A", help="How often the answer may be wrong.")] = 0.05,
    sets: Annotated[int, typer.Option(min=1, metavar="N", help="Random true sets to look at.")] = 3,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Another seed is other sets.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")] = False,
) -> None:
    """Say how few measurements any search could need.

    The limits follow from covariance, shift and number of anomalies alone; docs/limits.md gives the mathematics. Rates
    depend on which streams are anomalous: they are given for some random sets, from the lowest to the highest.
    """
    shape = {"rho": rho, "length_scale": length_scale, "alpha_mix": alpha_mix}
    given = {name: value for name, value in shape.items() if value is not None}
    problem, noise = _problem(
        model, family, streams, given, {"n_anomalies": anomalies, "shift": shift, "budget": budget}
    )
    from eccaht.limits import limits as compute

    with counting(sets, "sets") as progress:
        found = compute(problem, alpha=alpha, n_sets=sets, seed=seed, progress=progress)
    settings = {"noise": noise, "streams": problem.size, "anomalies": anomalies, "shift": shift, "budget": budget}
    if as_json:
        typer.echo(
            json.dumps({"settings": {**settings, "alpha": alpha, "seed": seed}, **document(found)}, allow_nan=False)
        )
    else:
        _tell(settings, found)


def _problem(
    model: Path | None, family: str | None, streams: int | None, shape: dict[str, float], search: dict[str, Any]
) -> tuple[Problem, dict[str, Any]]:
    """Return the problem and how to call its noise."""
    if model is None:
        from eccaht.cli.compare import build_family
        from eccaht.limits.checks import check_streams
        from eccaht.problem import Problem

        check_streams(streams or _STREAMS)
        name = family or "toeplitz"
        S, shape = build_family(name, streams or _STREAMS, shape)
        return Problem(S, **search), {"family": name, **shape}
    if family is not None or streams is not None or shape:
        raise ValueError("--model replaces --family, --streams and the options that shape them: drop one or the other")
    from eccaht.model.model import load_model

    return load_model(model).problem(**search), {"model": str(model)}


def document(found: Limits) -> dict[str, Any]:
    """What a program may want to know."""
    told = asdict(found)
    worth = list(found.value_of_correlation)
    return {**told, "value_of_correlation": worth, "proven": found.proven}


def _tell(settings: dict[str, Any], found: Limits) -> None:
    noise = " ".join(map(str, settings["noise"].values()))
    typer.echo(
        "{anomalies} of {streams} streams shifted by {shift:g}, noise {noise}, budget {budget:g}".format(
            **{**settings, "noise": noise}
        )
    )
    which = f"all {len(found.sets)} sets" if found.every_set else f"{len(found.sets)} random sets"
    typer.echo(f"Rates over {which}, alpha {found.alpha:g}")
    rows = figures(found)
    widths = [max(map(len, column)) for column in zip(*rows.items(), strict=True)]
    for name, figure in rows.items():
        meaning = _MEANING[name].format(wrong=1.0 / found.alpha)
        typer.echo(f"{name:<{widths[0]}}  {figure:>{widths[1]}}  {meaning}")
    if any(rate.budget_active for rate in found.single):
        typer.echo("The budget binds for Gamma* single; without it one measurement could do more.")
    typer.echo(_proof(found))


def figures(found: Limits) -> dict[str, str]:
    """Each figure by its name; rates as their range over the sets."""
    entropy = found.entropy
    return {
        "entropy": f"{entropy.entropy:.2f}",
        "first reading": f"{entropy.first_reading:.3g}",
        "any reading": f"{entropy.any_reading:.3g}",
        "fixed plan": str(entropy.fixed_plan),
        "entropy bound": f"{entropy.measurements:.1f}",
        "Gamma* single": _range([rate.lower for rate in found.single]),
        "Gamma* mix": _range([rate.lower for rate in found.mix]),
        "diagonal": _range(found.diagonal),
        "correlation": _range(found.value_of_correlation),
        "lower bound": _range(found.least_measurements),
    }


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def _proof(found: Limits) -> str:
    gap = max(1.0 - rate.lower / rate.upper for rate in found.mix)
    if found.proven:
        return f"Gamma* mix is proven within {gap:.1g} of itself: every rival was enumerated or ruled out."
    return f"Gamma* mix is proven within {gap:.1g} of itself: some rivals were searched, not ruled out."
