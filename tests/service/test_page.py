"""What people do on the page, in a real browser, with the real service behind it; no test may leave an error there."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="the browser tests need playwright")
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.service.browsing import CHROMIUM, HOSTILE, SENSORS, Pages, Service, chromium

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
def operator(service: Service) -> str:
    return service.token("operator", "read", "operate")


@pytest.fixture(scope="module")
def spare() -> list[Page]:
    return []


@pytest.fixture
def pages(browser: Browser, service: Service, spare: list[Page]) -> Iterator[Pages]:
    found = Pages(browser, service.base, spare)
    yield found
    found.close()
    assert found.problems == []


def row_of(page: Page, plant: str) -> Locator:
    return page.locator(f'tr[data-key="{plant}"]')


def sensor_row(page: Page, sensor: str) -> Locator:
    return page.get_by_role("region", name="Sensors", exact=True).get_by_role("row").filter(has_text=sensor)


def until(page: Page, condition: Callable[[], bool]) -> None:
    """Wait for what routes of a page report."""
    limit = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < limit, "it did not come to pass"
        page.wait_for_timeout(20)


def holding(page: Page, url: str) -> list[Route]:
    """Hold the next request to an address back; once it is there, the list has it."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route(url, hold)
    return held


def alarmed(service: Service, plant: str, *wrong: str) -> str:
    """A plant in alarm."""
    service.plant(plant)
    service.send(plant, 5, wrong or ("TT-101",))
    return plant


def test_one_logs_in_and_is_where_one_wanted_to_be(service: Service, pages: Pages, operator: str) -> None:
    service.plant("login")
    page = pages.open(address="#/plant/login")
    page.get_by_label("Token").fill("mistyped")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not valid")
    page.get_by_label("Token").fill(operator)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("login")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    pages.excuse("401 (Unauthorized)")  # the browser notes that the service refused, which it did


def test_an_alarm_arrives_while_one_looks(service: Service, pages: Pages, operator: str) -> None:
    service.plant("watched")
    page = pages.open(operator)
    row = row_of(page, "watched")
    expect(row.locator('[data-kind="quiet"]')).to_have_text("normal")
    service.send("watched", 5, ("TT-101",))
    expect(row.locator('[data-kind="alarm"]')).to_have_text("in alarm")
    expect(row).to_contain_text("TT-101")
    expect(page.locator("#alarms")).to_have_text(re.compile("^New alarm in watched: .*TT-101"))
    expect(page).to_have_title(re.compile("alarm"))
    page.locator(".notice a").last.click()
    expect(page.locator(".alarm-box")).to_contain_text("TT-101")
    expect(page.locator(".plot .main-svg").first).to_be_visible()


def test_operators_acknowledge_shelve_and_take_back(service: Service, pages: Pages, operator: str) -> None:
    alarmed(service, "acted")
    page = pages.open(operator, "#/plant/acted")
    page.get_by_role("button", name="Acknowledge").click()
    page.get_by_role("dialog").get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".alarm-box")).to_contain_text("acknowledged")
    expect(page.get_by_role("button", name="Acknowledge")).to_have_count(0)
    page.get_by_role("button", name="Shelve a sensor").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Sensor", exact=True).select_option(HOSTILE)
    dialog.get_by_label("For", exact=True).select_option("30 minutes")
    dialog.get_by_role("button", name="Shelve").click()
    row = sensor_row(page, HOSTILE)
    expect(row).to_contain_text(re.compile("shelved.*until 2026-03-01 08:30"))
    row.get_by_role("button", name="Unshelve").click()
    page.get_by_role("dialog").get_by_role("button", name="Unshelve").click()
    expect(row.locator('[data-kind="normal"]')).to_be_visible()
    suspect = page.get_by_role("region", name="Suspected sensors").locator('tr[data-key="TT-101"]')
    suspect.get_by_role("button", name="Shelve").click()
    page.get_by_role("dialog").get_by_role("button", name="Shelve").click()
    expect(suspect.locator('[data-kind="shelved"]')).to_be_visible()
    expect(suspect.get_by_role("button")).to_have_count(0)


