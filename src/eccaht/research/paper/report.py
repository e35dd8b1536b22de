"""The report: every claim with our number and verdict, every figure with its setting, command and table."""

import csv
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np

from eccaht.base.files import replacing
from eccaht.base.presentation.document import (
    Badge,
    Block,
    Code,
    Grid,
    Heading,
    Items,
    Link,
    Paragraph,
    Picture,
    Piece,
    Text,
    html,
    markdown,
)
from eccaht.research.experiments.looks import shown_name
from eccaht.research.experiments.tables import from_rows, save_table
from eccaht.research.paper import storage
from eccaht.research.paper.catalogue import EXPERIMENTS
from eccaht.research.paper.claims import CLAIMS, HOW_DECIDED
from eccaht.research.paper.experiment import Experiment
from eccaht.research.paper.results import Results
from eccaht.research.paper.verdicts import Claim, Measure, Verdict, Word, command, short
from eccaht.version import __version__

TITLE = "Correlation-aware anomaly search: the paper's claims, run again"
_KINDS = {"holds": "yes", "does not hold": "no", "partly": "partly"}  # the rest is grey
_SPELT = {"hds": "HDS", "ttts-challenger": "TTTS-Challenger", "wadi": "WaDi"}
FILES = ("report.html", "report.md", "claims/verdicts.csv", "claims/runs.csv")
Judged = list[tuple[Claim, Verdict]]


def write_report(directory: Path, *, note: Callable[[str], object] = lambda _: None) -> list[Path]:
    """Write report.html, report.md and the numbers behind the verdicts; return the files, the page first.

    note: called with a text for each thing that is left out, and why.
    """
    results, refused = _load(directory)
    for id, why in refused.items() if results else ():
        note(f"{id} is left out: {why}")
    if not results:
        why = f" ({next(iter(refused.values()))})" if refused else ""
        raise ValueError(f"no results in {directory}{why}: run 'eccaht reproduce all --out {directory}' first")
    judged = [(claim, claim.verdict(results, str(directory))) for claim in CLAIMS]
    tables = _save_numbers(judged, directory)
    blocks = [*_opening(results, refused, judged), *_claims(judged, results, directory), *_figures(results, directory)]
    pages = {"report.html": html(TITLE, blocks), "report.md": markdown(TITLE, blocks, directory)}
    for name, page in pages.items():
        with replacing(directory / name) as file:
            file.write(page.encode())
    return [*(directory / name for name in pages), *tables]


def _load(directory: Path) -> tuple[dict[str, Results], dict[str, str]]:
    """The experiments that are complete, in the order of the catalogue, and why others are not."""
    results, refused = {}, {}
    for id in EXPERIMENTS:
        if (directory / id).is_dir():
            try:
                results[id] = storage.load(directory, id)
                for name in results[id].experiment.tables:
                    if not (directory / id / name).exists():
                        raise ValueError(f"{id} has no {name}: run 'eccaht reproduce {id} --out {directory}' again")
            except ValueError as error:
                results.pop(id, None)
                refused[id] = str(error)
    return results, refused


def _save_numbers(judged: Judged, directory: Path) -> list[Path]:
    """verdicts.csv: each number with its interval; runs.csv: the values of the runs behind it."""
    verdicts, runs = [], []
    for claim, verdict in judged:
        for part in verdict.measures:
            low, high = part.interval or (np.nan, np.nan)
            row = {"claim": claim.id, "verdict": verdict.sentence, "number": part.name, "value": float(part.value)}
            row |= {"low": low, "high": high, "speaks_for_it": part.answer, "note": part.note}
            verdicts.append(row)
            values = enumerate(part.sample)
            runs += [{"claim": claim.id, "number": part.name, "run": run, "value": value} for run, value in values]
    home = directory / "claims"
    home.mkdir(exist_ok=True)
    numbers = from_rows(verdicts, ("claim", "verdict", "number", "value", "low", "high", "speaks_for_it", "note"))
    single = from_rows(runs, ("claim", "number", "run", "value"))
    return [save_table(numbers, home / "verdicts.csv"), save_table(single, home / "runs.csv")]


