"""`eccaht compare`: policies side by side on one problem."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eccaht.cli.memory import check_memory
from eccaht.cli.output import check_outputs, counting, deliver

if TYPE_CHECKING:
    from rich.console import Group

    from eccaht.covariance import Covariance
    from eccaht.experiments.comparison import Records, Row
    from eccaht.problem import Problem
    from eccaht.statistics import Delay, Estimate

# family -> the options that shape it
FAMILIES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("toeplitz", "equicorrelation", "block", "circulant", "graph", "kronecker"), ("rho",)),
    **dict.fromkeys(("exponential", "rbf"), ("rho", "length_scale")),
    "spectral-mixture": ("alpha_mix",),
    "identity": (),
}
_RHO, _STREAMS, _KRONECKER = 0.8, 128, 8

Parts = tuple[tuple[str, ...], ...]  # a line of the table: columns of one or more parts
HEADER: Parts = (("policy",), ("first", "", ""), ("for good", "", ""), ("final F1", ""), ("us/step",))
WIDE = 126  # terminals that take a policy on one line


def compare(
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"Noise: {', '.join(FAMILIES)}. [default: toeplitz]")
    ] = None,
    streams: Annotated[
        int | None, typer.Option(min=2, metavar="K", help=f"How many streams. [default: {_STREAMS}]")
    ] = None,
    anomalies: Annotated[int, typer.Option(min=1, metavar="N", help="How many are anomalous.")] = 5,
    rho: Annotated[float | None, typer.Option(help=f"Correlation of the family. [default: {_RHO}]")] = None,
    length_scale: Annotated[float | None, typer.Option(help="Instead of --rho, for exponential and rbf.")] = None,
    alpha_mix: Annotated[float | None, typer.Option(help="Weight of the common factor: spectral-mixture.")] = None,
    covariance: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A matrix (.npy or .csv) instead of a family.")
    ] = None,
    shift: Annotated[
        str, typer.Option(help="Size of an anomaly (noise of a stream: 1), or K of them with commas.")
    ] = "3",
    budget: Annotated[float, typer.Option(metavar="B", help="Limit on a measurement: sum of |weights|.")] = 5.0,
    policies: Annotated[str, typer.Option(metavar="NAMES", help="Names with commas between, or all.")] = "all",
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Runs of each policy.")] = 20,
    horizon: Annotated[int, typer.Option(min=1, metavar="N", help="Measurements in a run.")] = 500,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Another seed is another set of runs.")] = 0,
    regularize: Annotated[
        float | None, typer.Option(metavar="A", help="Let the policies believe S + A I; the world keeps S.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes. [default: all cores]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw F1 over time: .png or .pdf.")] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the anomalies found after each measurement.")
    ] = None,
) -> None:
    """Compare policies on the same simulated anomalies.

    For each policy: measurements until F1 >= 0.95, for the first time and for good, F1 at the end, and the time that
    a step takes. The same command gives the same numbers on any number of processes, except for the times. With
    these defaults it takes about twenty seconds on two cores. A run of joint, joint-pair or exact ends
    once its set is right and leads every swap by 50 nats; the rest of its measurements count as right.
    """
    from joblib import cpu_count  # type: ignore[import-untyped]

    from eccaht.arrays import as_number
    from eccaht.experiments.comparison import compare as run
    from eccaht.experiments.comparison import summarise
    from eccaht.policies import policy_names
    from eccaht.problem import Problem

    options = {} if regularize is None else {"regularize": as_number(regularize, "--regularize")}
    shape = {"rho": rho, "length_scale": length_scale, "alpha_mix": alpha_mix}
    check_outputs({"--plot": plot, "--csv": csv}, {"--covariance": covariance}, {"--plot": (".png", ".pdf")})
    processes = jobs or cpu_count()
    if covariance is None:
        chosen = policy_names() if policies.strip() == "all" else [name.strip() for name in policies.split(",")]
        told = len(chosen) * runs * horizon
        check_memory(family or "toeplitz", streams or _STREAMS, chosen, processes=processes, records=told)
    try:
        S, noise = _noise(family, streams, {k: v for k, v in shape.items() if v is not None}, covariance)
        problem = Problem(S, shift=_numbers(shift), n_anomalies=anomalies, budget=budget)
        names, refused = _choose(policies, problem, options)
        many = {"runs": runs, "horizon": horizon, "seed": seed, "jobs": processes}
        with counting(len(names) * runs, "runs") as progress:
            records = run(problem, names, **many, options=options, progress=progress)
    except MemoryError:
        raise ValueError("not enough memory: use fewer streams, a smaller horizon, fewer runs or fewer jobs") from None
    rows = summarise(records)
    settings = {"covariance": noise, "streams": problem.size, "anomalies": anomalies, "shift": _numbers(shift)}
    settings |= {"budget": budget, "runs": runs, "horizon": horizon, "seed": seed, "regularize": regularize}
    found = {"settings": settings, "policies": [_entry(row) for row in rows], "does_not_apply": refused}
    deliver(
        [_save_plot(records, plot), _save_csv(records, csv)],
        tell=lambda: _show(settings, rows, refused),
        document=(lambda files: found | {"files": files}) if as_json else None,
    )


def _noise(
    family: str | None, streams: int | None, shape: dict[str, float], file: Path | None
) -> tuple[Covariance, dict[str, Any]]:
    """Return the covariance and how to call it."""
    if file is None:
        name = family or "toeplitz"
        S, shape = build_family(name, streams or _STREAMS, shape)
        return S, {"family": name, **shape}
    if family is not None or shape:
        raise ValueError("--covariance replaces --family and the options that shape it: drop one or the other")
    S = read_covariance(file)
    if streams not in (None, S.size):
        raise ValueError(f"--covariance {file} has {S.size} streams, not {streams}: drop --streams")
    return S, {"file": str(file)}


def build_family(name: str, size: int, shape: dict[str, float]) -> tuple[Covariance, dict[str, float]]:
    """Return a family by name and the option that shapes it, the default if none is given."""
    from eccaht.covariance import families

    if name not in FAMILIES:
        (near,) = get_close_matches(name, FAMILIES, n=1, cutoff=0.0)
        raise ValueError(f"unknown family {name!r}: did you mean {near!r}? 'eccaht compare --help' lists them")
    takes = FAMILIES[name]
    for option in shape:
        if option not in takes:
            raise ValueError(f"{name} has no --{option.replace('_', '-')}: drop it")
    if len(shape) > 1:
        raise ValueError("--rho and --length-scale exclude each other: drop one")
    if takes and not shape:
        if "rho" not in takes:
            raise ValueError(f"{name} needs --{takes[0].replace('_', '-')}")
        shape = {"rho": _RHO}
    arguments = {option.removesuffix("_mix"): value for option, value in shape.items()}
    if name == "kronecker":
        if size % _KRONECKER:
            raise ValueError(f"kronecker needs a multiple of {_KRONECKER} streams, not {size}: change --streams")
        return families.kronecker(arguments["rho"], shape=(size // _KRONECKER, _KRONECKER)), shape
    if name == "exponential" and "rho" in arguments:
        if not 0 < (rho := arguments.pop("rho")) < 1:
            raise ValueError(f"exponential needs 0 < rho < 1, not {rho!r}: change --rho or give --length-scale")
        arguments["length_scale"] = -1.0 / math.log(rho)
    return getattr(families, name.replace("-", "_"))(size, **arguments), shape


def read_covariance(path: Path) -> Covariance:
    """Read a matrix from .npy or .csv; nothing in the file is ever executed."""
    import warnings

    import numpy as np

    from eccaht.covariance import as_covariance
    from eccaht.files import regular_file

    try:
        if path.suffix == ".npy":
            with regular_file(path, "file") as file:
                return as_covariance(np.lib.format.read_array(file, allow_pickle=False))
        if path.suffix == ".csv":
            regular_file(path, "file").close()
            with warnings.catch_warnings(action="error", category=UserWarning):  # numpy only warns of an empty file
                return as_covariance(np.loadtxt(path, delimiter=",", ndmin=2))
        raise ValueError("its name must end in .npy or .csv")
    except OSError as error:
        raise ValueError(f"cannot read --covariance {path}: {error.strerror or error}") from None
    except (ValueError, EOFError, UserWarning) as error:
        raise ValueError(f"cannot use --covariance {path}: {error}") from None


def _numbers(shift: str) -> float | list[float]:
    try:
        first, *others = (float(value) for value in shift.split(","))
    except ValueError:
        raise ValueError(f"--shift {shift!r} is neither a number nor numbers with commas between") from None
    return [first, *others] if others else first


def _choose(policies: str, problem: Problem, options: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Return the policies to run and, of all, those that do not apply and why; one that is named must apply."""
    from eccaht.experiments.comparison import check_policies, refusal
    from eccaht.policies import policy_names

    if policies.strip() != "all":
        names = [name.strip() for name in policies.split(",")]
        check_policies(names, problem, options)
        return names, {}
    reasons = {name: refusal(name, problem, **options) for name in policy_names()}
    refused = {name: reason for name, reason in reasons.items() if reason is not None}
    if len(refused) == len(reasons):
        raise ValueError(f"no policy applies: {next(iter(refused.values()))}")
    return [name for name in reasons if name not in refused], refused


