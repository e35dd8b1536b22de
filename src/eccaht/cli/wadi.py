"""`eccaht wadi`: figures 4a and 4b on the WaDi files."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from joblib import cpu_count  # type: ignore[import-untyped]

from eccaht.base.clock import parse_duration, show_duration
from eccaht.base.statistics import first_reached
from eccaht.cli.output import (
    Budget,
    Jobs,
    Json,
    Policies,
    Runs,
    Seed,
    deliver,
    option,
    show_lines,
    show_mean,
    shown_progress,
)
from eccaht.cli.real_data import chosen_policies, output_directory, show_delays
from eccaht.plants import Model
from eccaht.research.datasets.wadi import find_files, read_attacks
from eccaht.research.experiments.localisation import group_entry, pooled, savings, summary_table
from eccaht.research.experiments.tables import save_table
from eccaht.research.paper import wadi as experiment
from eccaht.research.paper.wadi import Fig4a, Prepared, Timed, WadiSettings, attack_table, column_table, pipeline_table

_FIG4A = ("fig4a.csv", "fig4a.pdf", "fig4a.png")
_FILES = ("columns.csv", "attacks.csv", *_FIG4A, "fig4b.csv", "fig4b.pdf", "fig4b.png")


class _Done(NamedTuple):
    edition: str
    settings: WadiSettings
    model: Model
    prepared: list[Prepared]
    fig4a: Fig4a
    fig4b: list[Timed]


def wadi(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files from iTrust are.")],
    out: Annotated[Path, option("DIR", "Where tables and figures go.")],
    attacks: Annotated[str | None, option("N,...", "Numbers of attacks. [default: all]")] = None,
    policies: Policies = None,
    runs: Runs = 20,
    shift: Annotated[float, option(None, "Size of an anomaly in robust units.")] = 1.0,
    budget: Budget = 5.0,
    window: Annotated[str, option(None, "Length of a window.")] = "1min",
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Name the attacked points of the WaDi testbed.

    As figures 4a and 4b of the paper. DIR holds WADI_14days.csv and WADI_attackdata.csv, or WADI_14days_new.csv and
    WADI_attackdataLABLE.csv. They are not ours to give: docs/paper/real-data.md says where to ask for them.
    """
    settings = WadiSettings(shift, budget, parse_duration(window, "window"), runs, seed)
    names = chosen_policies(policies, experiment.POLICIES)
    chosen = read_attacks(None if attacks is None else [number.strip() for number in attacks.split(",")])
    files = find_files(directory)
    with output_directory(out, _FILES, {"DIR": (files.history, files.attacks)}) as place:
        with shown_progress() as bar:
            many: dict[str, Any] = {"jobs": jobs or cpu_count(), "progress": bar.advance}
            model = experiment.build_model(files, settings, progress=lambda _, stage: bar.stage(stage))
            prepared = experiment.prepare_attacks(model, chosen)
            windows = experiment.attack_windows(model, files)
            bar.total(3 * len(chosen) * runs)
            fig4a = experiment.run_fig4a(model, windows, prepared, names, settings, **many)
            pipelines = {"ecc-aht": windows, "combgape": experiment.attack_windows(model, files, seconds=1.0)}
            fig4b = experiment.run_fig4b(model, pipelines, prepared, settings, **many)
        done = _Done(files.edition, settings, model, prepared, fig4a, fig4b)
        deliver(
            [_save(place, done)],
            show=lambda: _show(done),
            document=lambda saved: _document(done, saved),
            as_json=as_json,
        )


def _save(place: Path, done: _Done) -> Iterator[Path]:
    from eccaht.base.presentation.style import saving_figure
    from eccaht.research.experiments.figures import Times, draw_delays, draw_times

    numbers = {each.label: len(each.columns) for each in done.prepared}
    known = {label: {"n_anomalies": number} for label, number in numbers.items()}
    yield save_table(column_table(done.model), place / "columns.csv")
    yield save_table(attack_table(done.prepared), place / "attacks.csv")
    yield save_table(summary_table(done.fig4a.records, known), place / "fig4a.csv")
    counts = {label: f"{label}, n = {number}" for label, number in numbers.items()}
    records = {counts[label]: each for label, each in done.fig4a.records.items()}
    title = f"fig4a: WaDi, K = {len(done.model.names)}, windows until the attacked points are named"
    figure = draw_delays(records, title=title, unit="windows", reached=first_reached)
    yield from saving_figure(figure, place / "fig4a")
    if done.fig4b:
        yield save_table(pipeline_table(done.fig4b), place / "fig4b.csv")
        groups: dict[str, dict[str, Times]] = {}
        for each in done.fig4b:
            groups.setdefault(counts[each.attack], {})[each.pipeline] = Times(each.first, each.limit)
        title = "fig4b: ecc-aht on windows against CombGapE on one-second rows"
        figure = draw_times(groups, title=title, label="seconds until F1 ≥ 0.95")
        yield from saving_figure(figure, place / "fig4b")


def _show(done: _Done) -> None:
    model, length = done.model, show_duration(done.settings.window)
    typer.echo(f"WaDi {done.edition}: {len(model.names)} sensors that vary, {model.n_windows} windows of {length}")
    for each in done.prepared:
        for point, why in each.unmatched.items() if each.columns else ():
            typer.echo(f"{each.label} counts without {point}: {why}")
    for label, why in done.fig4a.left_out.items():
        typer.echo(f"{label} is left out: {why}")
    groups = done.fig4a.records
    typer.echo(f"fig4a: windows until F1 >= 0.95, mean [95 % interval over {done.settings.runs} runs]")
    show_delays(groups)
    for twin in savings(pooled(groups), seed=done.settings.seed):
        more = f"{twin.blind} needs {show_mean(twin.more)} windows more than {twin.full}, for good"
        typer.echo(f"mean over {len(groups)} attacks: {more}")
    if done.fig4b:
        typer.echo("fig4b: seconds from the beginning of the attack until F1 >= 0.95, in the mean")
        table = pipeline_table(done.fig4b)
        show_lines(
            [
                list(table),
                *(
                    [f"{x:.4g}" if isinstance(x, float) else str(x) for x in row]
                    for row in zip(*table.values(), strict=True)
                ),
            ]
        )


def _document(done: _Done, saved: list[str]) -> dict[str, Any]:
    return {
        "settings": asdict(done.settings),
        "edition": done.edition,
        "sensors": list(done.model.names),
        "windows": done.model.n_windows,
        "attacks": [
            {"attack": each.label, "columns": list(each.columns), "unmatched": dict(each.unmatched)}
            for each in done.prepared
        ],
        "left_out": done.fig4a.left_out,
        "fig4a": [{"attack": label, **group_entry(records)} for label, records in done.fig4a.records.items()],
        "fig4b": [each._asdict() for each in done.fig4b],
        "files": saved,
    }
