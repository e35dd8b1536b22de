"""`eccaht count-errors`: how often would a search of this problem be wrong, and how long would it take?"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from eccaht.base.statistics import Estimate
from eccaht.cli import output as common
from eccaht.cli.output import deliver, option, show_lines, show_mean, shown_progress
from eccaht.cli.problems import noise_problem, parse_list, parse_number, parse_shift
from eccaht.research.experiments import error_counts
from eccaht.research.experiments.error_counts import RULES, ErrorCounts, Level, right_for_good, summarise
from eccaht.streams import Problem

_COUNTED, _TAKEN = ("stopped", "wrong", "share [95 %]", "at most", "holds"), ("5 %", "median", "95 %", "ratio")
_HEADER = ("alpha", *_COUNTED, "measurements [95 %]", *_TAKEN)


def count_errors(
    anomalies: Annotated[str, option("N|LO-HI", "How many streams are anomalous.")],
    shift: Annotated[str, option("D", "Size of an anomaly, or unknown:SCALE[:positive|:negative].")],
    model: common.ModelOrNoise = None,
    family: Annotated[str | None, option("NAME", f"Or noise: {common.FAMILY_NAMES}.")] = None,
    streams: common.Streams = None,
    rho: common.Rho = None,
    budget: common.Budget = 5.0,
    policy: common.PolicyName = "joint",
    stopping: Annotated[str, option("RULE", f"{', '.join(RULES[:-1])} or {RULES[-1]}.")] = "posterior",
    alpha: Annotated[str, option("LIST", "Error levels with commas between.")] = "0.05,0.01",
    truly: Annotated[int | None, option("N", "Simulate so many, where a range is given.")] = None,
    sizes: Annotated[str | None, option("LO-HI", "Simulate unknown shifts so large.")] = None,
    vectors: Annotated[int | None, option("M", "Give each search an estimate from so many vectors.")] = None,
    tails: Annotated[float | None, option("NU", "t noise of so many degrees of freedom.")] = None,
    runs: Annotated[int, option("N", "Searches to simulate.", min=1)] = 200,
    horizon: Annotated[int, option("N", "Most measurements of a search.", min=1)] = 1000,
    seed: Annotated[int, option("N", "Another seed is other searches.", min=0)] = 0,
    jobs: Annotated[int, option("N", "Processes.", min=1)] = 2,
    as_json: common.Json = False,
) -> None:
    """Count how often a stopping rule errs on your problem.

    And how many measurements it takes. The anomalous set of each simulated search, and its number and shifts
    where they are not known, are drawn anew, from what the search takes for likely or as --truly and --sizes
    say. The noise is taken to be as the model says; with --vectors a search has to estimate it.
    """
    search = {"n_anomalies": parse_number(anomalies), "shift": parse_shift(shift), "budget": budget}
    wrong = f"--alpha {alpha!r} is not a list of numbers such as 0.05,0.01"
    levels = error_counts.check_alphas(parse_list(alpha, float, wrong))
    truth = error_counts.Truth(truly, _sizes(sizes), vectors, tails)
    if stopping not in RULES:
        raise ValueError(f"--stopping {stopping!r} has no error level to check: use {', '.join(RULES)}")
    if model is None and family is None:
        raise ValueError("whose noise? Give --model MODEL, or --family NAME with --streams and --rho")
    try:
        problem, noise = noise_problem(model, family, streams, rho, search)
        options: dict[str, Any] = {"policy": policy, "stopping": stopping}
        options |= {"runs": runs, "horizon": horizon, "seed": seed}
        with shown_progress("searches", runs) as bar:
            how: dict[str, Any] = {"truth": truth, "alphas": levels, "jobs": jobs, "progress": bar.advance}
            records = error_counts.count_errors(problem, **options, **how)
    except MemoryError:
        raise ValueError("not enough memory: use fewer streams, anomalies or jobs") from None
    settings = {"noise": noise, "streams": problem.size, "anomalies": anomalies, "shift": shift, "budget": budget}
    settings |= options | {"truly": truly, "sizes": sizes, "vectors": vectors, "tails": tails}
    deliver(
        (),
        show=lambda: _show(settings, problem, records),
        document=lambda _: {"settings": settings, **document(records)},
        as_json=as_json,
    )


def _sizes(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    wrong = f"--sizes {text!r} is not a range such as 2-5"
    sizes = parse_list(text, float, wrong, between="-")
    if len(sizes) != 2:
        raise ValueError(wrong)
    return sizes[0], sizes[1]


def document(records: ErrorCounts) -> dict[str, Any]:
    """What a program may want to know."""
    good = right_for_good(records)
    return {
        "interval_level": error_counts.LEVEL,
        "quantile_levels": error_counts.QUANTILES,
        "right_for_good": None if good is None else good._asdict(),
        "levels": [_entry(level, good) for level in summarise(records)],
        "searches": [
            {**search._asdict(), "stops": [None if stop is None else stop._asdict() for stop in search.stops]}
            for search in records.searches
        ],
    }


def _entry(level: Level, good: Estimate | None) -> dict[str, Any]:
    measurements, coverage = level.measurements, level.coverage
    entry = level._asdict() | {"never_stopped": level.never_stopped, "times_right_for_good": _ratio(level, good)}
    entry["measurements"] = {**measurements._asdict(), "lower_bound": measurements.censored > 0}
    entry["coverage"] = None if coverage is None else {**coverage._asdict(), "share": coverage.share}
    return entry


def _ratio(level: Level, good: Estimate | None) -> float | None:
    """Measurements until the stop for each one until the set was right for good."""
    return None if good is None else level.measurements.mean / good.mean


def _show(settings: dict[str, Any], problem: Problem, records: ErrorCounts) -> None:
    levels, good = summarise(records), right_for_good(records)
    typer.echo(_opening(settings, problem))
    typer.echo("{runs} searches of at most {horizon} measurements, policy {policy}, rule {stopping}".format(**settings))
    show_lines([_HEADER, *(_row(level, good) for level in levels)])
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
    if settings["vectors"] is not None:
        noise += f" (estimated from {settings['vectors']} vectors)"
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
        ">=" * bool(level.never_stopped) + show_mean(level.measurements, 1),
        early,
        median,
        late,
        "-" if ratio is None else f"{'>=' if level.never_stopped else ''}{ratio:.2f}",
    )


def _share(share: float | None, interval: tuple[float, float] | None) -> str:
    return "-" if share is None or interval is None else f"{share:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"


def _notes(levels: Sequence[Level], good: Estimate | None, records: ErrorCounts) -> Iterator[str]:
    yield "wrong: sets announced that were not exactly right; at most: one-sided bound of their share, 95 % sure;"
    yield "holds: the count is compatible with at most alpha (one-sided binomial test at 1 %)."
    if good is not None:
        ended = sum(search.right_for_good is not None for search in records.searches)
        of = "" if ended == len(records.searches) else f" in the {ended} searches that ended right"
        yield f"The set was right for good after {show_mean(good, 1)} measurements{of}: ratio is to this."
    for level in levels:
        if level.never_stopped:
            yield f"alpha {level.alpha:g}: {level.never_stopped} never stopped, counted neither right nor wrong."
        if level.coverage is not None:
            share, (named, covered) = _share(level.coverage.share, level.coverage.interval), level.coverage[:2]
            yield f"alpha {level.alpha:g}: 95 % intervals of the shifts held {covered} of {named} true ones, {share}."