def _save_csv(records: Records, path: Path | None) -> Iterator[Path]:
    from eccaht.experiments.tables import save_table

    if path is not None:
        yield save_table(records.table(), path)


def _save_plot(records: Records, path: Path | None) -> Iterator[Path]:
    from eccaht.experiments.comparison_figure import draw
    from eccaht.presentation.style import save_picture

    if path is not None:
        yield save_picture(draw(records), path)


def _show(settings: dict[str, Any], rows: list[Row], refused: dict[str, str]) -> None:
    """Print the table: drawn on a terminal, else as plain columns."""
    say = settings | {"noise": " ".join(map(str, settings["covariance"].values()))}
    say["size"] = f"{say['shift']:g}" if isinstance(say["shift"], float) else "various sizes"
    typer.echo("{anomalies} of {streams} streams shifted by {size}, noise {noise}, budget {budget:g}".format(**say))
    typer.echo("{runs} runs of {horizon} measurements: how many until F1 >= 0.95, mean [95 % interval]".format(**say))
    parts = [_parts(row) for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False)
        console.print(table(parts, refused, wide=console.width >= WIDE))
    else:
        lines = [[cell for column in line for cell in column] for line in (HEADER, *parts)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        for name, reason in refused.items():
            typer.echo(f"{name:<{widths[0]}}  does not apply: {reason}")
    if any(row.for_good.censored for row in rows):
        typer.echo("A censored run did not get there and counts as {horizon}: >= is a lower bound.".format(**say))


def table(rows: list[Parts], refused: dict[str, str], *, wide: bool) -> Group:
    """The table for a terminal, with one line a policy if it is wide enough."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title, *_ in HEADER:
        grid.add_column(title, no_wrap=title == "policy", justify="right" if title == "us/step" else "left")
    for (name,), *columns in rows:
        cells = ((" " if wide else "\n").join(filter(None, column)) for column in columns)
        grid.add_row(Text(name, style="bold"), *map(Text, cells))
    others = (Text.assemble((name, "bold"), f"  does not apply: {reason}") for name, reason in refused.items())
    return Group(grid, *others)


def _parts(row: Row) -> Parts:
    """The text of each column, in the parts that HEADER names."""
    delays = []
    for delay in (row.first, row.for_good):
        mean, interval = _mean(delay)
        censored = f"{delay.censored}/{len(delay.times)} censored" if delay.censored else ""
        delays.append((">=" + mean if censored else mean, interval, censored))
    return (row.policy,), *delays, _mean(row.final_f1, places=3), (f"{row.microseconds_per_step:.0f}",)


def _mean(value: Delay | Estimate, places: int | None = None) -> tuple[str, str]:
    """Mean and interval, with one decimal place below 100 and none above if `places` does not say."""
    mean, *ends = (f"{x:.{int(x < 100) if places is None else places}f}" for x in (value.mean, *(value.interval or ())))
    return mean, f"[{', '.join(ends)}]" if ends else ""


def _entry(row: Row) -> dict[str, Any]:
    first, for_good = (
        {**delay._asdict(), "censored": delay.censored, "lower_bound": delay.censored > 0}
        for delay in (row.first, row.for_good)
    )
    return {**row._asdict(), "first": first, "for_good": for_good, "final_f1": row.final_f1._asdict()}
