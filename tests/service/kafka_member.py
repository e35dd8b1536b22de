"""One service of a consumer group as a process that can be killed: it writes each row that it stored to a file."""

import asyncio
import os
import sys
from typing import Any

from eccaht.plants.intake import Rows
from eccaht.service.rows import Receipt
from eccaht.service.sources import make_feed, read_settings
from tests.service.source_tools import Recorder, target


class Log(Recorder):
    """A sink that stores rows as lines of a file."""

    def __init__(self, path: str, pause: float) -> None:
        super().__init__()
        self._file, self._pause = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), pause

    async def submit(self, plant: str, rows: Rows, *, source: str) -> Receipt:
        assert source
        await asyncio.sleep(self._pause)
        lines = [f"{plant} {time}\n" for time in rows.times.astype(int).tolist()]
        os.write(self._file, "".join(lines).encode())
        return Receipt(len(rows.times), 0, 0, 0)


def main(path: str, servers: str, topic: str, pause: str) -> None:
    document: dict[str, Any] = {"kind": "kafka", "servers": servers, "topic": topic, "group": f"of-{topic}"}
    document |= {"session": "4s", "wait": "50ms", "batch": 40}
    sink = Log(path, float(pause))
    asyncio.run(make_feed("bus", read_settings(document, "bus"), lambda name: target(name=name), sink).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