def _opening(results: Mapping[str, Results], refused: Mapping[str, str], judged: Judged) -> Iterator[Block]:
    runs = sorted({found.runs for found in results.values() if found.experiment.compares})
    seeds = sorted({found.seed for found in results.values()})
    many = f"{' and '.join(map(str, runs))} runs of each policy, " if runs else ""
    yield Paragraph(
        f"{len(results)} of {len(EXPERIMENTS)} experiments, {many}seed {' and '.join(map(str, seeds))}, "
        f"eccaht {__version__}. Every verdict below is computed from the tables beside this page."
    )
    if refused:
        yield Paragraph(f"{len(refused)} experiments are left out:")
        yield Items([f"{id}: {reason}" for id, reason in refused.items()])
    yield Heading("Verdicts", "verdicts")
    count = Counter[str](verdict.word for _, verdict in judged)
    summary = ", ".join(f"{word} {count[word]}" for word in get_args(Word) if count[word])
    yield Paragraph(f"Of {len(judged)} claims: {summary}.")
    rows: list[list[Text]] = []
    for claim, verdict in sorted(judged, key=lambda pair: pair[1].word == "not run"):  # what was run first
        shown = "\n".join(map(str, _deciding(verdict))) or "-"
        rows.append([Link(claim.text, f"#claim-{claim.id}"), shown, _badge(verdict)])
    caption = "What the paper claims, the first number for and against it with its 95 % interval, and what follows"
    yield Grid(caption, ("Claim", "Our number", "Verdict"), rows, kind="claims")
    tables = (Link("verdicts.csv", "claims/verdicts.csv"), " and ", Link("runs.csv", "claims/runs.csv"))
    yield Paragraph(["All numbers with every digit, and the values of the single runs behind them: ", *tables, "."])
    yield Heading("How it was decided", "decided")
    yield Paragraph(HOW_DECIDED)


def _claims(judged: Judged, results: Mapping[str, Results], directory: Path) -> Iterator[Block]:
    yield Heading("The claims one by one", "claims")
    for claim, verdict in judged:
        name = _SPELT.get(claim.id) or claim.id.replace("-", " ").capitalize()
        yield Heading(name, f"claim-{claim.id}", 3)
        yield Paragraph(claim.text, label="The paper")
        yield Paragraph(claim.where, label="Where")
        yield Paragraph(claim.criterion, label="Criterion")
        yield Paragraph([_badge(verdict)], label="Verdict")
        yield Paragraph(Code(command(claim.experiments, str(directory))), label="Command")
        if verdict.measures:
            yield Items([str(part) for part in verdict.measures])
        if verdict.traced_to:
            yield Paragraph(_joined([Link(path, path) for path in verdict.traced_to]), label="Numbers from")
        shown = [Link(id, f"#{id}") for id in claim.experiments if id in results]
        if shown:
            yield Paragraph(_joined(shown), label="Shown in")


def _deciding(verdict: Verdict) -> list[Measure]:
    """The first number for the claim and the first against it; where there is none, the first of all."""
    first = {part.answer: part for part in reversed(verdict.measures)}
    return [first[answer] for answer in ("yes", "no") if answer in first] or list(verdict.measures[:1])


def _badge(verdict: Verdict) -> Badge:
    """The verdict in colour; what would have to be run stands beside it."""
    words = verdict.word if verdict.word == "not run" else verdict.sentence
    return Badge(words, _KINDS.get(verdict.word, "open"))


