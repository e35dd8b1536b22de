"""`eccaht water`: a simulated water network, attacked, from the files to the names."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import cpu_count  # type: ignore[import-untyped]

from eccaht.base.clock import parse_duration, show_duration
from eccaht.cli.output import (
    Budget,
    Jobs,
    Json,
    Policies,
    deliver,
    option,
    show_mean,
    shown_progress,
)
from eccaht.cli.real_data import chosen_policies, output_directory, show_delays
from eccaht.research.datasets.water import check_step, load_wntr
from eccaht.research.experiments import water as experiment
from eccaht.research.experiments.localisation import arrival_times, group_entry, savings, summary_table
from eccaht.research.experiments.tables import save_table
from eccaht.research.experiments.water import WaterOutcome, WaterSettings

_FILES = (
    "history.csv",
    "attacks.csv",
    "truth.json",
    "model.npz",
    "summary.csv",
    "delays.pdf",
    "delays.png",
)


def water(
    out: Annotated[Path, option("DIR", "Where data, tables and figures go.")],
    days: Annotated[float, option("N", "Length of the history.")] = 14.0,
    step: Annotated[str, option(None, "Time between readings, at most 10min.")] = "60s",
    window: Annotated[str | None, option(None, "Length of a window. [default: the step]")] = None,
    attacks: Annotated[int, option("N", "Attacks of two hours each.", min=1)] = 30,
    shift: Annotated[float, option(None, "Bias of an attacked sensor, in robust units.")] = 1.0,
    budget: Budget = 5.0,
    policies: Policies = None,
    seed: Annotated[int, option("N", "Another seed is another world.", min=0)] = 0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Attack sensors of a simulated water network and find them.

    EPANET's Net3 with random demand gives pressures, flows and tank levels. DIR receives the history, the data with
    attacks and their truth, the model, tables and a figure. Needs the extra: pip install 'eccaht[water]'.
    """
    seconds = check_step(parse_duration(step, "step"))
    length = seconds if window is None else parse_duration(window, "window")
    settings = WaterSettings(days, seconds, length, attacks, shift, budget, seed)
    names = chosen_policies(policies, experiment.POLICIES)
    load_wntr()
    with output_directory(out, _FILES) as directory:
        with shown_progress() as bar:
            bar.total(attacks)
            many: dict[str, Any] = {"jobs": jobs or cpu_count(), "stage": bar.stage, "progress": bar.advance}
            outcome = experiment.run(directory, names, settings, **many)
        deliver(
            [_save(directory, outcome, settings)],
            show=lambda: _show(outcome, settings),
            document=lambda files: _document(outcome, settings, files),
            as_json=as_json,
        )


def _save(directory: Path, outcome: WaterOutcome, settings: WaterSettings) -> Iterator[Path]:
    from eccaht.base.presentation.style import saving_figure
    from eccaht.research.experiments.figures import draw_delays

    title = f"{len(outcome.attacks)} attacks of two hours on a water network of {len(outcome.model.names)} sensors, "
    title += f"attacked sensors lifted by {settings.shift:g} x interquartile range"
    yield from outcome.files  # written on the way
    yield save_table(summary_table(outcome.records, {}), directory / "summary.csv")
    yield from saving_figure(draw_delays(outcome.records, title=title, unit="windows"), directory / "delays")


def _document(outcome: WaterOutcome, settings: WaterSettings, files: list[str]) -> dict[str, Any]:
    groups = [{"group": label, **group_entry(records)} for label, records in outcome.records.items()]
    contents = {"settings": asdict(settings), "sensors": list(outcome.model.names), "windows": outcome.model.n_windows}
    contents |= {"lag_1_autocorrelation": outcome.memory, "attacks": [each.as_dict() for each in outcome.attacks]}
    return contents | {"groups": groups, "files": files}


def _show(outcome: WaterOutcome, settings: WaterSettings) -> None:
    model, length = outcome.model, show_duration(settings.window)
    typer.echo(f"{len(model.names)} sensors, {model.n_windows} windows of {length} as history, {model.estimator}")
    typer.echo(
        "correlation of successive windows: {sensors:.2f} for a sensor, {residuals:.2f} for what the others do not "
        "explain of it".format(**outcome.memory)
    )
    typer.echo("windows until the attacked sensors are named, mean [95 % interval over attacks]")
    show_delays(outcome.records)
    for label, records in outcome.records.items():
        for saved in savings(arrival_times(records), seed=settings.seed):
            typer.echo(f"{label}: {saved.blind} needs {show_mean(saved.more)} windows more than {saved.full}")
