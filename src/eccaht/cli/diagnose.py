"""`eccaht diagnose`: is this model fit for use?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eccaht.cli.output import check_outputs, counting, deliver

if TYPE_CHECKING:
    from eccaht.diagnose import Check, Diagnosis

_STYLES = {"ok": "green", "caution": "yellow", "not fit": "bold red"}


def diagnose(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What 'eccaht calibrate' wrote.")],
    anomalies: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Simulate searches for N anomalous sensors.")
    ] = None,
    shift: Annotated[float | None, typer.Option(metavar="D", help="Size of an anomaly there, in robust units.")] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="B", help="Limit on a measurement there: sum of |weights|. [default: 5]")
    ] = None,
    runs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Simulated searches. [default: 20]")] = None,
    horizon: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Measurements in each. [default: 500]")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="Another seed is other searches.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="PAGE", help="Write a page with pictures.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")] = False,
) -> None:
    """Check whether a model can carry a search, and what to do.

    Each check has a number and a verdict: ok, caution or not fit; docs/diagnosis.md explains them. With --anomalies and
    --shift, searches are simulated with the model's covariance: how many measurements they take, and how often they
    end wrong. The exit code is 0 whatever the verdict.
    """
    search = _search(anomalies, shift, budget=budget, runs=runs, horizon=horizon, seed=seed)
    check_outputs({"--html": html}, {"MODEL": model})
    from eccaht.diagnose import diagnose as run
    from eccaht.model.model import load_model

    calibrated = load_model(model)
    if search:
        with counting(search.get("runs", 20), "simulated searches") as progress:
            diagnosis = run(calibrated, **search, progress=progress)
    else:
        diagnosis = run(calibrated)
    deliver(
        [] if html is None else [_save(diagnosis, model, html)],
        tell=lambda: _tell(diagnosis),
        document=(lambda files: {"file": str(model), **diagnosis.as_dict(), "files": files}) if as_json else None,
    )


def _search(anomalies: int | None, shift: float | None, **others: Any) -> dict[str, Any]:
    """The search to simulate, empty if none is described."""
    given = {name: value for name, value in others.items() if value is not None}
    if anomalies is None and shift is None and not given:
        return {}
    if anomalies is None or shift is None:
        lacking = " and ".join(o for o, v in (("--anomalies", anomalies), ("--shift", shift)) if v is None)
        raise ValueError(f"a simulated search needs --anomalies and --shift: give {lacking}, or drop the other options")
    return {"n_anomalies": anomalies, "shift": shift, **given}


def _save(diagnosis: Diagnosis, model: Path, page: Path) -> Iterator[Path]:
    from eccaht.diagnose.page import write
    from eccaht.files import replacing

    text = write(diagnosis, model.name)
    with replacing(page) as file:
        file.write(text.encode("utf-8", errors="backslashreplace"))
    yield page


def _tell(diagnosis: Diagnosis) -> None:
    """Every check in a line, then what to do about those that are not ok."""
    if sys.stdout.isatty():
        _print_rich(diagnosis)
    else:
        typer.echo(f"{diagnosis.about}\n")
        width = max(len(check.name) for check in diagnosis.checks)
        for check in diagnosis.checks:
            typer.echo(f"{check.verdict:<7}  {check.name:<{width}}  {check.shown}")
        for check in _worth_telling(diagnosis):
            typer.echo(f"\n{check.name} ({check.verdict}): {check.meaning}")
            typer.echo(f"  What to do: {check.action or 'nothing.'}")
    typer.echo(f"\nVerdict: {diagnosis.verdict}")
    if diagnosis.checks[-1].name != "expected measurements":
        typer.echo("With --anomalies N --shift D, searches are simulated: how many measurements they take.")


def _worth_telling(diagnosis: Diagnosis) -> list[Check]:
    return [c for c in diagnosis.checks if c.verdict != "ok" or c.name == "expected measurements"]


def _print_rich(diagnosis: Diagnosis) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(diagnosis.about), style="dim")
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("verdict", "check", "number"):
        grid.add_column(title)
    for check in diagnosis.checks:
        grid.add_row(Text(check.verdict, style=_STYLES[check.verdict]), Text(check.name), Text(check.shown))
    console.print(grid)
    for check in _worth_telling(diagnosis):
        console.print(Text.assemble("\n", (check.name, "bold"), " (", (check.verdict, _STYLES[check.verdict]), ")"))
        console.print(Padding(Text(check.meaning), (0, 0, 0, 2)))
        if check.action:
            console.print(Padding(Text.assemble(("What to do: ", "bold"), check.action), (0, 0, 0, 2)))
