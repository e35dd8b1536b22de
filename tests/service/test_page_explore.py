"""Trends, retraining and reports on the page, in a real browser, with the real service behind it."""

import re
from collections.abc import Iterator

import pytest

pytest.importorskip("playwright", reason="the browser tests need playwright")
from playwright.sync_api import Browser, Page, Route, expect

from tests.service.browsing import CHROMIUM, SENSORS, Pages, Service, chromium

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"the browser tests need {CHROMIUM}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    found = Service(tmp_path_factory.mktemp("service"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def admin(service: Service) -> str:
    return service.token("boss", "admin")


@pytest.fixture(scope="module")
def spare() -> list[Page]:
    return []


@pytest.fixture
def pages(browser: Browser, service: Service, spare: list[Page]) -> Iterator[Pages]:
    found = Pages(browser, service.base, spare)
    yield found
    found.close()
    assert found.problems == []


def test_any_sensors_are_drawn_over_any_period_and_the_address_says_which(
    service: Service, pages: Pages, admin: str
) -> None:
    plant = service.plant("trends")
    page = pages.open(admin, f"#/plant/{plant}")
    page.get_by_role("link", name="Explore").click()
    chart = page.locator(".plot")
    expect(chart).to_have_attribute("aria-label", re.compile(SENSORS[0]))
    page.get_by_label("Draw a sensor", exact=True).fill(SENSORS[5])
    expect(chart).to_have_attribute("aria-label", re.compile(SENSORS[5]))
    page.get_by_role("button", name=f"Do not draw {SENSORS[0]}").click()
    page.get_by_label("From", exact=True).fill("2026-03-01T08:00:05")
    page.get_by_label("To", exact=True).fill("2026-03-01T08:00:15")
    page.get_by_label("To", exact=True).blur()
    expect(page.get_by_text("means of windows of 1 s")).to_be_visible()
    expect(page).to_have_url(re.compile("start=2026-03-01T08%3A00%3A05"))
    address = page.url.partition("#")[2]
    again = pages.open(admin, f"#{address}")
    expect(again.get_by_role("button", name=f"Do not draw {SENSORS[5]}")).to_be_visible()
    expect(again.get_by_role("button", name=f"Do not draw {SENSORS[0]}")).to_have_count(0)
    expect(again.get_by_label("From", exact=True)).to_have_value("2026-03-01T08:00:05")


def test_a_plant_without_times_is_explored_by_rows(service: Service, pages: Pages, admin: str) -> None:
    plant = service.counted_plant("rows to explore")
    page = pages.open(admin, f"#/plant/{plant}/explore")
    expect(page.get_by_text("means of windows of 1 row")).to_be_visible()
    page.get_by_label("From", exact=True).fill("5")
    page.get_by_label("From", exact=True).blur()
    expect(page).to_have_url(re.compile(r"start=row\+5"))


def test_units_of_the_settings_of_a_plant_are_shown_in_it_and_nowhere_else(
    service: Service, pages: Pages, admin: str
) -> None:
    plain, plant = service.plant("without units"), service.plant("with units")
    service._ask("PUT", f"/api/plants/{plant}", json={"model": service._digest, "units": {SENSORS[0]: "m above sea"}})
    page = pages.open(admin, f"#/plant/{plant}")
    shown = page.get_by_role("row").filter(has_text=SENSORS[0])
    expect(shown.filter(has_text="m above sea").first).to_be_visible()
    expect(page.get_by_role("row").filter(has_text=SENSORS[1]).filter(has_text="m above sea")).to_have_count(0)
    page.goto(f"/#/plant/{plain}")
    expect(page.get_by_role("row").filter(has_text=SENSORS[0]).first).to_be_visible()
    expect(page.get_by_text("m above sea")).to_have_count(0)


def test_a_plant_is_retrained_compared_and_switched(service: Service, pages: Pages, admin: str) -> None:
    plant = service.plant("retrained")
    service.send(plant, 150)
    service.send(plant, 20, wrong=(SENSORS[1],))
    service.send(plant, 100)
    page = pages.open(admin, f"#/plant/{plant}")
    page.get_by_role("link", name="Retrain").click()
    expect(page.get_by_text("Stored: 2026-03-01 08:00:00 to")).to_be_visible()
    expect(page.get_by_text("at least 100")).to_be_visible()
    page.get_by_label("From", exact=True).fill("2027-03-01T08:00:00")
    page.get_by_role("button", name="Make a new model").click()
    expect(page.locator(".notice")).to_contain_text("The end must be after the start.")
    page.get_by_label("From", exact=True).fill("2026-03-01T08:00:00")
    page.get_by_label("Drill each model with").select_option("100")

    def not_yet(route: Route) -> None:  # however quickly it is made, the page sees it in the making
        if route.request.method != "GET":
            return route.continue_()
        answer = route.fetch()
        making = {"state": "running", "stage": "fitting", "share": 0.5}
        return route.fulfill(response=answer, json=answer.json() | making)

    page.route(f"**/api/plants/{plant}/retraining", not_yet)
    page.get_by_role("button", name="Make a new model").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.unroute(f"**/api/plants/{plant}/retraining")
    expect(page.get_by_role("heading", name="Comparison")).to_be_visible()
    expect(page.get_by_text("in alarms.")).to_contain_text("windows from 2026-03-01 08:00 to 2026-03-01 08:0")
    expect(page.get_by_role("columnheader", name="New model")).to_be_visible()
    page.get_by_role("button", name="Switch to the new model").click()
    page.get_by_role("dialog").get_by_role("button", name="Switch").click()
    expect(page.get_by_role("heading", name="Switched")).to_be_visible()
    page.get_by_role("link", name="Back to the plant").click()
    expect(page.locator(".facts")).to_contain_text("none by this model yet")
    sensors = page.get_by_role("region", name="Sensors", exact=True)
    expect(sensors.locator("tbody tr").first).to_contain_text("windows: none by this model yet")


def test_the_report_of_an_incident_is_a_page_to_keep(service: Service, pages: Pages, admin: str) -> None:
    plant = service.plant("reported")
    service.send(plant, 30, wrong=(SENSORS[0],))
    incidents = service._ask("GET", f"/api/plants/{plant}/incidents").json()["incidents"]
    page = pages.open(admin, f"#/plant/{plant}/incident/{incidents[0]['number']}")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download the report").click()
    assert waiting.value.suggested_filename == f"{plant}-{incidents[0]['number']}.html"
    text = waiting.value.path().read_text(encoding="utf-8")
    assert text.lower().startswith("<!doctype html>")
    assert SENSORS[0] in text
