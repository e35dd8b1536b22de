"""`eccaht compare`: policies side by side on one problem."""

from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import cpu_count  # type: ignore[import-untyped]

from eccaht.cli import output as common
from eccaht.cli.output import (
    check_outputs,
    deliver,
    option,
    saved,
    show_lines,
    show_mean,
    shown_progress,
)
from eccaht.cli.problems import family_noise, parse_list
from eccaht.research.experiments import comparison
from eccaht.research.experiments.comparison import Records, Row
from eccaht.streams import Problem, policy_names

_HEADER = ("policy", "first", "", "", "for good", "", "", "final F1", "", "us/step")


def compare(
    family: Annotated[str | None, option("NAME", f"Noise: {common.FAMILY_NAMES}. [default: toeplitz]")] = None,
    streams: common.Streams = None,
    anomalies: Annotated[int, option("N", "How many are anomalous.", min=1)] = 5,
    rho: common.Rho = None,
    shift: Annotated[str, option(None, "Size of an anomaly (noise of a stream: 1), or K of them with commas.")] = "3",
    budget: common.Budget = 5.0,
    policies: Annotated[str, option("NAMES", "Names with commas between, or all.")] = "all",
    runs: common.Runs = 20,
    horizon: Annotated[int, option("N", "Measurements in a run.", min=1, max=1_000_000)] = 500,
    seed: common.Seed = 0,
    jobs: common.Jobs = None,
    as_json: common.Json = False,
    plot: Annotated[Path | None, option("FILE", "Draw F1 over time: .png or .pdf.")] = None,
) -> None:
    """Compare policies on the same simulated anomalies.

    For each policy: measurements until F1 >= 0.95, for the first time and for good, F1 at the end, and the
    processor time of a step. A run of joint, joint-pair or exact ends once its set is right and leads every swap by 50
    nats; the rest of its measurements count as right.
    """
    check_outputs({"--plot": plot}, endings={"--plot": (".png", ".pdf")})
    processes = jobs or cpu_count()
    named = None if policies.strip() == "all" else [name.strip() for name in policies.split(",")]
    try:
        S, noise = family_noise(family, streams, rho)
        problem = Problem(S, shift=_numbers(shift), n_anomalies=anomalies, budget=budget)
        names, refused = _choose(named, problem)
        many: dict[str, Any] = {"runs": runs, "horizon": horizon, "seed": seed, "jobs": processes}
        with shown_progress("runs", len(names) * runs) as bar:
            records = comparison.compare(problem, names, **many, progress=bar.advance)
    except MemoryError:
        raise ValueError("not enough memory: use fewer streams, a smaller horizon, fewer runs or fewer jobs") from None
    rows = comparison.summarise(records)
    settings = {"covariance": noise, "streams": problem.size, "anomalies": anomalies, "shift": _numbers(shift)}
    settings |= {"budget": budget, "runs": runs, "horizon": horizon, "seed": seed}
    found = {"settings": settings, "policies": [comparison.as_entry(row) for row in rows], "does_not_apply": refused}
    deliver(
        [saved(plot, lambda path: _save_figure(records, path))],
        show=lambda: _show(settings, rows, refused),
        document=lambda files: found | {"files": files},
        as_json=as_json,
    )


def _numbers(shift: str) -> float | list[float]:
    wrong = f"--shift {shift!r} is neither a number nor numbers with commas between"
    first, *others = parse_list(shift, float, wrong)
    return [first, *others] if others else first


def _choose(named: list[str] | None, problem: Problem) -> tuple[list[str], dict[str, str]]:
    """Return the policies to run and, of all, those that do not apply and why; one that is named must apply."""
    if named is not None:
        comparison.check_policies(named, problem, {})
        return named, {}
    reasons = {name: comparison.refusal(name, problem) for name in policy_names()}
    refused = {name: reason for name, reason in reasons.items() if reason is not None}
    if len(refused) == len(reasons):
        raise ValueError(f"no policy applies: {next(iter(refused.values()))}")
    return [name for name in reasons if name not in refused], refused


def _save_figure(records: Records, path: Path) -> None:
    from eccaht.base.presentation.style import save_picture
    from eccaht.research.experiments.figures import draw_comparison

    save_picture(draw_comparison(records), path)


def _show(settings: dict[str, Any], rows: list[Row], refused: dict[str, str]) -> None:
    say = settings | {"noise": " ".join(map(str, settings["covariance"].values()))}
    say["size"] = f"{say['shift']:g}" if isinstance(say["shift"], float) else "various sizes"
    typer.echo("{anomalies} of {streams} streams shifted by {size}, noise {noise}, budget {budget:g}".format(**say))
    typer.echo("{runs} runs of {horizon} measurements: how many until F1 >= 0.95, mean [95 % interval]".format(**say))
    lines = [_HEADER, *(_cells(row) for row in rows)]
    show_lines(lines)
    width = max(len(name) for name, *_ in lines)
    for name, reason in refused.items():
        typer.echo(f"{name:<{width}}  does not apply: {reason}")
    if any(row.for_good.censored for row in rows):
        typer.echo("A censored run did not get there and counts as {horizon}: >= is a lower bound.".format(**say))


def _cells(row: Row) -> tuple[str, ...]:
    """The text of each column that _HEADER names."""
    cells = []
    for delay in (row.first, row.for_good):
        mean, _, interval = show_mean(delay).partition(" ")
        censored = f"{delay.censored}/{len(delay.times)} censored" if delay.censored else ""
        cells += [">=" + mean if censored else mean, interval, censored]
    mean, _, interval = show_mean(row.final_f1, 3).partition(" ")
    return row.policy, *cells, mean, interval, f"{row.microseconds_per_step:.0f}"
