"""`eccaht limits`: how few measurements any search could need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from eccaht.cli.output import (
    FAMILY_NAMES,
    STREAMS,
    Budget,
    Json,
    ModelOrNoise,
    Rho,
    Streams,
    deliver,
    option,
    shown_progress,
)
from eccaht.cli.problems import noise_problem
from eccaht.streams import Limits
from eccaht.streams.limits import limits as bounds_of
from eccaht.streams.limits.rates import check_streams

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
    model: ModelOrNoise = None,
    family: Annotated[str | None, option("NAME", f"Or noise: {FAMILY_NAMES}. [default: toeplitz]")] = None,
    streams: Streams = None,
    rho: Rho = None,
    anomalies: Annotated[int, option("N", "How many streams are anomalous.", min=1)] = 5,
    shift: Annotated[float, option("D", "Size of an anomaly.")] = 3.0,
    budget: Budget = 5.0,
    alpha: Annotated[float, option("A", "How often the answer may be wrong.")] = 0.05,
    sets: Annotated[int, option("N", "Random true sets to look at.", min=1)] = 3,
    seed: Annotated[int, option("N", "Another seed is other sets.", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Say how few measurements any search could need.

    The limits follow from covariance, shift and number of anomalies alone (docs/explanation/limits.md). Rates depend on
    which streams are anomalous: they are given for some random sets, from the lowest to the highest.
    """
    if model is None:
        check_streams(streams or STREAMS)
    search = {"n_anomalies": anomalies, "shift": shift, "budget": budget}
    problem, noise = noise_problem(model, family, streams, rho, search)
    with shown_progress("sets", sets) as bar:
        found = bounds_of(problem, alpha=alpha, n_sets=sets, seed=seed, progress=bar.advance)
    settings = {"noise": noise, "streams": problem.size, "anomalies": anomalies, "shift": shift, "budget": budget}
    settings |= {"alpha": alpha, "seed": seed}
    deliver(
        (),
        show=lambda: _show(settings, found),
        document=lambda _: {"settings": settings, **document(found)},
        as_json=as_json,
    )


def document(found: Limits) -> dict[str, Any]:
    """What a program may want to know."""
    return {**asdict(found), "value_of_correlation": found.value_of_correlation, "proven": found.proven}


def _show(settings: dict[str, Any], found: Limits) -> None:
    say = settings | {"noise": " ".join(map(str, settings["noise"].values()))}
    typer.echo("{anomalies} of {streams} streams shifted by {shift:g}, noise {noise}, budget {budget:g}".format(**say))
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
    how = "every rival was enumerated or ruled out" if found.proven else "some rivals were searched, not ruled out"
    return f"Gamma* mix is proven within {gap:.1g} of itself: {how}."