def _figures(results: Mapping[str, Results], directory: Path) -> Iterator[Block]:
    yield Heading("The figures", "figures")
    for id, found in results.items():
        experiment = found.experiment
        yield Heading(f"{id}: {experiment.title}", id, 3)
        words = setting_in_words(experiment)
        if experiment.policies:
            words += f" Policies: {', '.join(map(shown_name, experiment.policies))}."
        if found.cells:
            words += (
                f" {found.runs} runs of {'' if experiment.compares else 'at most '}{experiment.horizon} measurements."
            )
        picture = directory / id / f"{id}.png"
        if picture.exists():
            yield Picture(picture, f"{id}: {experiment.title}", words)
        else:
            yield Paragraph(words)
        options = ["--out", str(directory)]
        options += ["--runs", str(found.runs // experiment.repeats(1))] if found.cells else []
        options += ["--seed", str(found.seed)] if found.seed else []
        yield Paragraph(Code(shlex.join(["eccaht", "reproduce", id, *options])), label="Again")
        names = (*experiment.tables, f"{id}.pdf", "spec.json")
        files = [Link(name, f"{id}/{name}") for name in names if (directory / id / name).exists()]
        yield Paragraph(_joined(files), label="Files")
        if "summary.csv" in experiment.tables:
            yield _summary(directory / id / "summary.csv", experiment)


def setting_in_words(experiment: Experiment) -> str:
    problems = experiment.settings
    sizes = {setting.covariance().size for setting in problems}
    shapes = {
        " ".join([s.family.replace("_", " "), *(f"{k} {_plain(v)}" for k, v in s.arguments.items() if k != "K")])
        for s in problems
    }
    noise = " and ".join(sorted(shapes)) if len(shapes) <= 2 else ", ".join(dict.fromkeys(s.family for s in problems))
    said = [f"{_range(sizes)} streams with noise {noise.replace('_', ' ')}"]
    if experiment.kind != "table":
        said.append(f"{_range({s.n_anomalies for s in problems})} of them anomalous")
        said.append(f"shift {_range({s.shift for s in problems})}, budget {_range({s.budget for s in problems})}")
    if experiment.x_label and experiment.kind != "curves":
        said.append(f"{experiment.x_label} {_range({s.x for s in problems})}")
    ridges = {s.options["regularize"] for s in problems if s.options.get("regularize")}
    if ridges:
        part = "the policies" if len(problems) == 1 else "in the second setting the policies"
        said.append(f"{part} believe S + {_range(ridges)} I")
    return "; ".join(said) + "."


def _summary(path: Path, experiment: Experiment) -> Grid:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if not experiment.compares:
        header = [name.replace("_", " ") for name in rows[0]]
        caption = "Effective ranks" if experiment.kind == "table" else experiment.title
        return Grid(caption, header, [[_number(cell) for cell in row.values()] for row in rows])
    caption = "Measurements to F1 >= 0.95 and F1 at the end, mean [95 % interval]; >= where runs were cut off"
    several = len(experiment.settings) > 1
    header = ["setting: policy" if several else "policy", "first", "for good", "final F1", "cut off first / for good"]
    lines: list[list[Text]] = []
    for row in rows:
        cells: list[Text] = [_mean(row, "first"), _mean(row, "good"), _mean(row, "final_f1", places=3)]
        lost = f"{row['first_censored']} / {row['good_censored']} of {row['runs']}"
        place = f"{row['label']}" + (f", {float(row['x']):.4g}" if experiment.kind == "rank" and row["x"] else "")
        lines.append([f"{place}: {row['policy']}" if several else row["policy"], *cells, lost])
    return Grid(caption, header, lines)


def _mean(row: Mapping[str, str], what: str, places: int | None = None) -> str:
    mean, *ends = (_number(row[f"{what}_{part}"], places) for part in ("mean", "low", "high"))
    bound = ">= " if int(row.get(f"{what}_censored") or 0) else ""
    return f"{bound}{mean}" + (f" [{', '.join(ends)}]" if all(ends) else "")


def _number(text: str, places: int | None = None) -> str:
    try:
        return short(float(text)) if places is None else f"{float(text):.{places}f}"
    except ValueError:
        return text


def _plain(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _range(values: set[int] | set[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _joined(links: Sequence[Link]) -> Sequence[Piece]:
    return [piece for link in links for piece in (", ", link)][1:]
