"""`eccaht identify`: which sensors are wrong in this stretch of data, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from eccaht.policies import DEFAULT_POLICY

if TYPE_CHECKING:
    from eccaht.explain.account import Account
    from eccaht.model.model import Model
    from eccaht.model.preparing import Notation
    from eccaht.model.sources import Source
    from eccaht.policies import Policy


def identify(
    model: Annotated[Path, typer.Option(metavar="MODEL", help="What 'eccaht calibrate' wrote.")],
    data: Annotated[list[Path], typer.Option(metavar="FILE", help="CSV or Parquet; repeat it for several files.")],
    anomalies: Annotated[str, typer.Option(metavar="N", help="How many sensors are wrong: N, or a range such as 0-4.")],
    shift: Annotated[
        list[str] | None,
        typer.Option(
            metavar="D",
            help="Size of an anomaly in robust units, with sign, or unknown:SCALE[:positive|negative]; NAME=D for one"
            " sensor. Repeat.",
        ),
    ] = None,
    shift_file: Annotated[Path | None, typer.Option(metavar="FILE", help="CSV of sensor and shift.")] = None,
    budget: Annotated[float, typer.Option(metavar="B", help="Limit on a measurement: sum of |weights|.")] = 5.0,
    policy: Annotated[str, typer.Option(metavar="NAME", help="'eccaht policies' lists them.")] = DEFAULT_POLICY,
    start: Annotated[
        str | None, typer.Option(metavar="TIME", help="From here on, as 2024-03-07T08:00, or a row number.")
    ] = None,
    stop: Annotated[str | None, typer.Option(metavar="TIME", help="Up to here.")] = None,
    per_window: Annotated[int, typer.Option(min=1, metavar="M", help="Measurements taken from each window.")] = 1,
    max_measurements: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most so many.")] = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Read every window whole, all sensors at once (joint policies).")
    ] = False,
    readout_noise: Annotated[
        float, typer.Option(metavar="SD", help="Noise that reading adds, in robust units: guards against model error.")
    ] = 0.0,
    outliers: Annotated[
        float,
        typer.Option(min=0.0, max=0.49, metavar="SHARE", help="Share of wild readings to allow for."),
    ] = 0.0,
    stopping: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="posterior, glr, gap, own, never or a number; the policy's own by default."),
    ] = None,
    alpha: Annotated[float, typer.Option(metavar="A", help="Error level of the stopping rule.")] = 0.05,
    missing: Annotated[
        Literal["refuse", "allow"], typer.Option(help="What to do if the data lack sensors of the model.")
    ] = "refuse",
    timezone: Annotated[
        str | None,
        typer.Option(metavar="ZONE", help="Of times without an offset and of what is shown. [default: the history's]"),
    ] = None,
    decimal_comma: Annotated[
        bool | None, typer.Option(help="Numbers are written as 1,5. [default: found by itself]", show_default=False)
    ] = None,
    no_header: Annotated[bool, typer.Option("--no-header", help="The data have no column names.")] = False,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the policy's own random draws.")] = 0,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every measurement: .csv or .parquet.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the evidence: .png, .pdf or .svg.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on as the CSV file grows, until Ctrl-C or SIGTERM.")
    ] = False,
    poll: Annotated[float, typer.Option(metavar="SECONDS", help="With --follow: look so often.")] = 1.0,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="With --follow: end after so long without new rows.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")] = False,
) -> None:
    """Name the sensors that are wrong, with the evidence.

    The data, recorded or still growing, are cleaned, scaled and cut into windows exactly as the model's history was,
    matched by the names of the sensors. A policy chooses weights, their reading is taken from the next window, until
    the evidence is strong enough or the data end. A robust unit is the interquartile range of a sensor in the history.
    """
    from eccaht.arrays import as_positive
    from eccaht.cli.output import PLOTS, Inputs, check_outputs, deliver
    from eccaht.cli.parsing import parse_number, parse_shifts
    from eccaht.cli.watching import watching
    from eccaht.explain.account import Account, columns, opening
    from eccaht.explain.document import as_document
    from eccaht.explain.finding import investigate
    from eccaht.model.model import load_model
    from eccaht.model.preparing import Notation
    from eccaht.run.ledger import SUFFIXES

    if not shift and shift_file is None:
        raise ValueError("give the size of an anomaly in robust units: --shift D, or --shift NAME=D for each sensor")
    if timeout is not None and not follow:
        raise ValueError("--timeout is for growing files: add --follow")
    times = (as_positive(poll, "--poll"), None if timeout is None else as_positive(timeout, "--timeout"))
    inputs: Inputs = {"--model": model, "--data": data, "--shift-file": shift_file}
    check_outputs({"--ledger": ledger, "--plot": plot}, inputs, {"--ledger": SUFFIXES, "--plot": PLOTS})
    number, rule = parse_number(anomalies), _stopping(stopping)
    if vectors:
        _check_vectors(policy, per_window)
        if isinstance(rule, int):  # counts windows, not what is told of one that lacks sensors
            max_measurements, rule = min(rule, max_measurements or rule), None
    calibrated = load_model(model)
    shifts = dict(zip(calibrated.names, parse_shifts(shift or [], shift_file, calibrated.names), strict=True))
    options: dict[str, Any] = {"seed": seed, "alpha": alpha, "stopping": rule}
    options |= {"outliers": outliers} if outliers else {}
    pose = {"n_anomalies": number, "budget": budget, "readout_noise": readout_noise}
    _policy(policy, calibrated, calibrated.names, shifts, pose, options)  # what is wrong is said before data are read
    notation = Notation(timezone, decimal_comma, False if no_header else None)
    source = _source(calibrated, data, (start, stop), missing, notation, times if follow else None)
    pose["n_anomalies"] = _left_to_find(number, len(source.culprits) + source.n_silent, policy)
    search = _policy(policy, calibrated, source.names, shifts, pose, options)
    for note in source.notes:
        typer.echo(f"Note: {note}", err=True)
    with watching(source, search, calibrated, per_window, quiet=as_json) as (replay, watch):
        finding = investigate(search, replay, max_measurements=max_measurements, vectors=vectors, watch=watch)
    scores = _name_of_scores(policy)
    account = Account(calibrated, search.problem, finding, scores, alpha, source.culprits, source.clock)

    def document(files: list[str]) -> dict[str, Any]:
        settings = {"policy": policy, "anomalies": number, "budget": budget, "per_window": per_window}
        settings |= {"vectors": vectors, "readout_noise": readout_noise, "stopping": stopping or "default"}
        settings |= {"outliers": outliers, "alpha": alpha, "seed": seed, "sensors": search.problem.size}
        told = {"settings": settings, **as_document(account), "timezone": source.clock.zone}
        return told | {"notes": source.all_notes, "files": files}

    def tell() -> None:
        typer.echo(opening(search.problem, calibrated.seconds, policy, finding.first, source.clock))
        for line in (*columns(account.table()), *account.lines()):
            typer.echo(line)
        for note in source.follower.counts if source.follower is not None else ():
            typer.echo(f"Note: {note}", err=True)

    writes = [_save_ledger(account, ledger), _save_plot(account, plot)]
    deliver(writes, tell=tell, document=document if as_json else None)


def _name_of_scores(policy: str) -> str:
    """Those of the exact policies weigh whole sets and are no log-odds of single sensors."""
    from eccaht.policies import CATALOGUE

    can = CATALOGUE[policy].can
    return "log-odds" if can.log_odds and not can.exact_lead else "score"


def _left_to_find(number: int | tuple[int, int], apart: int, policy: str) -> int | tuple[int, int]:
    """How many are wrong beside the sensors that are not searched: these may be among those asked for, or not.

    Policies that need one number look for all of them.
    """
    from eccaht.run.loop import EXACT

    least, most = (number, number) if isinstance(number, int) else number
    return (max(least - apart, 0), most) if apart and policy in EXACT else number


def _stopping(text: str | None) -> str | int | None:
    if text is None:
        return "default"
    if text == "never":
        return None
    try:
        return int(text)
    except ValueError:
        return text


def _check_vectors(policy: str, per_window: int) -> None:
    from eccaht.policies import policy_names
    from eccaht.run.loop import EXACT

    if policy in policy_names() and policy not in EXACT:
        raise ValueError(f"policy {policy!r} scores weighted sums alone: --vectors needs {', '.join(EXACT)}")
    if per_window > 1:
        raise ValueError("--vectors takes all of each window at once: leave out --per-window")


def _policy(
    name: str,
    model: Model,
    names: tuple[str, ...],
    shifts: dict[str, Any],
    pose: dict[str, Any],
    options: dict[str, Any],
) -> Policy:
    from eccaht.policies import make_policy

    chosen = None if names == model.names else names
    asked = {key: value for key, value in pose.items() if key != "readout_noise"}
    number = pose["n_anomalies"]
    most = number if isinstance(number, int) else number[1]
    if len(names) <= most:
        raise ValueError(f"--anomalies {most} needs more than the {len(names)} sensors that are there")
    problem = model.problem(shift=[shifts[sensor] for sensor in names], names=chosen, **asked)
    return make_policy(name, problem.replace(readout_noise=pose["readout_noise"]), **options)


def _source(
    model: Model,
    paths: list[Path],
    stretch: tuple[str | None, str | None],
    missing: Literal["refuse", "allow"],
    notation: Notation,
    times: tuple[float, float | None] | None,
) -> Source:
    from eccaht.model.sources import followed, recorded

    reading: dict[str, Any] = {"start": stretch[0], "stop": stretch[1], "missing": missing, "notation": notation}
    if times is None:
        return recorded(model, paths, **reading)
    return followed(
        model,
        paths,
        **reading,
        poll=times[0],
        timeout=times[1],
        note=lambda text: typer.echo(f"Note: {text}", err=True),
    )


def _save_ledger(account: Account, path: Path | None) -> Iterator[Path]:
    from eccaht.run.ledger import save_ledger

    if path is not None:
        yield save_ledger(account.problem, account.finding.entries, path, account.clock)


def _save_plot(account: Account, path: Path | None) -> Iterator[Path]:
    from eccaht.explain.picture import draw
    from eccaht.presentation.style import save_picture

    if path is not None:
        options: dict[str, Any] = {"scores": account.scores, "clock": account.clock}
        yield save_picture(draw(account.problem, account.finding, account.model.seconds, **options), path)
