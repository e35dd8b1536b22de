"""`eccaht diagnose`: is this model fit for searches by weighted sums?"""

from __future__ import annotations

import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

import eccaht.plants.diagnose as checks
from eccaht.base.files import replacing
from eccaht.cli.noise import given
from eccaht.cli.output import Json, check_outputs, deliver, grid, option, saved, shown_progress
from eccaht.plants import Check, Diagnosis, load_model

_STYLES = {"ok": "green", "caution": "yellow", "not fit": "bold red"}


def diagnose(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What 'eccaht calibrate' wrote.")],
    anomalies: Annotated[int | None, option("N", "Simulate searches for N anomalous sensors.", min=1)] = None,
    shift: Annotated[float | None, option("D", "Size of an anomaly there, in robust units.")] = None,
    budget: Annotated[float | None, option("B", "Limit on a measurement there: sum of |weights|. [default: 5]")] = None,
    runs: Annotated[int | None, option("N", "Simulated searches. [default: 20]", min=1)] = None,
    horizon: Annotated[int | None, option("N", "Measurements in each. [default: 500]", min=1)] = None,
    seed: Annotated[int | None, option("N", "Another seed is other searches.", min=0)] = None,
    html: Annotated[Path | None, option("PAGE", "Write a page with pictures.")] = None,
    as_json: Json = False,
) -> None:
    """Check whether a model can carry a search by sums, and what to do.

    Answers about whole windows are judged by drills instead: see 'eccaht drill'.

    Each check has a number and a verdict: ok, caution or not fit; docs/explanation/diagnosis.md explains them. With
    --anomalies and --shift, searches are simulated with the model's covariance: how many measurements they take, and
    how often they end wrong. The exit code is 0 whatever the verdict.
    """
    search = given(n_anomalies=anomalies, shift=shift, budget=budget, runs=runs, horizon=horizon, seed=seed)
    if search and (anomalies is None or shift is None):
        lacking = " and ".join(o for o, v in (("--anomalies", anomalies), ("--shift", shift)) if v is None)
        raise ValueError(f"a simulated search needs --anomalies and --shift: give {lacking}, or drop the other options")
    check_outputs({"--html": html}, {"MODEL": model})
    if html is not None:
        find_spec("matplotlib")  # if it is missing, that is reported before the work starts
    calibrated = load_model(model)
    if search:
        with shown_progress("simulated searches", runs or 20) as bar:
            diagnosis = checks.diagnose(calibrated, **search, progress=bar.advance)
    else:
        diagnosis = checks.diagnose(calibrated)
    deliver(
        [saved(html, lambda page: _save(diagnosis, model, page))],
        show=lambda: _show(diagnosis),
        document=lambda files: {"file": str(model), **diagnosis.as_dict(), "files": files},
        as_json=as_json,
    )


def _save(diagnosis: Diagnosis, model: Path, page: Path) -> None:
    from eccaht.plants.diagnose.page import write

    text = write(diagnosis, model.name)
    with replacing(page) as file:
        file.write(text.encode("utf-8", errors="backslashreplace"))


def _show(diagnosis: Diagnosis) -> None:
    """What is judged, every check in a line, then what to do about those that are not ok."""
    for line in textwrap.wrap(checks.PURPOSE, 100):
        typer.echo(line)
    if sys.stdout.isatty():
        _print_rich(diagnosis)
    else:
        typer.echo(f"{diagnosis.about}\n")
        width = max(len(check.name) for check in diagnosis.checks)
        for check in diagnosis.checks:
            typer.echo(f"{check.verdict:<7}  {check.name:<{width}}  {check.shown}")
        for check in _worth_printing(diagnosis):
            typer.echo(f"\n{check.name} ({check.verdict}): {check.meaning}")
            typer.echo(f"  What to do: {check.action or 'nothing.'}")
    typer.echo(f"\nVerdict: {diagnosis.verdict}")
    if diagnosis.checks[-1].name != "expected measurements":
        typer.echo("With --anomalies N --shift D, searches are simulated: how many measurements they take.")


def _worth_printing(diagnosis: Diagnosis) -> list[Check]:
    return [c for c in diagnosis.checks if c.verdict != "ok" or c.name == "expected measurements"]


def _print_rich(diagnosis: Diagnosis) -> None:
    console = Console(highlight=False)
    console.print(Text(diagnosis.about), style="dim")
    lines = grid("verdict", "check", "number")
    for check in diagnosis.checks:
        lines.add_row(Text(check.verdict, style=_STYLES[check.verdict]), Text(check.name), Text(check.shown))
    console.print(lines)
    for check in _worth_printing(diagnosis):
        console.print(Text.assemble("\n", (check.name, "bold"), " (", (check.verdict, _STYLES[check.verdict]), ")"))
        console.print(Padding(Text(check.meaning), (0, 0, 0, 2)))
        if check.action:
            console.print(Padding(Text.assemble(("What to do: ", "bold"), check.action), (0, 0, 0, 2)))
