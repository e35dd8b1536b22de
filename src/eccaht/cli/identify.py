"""`eccaht identify`: which sensors are wrong in this stretch of data, since when, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from eccaht.cli.identify_sums import BUDGET, Following, SumsOptions, identify_sums
from eccaht.cli.identify_whole import Stretch, identify_whole
from eccaht.cli.options import DecimalComma, Json, Missing, NoHeader, Timezone, option
from eccaht.plants.model.prepare import Notation
from eccaht.streams.policies import DEFAULT_POLICY


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
        float | None, option("B", f"Limit on a measurement: sum of |weights|. [default: {BUDGET:g}]")
    ] = None,
    policy: Annotated[str | None, option("NAME", f"'eccaht policies' lists them. [default: {DEFAULT_POLICY}]")] = None,
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
    asked = SumsOptions(
        sums=sums,
        shift=tuple(shift or ()),
        shift_file=shift_file,
        budget=budget,
        policy=policy,
        per_window=per_window,
        max_measurements=max_measurements,
        vectors=vectors,
        readout_noise=readout_noise,
        outliers=outliers,
        stopping=stopping,
        seed=seed,
        ledger=ledger,
    )
    following = Following(follow, poll, timeout)
    following.check()
    notation = Notation(timezone, decimal_comma, False if no_header else None)
    if asked.given:
        asked.check(anomalies)
        _refuse_whole({"--html": html, "--least": least}, asked.given[0])
        reading: dict[str, Any] = {"start": start, "stop": stop, "missing": missing, "notation": notation}
        shared: dict[str, Any] = {"reading": reading, "following": following, "plot": plot, "as_json": as_json}
        identify_sums(model, data, asked, anomalies=str(anomalies), alpha=alpha, **shared)
        return
    if follow:
        raise ValueError(
            "--follow needs --sums, with --anomalies N and --shift D: whole windows are read once recorded"
        )
    stretch = Stretch(model, data, start, stop, missing, notation)
    identify_whole(stretch, anomalies=anomalies, least=least, alpha=alpha, plot=plot, html=html, as_json=as_json)


def _refuse_whole(options: dict[str, object], sums: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} is for whole windows and {sums} for weighted sums: leave out one of them")
