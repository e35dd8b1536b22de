"""Measures of alarms are those of their definitions, and layouts give the incidents that were written."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eccaht.base.statistics import poisson_interval
from eccaht.research.datasets.labelled import CaseReadings, Entity, find_collections
from eccaht.research.experiments import detection
from eccaht.research.experiments.detection import (
    DETECTORS,
    Alarms,
    Labelled,
    Ours,
    Task,
    Watched,
    level_of,
    load_task,
    outcome_of,
    outcomes_of,
    watch,
)
from eccaht.research.experiments.detection_outcomes import (
    EQUAL,
    Measures,
    Outcome,
    measures,
    nab_points,
    nab_score,
    ranked_at_equal_rates,
    summarise_detection,
)
from eccaht.research.experiments.incidents_cases import OURS
from eccaht.research.experiments.rivals import Flags
from tests.research.datasets.labelled_format import find_entities, write_collection
from tests.research.datasets.testbed_format import (
    SENSORS,
    plant_rows,
    write_batadal,
    write_hvac,
    write_skab,
    write_sockshop,
    write_tep,
)

SHARED = Path(__file__).parents[4] / "shared" / "data"


def outcomes(directory: Path, alarms: str) -> list[Outcome]:
    """Of all recordings below a directory, by a method that knows the truth or has no alarm."""
    found = []
    for testbed in find_collections(directory).entities:
        task = load_task(testbed)
        for recording in task.recordings:
            on = inside(recording) if alarms == "perfect" else np.zeros(len(recording.readings.rows), dtype=bool)
            found.append(outcome_of(testbed, task, recording, alarms, Alarms.where(on)))
    return found


def inside(recording: Labelled) -> Flags:
    on = np.zeros(len(recording.readings.rows), dtype=bool)
    for start, stop in recording.incidents:
        on[start:stop] = True
    return on


# -- what is watched -----------------------------------------------------------------------------------


def test_batadal_is_read_with_ends_included_and_a_history_as_coarse_as_the_recording(tmp_path: Path) -> None:
    (testbed,) = find_collections(write_batadal(tmp_path)).entities
    task = load_task(testbed)
    (recording,) = task.recordings
    assert recording.incidents == ((50, 70), (120, 130))
    assert (task.rate, task.rows_a_day) == (1 / 720, 24.0)
    np.testing.assert_array_equal(task.history.rows, task.history.rows.round(2))
    (tmp_path / "truth.json").write_text('{"attacks": [{"start": "2030-01-01", "stop": "2030-01-02"}]}')
    with pytest.raises(ValueError, match="none of the incidents"):
        load_task(testbed)


def test_skab_is_learnt_from_400_rows_and_scored_on_the_rest(tmp_path: Path) -> None:
    testbed = find_collections(write_skab(tmp_path)).entities[0]
    task = load_task(testbed)
    (recording,) = task.recordings
    assert task.history.rows.shape == (400, 4)
    assert task.history.names == ("level", "flow", "pressure", "idle")
    assert (recording.incidents, recording.changes) == (((50, 120),), (50, 120))
    assert (task.rate, task.rows_a_day) == (1 / 1200, 86_400.0)


def test_faults_of_tep_begin_with_row_161(tmp_path: Path) -> None:
    (testbed,) = find_collections(write_tep(tmp_path)).entities
    task = load_task(testbed)
    assert [each.incidents for each in task.recordings] == [(), ((160, 300),), ((160, 300),)]
    assert (task.rate, task.rows_a_day) == (1 / 1500, 480.0)


def test_cases_of_sock_shop_last_from_their_onset_to_the_end(tmp_path: Path) -> None:
    first, second = map(load_task, find_collections(write_sockshop(tmp_path)).entities)
    for task in (first, second):
        (recording,) = task.recordings
        assert (recording.incidents, recording.altered) == (((60, 200),), (("pressure",),))
        assert (task.rate, task.rows_a_day, len(task.history.rows)) == (1 / 720, 86_400.0, 240)


def test_days_with_faults_are_incidents(tmp_path: Path) -> None:
    (testbed,) = find_collections(write_hvac(tmp_path)).entities
    task = load_task(testbed)
    assert task.recordings[0].incidents == ((48, 96), (144, 192))
    assert (task.rate, task.rows_a_day) == (1 / 720, 48.0)
    perfect = measures(outcomes(tmp_path, "perfect"))
    assert [perfect[key] for key in ("fault_days_found", "alarms", "alarms_on_quiet_days")] == [2, 2, 0]


def test_servers_have_one_false_alarm_a_day(tmp_path: Path) -> None:
    rates = {}
    for name in ("asd", "smd"):
        (entity,) = find_entities(write_collection(tmp_path / name, ["a"]))
        task = load_task(entity)
        rates[name] = task.rate * 1440
        assert task.recordings[0].incidents == ((10, 40), (50, 60))
    assert rates == {"asd": 5.0, "smd": 1.0}


# -- measures ------------------------------------------------------------------------------------------


def test_the_score_of_batadal_is_1_for_a_perfect_method_and_a_quarter_for_none(tmp_path: Path) -> None:
    write_batadal(tmp_path)
    perfect, none = (measures(outcomes(tmp_path, alarms)) for alarms in ("perfect", "none"))
    assert [perfect[key] for key in ("S", "S_TTD", "S_CM", "TPR", "TNR")] == [1.0] * 5
    assert [none[key] for key in ("S", "S_TTD", "S_CM", "TPR", "TNR")] == [0.25, 0.0, 0.5, 0.0, 1.0]


def judged(kind: str, incidents: list[tuple[int, int]], spans: list[tuple[int, int]], rows: int = 200) -> Outcome:
    """Alarms that are on in `spans` of a recording."""
    on = np.zeros(rows, dtype=bool)
    for start, stop in spans:
        on[start:stop] = True
    readings = CaseReadings(np.zeros((rows, 1)), ("a",))
    task = Task(kind, readings, 0.01, 50.0, ())  # type: ignore[arg-type]
    testbed = Entity("c", "e", task.kind, Path("h"), ())
    return outcome_of(testbed, task, Labelled("r", readings, tuple(incidents)), "m", Alarms.where(on))


def test_measures_of_servers_by_hand() -> None:
    """Alarms on in 10-20, 38-60, 110-113; incidents 40-50, 55-65, 100-120, 150-160 of 200 rows, 150 of them quiet."""
    outcome = judged("servers", [(40, 50), (55, 65), (100, 120), (150, 160)], [(10, 20), (38, 60), (110, 113)])
    assert outcome.delays == (0, 0, 10, None)
    assert outcome.begun == (False, False, True, False)
    assert measures([outcome]) == {
        "incidents": 4,
        "found": 0.75,
        "begun": 0.25,
        "median_delay_rows": 0.0,
        "false_alarms": 2,
        "given_false_alarms": 1.5,
        "quiet_days": 3.0,
        "false_alarms_a_day": 2 / (150 / 50),
        "false_alarms_a_day_interval": [end / 3.0 for end in poisson_interval(2)],
        "false_alarms_per_1000_rows": pytest.approx(2 / 0.15),
        "quiet_time_in_alarm": (10 + 2 + 5) / 150,
        "given_false_alarms_a_day": pytest.approx(0.5),
    }
    quiet = measures([judged("servers", [], [])])
    assert (quiet["found"], quiet["median_delay_rows"], quiet["false_alarms_a_day"]) == (None, None, 0.0)


def test_batadal_by_hand() -> None:
    """Found after 5 of 10 hours and never; 5 of 20 attacked hours and 175 of 180 others are right."""
    found = measures([judged("batadal", [(40, 50), (100, 110)], [(45, 55)])])
    assert (found["S_TTD"], found["TPR"], found["TNR"]) == (0.25, 0.25, pytest.approx(175 / 180))
    assert found["S"] == pytest.approx((0.25 + (0.25 + 175 / 180) / 2) / 2)


def test_skab_pools_rows_over_files() -> None:
    """30 of 40 anomalous rows in alarm, 10 of 360 others: F1 = 30/(30 + 20/2)."""
    files = [judged("skab", [(50, 70)], [(40, 70)]), judged("skab", [(50, 70)], [(60, 70)])]
    found = measures(files)
    assert (found["f1"], found["missed_alarm_rate"], found["files_found"]) == (0.75, 0.25, 2)
    assert found["false_alarm_rate"] == 10 / 360
    assert found["nab"] is None  # no change point


def test_tep_has_a_share_for_each_fault() -> None:
    fault = replace(judged("tep", [(160, 200)], [(170, 190)]), recording="fault-01")
    found = measures([judged("tep", [], [(0, 20)]), fault, replace(fault, recording="fault-02", on_in_incidents=0)])
    assert found["flagged"] == {"fault-01": 0.5, "fault-02": 0.0}
    assert (found["flagged_mean"], found["flagged_normal_test"]) == (0.25, 0.1)


def test_nab_is_100_for_a_perfect_method_and_0_for_none(tmp_path: Path) -> None:
    write_skab(tmp_path)
    perfect, none = (measures(outcomes(tmp_path, alarms)) for alarms in ("perfect", "none"))
    assert (perfect["nab"], perfect["f1"], perfect["files_found"]) == (pytest.approx(100.0), 1.0, 2)
    assert (none["nab"], none["f1"]) == (0.0, 0.0)


def test_nab_by_hand() -> None:
    changes = np.array([100.0, 300.0])
    assert nab_points(np.array([100.0, 110.0, 300.0]), changes) == 2.0  # what comes second in a window is free
    assert nab_points(np.array([130.0]), changes) == pytest.approx(0.445 - 1.0)
    assert nab_points(np.array([160.0]), changes) == pytest.approx(-0.11 - 1.0)
    assert nab_points(np.array([99.0, 161.0]), changes) == pytest.approx(-2 * 0.11 - 2.0)
    assert nab_points(np.array([130.0]), np.empty(0)) == -0.11
    overlapping = np.array([100.0, 130.0])  # the second window begins where the first has ended
    assert nab_points(np.array([100.0, 131.0, 175.0]), overlapping) == pytest.approx(1.0 + 0.445)
    assert nab_score(-2.0, 2) == 0.0
    assert nab_score(2.0, 2) == 100.0


# -- equally many false alarms -------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 3, 8])
def test_the_level_is_the_lowest_above_which_no_level_has_more_false_alarms(most: int) -> None:
    """As found by trying them all, on heights with ties and with incidents."""
    rng = np.random.default_rng(most)
    heights = [rng.integers(0, 30, 80) + 40.0 * (rng.random(80) < 0.1) for _ in range(3)]
    inside = [np.arange(80) >= 60 - 10 * k for k in range(3)]

    def false_alarms(level: float) -> int:
        begins = [Alarms.where(height > level).begins for height in heights]
        return sum(int((~here[each]).sum()) for each, here in zip(begins, inside, strict=True))

    levels = np.unique([-np.inf, *np.concatenate(heights)])
    too_many = [level for level in levels if false_alarms(level) > most]
    expected = min(level for level in levels if level > max(too_many))
    assert level_of(zip(heights, inside, strict=True), most) == expected


def test_a_level_that_cannot_have_so_many_has_the_most_there_are() -> None:
    height = np.array([0.0, 5.0, 0.0, 4.0, 0.0, 4.0, 3.0])
    assert Alarms.where(height > level_of([(height, np.zeros(7, dtype=bool))], 9)).begins.size == 3
    assert level_of([(height, np.ones(7, dtype=bool))], 9) == 0.0


def test_a_chart_has_as_many_false_alarms_as_ours_in_the_whole_collection(tmp_path: Path) -> None:
    """Ours has two in the first recording and none in the second; the chart has two in the second first."""
    (testbed,) = find_collections(write_tep(tmp_path)).entities
    heights = np.full((2, 200), -3.0)
    heights[0, [20, 60]], heights[1, [30, 50]], heights[1, 150] = -2.0, -1.0, 0.5
    recordings = [replace(blank(), name=str(k), incidents=((100, 200),) * k) for k in range(2)]
    spans = np.zeros((2, 200), dtype=bool)
    spans[0, [10, 40]] = True
    watched = []
    for k, recording in enumerate(recordings):
        task = Task("servers", recording.readings, 0.01, 50.0, ())
        for name, alarms in (
            (OURS, Alarms.where(spans[k])),
            ("chart", Alarms.where(heights[k] > 0.0, heights[k])),
        ):
            watched.append(Watched(outcome_of(testbed, task, recording, name, alarms), recording, alarms))
    (found,) = summarise_detection(outcomes_of(watched)).values()
    assert (found["chart"]["false_alarms"], found["chart"]["begun"]) == (0, 1.0)
    assert [found[name][EQUAL]["false_alarms"] for name in (OURS, "chart")] == [2, 2]
    assert ranked_at_equal_rates(found) == [("chart", 1.0), (OURS, 0.0)]


def blank() -> Labelled:
    return Labelled("r", CaseReadings(np.zeros((200, 1)), ("a",)), ())


# -- methods -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_all_find_what_breaks_a_correlation(tmp_path: Path) -> None:
    write_batadal(tmp_path / "batadal")
    write_skab(tmp_path / "skab")
    write_tep(tmp_path / "tep")
    write_sockshop(tmp_path / "shop")
    write_hvac(tmp_path / "air")
    found = watched_below(tmp_path)
    assert list(found) == ["air", "batadal", "shop", "skab", "tep"]
    assert all(list(methods) == list(DETECTORS) for methods in found.values())
    for name in ("eccaht", "T2", "MEWMA", "PCA-Q", "ridge"):
        assert found["batadal"][name]["S"] > 0.85
        assert found["skab"][name]["files_found"] == 2
        assert found["tep"][name]["flagged"]["fault-01"] > 0.95
        assert found["tep"][name]["flagged"]["fault-02"] < 0.2
        assert found["air"][name]["fault_days_found"] == 2
        assert found["shop"][name]["begun"] == 1.0
    assert (found["batadal"][OURS]["altered_at_n"], found["batadal"][OURS]["first_place"]) == (1.0, 1.0)
    assert (found["skab"][OURS]["dated_within_60s"], found["skab"][OURS]["dated_at_end"]) == (2, 0)
    assert "first_place" not in found["batadal"]["T2"]
    shop = found["shop"][OURS]
    assert (shop["root_in_1"], shop["root_in_headline"], shop["dated_within_5s"]) == (1.0, 1.0, 2)


def watched_below(directory: Path) -> dict[str, dict[str, Measures]]:
    return summarise_detection(
        outcomes_of([each for bed in find_collections(directory).entities for each in watch(bed)])
    )


def test_alarms_of_windows_are_alarms_of_their_rows() -> None:
    """Rows of 10 s in windows of 30 s: an alarm is on in all rows of a window, and the rate is that of rows."""
    rng = np.random.default_rng(0)
    times = np.datetime64("2024-01-01T00:00:00", "s") + 10 * np.arange(3000)
    history, new = (CaseReadings(plant_rows(3000, seed=seed)[:, :3], SENSORS[:3], times) for seed in (0, 1))
    ours = Ours(history, 1 / 5000)
    assert ours.model.seconds == 30.0
    assert ours.every == pytest.approx(5000 / 3)
    new.rows[1200:1320, 1] += 8.0 + rng.standard_normal(120)
    alarms = ours(new)
    assert alarms.flagged[1200:1320].all()
    assert 1200 in alarms.begins
    assert (alarms.begins % 3 == 0).all()
    assert (ours.identify(new)[1], ours.ranked(new, 1200, 1320)[0]) == (1200, "flow")


def test_a_method_that_answers_for_other_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (testbed,) = find_collections(write_tep(tmp_path)).entities
    short = {"short": lambda *_: lambda _: Alarms.where(np.zeros(3, dtype=bool))}
    monkeypatch.setattr(detection, "DETECTORS", short)
    with pytest.raises(ValueError, match="short must say of each row"):
        watch(testbed)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the public recordings are not beside the repository")
@pytest.mark.parametrize(
    ("collection", "measure", "value"), [("batadal", "S", 0.865), ("skab", "f1", 0.638), ("tep", "flagged_mean", 0.697)]
)
def test_t2_on_public_recordings_is_what_a_separate_program_measured(
    collection: str, measure: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detection, "DETECTORS", {"T2": DETECTORS["T2"]})
    if not (SHARED / collection).is_dir():
        pytest.skip(f"{collection} is not among the public recordings")
    found = watched_below(SHARED / collection)[collection]
    assert found["T2"][measure] == pytest.approx(value, abs=2e-3)
