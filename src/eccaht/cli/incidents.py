"""`eccaht incidents`: the bench of real incidents, our method beside its rivals."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from joblib import cpu_count  # type: ignore[import-untyped]

from eccaht.base.extras import need
from eccaht.base.presentation.text import counted
from eccaht.cli.output import Jobs, Json, Seed, deliver, note, option, show_lines, shown_progress
from eccaht.cli.real_data import output_directory
from eccaht.research.datasets.labelled import find_collections
from eccaht.research.experiments import incidents as bench
from eccaht.research.experiments.detection import outcomes_of
from eccaht.research.experiments.detection_outcomes import (
    EQUAL,
    OWN_SCORES,
    Detection,
    Outcome,
    outcomes_table,
    ranked_at_equal_rates,
    score_of,
    summarise_detection,
)
from eccaht.research.experiments.incidents import CollectionPiece, CollectionSettings
from eccaht.research.experiments.incidents_cases import ALPHA, OURS, QUIET, check_methods
from eccaht.research.experiments.incidents_summary import (
    BOTH,
    Summary,
    as_entry,
    summarise,
    summary_table,
    trials_table,
)
from eccaht.research.experiments.tables import save_table

PRECISION = "precision_at_n"
_FILES = ("summary.csv", "trials.csv", "detection.csv")


def incidents(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A collection, or a directory of collections.")],
    out: Annotated[Path, option("DIR", "Where tables go.")],
    runs: Annotated[int, option("N", "Injected and replayed incidents of an entity, each.", min=1)] = 20,
    methods: Annotated[str | None, option("NAMES", "With commas between. [default: all]")] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Measure how well alarms find known incidents and how often their sensors are named.

    Recordings of servers and testbeds (BATADAL, SKAB, Tennessee Eastman, Sock Shop, an air handler) are watched
    beside control charts, all with thresholds by one rule from the history, and once more with thresholds at which all
    have equally many false alarms. Where sensors are labelled, labelled, injected and replayed incidents are named.
    """
    chosen, notes = check_methods(None if methods is None else [name.strip() for name in methods.split(",")])
    settings = CollectionSettings(runs, seed, chosen)
    need("sklearn")  # for charts
    found = find_collections(directory)
    notes += found.notes
    inputs = {"DIR": [path for each in found.entities for path in each.files]}
    with output_directory(out, _FILES, inputs) as place:
        for line in notes:
            note(line)
        with shown_progress() as bar:
            bar.total(len(bench.jobs_of(found.entities)), "parts of entities")
            outcome = bench.run(found.entities, settings, jobs=jobs or cpu_count(), progress=bar.advance)
        outcomes = outcomes_of(outcome.watched)
        results = _Results(summarise(outcome.trials, seed=seed), summarise_detection(outcomes))
        deliver(
            [_save(place, outcome, outcomes, results)],
            show=lambda: _show(results, outcome),
            document=lambda files: _document(results, outcome, settings, notes, files),
            as_json=as_json,
        )


class _Results(NamedTuple):
    """By collection: what was named, and what was detected."""

    naming: dict[str, Summary]
    detection: Detection


def _save(place: Path, outcome: CollectionPiece, outcomes: list[Outcome], results: _Results) -> Iterator[Path]:
    yield save_table(summary_table(*results), place / "summary.csv")
    if outcomes:
        yield save_table(outcomes_table(outcomes), place / "detection.csv")
    if outcome.trials:
        yield save_table(trials_table(outcome.trials), place / "trials.csv")


def _document(
    results: _Results, outcome: CollectionPiece, settings: CollectionSettings, notes: list[str], files: list[str]
) -> dict[str, Any]:
    entries: dict[str, dict[str, Any]] = {name: as_entry(summary) for name, summary in results.naming.items()}
    for name, methods in results.detection.items():
        best = [{"method": method, score_of(methods).key: value} for method, value in ranked_at_equal_rates(methods)]
        entries.setdefault(name, {}).update({"detection": methods, f"ranked_{EQUAL}": best})
    return {
        "collections": entries,
        "settings": asdict(settings),
        "left_out": outcome.left_out,
        "notes": notes,
        "files": files,
    }


def _show(results: _Results, outcome: CollectionPiece) -> None:
    _show_detection(results.detection)
    _show_naming(results.naming)
    if outcome.left_out:
        typer.echo("\nLeft out:")
    for line in outcome.left_out:
        typer.echo(f"  {line}")


_COUNTED = ("false_alarms", "quiet_time_in_alarm", "found", "begun")  # of all collections
_ANSWERS = (  # what `identify` says
    *("altered_at_n", "first_place", "dated_within_60s", "dated_within_5s", "fault_days_found", "alarms"),
    *("alarms_on_quiet_days", "root_in_1", "root_in_3", "root_in_5", "root_in_headline"),
)


def _show_detection(detection: Detection) -> None:
    if not detection:
        return
    typer.echo("false: alarms that begin outside of incidents; quiet: share of the other rows in alarm")
    typer.echo("found: share of incidents with an alarm on, or a change that it left; begun: with one that begins")
    typer.echo(f"=: with the threshold at which a method has as many false alarms as {OURS}")
    for name, methods in detection.items():
        first, score = next(iter(methods.values())), score_of(methods)
        asked = f"{_number(first['given_false_alarms'])} false alarms asked for"
        if (rate := first["given_false_alarms_a_day"]) is not None:
            asked += f", {_number(rate)} a day"
        typer.echo(f"\n{name}: {counted(first['incidents'], 'incident')}; {asked}")
        titles = ["false", "quiet", "found", "begun"] + ([score.title] if score in OWN_SCORES else [])
        keys = [*_COUNTED, *([score.key] if score in OWN_SCORES else [])]
        rows = [["method", "a day", *titles, *(f"={title}" for title in titles)]]
        for method, each in methods.items():
            cells = [_number(part[key]) for part in (each, each[EQUAL]) for key in keys]
            rows.append([method, _number(each["false_alarms_a_day"]), *cells])
        show_lines(rows)
        ranked = ", ".join(f"{method} {_number(value)}" for method, value in ranked_at_equal_rates(methods))
        typer.echo(f"= by {score.title}, best first: {ranked}")
        if answers := [f"{key.replace('_', ' ')} {_number(first[key])}" for key in _ANSWERS if key in first]:
            typer.echo(f"{OURS}: {'; '.join(answers)}")
    typer.echo("")


def _show_naming(summaries: Mapping[str, Summary]) -> None:
    """Means by method, of incidents of one and of three sensors together; summary.csv has all, with intervals."""
    for name, summary in summaries.items():
        incidents = ", ".join(f"{many} {tier}" for tier, many in summary.incidents.items())
        typer.echo(f"\n{name}: {counted(summary.entities, 'part')}; {incidents}")
        numbers = [each for each in summary.numbers if each.sensors in ("", BOTH) and each.measure != "right_sets"]
        means = {(each.method, each.tier, each.measure): each.mean for each in numbers}
        columns = list(dict.fromkeys((each.tier, each.measure) for each in numbers))
        words = [[*tier.split(), *measure.split("_")] for tier, measure in columns]  # one below the other
        head = [["method" * (not k), *column] for k, column in enumerate(zip_longest(*words, fillvalue=""))]
        methods = dict.fromkeys(each.method for each in numbers)
        show_lines([*head, *([name, *(_number(means.get((name, *key))) for key in columns)] for name in methods)])
        if OURS in methods:
            typer.echo(f"at most {100 * ALPHA:g} % alarms in quiet stretches of {QUIET} windows are meant")


def _number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.3g}"
