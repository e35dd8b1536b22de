"""The service as a program of its own and a browser that looks at it, for tests of the page."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

from eccaht.base.randomness import rng_for
from eccaht.plants.data.source import Arrays
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model
from eccaht.service.security import guard
from eccaht.service.store import Store
from eccaht.service.store.store import now
from tests.service.source_tools import free_port

CHROMIUM = Path("/usr/bin/chromium")
_SCREEN: ViewportSize = {"width": 1280, "height": 720}
_PARKED = '<link rel="icon" href="data:,">'
_ARGUMENTS = [
    "--no-sandbox", "--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
HOSTILE = '<img src=x onerror="alert(1)">'
SENSORS = ("LT-101", "TT-101", "PT-101", "FT-101", HOSTILE, "PT-102")
_START, _SECOND = np.datetime64("2026-03-01T08:00", "us"), np.timedelta64(1, "s")
_HISTORY = 700
_FEW_PAGES = {**os.environ, "ECCAHT_LIMITS__CLIENTS": "20"}
_PATIENCE = 60_000  # milliseconds: a busy machine draws the first chart for half a minute
expect.set_options(timeout=_PATIENCE)


def _readings(rows: int, *place: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    rng = rng_for(0, "page", *place)
    return 10.0 + rng.standard_normal((rows, len(SENSORS))) + 1.5 * rng.standard_normal((rows, 1))


def _calibrated(window: str, times: Any, zone: str | None) -> Model:
    return calibrate(Arrays(_readings(_HISTORY, "history"), times, SENSORS, zone=zone), window=window)


@lru_cache(maxsize=1)
def _model() -> Model:
    return _calibrated("1s", _START - _HISTORY * _SECOND + np.arange(_HISTORY) * _SECOND, "UTC")


def _model_without_times() -> Model:
    return _calibrated("1row", None, None)


class Service:
    """`eccaht serve` with a store in a folder; it keeps its port and its plants over a restart."""

    def __init__(self, folder: Path) -> None:
        self._url, self._log = f"sqlite:///{folder}/live.db", folder / "service.log"
        self._port, self._sent, self._counted = free_port(), dict[str, int](), set[str]()
        self._store = Store(self._url)
        self._store.prepare()
        self._admin = {"Authorization": f"Bearer {self.token('admin of the test', 'admin', 'ingest')}"}
        self._launch()
        model = _model().to_bytes()  # while the program starts
        self._connect()
        self._digest = self._upload(model)

    def start(self) -> None:
        """Start the program and wait until it says where it listens."""
        self._launch()
        self._connect()

    def _launch(self) -> None:
        command = [sys.executable, "-m", "eccaht", "serve", "--store", self._url, "--port", str(self._port)]
        with self._log.open("a") as log:
            self._program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=_FEW_PAGES)

    def _connect(self) -> None:
        assert self._program.stdout is not None
        line = self._program.stdout.readline()
        assert line.startswith("http"), self._log.read_text()
        self.base = line.strip().rstrip("/")
        self._client = httpx.Client(base_url=self.base, headers=self._admin, timeout=60.0)

    def stop(self) -> None:
        """End the program, as systemd would."""
        self._client.close()
        self._program.terminate()
        self._program.wait(60)
        assert self._program.stdout is not None
        self._program.stdout.close()

    def close(self) -> None:
        """End everything."""
        self.stop()
        self._store.close()

    def token(self, name: str, *scopes: str) -> str:
        """A new token."""
        with self._store.begin() as connection:
            return guard.create(connection, name, scopes, now=now())

    def revoke(self, name: str) -> None:
        """Take a token back."""
        with self._store.begin() as connection:
            guard.revoke(connection, name, now=now())

    def plant(self, name: str) -> str:
        """A plant with half a minute of quiet windows."""
        self.send(self.new_plant(name), 30)
        return name

    def new_plant(self, name: str, **options: Any) -> str:
        """A plant without a window yet."""
        self._ask("PUT", f"/api/plants/{name}", json={"model": self._digest, "false_alarms": "1/1d", **options})
        return name

    def counted_plant(self, name: str) -> str:
        """The same by a model that counts rows and knows no times."""
        self._counted.add(name)
        digest = self._upload(_model_without_times().to_bytes())
        self._ask("PUT", f"/api/plants/{name}", json={"model": digest, "false_alarms": "1/86400w"})
        self.send(name, 30)
        return name

    def _upload(self, content: bytes) -> str:
        answer = self._ask("POST", "/api/models", params={"name": "test.model"}, content=content)
        return str(answer.json()["digest"])

    def remove(self, name: str) -> None:
        """Delete a plant."""
        self._ask("DELETE", f"/api/plants/{name}")

    def send(self, plant: str, windows: int, wrong: tuple[str, ...] = ()) -> None:
        """The next windows of a plant, in which some sensors read too high; a window is counted with the next row."""
        first = self._sent.get(plant, 0)
        values = _readings(5000, "now")[first : first + windows]
        values[:, [SENSORS.index(name) for name in wrong]] += 12.0
        rows = [
            {"time": self._time(plant, first + k), "values": dict(zip(SENSORS, row.tolist(), strict=True))}
            for k, row in enumerate(values)
        ]
        self._ask("POST", f"/api/plants/{plant}/rows", json=rows)
        self._sent[plant] = first + windows

    def skip(self, plant: str, windows: int) -> None:
        """Leave out windows of a plant, or go back by so many."""
        self._sent[plant] = self._sent.get(plant, 0) + windows

    def _time(self, plant: str, k: int) -> str:
        return f"row {k + 1}" if plant in self._counted else f"{_START + k * _SECOND}Z"

    def comment(self, plant: str, incident: int, text: str) -> None:
        """A comment on an alarm."""
        self._ask("POST", f"/api/plants/{plant}/incidents/{incident}/comments", json={"text": text})

    def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        answer = self._client.request(method, path, **more)
        assert answer.is_success, answer.text
        return answer


class Pages:
    """Pages of one browser for one test; what the browser's console says against them is kept.

    spare: pages without cookies that earlier tests left; a new one compiles the charts library for seconds.
    """

    def __init__(self, browser: Browser, base: str, spare: list[Page]) -> None:
        self._browser, self._base, self._spare = browser, base, spare
        self._lent: list[Page] = []
        self._noted: list[str] = []
        self._excused: list[str] = []
        self._listeners: dict[Any, Callable[[Any], None]] = {
            "console": self._note,
            "pageerror": lambda error: self._noted.append(f"error: {error}"),
            "dialog": lambda dialog: self._noted.append(f"dialog: {dialog.message}"),
        }

    def open(self, token: str | None = None, address: str | None = "") -> Page:
        """A page with cookies of its own, logged in with a token; address: None for none yet."""
        page = self._lend()
        if token is not None:
            answer = page.context.request.post("/api/login", data={"token": token})
            assert answer.ok, answer.text()
        page.set_default_timeout(_PATIENCE)
        for event, listener in self._listeners.items():
            page.on(event, listener)
        if address is not None:
            page.goto(f"/{address}")
        return page

    def excuse(self, text: str) -> None:
        """What the browser itself notes of answers that the test brings about, whenever it does, is no problem."""
        self._excused.append(text)

    @property
    def problems(self) -> list[str]:
        """What was noted and not excused."""
        return [note for note in self._noted if not any(text in note for text in self._excused)]

    def close(self) -> None:
        """Leave all pages."""
        for page in self._lent:
            page.unroute_all(behavior="ignoreErrors")
            page.route("**/parked", lambda route: route.fulfill(body=_PARKED, content_type="text/html"))
            page.goto("/parked")  # of the same server, so that the browser keeps what it has compiled
            page.unroute_all()
            for event, listener in self._listeners.items():
                page.remove_listener(event, listener)
            page.context.clear_cookies()
            page.set_viewport_size(_SCREEN)
            page.emulate_media(color_scheme="light")
        self._spare += reversed(self._lent)  # the first one, which every test has, is the next

    def _lend(self) -> Page:
        self._lent.append(
            self._spare.pop() if self._spare else self._browser.new_context(base_url=self._base).new_page()
        )
        return self._lent[-1]

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._noted.append(f"{message.type}: {message.text} {message.location.get('url', '')}")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of the system."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()
