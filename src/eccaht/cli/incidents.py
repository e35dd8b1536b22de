"""`eccaht incidents`: the bench of real incidents, our method beside its rivals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from joblib import cpu_count  # type: ignore[import-untyped]

from eccaht.base.presentation.text import counted
from eccaht.base.statistics import Estimate
from eccaht.cli.output import Jobs, Json, Seed, deliver, note, option, show_lines, show_mean, shown_progress
from eccaht.cli.real_data import output_directory
from eccaht.research.datasets.labelled import Entity, Testbed, find_collections
from eccaht.research.datasets.water import load_wntr
from eccaht.research.experiments import incidents as bench
from eccaht.research.experiments.detection_outcomes import Detection, Measures, outcomes_table, summarise_detection
from eccaht.research.experiments.incidents import CollectionPiece, CollectionSettings, Finished
from eccaht.research.experiments.incidents_cases import ALPHA, NUMBERS, QUIET, CaseWorld, check_methods
from eccaht.research.experiments.incidents_summary import (
    BOTH,
    OUR_METHOD,
    Count,
    Summary,
    as_entry,
    summarise,
    summary_table,
    trials_table,
)
from eccaht.research.experiments.tables import save_table

_FILES = ("summary.csv", "trials.csv", "detection.csv", "precision.pdf", "precision.png")
_UNFINISHED = "unfinished"


def incidents(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A collection, or a directory of collections.")],
    out: Annotated[Path, option("DIR", "Where tables and the figure go.")],
    runs: Annotated[int, option("N", "Injected and replayed incidents of an entity, each.", min=1)] = 20,
    methods: Annotated[str | None, option("NAMES", "With commas between. [default: all]")] = None,
    water: Annotated[bool, option(None, "The simulated water network too.", "--water")] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Measure how well alarms find known incidents and how often their sensors are named.

    Detection: recordings of servers and testbeds (BATADAL, SKAB, Tennessee Eastman) are watched beside control charts,
    all with thresholds by one rule from the history. Naming, where sensors are labelled: labelled incidents; steps and
    replayed readings put into the last third of the training rows, after a fit on the first two; and quiet stretches.
    All methods have their default options; --methods chooses among those that name. A run that was interrupted goes on
    where it was if the same command is given again.
    """
    chosen, notes = check_methods(None if methods is None else [name.strip() for name in methods.split(",")])
    settings = CollectionSettings(runs, seed, chosen)
    find_spec("sklearn")  # charts need it: if it is missing, that is reported before the work starts
    found = find_collections(directory)
    notes += found.notes
    recorded: list[Entity | Testbed] = [*found.entities, *found.testbeds]
    inputs = {"DIR": [path for each in recorded for path in each.files]}
    entities: list[Entity | CaseWorld | Testbed] = [*recorded]
    if water:
        load_wntr()
        entities.append(CaseWorld(seed=seed))
    with output_directory(out, _FILES, inputs) as place:
        for line in notes:
            note(line)
        finished = Finished(place / _UNFINISHED, settings)
        with shown_progress() as bar:
            bar.total(len(bench.jobs_of(entities)), "parts of entities")
            outcome = bench.run(entities, settings, jobs=jobs or cpu_count(), progress=bar.advance, finished=finished)
        results = _Results(summarise(outcome.trials, seed=seed), summarise_detection(outcome.outcomes))
        deliver(
            [_save(place, outcome, results, finished)],
            show=lambda: _show(results, outcome),
            document=lambda files: _document(results, outcome, settings, notes, files),
            as_json=as_json,
        )


class _Results(NamedTuple):
    """By collection: what was named, and what was detected."""

    naming: dict[str, Summary]
    detection: Detection


def _save(place: Path, outcome: CollectionPiece, results: _Results, finished: Finished) -> Iterator[Path]:
    from eccaht.base.presentation.style import saving_figure
    from eccaht.research.experiments.figures import draw_precision

    yield save_table(summary_table(*results), place / "summary.csv")
    if outcome.outcomes:
        yield save_table(outcomes_table(outcome.outcomes), place / "detection.csv")
    if outcome.trials:
        yield save_table(trials_table(outcome.trials), place / "trials.csv")
        yield from saving_figure(draw_precision(results.naming), place / "precision")
    finished.clear()


def _document(
    results: _Results, outcome: CollectionPiece, settings: CollectionSettings, notes: list[str], files: list[str]
) -> dict[str, Any]:
    entries: dict[str, dict[str, Any]] = {name: as_entry(summary) for name, summary in results.naming.items()}
    for name, methods in results.detection.items():
        entries.setdefault(name, {})["detection"] = methods
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


# -- what was detected ---------------------------------------------------------------------------------