def test_the_present_state_becomes_the_new_normal(service: Service, pages: Pages, operator: str) -> None:
    alarmed(service, "changed")
    page = pages.open(operator, "#/plant/changed")
    page.get_by_role("button", name="New normal").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("TT-101")
    dialog.get_by_role("button", name="Take as normal").click()
    expect(dialog).to_have_count(0)
    service.send("changed", 60, ("TT-101",))
    expect(page.locator(".alarm-box")).to_have_count(0)
    head = page.locator(".plant-head")
    expect(head).to_contain_text("Called normal by an operator: TT-101 +1")
    expect(page.locator("section", has_text="Incidents").first).to_contain_text("returned to normal, not acknowledged")
    page.locator("section", has_text="Incidents").get_by_role("link").first.click()
    expect(page.locator(".over-box li")).to_have_text(
        re.compile(r"^TT-101 read 1\d(\.\d)? higher than the other sensors predicted, from .* to 2026-03-01 08:0.*\.$")
    )
    page.go_back()
    head.get_by_role("button", name="Take the last one back").click()
    expect(head).not_to_contain_text("Called normal")


def test_an_incident_is_commented_and_taken_home(service: Service, pages: Pages, operator: str, tmp_path: Path) -> None:
    alarmed(service, "kept", "LT-101", HOSTILE)
    page = pages.open(operator, "#/plant/kept")
    page.get_by_role("link", name="Open the incident").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("LT-101")
    expect(page.locator(".why li").first).to_be_visible()
    expect(page.locator(".timeline-name")).to_have_text([HOSTILE, "LT-101"])
    page.get_by_role("textbox", name="Comment").fill("valve <b>V-12</b> was stuck")
    page.get_by_role("button", name="Comment").click()
    expect(page.locator(".people")).to_contain_text("valve <b>V-12</b> was stuck")
    expect(page.locator(".plot .main-svg").first).to_be_visible()  # no click is heard while it is drawn
    with page.expect_download() as started:
        page.get_by_role("link", name="Download the report").click()
    started.value.save_as(tmp_path / "report")
    content = (tmp_path / "report").read_text(encoding="utf-8")
    assert "LT-101" in content
    assert "<html" in content


def test_a_reading_by_hand_changes_the_answer(service: Service, pages: Pages, operator: str) -> None:
    alarmed(service, "checked", "LT-101")
    page = pages.open(operator, "#/plant/checked")
    page.get_by_role("link", name="Open the incident").click()
    page.get_by_role("button", name="Enter a reading by hand").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Sensor").select_option("LT-101")
    dialog.get_by_label("Reading").fill("-1000")
    expect(dialog.get_by_label("Standard deviation")).not_to_have_value("")
    dialog.get_by_role("button", name="Compare").click()
    expect(page.locator(".why")).to_contain_text(re.compile("LT-101.*by hand.*-1000.*wrong"))
    expect(page.locator(".people")).to_contain_text("read LT-101 by hand: -1000")


def test_which_sensors_are_read_next_is_shown_with_why(service: Service, pages: Pages, operator: str) -> None:
    service.send(service.new_plant("few", readings=2), 30)
    page = pages.open(operator, "#/plant/few")
    read_next = page.locator(".facts div", has_text="Read next").locator("dd")
    expect(read_next).to_have_text(re.compile(r"\((suspect|not read for|helps to judge).*\), .*\("))


def test_a_plant_without_data_says_so_and_why(service: Service, pages: Pages, operator: str) -> None:
    service.plant("blind")
    page = pages.open(operator, "#/plant/blind")
    expect(page.get_by_role("heading", level=1)).to_contain_text("normal")
    service.skip("blind", 200)
    service.send("blind", 3)
    service.skip("blind", -150)
    service.send("blind", 60)
    expect(page.get_by_role("heading", level=1)).to_contain_text("not watched")
    expect(page.locator(".alarm-box")).to_contain_text("60 of the last 70 rows came too late for their windows")
    overview = pages.open(operator, "#/")
    expect(row_of(overview, "blind")).to_contain_text("not watched")
    expect(overview.get_by_role("button", name="1 not watched")).to_be_enabled()
    pages.excuse("/api/plants/blind/")  # the overview may ask for it once more
    service.remove("blind")


