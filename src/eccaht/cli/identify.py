"""`eccaht identify`: which sensors are wrong in this stretch of data, since when, and why."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from eccaht.base.arrays import as_positive, check_alpha
from eccaht.base.extras import need
from eccaht.cli.output import (
    PLOTS,
    DecimalComma,
    Inputs,
    Json,
    Missing,
    NoHeader,
    Timezone,
    check_outputs,
    deliver,
    note,
    option,
    saved,
)
from eccaht.cli.problems import parse_number
from eccaht.plants.front import load_model

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
    false_alarms: Annotated[
        str | None, option("RATE", "As 1/30d or 1/5000w (windows). [default: what the history can carry]")
    ] = None,
    plot: Annotated[Path | None, option("FILE", "Draw the readings and the evidence: .png, .pdf or .svg.")] = None,
    html: Annotated[Path | None, option("PAGE", "Write a page with everything on it.")] = None,
    missing: Missing = "refuse",
    timezone: Timezone = None,
    decimal_comma: DecimalComma = None,
    no_header: NoHeader = False,
    as_json: Json = False,
) -> None:
    """Name the sensors that are wrong, with the evidence.

    The answer is the incidents: which sensors are wrong, from when to when, how, by how much and why. It needs
    no number, size or sign. Rows before --start show what was normal just then. A robust unit is the
    interquartile range of a sensor in the history.
    """
    inputs: Inputs = {"--model": model, "--data": data}
    check_outputs({"--plot": plot, "--html": html}, inputs, {"--plot": PLOTS, "--html": _PAGES})
    if html is not None:
        need("matplotlib")
    answer = load_model(model).identify(
        data,
        start=start,
        stop=stop,
        missing=missing,
        timezone=timezone,
        decimal_comma=decimal_comma,
        header=False if no_header else None,
        anomalies=None if anomalies is None else parse_number(anomalies),
        least=None if least is None else as_positive(least, "--least"),
        alpha=check_alpha(alpha),
        false_alarms=false_alarms,
    )
    for text in answer.notes:
        note(text)
    answer = replace(answer, about=(f"Model: {model.name}", *answer.about))
    deliver(
        [saved(plot, answer.plot), saved(html, answer.html)],
        show=lambda: typer.echo(answer.text),
        document=lambda files: answer.to_dict() | {"files": files},
        as_json=as_json,
    )
