"""The page stands on its own, and every number on it is in a table beside it."""

import csv
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eccaht.base.presentation.document import Block, Code, Grid, Link, Paragraph, html, markdown
from eccaht.base.statistics import bca_interval
from eccaht.research.experiments.tables import save_table
from eccaht.research.paper import runner, storage
from eccaht.research.paper.catalogue import EXPERIMENTS
from eccaht.research.paper.claims import CLAIMS
from eccaht.research.paper.report import write_report
from eccaht.research.paper.results import Results
from eccaht.research.paper.verdicts import short
from eccaht.streams.policies import Policy

RUNS, HORIZON = 6, 40
SOME = ("fig5a", "fig5b", "fig3a", "table1", "stopping", "asymptotics")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


class Page(HTMLParser):
    """Tags in order, checked to be closed; links, ids, sources, text."""

    VOID = ("meta", "img", "br", "link", "wbr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.targets: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self.targets += [value or "" for name, value in attrs if name in ("href", "src")]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def store(directory: Path, id: str) -> None:
    """Runs as `eccaht reproduce` leaves them, made up."""
    experiment = replace(EXPERIMENTS[id], horizon=HORIZON)
    rng = np.random.default_rng(len(id))
    hits: dict[tuple[int, str], NDArray[Any]] = {}
    for k, policy in experiment.cells:
        if experiment.columns:
            first, second = rng.integers(0, 3, (2, experiment.repeats(RUNS)))
            stopping = id == "stopping"
            columns = (first, 20 + second, first - 1.0) if stopping else (9.0 + first, 50.0 + second, 7.0 + 0.0 * first)
            hits[k, policy] = np.stack(columns, axis=1)
            continue
        times = (8 if policy == "ecc-aht" else 20) + rng.integers(0, 9, RUNS)
        times[0] += HORIZON * (policy == "round-robin")  # a run that never gets there
        found = np.arange(1, HORIZON + 1) >= times[:, None]
        hits[k, policy] = (experiment.settings[k].n_anomalies * found).astype(np.int32)
    storage.prepare(directory, experiment, RUNS, 0)
    for cell, counts in hits.items():
        storage.save_cell(directory, experiment, cell, counts)
    for name, table in runner.tables(Results(experiment, 0, hits)).items():
        save_table(table, directory / id / name)
    if experiment.pictures:
        (directory / id / f"{id}.png").write_bytes(PNG)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("results")
    for id in SOME:
        store(directory, id)
    write_report(directory)
    return directory


@pytest.fixture
def page(results: Path) -> Page:
    return Page((results / "report.html").read_text())


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_page_parses_and_fetches_nothing(page: Page, results: Path) -> None:
    assert page.tags.count("h1") == 1
    assert {"nav", "main", "figure", "figcaption", "caption"} <= {*page.tags}
    assert "script" not in page.tags
    assert page.tags.count("img") == len(SOME) - 3
    assert len(page.ids) == len({*page.ids})
    for target in page.targets:
        if target.startswith("#"):
            assert target[1:] in page.ids
        elif not target.startswith("data:image/png;base64,"):
            assert (results / target).is_file(), target
    style = (results / "report.html").read_text().split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_both_pages_say_the_same(page: Page, results: Path) -> None:
    text = (results / "report.md").read_text()
    for claim in CLAIMS:
        assert claim.text in page.text
        assert claim.text in text
        assert claim.criterion in page.text
    for id in SOME:
        assert f"eccaht reproduce {id} --out {results}" in page.text
        assert f"eccaht reproduce {id} --out {results}" in text
    assert "![fig5a: Independent streams](fig5a/fig5a.png)" in text


def test_every_number_of_the_verdicts_is_in_the_tables(page: Page, results: Path) -> None:
    runs, verdicts = (rows(results / "claims" / name) for name in ("runs.csv", "verdicts.csv"))
    assert verdicts
    for row in verdicts:
        ends = ", ".join(
            short(float(row[end])) for end in ("low", "high") if row[end] != "nan"
        )  # none of what is computed
        assert f"{short(float(row['value']))}{f' [{ends}]' * bool(ends)} {row['number']}" in page.text
        sample = [float(r["value"]) for r in runs if (r["claim"], r["number"]) == (row["claim"], row["number"])]
        mean = np.exp(np.mean(np.log(sample))) if row["claim"] == "asymptotics" else np.mean(sample)  # factors
        assert float(row["value"]) == pytest.approx(mean)
    by_policy = {row["policy"]: float(row["first_mean"]) for row in rows(results / "fig3a" / "summary.csv")}
    (hds,) = (float(row["value"]) for row in verdicts if row["claim"] == "hds")
    assert hds == pytest.approx(by_policy["hds"] - by_policy["ecc-aht"])


def test_intervals_are_those_of_the_runs_listed(results: Path) -> None:
    (row,) = (row for row in rows(results / "claims" / "verdicts.csv") if row["claim"] == "hds")
    sample = [float(r["value"]) for r in rows(results / "claims" / "runs.csv") if r["claim"] == "hds"]
    low, high = bca_interval(sample, rng=np.random.default_rng(1))
    assert [float(row["low"]), float(row["high"])] == pytest.approx([low, high], abs=0.3)


def test_verdicts_are_worded(page: Page) -> None:
    assert "holds" in page.text
    assert "eccaht reproduce fig9 --out" in page.text
    assert "not tested here: it needs the WaDi data" in page.text
    assert ">= " in page.text  # a censored delay is a lower bound
    assert "1 / 1 of 6" in page.text


def test_a_report_runs_no_search_and_is_the_same_again(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (results / "report.html").read_bytes()
    monkeypatch.setattr(Policy, "ask", lambda *_: pytest.fail("a search was run"))
    write_report(results)
    assert (results / "report.html").read_bytes() == before


def test_what_was_not_run_is_not_tested_and_the_command_is_named(tmp_path: Path) -> None:
    store(tmp_path, "table1")
    text = Page(write_report(tmp_path)[0].read_text()).text
    for id in ("stopping", "asymptotics"):
        assert f"eccaht reproduce {id} --out {tmp_path}" in text
    assert {path.name for path in tmp_path.iterdir()} == {"table1", "claims", "report.html", "report.md"}


def test_the_tables_of_the_page_and_the_verdicts_have_the_same_numbers(page: Page, results: Path) -> None:
    counted = rows(results / "stopping" / "summary.csv")
    verdicts = [row for row in rows(results / "claims" / "verdicts.csv") if row["claim"] == "stopping"]
    shares = [float(row["value"]) for row in verdicts if "announced" in row["number"]]
    assert shares == [100 * float(row["share"]) for row in counted]
    slopes = rows(results / "asymptotics" / "summary.csv")
    verdicts = [row for row in rows(results / "claims" / "verdicts.csv") if row["claim"] == "asymptotics"]
    for end, column in {"value": "slope", "low": "slope_low", "high": "slope_high"}.items():
        assert [row[end] for row in verdicts] == [row[column] for row in slopes]
    assert "Wrong sets announced by the gap rule" in page.text


def test_an_experiment_that_is_not_complete_is_left_out_and_named(tmp_path: Path) -> None:
    for id in ("fig5a", "fig3a"):
        store(tmp_path, id)
    next((tmp_path / "fig3a" / "cells").iterdir()).unlink()
    page = Page(write_report(tmp_path)[0].read_text())
    assert "1 experiments are left out:fig3a: " in page.text.replace("\n", "")
    assert "parquet is missing" in page.text
    assert "eccaht reproduce fig3a --out" in page.text
    assert "fig5a" in page.ids


def test_nothing_to_report_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="run 'eccaht reproduce all"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_markup_in_texts_is_escaped(tmp_path: Path) -> None:
    odd = '<b>"&'
    blocks: list[Block] = [Paragraph([odd, Link(odd, odd), Code(odd)], label=odd), Grid(odd, [odd, odd], [[odd, odd]])]
    page = Page(html(odd, blocks))
    assert "b" not in page.tags
    assert page.targets == [odd]
    assert "&lt;b>" in markdown("title", blocks, tmp_path)
