"""`eccaht incidents`: the bench of real incidents, our method beside its rivals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import cpu_count  # type: ignore[import-untyped]

from eccaht.cli.options import Jobs, Json, Seed, option
from eccaht.cli.output import deliver, note, show_lines, show_mean, shown_progress
from eccaht.cli.real_data import output_directory
from eccaht.datasets.labelled import Entity, find_entities
from eccaht.datasets.water import load_wntr
from eccaht.experiments import incidents as bench
from eccaht.experiments.incidents import Finished, Piece, Settings
from eccaht.experiments.incidents_cases import NUMBERS, QUIET, World
from eccaht.experiments.incidents_methods import PROMISE, check_methods
from eccaht.experiments.incidents_summary import BOTH, OUR_METHOD, Count, Summary, as_entry, summarise, summary_table
from eccaht.experiments.incidents_trials import trials_table
from eccaht.experiments.tables import save_table
from eccaht.statistics import Estimate

_FILES = ("summary.csv", "trials.csv", "precision.pdf", "precision.png")
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
    """Count how often the wrong sensors of known incidents are named.

    Four kinds of incidents: labelled ones; steps and replayed readings put into the last third of the training rows,
    after a fit on the first two; and quiet stretches. All methods have their default options. A run that was
    interrupted goes on where it was if the same command is given again.
    """
    chosen, notes = check_methods(None if methods is None else [name.strip() for name in methods.split(",")])
    settings = Settings(runs, seed, chosen)
    recorded = find_entities(directory)
    inputs = {"DIR": [path for each in recorded for path in (each.train, each.test, each.truth)]}
    entities: list[Entity | World] = [*recorded]
    if water:
        load_wntr()
        entities.append(World(seed=seed))
    with output_directory(out, _FILES, inputs) as place:
        for line in notes:
            note(line)
        finished = Finished(place / _UNFINISHED, settings)
        with shown_progress() as bar:
            bar.total(len(bench.jobs_of(entities)), "parts of entities")
            outcome = bench.run(entities, settings, jobs=jobs or cpu_count(), progress=bar.advance, finished=finished)
        summaries = summarise(outcome.trials, seed=seed)
        deliver(
            [_save(place, outcome, summaries, finished)],
            tell=lambda: _show(summaries, outcome),
            document=lambda files: _document(summaries, outcome, settings, notes, files),
            as_json=as_json,
        )


def _save(place: Path, outcome: Piece, summaries: Mapping[str, Summary], finished: Finished) -> Iterator[Path]:
    from eccaht.experiments.incidents_figure import draw
    from eccaht.presentation.style import saving_figure

    yield save_table(summary_table(summaries), place / "summary.csv")
    yield save_table(trials_table(outcome.trials), place / "trials.csv")
    yield from saving_figure(draw(summaries), place / "precision")
    finished.clear()


def _document(
    summaries: Mapping[str, Summary], outcome: Piece, settings: Settings, notes: list[str], files: list[str]
) -> dict[str, Any]:
    return {
        "collections": {name: as_entry(summary) for name, summary in summaries.items()},
        "settings": asdict(settings),
        "left_out": outcome.left_out,
        "notes": notes,
        "files": files,
    }


def _show(summaries: Mapping[str, Summary], outcome: Piece) -> None:
    typer.echo("P@n: share of the n wrong sensors among the first n, mean [95 % interval over incidents]")
    typer.echo("@150: among the first 1.5 n; top3: any among the first 3; F1: of those named with nothing told")
    typer.echo("steps, replayed: of one and of three sensors; quiet: stretches in which something was named")
    for name, summary in summaries.items():
        entities = "1 entity" if summary.entities == 1 else f"{summary.entities} entities"
        typer.echo(f"\n{name}: {entities}; {', '.join(f'{many} {tier}' for tier, many in summary.incidents.items())}")
        show_lines(list(_lines(summary)))
        for line in _promises(summary):
            typer.echo(line)
    if outcome.left_out:
        typer.echo("\nLeft out:")
    for line in outcome.left_out:
        typer.echo(f"  {line}")


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


def _promises(summary: Summary) -> Iterator[str]:
    """What our method promises, and what was counted."""
    alarms, sure = summary.alarms.get(OUR_METHOD), summary.sure.get(OUR_METHOD)
    if alarms is not None:
        yield f"alarms: {_counted(alarms)} of quiet stretches of {QUIET} windows; promised {100 * PROMISE:g} %"
    if sure is not None:
        yield f"sure and wrong: {_counted(sure)} of the sure answers to steps and replays"


def _counted(count: Count) -> str:
    if count.interval is None:
        return "0 of 0"
    share, low, high = (100 * x for x in (count.happened / count.trials, *count.interval))
    return f"{count.happened} of {count.trials}, {share:.1f} % [{low:.1f}, {high:.1f}],"
