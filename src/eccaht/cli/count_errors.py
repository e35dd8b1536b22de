"""`eccaht calibration`: how often would a search of this problem be wrong, and how long would it take?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eccaht.cli.compare import FAMILIES
from eccaht.cli.memory import check_memory
from eccaht.cli.output import PLOTS, check_outputs, counting, deliver
from eccaht.cli.parsing import parse_number, parse_shift

if TYPE_CHECKING:
    from eccaht.experiments.error_counts import Level, Records
    from eccaht.problem import Problem
    from eccaht.statistics import Delay, Estimate

_STREAMS = 128
_COUNTED, _TAKEN = ("stopped", "wrong", "share [95 %]", "at most", "holds"), ("5 %", "median", "95 %", "ratio")
_HEADER = ("alpha", *_COUNTED, "measurements [95 %]", *_TAKEN)


def calibration(
    anomalies: Annotated[str, typer.Option(metavar="N|LO-HI", help="How many streams are anomalous.")],
    shift: Annotated[str, typer.Option(metavar="D", help="Size of an anomaly, or unknown:SCALE[:positive|:negative].")],
    model: Annotated[Path | None, typer.Option(metavar="MODEL", help="What 'eccaht calibrate' wrote.")] = None,
    family: Annotated[str | None, typer.Option(metavar="NAME", help=f"Or noise: {', '.join(FAMILIES)}.")] = None,
    streams: Annotated[
        int | None, typer.Option(min=2, metavar="K", help=f"How many streams. [default: {_STREAMS}]")
    ] = None,
    rho: Annotated[float | None, typer.Option(help="Correlation of the family. [default: 0.8]")] = None,
    length_scale: Annotated[float | None, typer.Option(help="Instead of --rho, for exponential and rbf.")] = None,
    alpha_mix: Annotated[float | None, typer.Option(help="Weight of the common factor: spectral-mixture.")] = None,
    budget: Annotated[float, typer.Option(metavar="B", help="Limit on a measurement: sum of |weights|.")] = 5.0,
    policy: Annotated[str, typer.Option(metavar="NAME", help="'eccaht policies' lists them.")] = "joint",
    stopping: Annotated[str, typer.Option(metavar="RULE", help="posterior, glr or gap.")] = "posterior",
    alpha: Annotated[str, typer.Option(metavar="LIST", help="Error levels with commas between.")] = "0.05,0.01",
    truly: Annotated[int | None, typer.Option(metavar="N", help="Simulate so many, where a range is given.")] = None,
    sizes: Annotated[str | None, typer.Option(metavar="LO-HI", help="Simulate unknown shifts so large.")] = None,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Searches to simulate.")] = 200,
    horizon: Annotated[int, typer.Option(min=1, metavar="N", help="Most measurements of a search.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Another seed is other searches.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Processes.")] = 2,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it: .png, .pdf or .svg.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")] = False,
) -> None:
    """Count how often a stopping rule errs on your problem.

    And how many measurements it takes. Searches are simulated: the anomalous set, and its number and shifts where they
    are not known, are drawn anew for each, from what the search takes for likely or as --truly and --sizes say. The
    model is taken to be right: 'eccaht diagnose' says whether your history agrees. The same command gives the same
    numbers on any number of processes.
    """
    from eccaht.experiments.error_counts import Truth, calibrate_stopping

    shape = {"rho": rho, "length_scale": length_scale, "alpha_mix": alpha_mix}
    given = {name: value for name, value in shape.items() if value is not None}
    search = {"n_anomalies": parse_number(anomalies), "shift": parse_shift(shift), "budget": budget}
    levels, truth = _alphas(alpha), Truth(truly, _sizes(sizes))
    _check_rule(stopping)
    check_outputs({"--plot": plot}, {"--model": model}, {"--plot": PLOTS})
    if model is None and family is not None:
        check_memory(family, streams or _STREAMS, [policy], processes=jobs)
    try:
        problem, noise = _problem(model, family, streams, given, search)
        options: dict[str, Any] = {"policy": policy, "stopping": stopping}
        options |= {"runs": runs, "horizon": horizon, "seed": seed}
        with counting(runs, "searches") as progress:
            records = calibrate_stopping(problem, **options, truth=truth, alphas=levels, jobs=jobs, progress=progress)
    except MemoryError:
        raise ValueError("not enough memory: use fewer streams, anomalies or jobs") from None
    settings = {"noise": noise, "streams": problem.size, "anomalies": anomalies, "shift": shift, "budget": budget}
    settings |= options | {"truly": truly, "sizes": sizes}
    deliver(
        [_save(records, plot)],
        tell=lambda: _tell(settings, problem, records),
        document=(lambda files: {"settings": settings, **document(records), "files": files}) if as_json else None,
    )


def _alphas(text: str) -> tuple[float, ...]:
    from eccaht.experiments.error_counts import check_alphas

    try:
        levels = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--alpha {text!r} is not a list of numbers such as 0.05,0.01") from None
    return check_alphas(levels)


def _sizes(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        least, most = (float(part) for part in text.split("-"))
    except ValueError:
        raise ValueError(f"--sizes {text!r} is not a range such as 2-5") from None
    return least, most


def _check_rule(stopping: str) -> None:
    from eccaht.experiments.error_counts import RULES

    if stopping not in RULES:
        raise ValueError(f"--stopping {stopping!r} has no error level to check: use {', '.join(RULES)}")


def _problem(
    model: Path | None, family: str | None, streams: int | None, shape: dict[str, float], search: dict[str, Any]
) -> tuple[Problem, dict[str, Any]]:
    """Return the problem and how to call its noise."""
    if model is not None:
        if family is not None or streams is not None or shape:
            raise ValueError("--model replaces --family and the options that shape it: drop one or the other")
        from eccaht.model.model import load_model

        return load_model(model).problem(**search), {"model": str(model)}
    if family is None:
        raise ValueError("whose noise? Give --model MODEL, or --family NAME with --streams and --rho")
    from eccaht.cli.compare import build_family
    from eccaht.problem import Problem

    S, shape = build_family(family, streams or _STREAMS, shape)
    return Problem(S, **search), {"family": family, **shape}


def _save(records: Records, plot: Path | None) -> Iterator[Path]:
    from eccaht.experiments.error_counts_figure import draw
    from eccaht.presentation.style import save_picture

    if plot is not None:
        yield save_picture(draw(records), plot)


def document(records: Records) -> dict[str, Any]:
    """What a program may want to know."""
    from eccaht.experiments.error_counts import LEVEL, QUANTILES, right_for_good, summarise

    good = right_for_good(records)
    return {
        "interval_level": LEVEL,
        "quantile_levels": QUANTILES,
        "right_for_good": None if good is None else good._asdict(),
        "levels": [_entry(level, good) for level in summarise(records)],
        "searches": [
            {**search._asdict(), "stops": [None if stop is None else stop._asdict() for stop in search.stops]}
            for search in records.searches
        ],
    }


def _entry(level: Level, good: Estimate | None) -> dict[str, Any]:
    measurements, coverage = level.measurements, level.coverage
    told = level._asdict() | {"never_stopped": level.never_stopped, "times_right_for_good": _ratio(level, good)}
    told["measurements"] = {**measurements._asdict(), "lower_bound": measurements.censored > 0}
    told["coverage"] = None if coverage is None else {**coverage._asdict(), "share": coverage.share}
    return told


def _ratio(level: Level, good: Estimate | None) -> float | None:
    """Measurements until the stop for each one until the set was right for good."""
    return None if good is None else level.measurements.mean / good.mean


def _tell(settings: dict[str, Any], problem: Problem, records: Records) -> None:
    from eccaht.experiments.error_counts import right_for_good, summarise

    levels, good = summarise(records), right_for_good(records)
    typer.echo(_opening(settings, problem))
    typer.echo("{runs} searches of at most {horizon} measurements, policy {policy}, rule {stopping}".format(**settings))
    for line in _columns([_HEADER, *(_row(level, good) for level in levels)]):
        typer.echo(line)
    for line in _notes(levels, good, records):
        typer.echo(line)


def _opening(settings: dict[str, Any], problem: Problem) -> str:
    least, most = problem.sizes
    number = str(least) if least == most else f"{least} to {most}"
    size = settings["shift"].removeprefix("unknown:").replace(":", ", ")
    moved = f"an unknown size (scale {size})" if problem.unknown_shift else size
    if settings["truly"] is not None:
        number += f" (truly {settings['truly']})"
    if settings["sizes"] is not None:
        moved += f" (truly {settings['sizes']})"
    noise = " ".join(map(str, settings["noise"].values()))
    return f"{number} of {problem.size} streams shifted by {moved}, noise {noise}, budget {problem.budget:g}"


def _row(level: Level, good: Estimate | None) -> tuple[str, ...]:
    ratio = _ratio(level, good)
    early, _, median, _, late = ("never" if time is None else str(time) for time in level.quantiles)
    return (
        f"{level.alpha:g}",
        f"{level.stopped}/{level.runs}",
        str(level.errors),
        _share(level.share, level.interval),
        "-" if level.at_most is None else f"{level.at_most:.3f}",
        {True: "yes", False: "NO", None: "-"}[level.compatible],
        _mean(level.measurements),
        early,
        median,
        late,
        "-" if ratio is None else f"{'>=' if level.never_stopped else ''}{ratio:.2f}",
    )


def _share(share: float | None, interval: tuple[float, float] | None) -> str:
    return "-" if share is None or interval is None else f"{share:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"


def _mean(value: Delay | Estimate) -> str:
    bound = ">=" if getattr(value, "censored", 0) else ""
    ends = "" if value.interval is None else f" [{value.interval[0]:.1f}, {value.interval[1]:.1f}]"
    return f"{bound}{value.mean:.1f}{ends}"


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _notes(levels: Sequence[Level], good: Estimate | None, records: Records) -> Iterator[str]:
    yield "wrong: sets announced that were not exactly right; at most: one-sided bound of their share, 95 % sure;"
    yield "holds: the count is compatible with at most alpha (one-sided binomial test at 1 %)."
    if good is not None:
        ended = sum(search.right_for_good is not None for search in records.searches)
        of = "" if ended == len(records.searches) else f" in the {ended} searches that ended right"
        yield f"The set was right for good after {_mean(good)} measurements{of}: ratio is to this."
    for level in levels:
        if level.never_stopped:
            yield f"alpha {level.alpha:g}: {level.never_stopped} never stopped, counted neither right nor wrong."
        if level.coverage is not None:
            share, (named, covered) = _share(level.coverage.share, level.coverage.interval), level.coverage[:2]
            yield f"alpha {level.alpha:g}: 95 % intervals of the shifts held {covered} of {named} true ones, {share}."
