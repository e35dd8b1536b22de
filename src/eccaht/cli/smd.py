"""`eccaht smd`: server data with known anomalies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from eccaht.cli.options import Budget, Estimator, Jobs, Json, Policies, Seed

if TYPE_CHECKING:
    from eccaht.experiments.comparison import Records
    from eccaht.experiments.smd import Settings, Tier1, Tier2


def smd(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A collection, or a directory of collections.")],
    tier: Annotated[
        Literal["1", "2", "all"], typer.Option(help="Injected shifts, labelled segments, or both.")
    ] = "all",
    anomalies: Annotated[str, typer.Option(metavar="N,...", help="Numbers of shifted metrics, tier 1.")] = "1,3",
    shift: Annotated[float, typer.Option(help="Size of a shift in robust units.")] = 1.0,
    budget: Budget = 5.0,
    estimator: Estimator = "ledoit-wolf",
    policies: Policies = None,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Runs of each policy; a fifth of them in tier 2.")] = 10,
    horizon: Annotated[int, typer.Option(min=1, metavar="N", help="Rows of a search, at most.")] = 100,
    per_row: Annotated[int, typer.Option(min=1, metavar="N", help="Measurements of each row, tier 2.")] = 1,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write tables and figures there.")] = None,
    as_json: Json = False,
) -> None:
    """Find anomalous metrics of servers whose truth is known.

    Tier 1 moves known metrics in real normal rows of the second half of the training data, after calibrating on the
    first. Tier 2 reads labelled segments, beside a ranking by robust z-scores that sees all metrics at once.
    """
    from contextlib import nullcontext

    from joblib import cpu_count  # type: ignore[import-untyped]

    from eccaht.cli.output import deliver, shown_progress
    from eccaht.cli.parsing import parse_list
    from eccaht.cli.real_data import chosen_policies, output_directory
    from eccaht.datasets.smd import find_entities
    from eccaht.experiments import smd as experiment
    from eccaht.experiments.localisation import check_known
    from eccaht.model.estimators import check_estimator

    check_estimator(estimator)
    wrong = f"--anomalies {anomalies!r} is not whole numbers with commas between"
    numbers = tuple(parse_list(anomalies, int, wrong))
    settings = experiment.Settings(numbers, shift, budget, horizon, runs, seed, estimator, per_row)
    names = check_known(chosen_policies(policies, experiment.POLICIES))
    entities = find_entities(directory)
    many: dict[str, Any] = {"jobs": jobs or cpu_count()}
    inputs = {"DIR": [path for each in entities for path in (each.train, each.test, each.truth)]}
    place_for = nullcontext() if out is None else output_directory(out, _files(numbers), inputs)
    with place_for as place:
        with shown_progress() as bar:
            one = two = None
            if tier != "2":
                bar.total(len(entities) * len(numbers) * runs)
                one = experiment.run_tier1(entities, names, settings, **many, progress=bar.advance)
            if tier != "1":
                bar.total(sum(len(entity.segments) for entity in entities) * settings.repeats)
                two = experiment.run_tier2(entities, names, settings, **many, progress=bar.advance)

        def tell() -> None:
            if one is not None:
                _show_tier1(one, settings)
            if two is not None:
                _show_tier2(two, settings)

        deliver(
            [] if place is None else [_save(place, one, two, settings)],
            tell=tell,
            document=(lambda files: _document(one, two, settings, files)) if as_json else None,
        )


def _files(numbers: tuple[int, ...]) -> list[str]:
    names = (*(f"tier1-{n}" for n in numbers), "tier2")
    return [f"{name}.{suffix}" for name in names for suffix in ("csv", "pdf", "png")]


def _collections(labels: list[str]) -> dict[str, list[str]]:
    """All entities, and those of each collection if there are several."""
    names = sorted({label.split("/")[0] for label in labels})
    groups = {f"all of {name}": [label for label in labels if label.startswith(f"{name}/")] for name in names}
    return groups if len(names) == 1 else groups | {"all": labels}


# -- tier 1 --------------------------------------------------------------------------------------------


def _show_tier1(tier: Tier1, settings: Settings) -> None:
    from eccaht.cli.output import show_lines, show_mean

    runs, horizon = settings.runs, settings.horizon
    for n, records in tier.records.items():
        moved = f"{n} of the K metrics moved by {settings.shift:g} robust units in real rows"
        typer.echo(f"Tier 1: {moved}, {runs} runs of {horizon} measurements")
        typer.echo("Measurements until the right set is named for good; A - B: how many more A needs than B, paired")
        show_lines(_entity_lines(tier, records, settings))
        typer.echo(f"(4): so many of {runs} runs never arrived and count as {horizon}, the mean is a lower bound")
        typer.echo("Mean over entities, with 95 % intervals over runs")
        overall = _overall(records, settings)
        lines = [["", *overall]]
        for name in next(iter(records.values())).hits:
            lines.append([name, *(show_mean(told["policies"][name]) for told in overall.values())])
        for k, title in enumerate(_twins(records)):
            lines.append([title, *(show_mean(told["savings"][k].more) for told in overall.values())])
        show_lines(lines)
        typer.echo("")


def _entity_lines(tier: Tier1, records: dict[str, Records], settings: Settings) -> list[list[str]]:
    from eccaht.cli.output import show_mean
    from eccaht.experiments.comparison import summarise
    from eccaht.experiments.localisation import arrival_times, savings

    lines = [["entity", "K", "rank", "|r|", *next(iter(records.values())).hits, *_twins(records)]]
    for label, each in records.items():
        known, cells = tier.entities[label], []
        for row in summarise(each):
            never = f" ({row.for_good.censored})" if row.for_good.censored else ""
            cells.append(f"{row.for_good.mean:.1f}{never}")
        saved = [show_mean(twin.more) for twin in savings(arrival_times(each), seed=settings.seed)]
        described = [str(known.metrics), f"{known.effective_rank:.1f}", f"{known.closest:.2f}"]
        lines.append([label, *described, *cells, *saved])
    return lines


def _twins(records: dict[str, Records]) -> list[str]:
    from eccaht.experiments.localisation import arrival_times, savings

    first = next(iter(records.values()))
    return [f"{twin.blind} - {twin.full}" for twin in savings(arrival_times(first), seed=first.seed)]


def _overall(records: dict[str, Records], settings: Settings) -> dict[str, dict[str, Any]]:
    """Means over the entities of a collection, with intervals over runs."""
    from eccaht.experiments.localisation import pooled, savings
    from eccaht.randomness import rng_for
    from eccaht.statistics import estimate

    told = {}
    for label, members in _collections(list(records)).items():
        times = pooled({member: records[member] for member in members})
        means = {name: estimate(each, rng=rng_for(settings.seed, "bootstrap")) for name, each in times.items()}
        told[label] = {"policies": means, "savings": savings(times, seed=settings.seed)}
    return told


# -- tier 2 --------------------------------------------------------------------------------------------


def _show_tier2(tier: Tier2, settings: Settings) -> None:
    from eccaht.cli.output import show_lines, show_mean
    from eccaht.experiments.smd import precision_over

    each = f"{settings.per_row} measurement{'s' * (settings.per_row > 1)} of each row"
    typer.echo(f"Tier 2: labelled segments, {each}, at most {settings.horizon} rows of a segment")
    typer.echo("Share of the n labelled metrics among the n named; the z-score sees every metric of every row")
    names = list(next(iter(tier.precision.values())))
    lines = [["entity", "segments", "rows", *names]]
    for label, lengths in tier.rows.items():
        told = precision_over(tier, [label], seed=settings.seed)
        cells = [f"{told[name].mean:.2f}" if told else "-" for name in names]
        lines.append([label, str(len(lengths)), f"{median(lengths):g}" if lengths else "-", *cells])
    show_lines(lines)
    typer.echo("Mean over segments, with 95 % intervals; rows: median length of a segment")
    overall = {
        label: precision_over(tier, members, seed=settings.seed)
        for label, members in _collections(list(tier.precision)).items()
    }
    lines = [["", *overall]]
    for name in names:
        lines.append([name, *(show_mean(told[name], 2) if told else "-" for told in overall.values())])
    show_lines(lines)
    for label, reasons in tier.skipped.items():
        for reason in reasons:
            typer.echo(f"left out: {label}, {reason}")


# -- both ----------------------------------------------------------------------------------------------


def _save(place: Path, one: Tier1 | None, two: Tier2 | None, settings: Settings) -> Iterator[Path]:
    from eccaht.experiments.localisation import summary_table
    from eccaht.experiments.localisation_figures import draw_delays, draw_precision
    from eccaht.experiments.smd import precision_over, precision_table
    from eccaht.experiments.tables import save_table
    from eccaht.presentation.style import saving_figure

    for n, records in ({} if one is None else one.records).items():
        extra = {label: {"n_anomalies": n, **known._asdict()} for label, known in one.entities.items()} if one else {}
        title = f"{n} of the metrics moved by {settings.shift:g} x interquartile range in real rows"
        yield save_table(summary_table(records, extra), place / f"tier1-{n}.csv")
        yield from saving_figure(draw_delays(records, title=title, unit="measurements"), place / f"tier1-{n}")
    if two is not None:
        groups = {label: [label] for label in two.precision if two.rows[label]}
        told = {label: precision_over(two, members, seed=settings.seed) for label, members in groups.items()}
        for label, members in _collections(list(groups)).items():
            told[label] = precision_over(two, members, seed=settings.seed)
        yield save_table(precision_table(two), place / "tier2.csv")
        yield from saving_figure(draw_precision(told, title="labelled segments"), place / "tier2")


def _document(one: Tier1 | None, two: Tier2 | None, settings: Settings, files: list[str]) -> dict[str, Any]:
    from dataclasses import asdict

    from eccaht.experiments.localisation import group_entry, saved_entries
    from eccaht.experiments.smd import precision_over

    told: dict[str, Any] = {"settings": asdict(settings), "files": files}
    if one is not None:
        told["tier1"] = [
            {
                "n_anomalies": n,
                "entities": [
                    {
                        "entity": label,
                        **one.entities[label]._asdict(),
                        **group_entry(each),
                    }
                    for label, each in records.items()
                ],
                "overall": [
                    {
                        "entities": label,
                        "policies": {name: value._asdict() for name, value in means["policies"].items()},
                        "diagonal_needs_more": saved_entries(means["savings"]),
                    }
                    for label, means in _overall(records, settings).items()
                ],
            }
            for n, records in one.records.items()
        ]
    if two is not None:
        groups = {label: [label] for label in two.precision} | _collections(list(two.precision))
        told["tier2"] = [
            {
                "entities": label,
                "segments": sum(len(two.rows[member]) for member in members),
                "precision": {
                    name: value._asdict() for name, value in precision_over(two, members, seed=settings.seed).items()
                },
            }
            for label, members in groups.items()
        ]
        told["left_out"] = two.skipped
    return told
