"""`eccaht identify`: which sensors are wrong in this stretch of data, since when, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from eccaht.base.arrays import as_positive, check_alpha
from eccaht.base.clock import Clock
from eccaht.cli.imports import Imports, import_policies
from eccaht.cli.output import (
    PLOTS,
    DecimalComma,
    Inputs,
    Json,
    Missing,
    NoHeader,
    Timezone,
    check_following,
    check_outputs,
    deliver,
    note,
    option,
    saved,
)
from eccaht.cli.parsing import parse_number
from eccaht.plants import Answer, Notation, as_document
from eccaht.plants.front import load_model
from eccaht.plants.incident.words import lines

_BUDGET, _POLICY = 5.0, "joint"  # of a search, whose modules are loaded for it alone
_PAGES = (".html", ".htm")


def identify(
    model: Annotated[Path, option("MODEL", "What 'eccaht calibrate' wrote.")],
    data: Annotated[list[Path], option("FILE", "CSV or Parquet; repeat it for several files.")],
    start: Annotated[str | None, option("TIME", "From here on, as 2024-03-07T08:00, or a row number.")] = None,
    stop: Annotated[str | None, option("TIME", "Up to here.")] = None,
    anomalies: Annotated[
        str | None, option("N", "How many sensors are wrong, if you know: N, or a range such as 0-4.")
    ] = None,
    least: Annotated[float | None, option("D", "Smallest deviation that matters, in robust units.")] = None,
    alpha: Annotated[float, option("A", "Error level: 0.05 asks for a confidence of 95 %.")] = 0.05,
    plot: Annotated[Path | None, option("FILE", "Draw the readings and the evidence: .png, .pdf or .svg.")] = None,
    html: Annotated[Path | None, option("PAGE", "Write a page with everything on it.")] = None,
    missing: Missing = "refuse",
    timezone: Timezone = None,
    decimal_comma: DecimalComma = None,
    no_header: NoHeader = False,
    as_json: Json = False,
    sums: Annotated[
        bool,
        option(
            None, "Search by weighted sums of readings, as few as possible: what the options below are for.", "--sums"
        ),
    ] = False,
    shift: Annotated[
        list[str] | None,
        option(
            "D",
            "Size of an anomaly in robust units, with sign, or unknown:SCALE[:positive|negative]; NAME=D for one"
            " sensor. Repeat.",
        ),
    ] = None,
    shift_file: Annotated[Path | None, option("FILE", "CSV of sensor and shift.")] = None,
    budget: Annotated[
        float | None, option("B", f"Limit on a measurement: sum of |weights|. [default: {_BUDGET:g}]")
    ] = None,
    policy: Annotated[str | None, option("NAME", f"'eccaht policies' lists them. [default: {_POLICY}]")] = None,
    import_: Imports = None,
    per_window: Annotated[int | None, option("M", "Measurements taken from each window. [default: 1]", min=1)] = None,
    max_measurements: Annotated[int | None, option("N", "At most so many.", min=1)] = None,
    vectors: Annotated[
        bool, option(None, "Read every window whole, all sensors at once (joint policies).", "--vectors")
    ] = False,
    readout_noise: Annotated[
        float | None, option("SD", "Noise that reading adds, in robust units: guards against model error.")
    ] = None,
    outliers: Annotated[
        float | None, option("SHARE", "Share of wild readings to allow for.", min=0.0, max=0.49)
    ] = None,
    stopping: Annotated[
        str | None, option("RULE", "posterior, glr, gap, own, never or a number; the policy's own by default.")
    ] = None,
    seed: Annotated[int | None, option("N", "Seed of the policy's own random draws. [default: 0]", min=0)] = None,
    ledger: Annotated[Path | None, option("FILE", "Write every measurement: .csv or .parquet.")] = None,
    follow: Annotated[bool, option(None, "Go on as the CSV file grows, until Ctrl-C or SIGTERM.", "--follow")] = False,
    poll: Annotated[float, option("SECONDS", "With --follow: look so often.")] = 1.0,
    timeout: Annotated[float | None, option("SECONDS", "With --follow: end after so long without new rows.")] = None,
) -> None:
    """Name the sensors that are wrong, with the evidence.

    The data are cleaned, scaled and cut into windows exactly as the model's history was, matched by the names of the
    sensors, and compared with the history. All windows from --start to --stop are read whole, and those before show
    what was normal just then. The answer is the incidents: which sensors are wrong, from when to when, how, by how much
    and why. It needs no number, size or sign. A robust unit is the interquartile range of a sensor in the history.

    --sums is for those who pay for each reading: a policy chooses weights, their weighted sum is read from the next
    window, until the evidence is strong enough or the data end. It needs --anomalies and --shift.
    """
    check_following(follow, poll, timeout)
    notation = Notation(timezone, decimal_comma, False if no_header else None)
    reading: dict[str, Any] = {"start": start, "stop": stop, "missing": missing, "notation": notation}
    searched = {"sums": sums, "shift": shift, "shift_file": shift_file, "budget": budget, "policy": policy}
    searched |= {"per_window": per_window, "max_measurements": max_measurements, "vectors": vectors}
    searched |= {"readout_noise": readout_noise, "outliers": outliers, "stopping": stopping, "seed": seed}
    searched |= {"ledger": ledger, "import": import_}
    if asked := given(searched):
        from eccaht.cli.identify_sums import check_sums, identify_sums

        check_sums(searched, asked, anomalies)
        _refuse_whole({"--html": html, "--least": least}, asked[0])
        import_policies(import_)
        identify_sums(
            model,
            data,
            searched,
            anomalies=str(anomalies),
            budget=_BUDGET if budget is None else budget,
            alpha=alpha,
            reading=reading,
            waits={"poll": poll, "timeout": timeout} if follow else None,
            plot=plot,
            as_json=as_json,
        )
        return
    if follow:
        raise ValueError(
            "--follow needs --sums, with --anomalies N and --shift D: whole windows are read once recorded"
        )
    _identify_whole(
        model, data, reading, anomalies=anomalies, least=least, alpha=alpha, plot=plot, html=html, as_json=as_json
    )


def given(options: Mapping[str, object]) -> list[str]:
    """The options that were given, as they are typed.

    >>> given({"per_window": 0, "vectors": False, "seed": None, "shift": []})
    ['--per-window']
    """
    found = [name for name, value in options.items() if value is not None and value is not False and value != []]
    return [f"--{name.replace('_', '-')}" for name in found]  # 0 is a value, if a bad one


def _refuse_whole(options: Mapping[str, object], sums: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} is for whole windows and {sums} for weighted sums: leave out one of them")


def _identify_whole(
    model: Path,
    data: list[Path],
    reading: dict[str, Any],
    *,
    anomalies: str | None,
    least: float | None,
    alpha: float,
    plot: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Look at whole windows and print which sensors are wrong; reading: how and between which times to read."""
    inputs: Inputs = {"--model": model, "--data": data}
    check_outputs({"--plot": plot, "--html": html}, inputs, {"--plot": PLOTS, "--html": _PAGES})
    if html is not None:
        find_spec("matplotlib")  # if it is missing, that is reported before the work starts
    answer = load_model(model).identify(
        data,
        **{name: reading[name] for name in ("start", "stop", "missing")},
        **asdict(reading["notation"]),
        anomalies=None if anomalies is None else parse_number(anomalies),
        least=None if least is None else as_positive(least, "--least"),
        alpha=check_alpha(alpha),
    )
    for text in answer.notes:
        note(text)
    again = replace(answer.again, model=str(model))  # so that advice is given as commands
    answer = replace(answer, about=(f"Model: {model.name}", *answer.about), again=again)
    more = {"settings": answer.settings, "timezone": answer.clock.zone, "notes": list(answer.notes)}
    writes = [drawn(answer, answer.clock, plot), saved(html, answer.html)]
    deliver_answer(answer, answer.clock, more, writes, as_json=as_json)


def drawn(answer: Answer, clock: Clock, plot: Path | None) -> Iterator[Path]:
    """Draw the picture of an answer, if one was asked for."""
    if plot is not None:
        from eccaht.base.presentation.style import save_picture
        from eccaht.plants.incident import picture  # as late as the picture, which alone needs matplotlib

        save_picture(picture.draw(answer, clock=clock), plot)
        yield plot


def deliver_answer(
    answer: Answer,
    clock: Clock,
    more: Mapping[str, Any],
    writes: Sequence[Iterator[Path]],
    *,
    remarks: Sequence[str] = (),
    as_json: bool,
) -> None:
    """Print an answer and write its files; more: what its document has beside it."""

    def document(files: list[str]) -> dict[str, Any]:
        return {"settings": more["settings"], **as_document(answer, clock), **more, "files": files}

    def show() -> None:
        for line in lines(answer, clock):
            typer.echo(line)
        for text in remarks:
            note(text)

    deliver(writes, show=show, document=document, as_json=as_json)