def test_names_are_text_whatever_they_hold(service: Service, pages: Pages, operator: str) -> None:
    alarmed(service, "hostile", HOSTILE)
    page = pages.open(operator, "#/plant/hostile")
    expect(page.locator(".alarm-box")).to_contain_text(HOSTILE)
    expect(page.locator(".plot .annotation-text", has_text=HOSTILE)).to_have_count(1)
    assert page.locator("img").count() == 0


def test_a_restart_of_the_service_is_shown_and_survived(service: Service, pages: Pages, operator: str) -> None:
    service.plant("restarted")
    page = pages.open(operator, "#/plant/restarted")
    expect(page.locator(".top-status")).to_contain_text("live")
    service.stop()
    expect(page.locator("#banner")).to_contain_text("The last message came")
    expect(page.get_by_role("heading", level=1)).to_contain_text("restarted")  # what was shown stays
    service.start()
    expect(page.locator("#banner")).to_be_hidden()
    service.send("restarted", 5, ("PT-101",))
    expect(page.locator(".alarm-box")).to_contain_text("PT-101")
    pages.excuse("net::ERR_")  # the browser notes that no server listened, in the words of the moment


def test_what_one_does_the_other_sees(service: Service, pages: Pages, operator: str) -> None:
    alarmed(service, "shared")
    other = service.token("another user", "read")
    one, two = pages.open(operator, "#/plant/shared"), pages.open(other, "#/plant/shared")
    expect(two.locator(".alarm-box")).to_contain_text("You may look only")
    one.get_by_role("button", name="Acknowledge").click()
    one.get_by_role("dialog").get_by_role("button", name="Acknowledge").click()
    expect(two.locator(".alarm-box")).to_contain_text("acknowledged")
    for page in (one, two):
        page.get_by_role("link", name="Open the incident").click()
    one.get_by_role("textbox", name="Comment").fill("on my way")
    one.get_by_role("button", name="Comment").click()
    expect(two.locator(".people")).to_contain_text("on my way")
    expect(two.locator(".people")).to_contain_text("operator")
    assert two.get_by_role("textbox", name="Comment").count() == 0


def test_what_happens_while_a_view_loads_is_not_missed(service: Service, pages: Pages, operator: str) -> None:
    alarmed(service, "raced")
    page = pages.open(operator, "#/plant/raced")
    expect(page.get_by_role("link", name="Open the incident")).to_be_visible()
    late: list[str] = []

    def answer_late(route: Route) -> None:
        answer = route.fetch()  # of a moment before the comment
        if not late:
            late.append(route.request.url)
            service.comment("raced", int(route.request.url.rpartition("/")[2]), "while you load")
            time.sleep(1.0)  # the stream reports the comment, then the answer without it arrives
        route.fulfill(response=answer)

    page.route("**/api/plants/raced/incidents/*", answer_late)
    page.get_by_role("link", name="Open the incident").click()
    expect(page.locator(".people")).to_contain_text("while you load")


def test_who_loses_the_token_logs_in_again_and_goes_on(service: Service, pages: Pages, operator: str) -> None:
    service.plant("expired")
    page = pages.open(service.token("for an hour", "read"), "#/plant/expired")
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    expect(page.locator(".top-status")).to_have_text(re.compile("live *for an hour"))
    held = holding(page, "**/api/plants/expired/evidence?*")
    page.get_by_role("button", name="Earlier").click()
    until(page, lambda: len(held) > 0)
    service.revoke("for an hour")
    service.send("expired", 3)
    expect(page.locator("#login")).to_contain_text("Your session has ended")
    page.get_by_label("Token").fill(operator)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("expired")
    expect(page.locator(".top-status")).to_contain_text("operator")
    held[0].fulfill(status=401)  # which was for whoever asked then
    service.send("expired", 2)
    expect(page.locator(".facts")).to_contain_text("34 of 1 s")
    pages.excuse("401 (Unauthorized)")


