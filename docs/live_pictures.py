"""The pictures of the page, taken from `eccaht serve --demo` during an alarm: `python docs/live_pictures.py`."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
from pictures import shrink
from playwright.sync_api import Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
WIDTH, COLOURS = 1280, 256  # fewer lose the red of an alarm
LASTED = 15  # seconds of an alarm, after which its confidence has settled


def alarm_of(base: str) -> int:
    """Wait for an alarm of the demo and return its number."""
    while True:
        plant = httpx.get(f"{base}api/plants/demo")
        if plant.is_success and plant.json()["fault"] is not None:
            time.sleep(LASTED)
            return int(httpx.get(f"{base}api/plants/demo/incidents").json()["incidents"][0]["number"])
        time.sleep(1)


def take(page: Page, address: str, name: str, height: int, ready: str, part: str | None = None) -> None:
    """One picture, of the whole screen or a part of the page."""
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.goto(address)
    page.wait_for_selector(ready)
    page.wait_for_timeout(2000)  # what comes live has arrived
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shot.png"
        if part is None:
            page.screenshot(path=file)
        else:
            page.locator(part).screenshot(path=file)
        shrink(file, name, WIDTH, COLOURS)


def main() -> None:
    """Start the demo, wait for its first alarm and look at all views."""
    command = [sys.executable, "-m", "eccaht", "serve", "--demo", "--port", "0"]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert service.stdout is not None
        base = service.stdout.readline().strip()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--headless=new"])
            page, number = browser.new_page(), alarm_of(base)
            plant = f"{base}#/plant/demo"
            take(page, plant, "live-plant.png", 1180, ".plot .main-svg")
            take(page, f"{plant}/incident/{number}", "live-incident.png", 1180, ".plot .main-svg")
            take(page, base, "live-overview.png", 300, "tr[data-key=demo]")
            take(page, plant, "live-sensors.png", 900, "td.sensor-cell", "section:has(td.sensor-cell)")
            browser.close()
    finally:
        service.terminate()
        service.wait()


if __name__ == "__main__":
    main()
