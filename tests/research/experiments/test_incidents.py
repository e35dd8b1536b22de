"""The bench scores answers as defined, depends on nothing but its settings, and resumes."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from eccaht.plants.incident.drill import drill_history
from eccaht.research.datasets.labelled import CaseReadings, Entity
from eccaht.research.experiments import incidents_cases
from eccaht.research.experiments.incidents import CollectionSettings, jobs_of, run
from eccaht.research.experiments.incidents_cases import (
    METHODS,
    Judgement,
    LabelledCase,
    Tier,
    alarm_level,
    check_methods,
    spread,
)
from eccaht.research.experiments.incidents_summary import (
    MEASURES,
    ReplayTrial,
    as_entry,
    summarise,
    summary_table,
    trial_of,
)
from eccaht.research.experiments.rivals import BEFORE, z_max
from tests.research.datasets.labelled_format import find_entities, write_collection
from tests.research.experiments.incident_methods import z_scores

QUICK = CollectionSettings(runs=4, seed=3, methods=("z-mean", "z-max"))


@pytest.fixture(scope="module")
def entities(tmp_path_factory: pytest.TempPathFactory) -> list[Entity]:
    return find_entities(write_collection(tmp_path_factory.mktemp("data") / "small", ["a", "b"]))


# -- one answer ----------------------------------------------------------------------------------------


def judged(truth: tuple[int, ...], order: tuple[int, ...], named: set[int], tier: Tier = "labelled") -> ReplayTrial:
    readings = CaseReadings(np.zeros((50, 6)), tuple("abcdef"))
    return trial_of(
        "c", "e", LabelledCase(tier, 0, readings, 30, truth), "m", Judgement(order, frozenset(named), 0.5, True)
    )


def test_scores_are_those_of_the_definition() -> None:
    trial = judged((0, 1, 2), (5, 0, 4, 1, 2, 3), {5, 0})
    assert (trial.first, trial.named, trial.windows) == (("f", "a", "e"), ("f", "a"), 20)
    assert MEASURES["precision_at_n"](trial) == 1 / 3  # of f, a, e
    assert MEASURES["hit_rate_150"](trial) == 1.0  # the first ceil(4.5) = 5
    assert trial.top_3
    assert trial.f1 == 2 * 1 / (2 + 3)
    assert not trial.right
    assert judged((1,), (1, 0, 2, 3, 4, 5), {1}).right
    assert judged((4,), (0, 1, 2, 3, 4, 5), set()).f1 == 0.0
    assert not judged((4,), (0, 1, 2, 3, 4, 5), set()).top_3
    assert judged((), (0, 1, 2, 3, 4, 5), set(), "quiet").right


def test_rivals_alarm_in_one_of_twenty_stretches_of_their_history() -> None:
    rows = np.random.default_rng(0).standard_normal((20 * 60 + BEFORE, 3))
    score = z_max(rows)
    level = alarm_level(score, rows, 20)
    largest = [score(rows[:0], rows[start : start + 20]).max() for start in spread(BEFORE, len(rows), 20, 60)]
    assert np.sum(np.array(largest) > level) == 3  # of 60


# -- all of them ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_records_depend_neither_on_the_order_nor_on_other_methods(entities: list[Entity]) -> None:
    together = run(entities, QUICK)
    alone = run(entities[::-1], replace(QUICK, methods=("z-max",)))
    assert {trial for trial in together.trials if trial.method == "z-max"} == set(alone.trials)
    assert [trial.entity for trial in together.trials] == sorted(trial.entity for trial in together.trials)
    tiers = [trial.tier for trial in alone.trials if trial.entity == "a"]
    assert {tier: tiers.count(tier) for tier in tiers} == {"labelled": 2, "injected": 4, "replayed": 4, "quiet": 5}


def test_moved_metrics_are_found_and_replays_are_not(entities: list[Entity]) -> None:
    summary = summarise(run(entities, replace(QUICK, runs=40)).trials)["small"]
    entry = as_entry(summary)
    assert entry["labelled"]["z-mean"]["precision_at_n"] == 1.0
    assert entry["injected"]["z-mean"]["1"] > 0.9
    precision = summary.of("replayed", "precision_at_n")
    (replayed,) = (each for each in precision if (each.method, each.sensors) == ("z-mean", "both"))
    assert replayed.mean < 0.6  # chance is 2/7
    assert (summary.incidents["replayed"], replayed.incidents) == (80, 80)


def test_an_error_names_its_entity(tmp_path: Path) -> None:
    short = find_entities(write_collection(tmp_path / "short", ["s"], rows=200))
    with pytest.raises(ValueError, match="short/s: 200 training rows are too few"):
        run(short, QUICK)


def test_parts_are_those_that_the_labels_allow(entities: list[Entity]) -> None:
    testbed = Entity("tep", "faults", "tep", Path("normal.csv"), ())
    assert [job.name for job in jobs_of([entities[0], testbed])] == [
        "small/a labelled",
        "small/a last-third",
        "small/a detection",
        "tep/faults detection",
    ]
    assert [job.part for job in jobs_of([replace(entities[0], segments=())])] == ["last-third", "detection"]


# -- summaries -----------------------------------------------------------------------------------------


def fabricated() -> list[ReplayTrial]:
    order = (0, 1, 2, 3, 4, 5)
    trials = [judged((0, 3), order, {0}), judged((0, 1), order, {0, 1})]
    trials += [judged((0,), order, {0}, "replayed"), judged((1, 2, 3), order, {1}, "replayed")]
    trials += [replace(judged((0,), order, {1}, "injected"), confident=False)]
    trials += [judged((), order, named, "quiet") for named in (set(), {2}, set())]
    return [replace(trial, method="eccaht") for trial in trials]


def test_the_summary_counts() -> None:
    summary = summarise(fabricated())["c"]
    entry = as_entry(summary)
    assert entry["labelled"] == {
        "eccaht": {"precision_at_n": 0.75, "hit_rate_150": 0.75, "rc_top_3": 1.0, "f1": pytest.approx((2 / 3 + 1) / 2)}
    }
    assert entry["replayed"] == {"eccaht": {"1": 1.0, "3": pytest.approx(2 / 3)}}
    assert entry["injected"] == {"eccaht": {"1": 1.0}}
    assert entry["quiet"] == {"alarms": 1, "stretches": 3, "promise": 0.05}
    assert entry["sure_and_wrong"] == {"wrong": 1, "sure": 2}  # the injected one is wrong, but not confident
    right = {each.sensors: each for each in summary.of("replayed", "right_sets")}
    assert {sensors: each.mean for sensors, each in right.items()} == {"1": 1.0, "3": 0.0, "both": 0.5}
    assert right["1"].interval is None  # of a single incident
    low, high = summary.of("labelled", "precision_at_n")[0].interval or (0.0, 0.0)
    assert 0.5 <= low <= 0.75 <= high <= 1.0
    table = summary_table({"c": summary})
    (row,) = np.flatnonzero(table["measure"] == "sure_and_wrong")
    assert (table["mean"][row], table["incidents"][row]) == (0.5, 2)


def test_a_sure_answer_that_names_nothing_is_wrong_where_something_was_changed() -> None:
    trials = [replace(judged((0,), (0, 1, 2, 3, 4, 5), set(), "injected"), method="eccaht")]
    assert as_entry(summarise(trials)["c"])["sure_and_wrong"] == {"wrong": 1, "sure": 1}


# -- methods -------------------------------------------------------------------------------------------


def test_methods_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents_cases, "lacking", lambda name: "pyod" if name == "ecod" else None)
    chosen, notes = check_methods(None)
    assert chosen == tuple(name for name in METHODS if name != "ecod")
    assert notes == ["ecod is left out: it needs pyod, which is not installed"]
    with pytest.raises(ValueError, match="ecod needs pyod"):
        check_methods(["ecod"])
    with pytest.raises(ValueError, match="did you mean 'z-mean'"):
        check_methods(["z-men"])
    with pytest.raises(ValueError, match="each method once"):
        check_methods(["z-max", "z-max"])


def test_sensors_that_our_model_has_dropped_are_ranked_last() -> None:
    sensors, known = tuple("abcd"), np.array([0, 1, 3])
    judgement = incidents_cases.judgement_of(sensors, known, ["d", "c", "b"], ["d", "c"], 0.9, True)
    assert judgement == Judgement((3, 1, 0), frozenset({3}), 0.9, True)


def test_our_method_takes_part(entities: list[Entity], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents_cases, "our_judge", z_scores)
    names = ("eccaht", "z-mean")
    trials = run(entities[:1], CollectionSettings(runs=2, methods=names)).trials
    ours, rival = ([trial for trial in trials if trial.method == name] for name in names)
    assert [trial.hits for trial in ours] == [trial.hits for trial in rival]
    assert {trial.confident for trial in rival} == {None}


@pytest.mark.slow
def test_our_method_finds_moved_metrics_and_seldom_names_in_quiet_stretches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incidents_cases, "drill_history", partial(drill_history, runs=12))
    longer = find_entities(write_collection(tmp_path / "longer", ["a"], rows=1200))
    trials = run(longer, CollectionSettings(runs=2, methods=("eccaht",))).trials
    first, second = (trial for trial in trials if trial.tier == "labelled")
    assert first.hits == first.n
    assert set(second.truth) <= set(second.named)  # the windows before it belong to the first for the most part
    quiet = [trial for trial in trials if trial.tier == "quiet"]
    assert sum(bool(trial.named) for trial in quiet) <= 0.2 * len(quiet)
    assert all(trial.named for trial in trials if trial.tier == "injected")