_COLUMNS = {  # of every collection, then of the one kind that has them: key, decimal places
    "found": ("found", 2),
    "begun": ("begun", 2),
    "delay": ("median_delay_rows", 1),
    "false/day": ("false_alarms_a_day", 2),
    "quiet on": ("quiet_time_in_alarm", 3),
    **{key: (key, 3) for key in ("S", "S_TTD", "TPR", "TNR")},
    "F1": ("f1", 3),
    "FAR": ("false_alarm_rate", 3),
    "MAR": ("missed_alarm_rate", 3),
    "files": ("files_found", 0),
    "NAB": ("nab", 1),
    "dated": ("dated_within_60s", 0),
    "P@n": ("altered_at_n", 2),
    "place": ("first_place", 1),
    "flagged": ("flagged_mean", 3),
    "normal-test": ("flagged_normal_test", 3),
}


def _show_detection(detection: Detection) -> None:
    if not detection:
        return
    typer.echo("found: share of incidents with an alarm on; begun: with an alarm that begins; delay: median, in rows")
    typer.echo("false/day: alarms that begin outside of incidents; quiet on: share of the other rows in alarm")
    typer.echo("dated: files whose beginning is found within 60 s; P@n: of n altered sensors, among the first n;")
    typer.echo("place: of the first of them, mean over incidents; unrounded: with the history as it was delivered")
    for name, methods in detection.items():
        first = next(iter(methods.values()))
        given = f"false-alarm rate given: {first['given_false_alarms_a_day']:.3g} a day"
        typer.echo(f"\n{name}: {counted(first['incidents'], 'incident')}; {given}")
        shown = {title: column for title, column in _COLUMNS.items() if column[0] in first}
        rows = [[method, *(_cell(each, *column) for column in shown.values())] for method, each in methods.items()]
        show_lines([["method", *shown], *rows])
    typer.echo("")


def _cell(measures: Measures, key: str, places: int) -> str:
    value = measures.get(key)
    return "-" if value is None else f"{value:.{places}f}"


# -- what was named ------------------------------------------------------------------------------------


def _show_naming(summaries: Mapping[str, Summary]) -> None:
    if not summaries:
        return
    typer.echo("P@n: share of the n wrong sensors among the first n, mean [95 % interval over incidents]")
    typer.echo("@150: among the first 1.5 n; top3: any among the first 3; F1: of those named with nothing given")
    typer.echo("steps, replayed: of one and of three sensors; quiet: stretches in which something was named")
    for name, summary in summaries.items():
        entities = "1 entity" if summary.entities == 1 else f"{summary.entities} entities"
        typer.echo(f"\n{name}: {entities}; {', '.join(f'{many} {tier}' for tier, many in summary.incidents.items())}")
        show_lines(list(_lines(summary)))
        for line in _error_rates(summary):
            typer.echo(line)


def _lines(summary: Summary) -> Iterator[list[str]]:
    labelled = ["labelled P@n", "@150", "top3", "F1"] if summary.labelled else []
    yield ["method", *labelled, "steps 1/3", "replayed P@n", "1/3", "quiet"]
    for method in dict.fromkeys([*summary.labelled, *summary.alarms, *summary.replayed]):
        cells = [method]
        if summary.labelled:
            measures = summary.labelled[method]
            cells.append(show_mean(measures["precision_at_n"], 2))
            cells += [f"{measures[key].mean:.2f}" for key in ("hit_rate_150", "rc_top_3", "f1")]
        replayed = summary.replayed.get(method, {})
        cells += [_numbers(summary.injected.get(method, {})), show_mean(replayed[BOTH], 2) if replayed else "-"]
        alarms = summary.alarms.get(method, Count(0, 0))
        share = f"{100 * alarms.happened / alarms.trials:.0f} %" if alarms.trials else "-"
        yield [*cells, _numbers(replayed), share]


def _numbers(estimates: Mapping[str, Estimate]) -> str:
    """Means for one and for three sensors."""
    return "/".join(f"{estimates[str(n)].mean:.2f}" if str(n) in estimates else "-" for n in NUMBERS)


def _error_rates(summary: Summary) -> Iterator[str]:
    """The error rates of our method, given and measured."""
    alarms, sure = summary.alarms.get(OUR_METHOD), summary.sure.get(OUR_METHOD)
    if alarms is not None:
        yield f"alarms: {_counted(alarms)} of quiet stretches of {QUIET} windows; at most {100 * ALPHA:g} % are meant"
    if sure is not None:
        yield f"sure and wrong: {_counted(sure)} of the sure answers to steps and replays"


def _counted(count: Count) -> str:
    if count.interval is None:
        return "0 of 0"
    share, low, high = (100 * x for x in (count.happened / count.trials, *count.interval))
    return f"{count.happened} of {count.trials}, {share:.1f} % [{low:.1f}, {high:.1f}],"
