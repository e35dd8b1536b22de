"""`eccaht incidents`: the bench of real incidents, our method beside its rivals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from joblib import cpu_count  # type: ignore[import-untyped]

from eccaht.base.extras import need
from eccaht.base.presentation.text import counted
from eccaht.cli.output import Jobs, Json, Seed, deliver, note, option, show_lines, show_mean, shown_progress
from eccaht.cli.real_data import output_directory
from eccaht.research.datasets.labelled import find_collections
from eccaht.research.experiments import incidents as bench
from eccaht.research.experiments.detection import outcomes_of
from eccaht.research.experiments.detection_outcomes import (
    EQUAL,
    OWN_SCORES,
    Detection,
    Measures,
    Outcome,
    Score,
    outcomes_table,
    ranked_at_equal_rates,
    score_of,
    summarise_detection,
)
from eccaht.research.experiments.incidents import CollectionPiece, CollectionSettings
from eccaht.research.experiments.incidents_cases import ALPHA, NUMBERS, OURS, QUIET, check_methods
from eccaht.research.experiments.incidents_summary import (
    BOTH,
    CHANGED,
    Number,
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


# -- what was detected ---------------------------------------------------------------------------------

_UNITS = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1.0, "month": 30.0}  # days
_RARE = 0.06  # false alarms: the shortest unit for which as many are asked is shown
_ANSWERS = {  # what `identify` says
    "altered_at_n": "share of n altered sensors among the first n",
    "first_place": "mean place of the first of them",
    "dated_within_60s": "dated within 60 s",
    "dated_within_5s": "dated within 5 s",
    "fault_days_found": "fault days found",
    "alarms": "alarms",
    "alarms_on_quiet_days": "on quiet days",
    "root_in_1": "root cause first",
    "root_in_3": "in 3",
    "root_in_5": "in 5",
    "root_in_headline": "in the headline",
}


def _show_detection(detection: Detection) -> None:
    if not detection:
        return
    typer.echo("false: alarms that begin outside of incidents; quiet: share of the other rows in alarm")
    typer.echo("found: incidents with an alarm on, or a change that it left; begun: with an alarm that begins")
    typer.echo(f"=: with the threshold at which a method has as many false alarms as {OURS}; a month has 30 days")
    for name, methods in detection.items():
        first, score = next(iter(methods.values())), score_of(methods)
        unit, days = _unit(first)
        asked = f"{_number(first['given_false_alarms'])} false alarms asked for"
        if (rate := first["given_false_alarms_a_day"]) is not None:
            asked += f", {_number(rate * days)} a {unit}"
        typer.echo(f"\n{name}: {counted(first['incidents'], 'incident')}; {asked}")
        own = (score,) if score in OWN_SCORES else ()
        titles = ["false", "quiet", "found", "begun", *(each.title for each in own)]
        head = ["method", titles[0], f"a {unit} [95 %]", *titles[1:], *(f"={title}" for title in titles)]
        rows = []
        for method, each in methods.items():
            false, *cells = _cells(each, own)
            rows.append([method, false, _rate(each, days), *cells, *_cells(each[EQUAL], own)])
        show_lines([head, *rows])
        typer.echo(_best(methods))
        if answers := [f"{title} {_number(first[key])}" for key, title in _ANSWERS.items() if key in first]:
            typer.echo(f"{OURS}: {'; '.join(answers)}")
    typer.echo("")


def _unit(measures: Measures) -> tuple[str, float]:
    asked = measures["given_false_alarms_a_day"] or 0.0
    return next((each for each in _UNITS.items() if asked * each[1] >= _RARE), ("month", _UNITS["month"]))


def _rate(measures: Measures, days: float) -> str:
    rate, ends = measures["false_alarms_a_day"], measures["false_alarms_a_day_interval"]
    if rate is None:
        return "-"
    mean, low, high = (f"{x:.2g}" if x < 10.0 else f"{x:.0f}" for x in (days * each for each in (rate, *ends)))
    return f"{mean} [{low}, {high}]"


def _cells(measures: Measures, own: tuple[Score, ...]) -> Iterator[str]:
    quiet, many = measures["quiet_time_in_alarm"], measures["incidents"]
    yield str(measures["false_alarms"])
    yield "-" if quiet is None else f"{100 * quiet:.1f}%"
    for key in ("found", "begun"):
        yield str(round((measures[key] or 0.0) * many))
    for score in own:
        yield "-" if measures[score.key] is None else f"{measures[score.key]:.3f}"


def _best(methods: dict[str, Measures]) -> str:
    title = score_of(methods).title
    values = [f"{method} {_number(value)}" for method, value in ranked_at_equal_rates(methods)]
    return f"= by {title}, best first: {', '.join(values)}"


def _number(value: float) -> str:
    return f"{value:.3g}"


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
    labelled, replayed = (summary.by_method(*each) for each in (("labelled", PRECISION), ("replayed", PRECISION, BOTH)))
    alarms = summary.by_method("quiet", "alarms")
    yield [
        "method",
        *(["labelled P@n", "@150", "top3", "F1"] * bool(labelled)),
        "steps 1/3",
        "replayed P@n",
        "1/3",
        "quiet",
    ]
    for method in dict.fromkeys([*labelled, *alarms, *replayed]):
        cells = [method]
        if labelled:
            measures = {each.measure: each.mean for each in summary.of("labelled") if each.method == method}
            cells.append(show_mean(labelled[method].estimate, 2))
            cells += [f"{measures[key]:.2f}" for key in ("hit_rate_150", "rc_top_3", "f1")]
        both, quiet = replayed.get(method), alarms.get(method)
        cells += [_numbers(summary, "injected", method), show_mean(both.estimate, 2) if both else "-"]
        share = "-" if quiet is None else f"{100 * quiet.mean:.0f} %"
        yield [*cells, _numbers(summary, "replayed", method), share]


def _numbers(summary: Summary, tier: str, method: str) -> str:
    """Means for one and for three sensors."""
    found = [summary.by_method(tier, PRECISION, str(n)).get(method) for n in NUMBERS]
    return "/".join("-" if each is None else f"{each.mean:.2f}" for each in found)


def _error_rates(summary: Summary) -> Iterator[str]:
    """The error rates of our method, given and measured."""
    alarms, wrong = summary.by_method("quiet", "alarms"), summary.by_method(CHANGED, "sure_and_wrong")
    if OURS in alarms:
        shown = _counted(alarms[OURS])
        yield f"alarms: {shown} of quiet stretches of {QUIET} windows; at most {100 * ALPHA:g} % are meant"
    if OURS in wrong:
        yield f"confident and wrong: {_counted(wrong[OURS])} of the confident answers to steps and replays"


def _counted(share: Number) -> str:
    if share.interval is None:
        return "0 of 0"
    percent, low, high = (100 * x for x in (share.mean, *share.interval))
    return f"{share.happened} of {share.incidents}, {percent:.1f} % [{low:.1f}, {high:.1f}],"