def test_a_chart_stays_where_one_zoomed_while_windows_come(service: Service, pages: Pages, operator: str) -> None:
    service.plant("zoomed")
    page = pages.open(operator, "#/plant/zoomed")
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    shown = "() => document.querySelector('.plot').layout.xaxis.range.map(String)"
    first = page.evaluate(shown)
    page.get_by_role("button", name="Zoom in").click()
    expect(page.get_by_role("button", name="Back to now")).to_be_visible()
    page.wait_for_function(f"() => {{ const [a, b] = ({shown})(); return new Date(b) - new Date(a) < 599_000; }}")
    zoomed = page.evaluate(shown)
    service.send("zoomed", 5)
    expect(page.locator(".facts")).to_contain_text("34 of 1 s")
    assert page.evaluate(shown) == zoomed
    page.get_by_role("button", name="Back to now").click()
    page.wait_for_function(f"before => ({shown})()[1] > before", arg=first[1])  # with the windows that came meanwhile
    points = page.evaluate("() => Math.max(...document.querySelector('.plot').data.map(curve => curve.x.length))")
    assert points <= 600


@pytest.mark.parametrize("before", [30, 2])
def test_windows_that_come_many_at_once_are_drawn_without_a_gap(
    service: Service, pages: Pages, operator: str, before: int
) -> None:
    plant = service.new_plant(f"burst after {before}")
    page = pages.open(operator, f"#/plant/{plant}")
    expect(page.locator(".top-status")).to_contain_text("live")
    page.get_by_label("Show the last").select_option("Last 1 day")  # in which five minutes are a step to be seen
    page.get_by_label("Draw a sensor").select_option("PT-101")
    service.send(plant, before)
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    service.send(plant, 700)
    expect(page.locator(".facts")).to_contain_text(f"{before + 699} of 1 s")
    service.send(plant, 2)
    page.wait_for_function(
        """([start, last]) => ["evidence", "PT-101"].every(name => {
            const { x } = document.querySelector(".plot").data.find(curve => curve.name === name);
            const seconds = [start, ...x, last].map(time => Date.parse(time) / 1000);
            return seconds.every((time, k) => k === 0 || time - seconds[k - 1] <= 288);
        })""",
        arg=["2026-03-01T08:00:00", f"2026-03-01T08:{(before + 700) // 60:02}:{(before + 700) % 60:02}"],
    )


def test_a_keyboard_is_enough(service: Service, pages: Pages, operator: str) -> None:
    alarmed(service, "keys")
    page = pages.open(operator, "#/")
    expect(row_of(page, "keys")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    head = page.get_by_role("columnheader", name="Plant")
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    names = page.locator("tbody tr td:nth-child(2)").all_inner_texts()
    assert names == sorted(names, reverse=True)
    row_of(page, "keys").get_by_role("link").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="New normal").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="New normal")).to_be_focused()


def test_no_view_is_wider_than_the_screen(service: Service, pages: Pages, operator: str) -> None:
    plant = alarmed(service, "a plant with a name of many words", *SENSORS[:2], HOSTILE)
    page = pages.open(operator, "#/")
    page.emulate_media(color_scheme="dark")

    def check(ready: Locator) -> None:
        for width in (1600, 1280, 1050, 700, 360):
            page.set_viewport_size({"width": width, "height": 740})
            expect(ready).to_be_visible()
            page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)

    check(row_of(page, plant))
    row_of(page, plant).get_by_role("link").click()
    check(page.locator(".plot .main-svg").first)
    page.get_by_role("link", name="Open the incident").click()
    check(page.locator(".timeline-name").first)
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(22, 22, 22)"


def test_while_one_waits_and_after_an_error_the_page_is_never_blank(
    service: Service, pages: Pages, operator: str
) -> None:
    service.plant("slow")
    page = pages.open(operator, None)

    def refuse(route: Route) -> None:
        route.fulfill(status=503, json={"detail": "the store does not answer: try again"})

    held = holding(page, "**/api/plants")
    page.goto("/")
    expect(page.locator("main .skeleton")).to_be_visible()
    until(page, lambda: len(held) > 0)
    page.route("**/api/plants", refuse)
    refuse(held[0])
    expect(page.get_by_role("alert")).to_contain_text("The store does not answer: try again")
    page.unroute("**/api/plants")
    page.get_by_role("button", name="Try again").click()
    expect(row_of(page, "slow")).to_be_visible()
    pages.excuse("503 (Service Unavailable)")


