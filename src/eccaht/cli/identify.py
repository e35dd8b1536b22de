"""`eccaht identify`: which sensors are wrong in this stretch of data, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from eccaht.arrays import as_positive
from eccaht.cli.options import Budget, DecimalComma, Json, PolicyName, option
from eccaht.cli.output import PLOTS, Inputs, check_outputs, deliver, note, saved, show_lines
from eccaht.cli.parsing import parse_number, parse_shifts
from eccaht.cli.watching import watching
from eccaht.explain.account import Account, opening
from eccaht.explain.document import as_document
from eccaht.explain.finding import investigate
from eccaht.model.model import Model, load_model
from eccaht.model.prepare import Notation, followed, recorded
from eccaht.policies import CATALOGUE, DEFAULT_POLICY, Policy, make_policy
from eccaht.run.recorders import SUFFIXES, Ledger


def identify(
    model: Annotated[Path, option("MODEL", "What 'eccaht calibrate' wrote.")],
    data: Annotated[list[Path], option("FILE", "CSV or Parquet; repeat it for several files.")],
    anomalies: Annotated[str, option("N", "How many sensors are wrong: N, or a range such as 0-4.")],
    shift: Annotated[
        list[str] | None,
        option(
            "D",
            "Size of an anomaly in robust units, with sign, or unknown:SCALE[:positive|negative]; NAME=D for one"
            " sensor. Repeat.",
        ),
    ] = None,
    shift_file: Annotated[Path | None, option("FILE", "CSV of sensor and shift.")] = None,
    budget: Budget = 5.0,
    policy: PolicyName = DEFAULT_POLICY,
    start: Annotated[str | None, option("TIME", "From here on, as 2024-03-07T08:00, or a row number.")] = None,
    stop: Annotated[str | None, option("TIME", "Up to here.")] = None,
    per_window: Annotated[int, option("M", "Measurements taken from each window.", min=1)] = 1,
    max_measurements: Annotated[int | None, option("N", "At most so many.", min=1)] = None,
    vectors: Annotated[
        bool, option(None, "Read every window whole, all sensors at once (joint policies).", "--vectors")
    ] = False,
    readout_noise: Annotated[
        float, option("SD", "Noise that reading adds, in robust units: guards against model error.")
    ] = 0.0,
    outliers: Annotated[float, option("SHARE", "Share of wild readings to allow for.", min=0.0, max=0.49)] = 0.0,
    stopping: Annotated[
        str | None, option("RULE", "posterior, glr, gap, own, never or a number; the policy's own by default.")
    ] = None,
    alpha: Annotated[float, option("A", "Error level of the stopping rule.")] = 0.05,
    missing: Annotated[
        Literal["refuse", "allow"], option(None, "What to do if the data lack sensors of the model.")
    ] = "refuse",
    timezone: Annotated[
        str | None, option("ZONE", "Of times without an offset and of what is shown. [default: the history's]")
    ] = None,
    decimal_comma: DecimalComma = None,
    no_header: Annotated[bool, option(None, "The data have no column names.", "--no-header")] = False,
    seed: Annotated[int, option("N", "Seed of the policy's own random draws.", min=0)] = 0,
    ledger: Annotated[Path | None, option("FILE", "Write every measurement: .csv or .parquet.")] = None,
    plot: Annotated[Path | None, option("FILE", "Draw the evidence: .png, .pdf or .svg.")] = None,
    follow: Annotated[bool, option(None, "Go on as the CSV file grows, until Ctrl-C or SIGTERM.", "--follow")] = False,
    poll: Annotated[float, option("SECONDS", "With --follow: look so often.")] = 1.0,
    timeout: Annotated[float | None, option("SECONDS", "With --follow: end after so long without new rows.")] = None,
    as_json: Json = False,
) -> None:
    """Name the sensors that are wrong, with the evidence.

    The data, recorded or still growing, are cleaned, scaled and cut into windows exactly as the model's history was,
    matched by the names of the sensors. A policy chooses weights, their reading is taken from the next window, until
    the evidence is strong enough or the data end. A robust unit is the interquartile range of a sensor in the history.
    """
    if not shift and shift_file is None:
        raise ValueError("give the size of an anomaly in robust units: --shift D, or --shift NAME=D for each sensor")
    if timeout is not None and not follow:
        raise ValueError("--timeout is for growing files: add --follow")
    as_positive(poll, "--poll")
    if timeout is not None:
        as_positive(timeout, "--timeout")
    inputs: Inputs = {"--model": model, "--data": data, "--shift-file": shift_file}
    check_outputs({"--ledger": ledger, "--plot": plot}, inputs, {"--ledger": SUFFIXES, "--plot": PLOTS})
    number, rule = parse_number(anomalies), _stopping(stopping)
    if vectors:
        _check_vectors(policy, per_window)
        if isinstance(rule, int):  # counts windows, however many sensors each of them lacks
            max_measurements, rule = min(rule, max_measurements or rule), None
    calibrated = load_model(model)
    shifts = dict(zip(calibrated.names, parse_shifts(shift or [], shift_file, calibrated.names), strict=True))
    options: dict[str, Any] = {"seed": seed, "alpha": alpha, "stopping": rule}
    options |= {"outliers": outliers} if outliers else {}
    pose = {"n_anomalies": number, "budget": budget, "readout_noise": readout_noise}
    _search(policy, calibrated, calibrated.names, shifts, pose, options)  # refuses bad options before any data are read
    reading: dict[str, Any] = {"start": start, "stop": stop, "missing": missing}
    reading["notation"] = Notation(timezone, decimal_comma, False if no_header else None)
    if follow:
        source = followed(calibrated, data, **reading, poll=poll, timeout=timeout, note=note)
    else:
        source = recorded(calibrated, data, **reading)
    n_not_searched = len(source.culprits) + source.n_silent
    if n_not_searched and CATALOGUE[policy].can.open_number:  # some anomalies may be among the sensors left out
        least, most = (number, number) if isinstance(number, int) else number
        pose["n_anomalies"] = max(least - n_not_searched, 0), most
    search = _search(policy, calibrated, source.names, shifts, pose, options)
    for text in source.notes:
        note(text)
    kept = Ledger(search)
    with watching(source, search, calibrated, per_window, quiet=as_json) as (replay, shown):
        finding = investigate(
            search, replay, max_measurements=max_measurements, vectors=vectors, ledger=kept, recorders=shown
        )
    can = CATALOGUE[policy].can  # scores of policies that judge whole sets are no log-odds of single sensors
    scores = "log-odds" if can.log_odds and not can.exact_lead else "score"
    account = Account(calibrated, search.problem, finding, scores, alpha, source.culprits, source.clock)

    def document(files: list[str]) -> dict[str, Any]:
        settings = {"policy": policy, "anomalies": number, "budget": budget, "per_window": per_window}
        settings |= {"vectors": vectors, "readout_noise": readout_noise, "stopping": stopping or "default"}
        settings |= {"outliers": outliers, "alpha": alpha, "seed": seed, "sensors": search.problem.size}
        contents = {"settings": settings, **as_document(account), "timezone": source.clock.zone}
        return contents | {"notes": source.all_notes, "files": files}

    def tell() -> None:
        typer.echo(opening(search.problem, calibrated.seconds, policy, finding.first, source.clock))
        show_lines(account.table())
        for line in account.lines():
            typer.echo(line)
        for text in source.follower.counts if source.follower is not None else ():
            note(text)

    writes = [saved(ledger, lambda path: kept.save(path, source.clock)), saved(plot, lambda path: _draw(account, path))]
    deliver(writes, tell=tell, document=document, as_json=as_json)


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
    able = [name for name, entry in CATALOGUE.items() if entry.can.whole_vectors]
    if policy in CATALOGUE and policy not in able:
        raise ValueError(f"policy {policy!r} scores weighted sums alone: --vectors needs {', '.join(able)}")
    if per_window > 1:
        raise ValueError("--vectors takes all of each window at once: leave out --per-window")


def _search(
    policy: str,
    model: Model,
    names: tuple[str, ...],
    shifts: dict[str, Any],
    pose: dict[str, Any],
    options: dict[str, Any],
) -> Policy:
    """The policy, ready to search these sensors."""
    number = pose["n_anomalies"]
    most = number if isinstance(number, int) else number[1]
    if len(names) <= most:
        raise ValueError(f"--anomalies {most} needs more than the {len(names)} sensors that are there")
    asked = {key: value for key, value in pose.items() if key != "readout_noise"}
    chosen = None if names == model.names else names
    problem = model.problem(shift=[shifts[sensor] for sensor in names], names=chosen, **asked)
    return make_policy(policy, problem.replace(readout_noise=pose["readout_noise"]), **options)


def _draw(account: Account, path: Path) -> None:
    from eccaht.explain.picture import draw
    from eccaht.presentation.style import save_picture

    options: dict[str, Any] = {"scores": account.scores, "clock": account.clock}
    save_picture(draw(account.problem, account.finding, account.model.seconds, **options), path)
