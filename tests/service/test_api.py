"""What the service reports of the past and present agrees with the rows that it was given."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from eccaht.service.api import health
from eccaht.service.store import schema
from eccaht.service.store.store import insert
from tests.service import plants, stores
from tests.service.service import PLANT, Service, running

WINDOWS, WRONG = 100, slice(40, 55)
LAST = "2026-03-01T08:03:16+00:00"  # start of the last complete window
BASE = f"/api/plants/{PLANT}"


@pytest.fixture(scope="module", params=stores.KINDS)
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("api")
    with running(request.param, folder, options={"false_alarms": "1/2000w"}) as made:
        times, values = plants.recording(WINDOWS, wrong=WRONG)
        for k in range(0, len(times), 40):
            answer = made.client.post(
                f"{BASE}/rows",
                content="\n".join(map(json.dumps, documents(times[k : k + 40], values[k : k + 40]))),
                headers={**made.headers["ingest"], "Content-Type": "application/x-ndjson"},
            )
            assert answer.status_code == 200, answer.text
        yield made


def documents(times: Any, values: Any) -> list[dict[str, Any]]:
    texts = [f"{time}Z" for time in np.datetime_as_string(times, unit="us").tolist()]
    return [
        {"time": text, "values": dict(zip(plants.NAMES, row, strict=True))}
        for text, row in zip(texts, values.tolist(), strict=True)
    ]


def get(service: Service, path: str, **query: Any) -> Any:
    answer = service.client.get(path, params=query, headers=service.headers["read"])
    assert answer.status_code == 200, answer.text
    return answer.json()


def means() -> np.ndarray[Any, Any]:
    """The means of the complete windows, computed apart."""
    _, values = plants.recording(WINDOWS, wrong=WRONG)
    return np.asarray(values.reshape(WINDOWS, plants.ROWS, -1).mean(axis=1)[:-1])


def test_the_overview_counts_the_windows(service: Service) -> None:
    (row,) = get(service, "/api/plants")["plants"]
    assert (row["name"], row["windows"], row["sensors"]) == (PLANT, WINDOWS - 1, len(plants.NAMES))
    assert row["position"] == LAST
    whole = get(service, BASE)
    assert whole["sensors"] == list(plants.NAMES)
    assert "in 66.7 minutes (counted on 700 windows)" in whole["false_alarm_rate"]
    assert whole["still"] == row["still"] == {"stuck": [], "silent": [], "range": []}


def test_series_show_what_was_read(service: Service) -> None:
    found = get(service, f"{BASE}/series", sensor=["b", "d"], points=2000)
    assert len(found["time"]) == WINDOWS - 1
    for name in ("b", "d"):
        expected = means()[:, plants.NAMES.index(name)]
        np.testing.assert_allclose(found["series"][name]["value"], expected, rtol=1e-9)
        np.testing.assert_allclose(found["series"][name]["low"], expected, rtol=1e-9)


def test_the_band_holds_sound_sensors_and_not_the_wrong_one(service: Service) -> None:
    series = get(service, f"{BASE}/series", sensor=list(plants.NAMES), points=2000)["series"]
    inside = {
        name: np.mean(
            [low <= x <= high for low, x, high in zip(s["band_low"], s["value"], s["band_high"], strict=True)]
        )
        for name, s in series.items()
    }
    for name in ("a", "c", "d", "e"):
        assert inside[name] > 0.85  # 95 % in the long run, of 99 windows
    b = series["b"]
    wrong = [not b["band_low"][k] <= b["value"][k] <= b["band_high"][k] for k in range(WRONG.start, WRONG.stop)]
    assert all(wrong)


def test_bins_keep_the_extremes(service: Service) -> None:
    found = get(service, f"{BASE}/series", sensor="b", points=5)
    assert len(found["time"]) == 5
    column = means()[:, 1]
    assert min(found["series"]["b"]["low"]) == pytest.approx(column.min())
    assert max(found["series"]["b"]["high"]) == pytest.approx(column.max())
    whole, coarse = (get(service, f"{BASE}/evidence", points=points) for points in (2000, 7))
    assert len(whole["time"]) == WINDOWS - 1
    assert len(coarse["time"]) == 7
    assert max(coarse["evidence"]) == max(whole["evidence"]) > 0.0
    part = get(service, f"{BASE}/evidence", start=whole["time"][10], stop=whole["time"][20], points=2000)
    assert part["time"] == whole["time"][10:20]
    assert part["evidence"] == whole["evidence"][10:20]


def test_the_incident_names_the_wrong_sensor_and_says_why(service: Service) -> None:
    (row,) = get(service, f"{BASE}/incidents")["incidents"]
    assert row["named"][0] == "b"
    assert row["over"] is not None
    assert row["onset"] == "2026-03-01T08:01:20+00:00"
    whole = get(service, f"{BASE}/incidents/{row['number']}")
    assert whole["alarm"]["named"] == row["named"]
    assert [event["event"] for event in whole["course"]][-1] == "over"
    assert whole["why"][0].startswith("b left its usual range")
    assert [sensor["sensor"] for sensor in whole["answer"]["named"]] == ["b"]
    weights = whole["answer"]["named"][0]["difference"]["weights"]
    assert weights[0] == {"sensor": "b", "weight": 1.0}
    page = service.client.get(f"{BASE}/incidents/{row['number']}/report", headers=service.headers["read"])
    assert page.headers["content-disposition"].startswith("attachment")
    assert "of 5 sensors" in page.text


def test_a_reading_by_hand_settles_whether_a_sensor_is_wrong(service: Service) -> None:
    path = f"{BASE}/incidents/{get(service, f'{BASE}/incidents')['incidents'][0]['number']}"

    def answer(value: float, sensor: str = "b", status: int = 200) -> Any:
        body = {"sensor": sensor, "value": value, "noise": 0.1}
        posted = service.client.post(f"{path}/checks", json=body, headers=service.headers["operate"])
        assert posted.status_code == status, posted.text
        return get(service, path)["answer"]

    read = answer(10.0)["checked"][0]["read"]
    sound, wrong = answer(read), answer(10.0)
    assert "b" not in [each["sensor"] for each in sound["named"]]
    assert [(each["sensor"], each["wrong"]) for each in sound["checked"]] == [("b", False)]
    assert [each["sensor"] for each in wrong["named"]] == ["b"]
    assert wrong["checked"][0]["value"] == 10.0
    assert "by hand" in " ".join(get(service, path)["why"])
    assert get(service, path)["actions"][0]["document"]["sensor"] == "b"
    answer(1.0, "z", status=400)


def test_comments_are_shown_with_who_wrote_them(service: Service) -> None:
    number = get(service, f"{BASE}/incidents")["incidents"][0]["number"]
    path = f"{BASE}/incidents/{number}/comments"
    answer = service.client.post(path, json={"text": "a valve"}, headers=service.headers["operate"])
    assert answer.status_code == 200
    whole = get(service, f"{BASE}/incidents/{number}")
    assert [(each["who"], each["text"]) for each in whole["comments"]] == [("operate", "a valve")]
    assert whole["actions"][0]["action"] == "comment"
    unknown = service.client.post(
        f"{BASE}/incidents/999/comments", json={"text": "x"}, headers=service.headers["operate"]
    )
    assert unknown.status_code == 404


def test_events_come_in_pages(service: Service) -> None:
    whole = get(service, f"{BASE}/events", limit=500)
    numbers = [event["number"] for event in whole["events"]]
    assert numbers == sorted(numbers, reverse=True)
    first = get(service, f"{BASE}/events", limit=1)
    assert first["more"]
    rest = get(service, f"{BASE}/events", limit=500, before=first["events"][0]["number"])
    assert [*first["events"], *rest["events"]] == whole["events"]
    everywhere = get(service, "/api/events", limit=500)
    assert sorted(event["number"] for event in everywhere["events"]) == sorted(numbers)
    assert {event["event"] for event in get(service, f"{BASE}/events", kind="alarm")["events"]} == {"alarm"}


def read_on(service: Service, path: str, first: Any, **query: Any) -> list[Any]:
    """All events from an answer on, page by page."""
    found, answer = list(first["events"]), first
    while answer["next"] is not None:
        assert answer["more"]
        answer = get(service, path, before=answer["next"], **query)
        found += answer["events"]
    assert not answer["more"]
    return found


def test_pages_of_events_neither_lose_nor_repeat_one(service: Service) -> None:
    """Those of all plants have equal times as a rule: windows of all plants end together."""
    given = {"model": service.digest}
    names = [f"twin {k}" for k in range(1, 6)]
    time = 1_000_000_000_000_000
    row = {"time": time, "kind": "over", "document": get(service, f"{BASE}/events", limit=1)["events"][0]}
    made = [{**row, "plant": name, "number": 100 + k} for name in names for k in range(10)]
    try:
        for name in names:
            service.client.request("PUT", f"/api/plants/{name}", json=given, headers=service.headers["admin"])
        with service.store.begin() as connection:
            insert(connection, schema.events, [_event(row) for row in made])
        first = get(service, "/api/events", limit=7, kind="over")
        with service.store.begin() as connection:  # new ones come while one reads
            later = {**made[0], "time": 2 * time, "number": 200}
            insert(connection, schema.events, [_event(later)])
        found = [(e["plant"], e["number"]) for e in read_on(service, "/api/events", first, limit=7, kind="over")]
        assert len(found) == len(set(found))
        assert set(found) >= {(row["plant"], row["number"]) for row in made}
        assert (later["plant"], later["number"]) not in found
        times = get(service, "/api/events", before=time, kind="over", limit=500)["events"]
        assert not {event["plant"] for event in times} & set(names)
        one = f"/api/plants/{names[2]}/events"
        assert [e["number"] for e in read_on(service, one, get(service, one, limit=3), limit=3)] == [
            *range(109, 99, -1)
        ]
    finally:
        for name in names:
            service.client.request("DELETE", f"/api/plants/{name}", headers=service.headers["admin"])


def _event(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "document": {**row["document"], "number": row["number"]}}


def test_correlation_is_that_of_the_plant(service: Service) -> None:
    matrix = np.array(get(service, f"{BASE}/correlation", sensor=["b", "a"])["matrix"])
    shared = 1.5**2 / (1.0 + 1.5**2)
    np.testing.assert_allclose(matrix.diagonal(), 1.0)
    np.testing.assert_allclose(matrix[[0, 1], [1, 0]], shared, atol=0.06)


def test_health_and_numbers_need_no_token(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_PATIENCE", 60.0)  # however slow the disk is
    assert service.client.get("/healthz").json() == {"status": "ok", "plants": 1, "without_data": 0, "detail": ""}
    text = service.client.get("/metrics").text
    numbers = samples(text)
    assert numbers["eccaht_windows_total", ""] == WINDOWS - 1
    assert numbers["eccaht_up", ""] == 1.0
    assert numbers["eccaht_rows_total", ""] >= WINDOWS * plants.ROWS
    assert sum(numbers["eccaht_plants", state] for state in ("quiet", "suspicious", "alarm")) == 1
    assert numbers["eccaht_plants", "waiting"] == 0
    assert f'"{PLANT}"' not in text


def samples(text: str) -> dict[tuple[str, str], float]:
    """Numbers by their name and label, as Prometheus reads them; no name may have two families."""
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    return {(each.name, "".join(each.labels.values())): each.value for family in families for each in family.samples}


def test_numbers_of_single_plants_need_a_token_that_reads(service: Service) -> None:
    ask = service.client.get
    for scope in ("read", "operate", "admin"):
        answer = ask("/metrics", headers=service.headers[scope])
        assert answer.headers["content-type"].startswith("text/plain; version=")
        assert ("eccaht_evidence", PLANT) in samples(answer.text)
    assert ask("/metrics", headers=service.headers["ingest"]).status_code == 403
    assert ask("/metrics", headers={"Authorization": "Bearer eccaht_1_x"}).status_code == 401
    kinds = {family.name: family.type for family in text_string_to_metric_families(ask("/metrics").text)}
    assert kinds["eccaht_rows"] == kinds["eccaht_resyncs"] == "counter"
    assert kinds["eccaht_plants"] == kinds["eccaht_clients"] == kinds["eccaht_waiting"] == kinds["eccaht_up"] == "gauge"


def test_the_dashboard_and_the_alert_rules_ask_for_numbers_that_there_are(service: Service) -> None:
    there = {name for name, _ in samples(service.client.get("/metrics", headers=service.headers["read"]).text)}
    deploy = Path(__file__).parents[2] / "deploy"
    for name in ("grafana.json", "alerts.yml"):
        asked = set(re.findall(r"\beccaht_\w+", (deploy / name).read_text()))
        assert asked <= there, asked - there
    assert len(json.loads((deploy / "grafana.json").read_text())["panels"]) == 8


def test_another_model_begins_a_new_era(service: Service) -> None:
    """Events keep counting, what was before stays, and the incident of the old model is still explained."""
    before, admin = get(service, f"{BASE}/incidents")["incidents"][0]["number"], service.headers["admin"]
    other = {"model": service.digest, "false_alarms": "1/3000w"}
    assert service.client.request("PUT", BASE, json=other, headers=admin).status_code == 200
    row = get(service, "/api/plants")["plants"][0]
    assert (row["windows"], row["position"]) == (WINDOWS - 1, LAST)  # another rate is not another era
    uploaded = service.client.post(
        "/api/models", params={"name": "m"}, content=plants.other_content(), headers=admin
    ).json()
    given = {"model": uploaded["digest"], "false_alarms": "1/3000w"}
    assert service.client.request("PUT", BASE, json=given, headers=admin).status_code == 200
    row = get(service, "/api/plants")["plants"][0]
    assert (row["windows"], row["position"]) == (0, LAST)
    assert get(service, f"{BASE}/incidents/{before}")["why"][0].startswith("b left its usual range")
    assert len(get(service, f"{BASE}/evidence", points=2000)["time"]) == WINDOWS - 1


@pytest.mark.parametrize("kind", stores.KINDS)
def test_a_healthy_sensor_that_is_shelved_is_not_silent(kind: str, tmp_path: Path) -> None:
    times, values = plants.recording(60)
    with running(kind, tmp_path, options={"false_alarms": "1/2000w"}) as made:

        def send(rows: slice) -> None:
            given = documents(times[rows], values[rows])
            answer = made.client.post(f"{BASE}/rows", json=given, headers=made.headers["ingest"])
            assert answer.status_code == 200, answer.text

        send(slice(0, 80))
        order = {"sensor": "c", "duration": "2h"}
        assert made.client.post(f"{BASE}/shelve", json=order, headers=made.headers["operate"]).status_code == 200
        send(slice(80, 240))
        now = get(made, BASE)
        assert (list(now["shelved"]), now["windows"]) == (["c"], 59)
        assert (now["state"], now["severity"], now["suspects"]) == ("quiet", None, [])
        assert now["still"] == {"stuck": [], "silent": [], "range": []}


def test_the_alert_rules_find_the_plants_in_alarm_and_those_that_nobody_watches(tmp_path: Path) -> None:
    """Prometheus' own tool judges the rules by the numbers that the service gives of three plants."""
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("there is no promtool: apt-get install prometheus")
    rules = Path(__file__).parents[2] / "deploy" / "alerts.yml"
    series, expected = [], []
    for plant, state in {"mill": "alarm", "kiln": "quiet", "pump": "no-data"}.items():
        series.append({"series": f'eccaht_state{{plant="{plant}",state="{state}"}}', "values": "1x20"})
        series.append({"series": f'eccaht_no_data{{plant="{plant}"}}', "values": f"{int(state == 'no-data')}x20"})
    for name, labels in {
        "PlantInAlarm": {"plant": "mill", "state": "alarm"},
        "PlantWithoutData": {"plant": "pump"},
    }.items():
        text = re.search(rf'alert: {name}.*?summary: "(.*?)"', rules.read_text(), re.DOTALL)
        assert text is not None
        summary = text[1].replace("{{ $labels.plant }}", labels["plant"])
        alert = {"exp_labels": {"severity": "warning", **labels}, "exp_annotations": {"summary": summary}}
        expected.append({"eval_time": "10m", "alertname": name, "exp_alerts": [alert]})
    tests = [{"interval": "1m", "input_series": series, "alert_rule_test": expected}]
    (tmp_path / "test.yml").write_text(json.dumps({"rule_files": [str(rules)], "tests": tests}))
    for arguments in (["check", "rules", str(rules)], ["test", "rules", str(tmp_path / "test.yml")]):
        found = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout + found.stderr