def test_a_plant_that_is_removed_is_gone_from_the_page(service: Service, pages: Pages, operator: str) -> None:
    service.plant("removed")
    page, other = pages.open(operator, "#/plant/removed"), pages.open(operator)
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    expect(row_of(other, "removed")).to_be_visible()
    service.remove("removed")
    expect(page.get_by_role("alert")).to_contain_text("The plant removed cannot be shown")
    expect(page.get_by_role("alert")).to_contain_text("It is shown again as soon as it is back")
    expect(row_of(other, "removed")).to_have_count(0)
    service.plant("removed")
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    expect(row_of(other, "removed")).to_be_visible()
    pages.excuse("404 (Not Found)")  # an answer may have been on its way when the plant was removed


def test_an_order_that_is_refused_says_why(service: Service, pages: Pages, operator: str) -> None:
    alarmed(service, "refused")
    page = pages.open(operator, "#/plant/refused")
    page.get_by_role("button", name="New normal").click()
    page.route("**/normal", lambda route: route.fulfill(status=429, headers={"Retry-After": "7"}))
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Take as normal").click()
    expect(dialog.get_by_role("alert")).to_have_text("Not done: the server is busy: try again in 7 seconds")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator(".alarm-box")).to_be_visible()
    pages.excuse("429 (Too Many Requests)")


def test_a_plant_without_times_is_shown_by_its_rows(service: Service, pages: Pages, operator: str) -> None:
    service.counted_plant("counted")
    service.send("counted", 5)
    service.send("counted", 5, ("TT-101",))
    page = pages.open(operator, "#/plant/counted")
    expect(page.locator(".alarm-box")).to_contain_text(re.compile(r"Onset row 3\d.*raised at row 3\d"))
    expect(page.locator(".plant-head")).to_contain_text("39 of 1 row")
    ticks = page.locator(".plot .xtick text")
    expect(ticks.first).to_have_text(re.compile("^row "))
    expect(page.locator(".plot")).to_have_attribute("aria-label", re.compile("^From row 1 to row 40; highest evidence"))
    page.get_by_role("button", name="Zoom in").click()
    expect(page.locator(".plot")).to_have_attribute("aria-label", re.compile("^From row 11 to row 30;"))
    page.get_by_role("button", name="Back to now").click()
    service.send("counted", 60)
    expect(page.locator(".plant-head")).to_contain_text("row 99")
    expect(page.locator("section", has_text="Incidents").first).to_contain_text(
        re.compile(r"returned to normal.*\d rows")
    )
    page.get_by_role("button", name="Shelve a sensor").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Sensor", exact=True).select_option("PT-102")
    dialog.get_by_label("For").select_option("100 rows")
    dialog.get_by_role("button", name="Shelve").click()
    expect(sensor_row(page, "PT-102")).to_contain_text("until row 200")
    page.locator("section", has_text="Incidents").get_by_role("link").first.click()
    expect(page.locator(".plot")).to_have_attribute("aria-label", re.compile("^From row "))


