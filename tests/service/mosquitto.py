"""A Mosquitto of our own, which can be killed and started again."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.service.source_tools import free_port, open_port

PROGRAM = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
SHIPPED = (Path(__file__).parents[2] / "deploy" / "mosquitto.conf").read_text(encoding="utf-8")
DROPS_NOTHING = "listener 1883\nallow_anonymous true\nmax_queued_messages 0\n"


class Mosquitto:
    """A broker with these settings, on a port of its own, for anyone, with its files in a folder."""

    def __init__(self, folder: Path, settings: str) -> None:
        self.port, self._file = free_port(), folder / "mosquitto.conf"
        settings = settings.replace("listener 1883", f"listener {self.port} 127.0.0.1")
        settings = re.sub(r"allow_anonymous false\npassword_file .*", "allow_anonymous true", settings)
        settings = re.sub(r"(?m)^(persistence_location) .*$", rf"\1 {folder}/", settings)
        user = "user root\n" if os.getuid() == 0 else ""
        self._file.write_text(settings + user)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert PROGRAM is not None
        self.process = subprocess.Popen([PROGRAM, "-c", str(self._file)], stderr=subprocess.DEVNULL)

    def stop(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None

    def listens(self) -> bool:
        return open_port("127.0.0.1", self.port)


@contextmanager
def mosquitto(folder: Path, settings: str) -> Iterator[Mosquitto]:
    """A broker for the length of a block."""
    if PROGRAM is None:
        pytest.skip("mosquitto is not installed")
    broker = Mosquitto(folder, settings)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop(signal.SIGKILL)
