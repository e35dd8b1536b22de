"""`eccaht smd`: server data with known anomalies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import typer
from joblib import cpu_count  # type: ignore[import-untyped]

from eccaht.cli.options import Budget, Estimator, Jobs, Json, Policies, Seed, option
from eccaht.cli.output import deliver, show_lines, show_mean, shown_progress
from eccaht.cli.parsing import parse_list
from eccaht.cli.real_data import chosen_policies, output_directory
from eccaht.datasets.smd import find_entities
from eccaht.experiments import smd as experiment
from eccaht.experiments.comparison import Records, summarise
from eccaht.experiments.localisation import arrival_times, group_entry, pooled, saved_entries, savings, summary_table
from eccaht.experiments.smd import Settings, Tier1, Tier2, precision_over, precision_table
from eccaht.experiments.tables import save_table
from eccaht.model.estimators import check_estimator
from eccaht.randomness import rng_for
from eccaht.statistics import estimate


def smd(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A collection, or a directory of collections.")],
    tier: Annotated[Literal["1", "2", "all"], option(None, "Injected shifts, labelled segments, or both.")] = "all",
    anomalies: Annotated[str, option("N,...", "Numbers of shifted metrics, tier 1.")] = "1,3",
    shift: Annotated[float, option(None, "Size of a shift in robust units.")] = 1.0,
    budget: Budget = 5.0,
    estimator: Estimator = "ledoit-wolf",
    policies: Policies = None,
    runs: Annotated[int, option("N", "Runs of each policy; a fifth of them in tier 2.", min=1)] = 10,
    horizon: Annotated[int, option("N", "Rows of a search, at most.", min=1)] = 100,
    per_row: Annotated[int, option("N", "Measurements of each row, tier 2.", min=1)] = 1,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[Path | None, option("DIR", "Write tables and figures there.")] = None,
    as_json: Json = False,
) -> None:
    """Find anomalous metrics of servers whose truth is known.

    Tier 1 moves known metrics in real normal rows of the second half of the training data, after calibrating on the
    first. Tier 2 reads labelled segments, beside a ranking by robust z-scores that sees all metrics at once.
    """
    check_estimator(estimator)
    numbers = tuple(parse_list(anomalies, int, f"--anomalies {anomalies!r} is not whole numbers with commas between"))
    settings = Settings(numbers, shift, budget, horizon, runs, seed, estimator, per_row)
    names = chosen_policies(policies, experiment.POLICIES)
    entities = find_entities(directory)
    inputs = {"DIR": [path for each in entities for path in (each.train, each.test, each.truth)]}
    with nullcontext() if out is None else output_directory(out, _files(numbers), inputs) as place:
        one = two = None
        with shown_progress() as bar:
            many: dict[str, Any] = {"jobs": jobs or cpu_count(), "progress": bar.advance}
            if tier != "2":
                bar.total(len(entities) * len(numbers) * runs)
                one = experiment.run_tier1(entities, names, settings, **many)
            if tier != "1":
                bar.total(sum(len(entity.segments) for entity in entities) * settings.repeats)
                two = experiment.run_tier2(entities, names, settings, **many)
        deliver(
            [] if place is None else [_save(place, one, two, settings)],
            tell=lambda: _show(one, two, settings),
            document=lambda files: _document(one, two, settings, files),
            as_json=as_json,
        )


def _files(numbers: tuple[int, ...]) -> list[str]:
    names = (*(f"tier1-{n}" for n in numbers), "tier2")
    return [f"{name}.{suffix}" for name in names for suffix in ("csv", "pdf", "png")]


def _collections(labels: list[str]) -> dict[str, list[str]]:
    """All entities, and those of each collection if there are several."""
    names = sorted({label.split("/")[0] for label in labels})
    groups = {f"all of {name}": [label for label in labels if label.startswith(f"{name}/")] for name in names}
    return groups if len(names) == 1 else groups | {"all": labels}


def _show(one: Tier1 | None, two: Tier2 | None, settings: Settings) -> None:
    for n, records in one.records.items() if one is not None else ():
        moved = f"{n} of the K metrics moved by {settings.shift:g} robust units in real rows"
        typer.echo(f"Tier 1: {moved}, {settings.runs} runs of {settings.horizon} measurements")
        _show_tier1(one, records, settings)  # type: ignore[arg-type]
    if two is not None:
        _show_tier2(two, settings)


# -- tier 1 --------------------------------------------------------------------------------------------


def _show_tier1(tier: Tier1, records: dict[str, Records], settings: Settings) -> None:
    overall, methods = _overall(records, settings), list(next(iter(records.values())).hits)
    twins = [f"{twin.blind} - {twin.full}" for twin in next(iter(overall.values()))["savings"]]
    typer.echo("Measurements until the right set is named for good; A - B: how many more A needs than B, paired")
    lines = [["entity", "K", "rank", "|r|", *methods, *twins]]
    for label, each in records.items():
        known, arrived = tier.entities[label], [row.for_good for row in summarise(each)]
        cells = [str(known.metrics), f"{known.effective_rank:.1f}", f"{known.closest:.2f}"]
        cells += [f"{times.mean:.1f}" + (f" ({times.censored})" if times.censored else "") for times in arrived]
        cells += [show_mean(twin.more) for twin in savings(arrival_times(each), seed=settings.seed)]
        lines.append([label, *cells])
    show_lines(lines)
    never = f"(4): so many of {settings.runs} runs never arrived and count as {settings.horizon}"
    typer.echo(f"{never}, the mean is a lower bound")
    typer.echo("Mean over entities, with 95 % intervals over runs")
    lines = [["", *overall]]
    for name in methods:
        lines.append([name, *(show_mean(each["policies"][name]) for each in overall.values())])
    for k, title in enumerate(twins):
        lines.append([title, *(show_mean(each["savings"][k].more) for each in overall.values())])
    show_lines(lines)
    typer.echo("")


def _overall(records: dict[str, Records], settings: Settings) -> dict[str, dict[str, Any]]:
    """Means over the entities of a collection, with intervals over runs."""
    groups = {}
    for label, members in _collections(list(records)).items():
        times = pooled({member: records[member] for member in members})
        means = {name: estimate(each, rng=rng_for(settings.seed, "bootstrap")) for name, each in times.items()}
        groups[label] = {"policies": means, "savings": savings(times, seed=settings.seed)}
    return groups


# -- tier 2 --------------------------------------------------------------------------------------------


def _show_tier2(tier: Tier2, settings: Settings) -> None:
    each = f"{settings.per_row} measurement{'s' * (settings.per_row > 1)} of each row"
    typer.echo(f"Tier 2: labelled segments, {each}, at most {settings.horizon} rows of a segment")
    typer.echo("Share of the n labelled metrics among the n named; the z-score sees every metric of every row")
    names = list(next(iter(tier.precision.values())))
    lines = [["entity", "segments", "rows", *names]]
    for label, lengths in tier.rows.items():
        precisions = precision_over(tier, [label], seed=settings.seed)
        cells = [f"{precisions[name].mean:.2f}" if precisions else "-" for name in names]
        lines.append([label, str(len(lengths)), f"{median(lengths):g}" if lengths else "-", *cells])
    show_lines(lines)
    typer.echo("Mean over segments, with 95 % intervals; rows: median length of a segment")
    overall = _precisions(tier, _collections(list(tier.precision)), settings)
    lines = [["", *overall]]
    for name in names:
        lines.append([name, *(show_mean(each[name], 2) if each else "-" for each in overall.values())])
    show_lines(lines)
    for label, reasons in tier.skipped.items():
        for reason in reasons:
            typer.echo(f"left out: {label}, {reason}")


def _precisions(tier: Tier2, groups: dict[str, list[str]], settings: Settings) -> dict[str, Any]:
    return {label: precision_over(tier, members, seed=settings.seed) for label, members in groups.items()}


# -- both ----------------------------------------------------------------------------------------------


def _save(place: Path, one: Tier1 | None, two: Tier2 | None, settings: Settings) -> Iterator[Path]:
    from eccaht.experiments.localisation_figures import draw_delays, draw_precision
    from eccaht.presentation.style import saving_figure

    if one is not None:
        for n, records in one.records.items():
            extra = {label: {"n_anomalies": n, **known._asdict()} for label, known in one.entities.items()}
            title = f"{n} of the metrics moved by {settings.shift:g} x interquartile range in real rows"
            yield save_table(summary_table(records, extra), place / f"tier1-{n}.csv")
            yield from saving_figure(draw_delays(records, title=title, unit="measurements"), place / f"tier1-{n}")
    if two is not None:
        labels = [label for label in two.precision if two.rows[label]]
        precisions = _precisions(two, {label: [label] for label in labels} | _collections(labels), settings)
        yield save_table(precision_table(two), place / "tier2.csv")
        yield from saving_figure(draw_precision(precisions, title="labelled segments"), place / "tier2")


def _document(one: Tier1 | None, two: Tier2 | None, settings: Settings, files: list[str]) -> dict[str, Any]:
    contents: dict[str, Any] = {"settings": asdict(settings), "files": files}
    if one is not None:
        contents["tier1"] = [_tier1_entry(one, n, settings) for n in one.records]
    if two is not None:
        groups = {label: [label] for label in two.precision} | _collections(list(two.precision))
        contents["tier2"] = [
            {
                "entities": label,
                "segments": sum(len(two.rows[member]) for member in groups[label]),
                "precision": {name: value._asdict() for name, value in found.items()},
            }
            for label, found in _precisions(two, groups, settings).items()
        ]
        contents["left_out"] = two.skipped
    return contents


def _tier1_entry(tier: Tier1, n: int, settings: Settings) -> dict[str, Any]:
    records, overall = tier.records[n], []
    for label, means in _overall(records, settings).items():
        policies = {name: value._asdict() for name, value in means["policies"].items()}
        saved = saved_entries(means["savings"])
        overall.append({"entities": label, "policies": policies, "diagonal_needs_more": saved})
    entities = [
        {"entity": label, **tier.entities[label]._asdict(), **group_entry(each)} for label, each in records.items()
    ]
    return {"n_anomalies": n, "entities": entities, "overall": overall}