def test_sensors_are_listed_with_their_state_filtered_and_drawn(service: Service, pages: Pages, operator: str) -> None:
    alarmed(service, "listed", "TT-101")
    page = pages.open(operator, "#/plant/listed")
    row = sensor_row(page, "TT-101")
    expect(row.locator('[data-kind="alarm"]')).to_have_text("in alarm")
    expect(row).to_contain_text(re.compile(r"reads 1\d(\.\d)? higher than the other sensors predict, since 2026-03-01"))
    expect(row).to_contain_text("2026-03-01 08:00:33")
    expect(row.locator(".spark-line")).to_have_attribute("d", re.compile("^M0"))
    listed = page.get_by_role("region", name="Sensors", exact=True)
    names = listed.locator("td.sensor-cell button")
    expect(names).to_have_count(len(SENSORS))
    expect(names.first).to_have_text("TT-101")  # what needs an operator comes first
    listed.get_by_role("button", name=f"{len(SENSORS) - 1} normal").click()
    expect(names).to_have_count(len(SENSORS) - 1)
    listed.get_by_label("Find a sensor").fill("pt-")
    expect(names).to_have_text(["PT-101", "PT-102"])
    listed.get_by_role("columnheader", name="Sensor").get_by_role("button").dblclick()
    expect(names).to_have_text(["PT-102", "PT-101"])
    names.first.click()
    expect(page.get_by_role("button", name="Do not draw PT-102")).to_be_visible()
    expect(page.locator(".plot .annotation-text", has_text="PT-102")).to_have_count(1)


def test_an_incident_has_one_size_for_a_sensor_while_active_and_afterwards(
    service: Service, pages: Pages, operator: str
) -> None:
    alarmed(service, "sized")
    page = pages.open(operator, "#/plant/sized")
    expect(page.locator(".alarm-box")).to_contain_text("Sizes by the last windows.")
    page.get_by_role("link", name="Open the incident").click()

    def same_size(box: str) -> None:
        headline, why = page.locator(f"{box} li").first.inner_text(), page.locator(".why li").first.inner_text()
        mine = re.search(r"read\w* (\S+) (?:higher|lower)", headline)
        reason = re.search(r"it should read (\S+), not ([\d.]+)", why)
        assert mine
        assert reason
        away = abs(float(reason[2]) - float(reason[1]))
        assert float(mine[1]) == pytest.approx(away, abs=0.11)  # what the digits of both leave open

    expect(page.locator(".alarm-box")).to_contain_text("Sizes by all windows of the incident.")
    same_size(".alarm-box")
    service.send("sized", 9, ("TT-101",))
    service.send("sized", 60)
    expect(page.locator(".over-box")).to_contain_text("returned to normal")
    same_size(".over-box")
    page.go_back()
    incidents = page.get_by_role("region", name="Incidents", exact=True)
    expect(incidents.get_by_role("columnheader", name="Onset")).to_be_visible()  # from which on it lasted
    expect(incidents.locator("td.time-cell").nth(1)).to_have_text(re.compile("^2026-03-01 08:00:3"))


def test_a_plant_without_a_window_is_not_called_normal(service: Service, pages: Pages, operator: str) -> None:
    service.new_plant("new")
    page = pages.open(operator)
    row = row_of(page, "new")
    expect(row.locator('[data-kind="waiting"]')).to_have_text("waiting for data")
    expect(row.locator(".evidence-cell .figure")).to_have_text("–")
    other = pages.open(operator, "#/plant/new")
    expect(other.get_by_role("heading", level=1)).to_contain_text("waiting for data")
    expect(sensor_row(other, "TT-101").locator('[data-kind="waiting"]')).to_have_text("waiting for data")
    service.send("new", 3)
    expect(row.locator('[data-kind="quiet"]')).to_have_text("normal")
    expect(row.locator(".evidence-cell .figure")).not_to_have_text("–")
    expect(other.get_by_role("heading", level=1)).to_contain_text("normal")
    expect(sensor_row(other, "TT-101").locator('[data-kind="normal"]')).to_have_text("normal")


def test_on_a_phone_cards_are_sorted_by_a_menu(service: Service, pages: Pages, operator: str) -> None:
    for name in ("menu-a", "menu-b"):
        service.plant(name)
    page = pages.open(operator, "#/")
    usual = page.viewport_size
    assert usual is not None
    page.set_viewport_size({"width": 390, "height": 800})
    menu = page.get_by_label("Sort Plants")
    expect(menu).to_be_visible()
    for label, falling in (("Plant ↑", False), ("Plant ↓", True)):
        menu.select_option(label=label)
        names = page.locator("tbody tr td:nth-child(2)").all_inner_texts()
        assert names == sorted(names, reverse=falling)
    page.set_viewport_size(usual)
    expect(menu).to_be_hidden()
