"""A caller who sends large bodies holds up nobody else."""

import asyncio
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from eccaht.service.api import readers
from eccaht.service.api.readers import Readers
from eccaht.service.rows import Busy
from eccaht.service.sources.feed import Target
from eccaht.service.sources.parsing import BadPayload, Most, Payloads
from eccaht.service.sources.settings import ReadingSettings
from tests.service import plants
from tests.service.programs import program

MOST = Most(8_000_000, 10_000, 4_000_000)


def payloads(format: Any = "json") -> Payloads:
    return Payloads.of(ReadingSettings(), Target.of("p", plants.model()), format=format, most=MOST)


def wide(rows: int, unknown: int, *, same: bool = False) -> bytes:
    """CSV with columns that the model does not have; same: all rows of one time."""
    head = ",".join(["time", *plants.NAMES, *(f"x{k}" for k in range(unknown))])
    seconds = [0 if same else k for k in range(rows)]
    cells = ",".join(["1.5"] * len(plants.NAMES) + ["text"] * unknown)
    lines = [f"2026-03-01T08:{second // 60:02d}:{second % 60:02d}Z,{cells}" for second in seconds]
    return "\n".join([head, *lines]).encode()


def test_large_bodies_are_read_in_other_processes_and_the_loop_goes_on() -> None:
    """While one caller's bodies are read, the loop turns, and another caller's small body is done first."""

    async def run() -> tuple[list[str], int]:
        found, order, turns = Readers(), list[str](), 0
        large = b"[" + b",".join([b"[]"] * 2_600_000) + b"]"

        async def read(who: str, body: bytes) -> None:
            if body is large:
                with pytest.raises(BadPayload, match="more than 10000 at once"):
                    await found.rows(payloads(), body, who)
            else:
                await found.rows(payloads(), body, who)
            order.append(who)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(read("greedy", large)) for _ in range(3)]
            tasks.append(group.create_task(read("modest", b'{"time": "2026-03-01T08:00:00Z", "values": {"a": 1}}')))
            while not all(task.done() for task in tasks):
                await asyncio.sleep(0)
                turns += 1
        assert len(multiprocessing.active_children()) >= 1
        found.stop()
        return order, turns

    order, turns = asyncio.run(run())
    assert order == ["modest", "greedy", "greedy", "greedy"]
    assert turns > 100


def test_a_reader_that_is_killed_is_replaced() -> None:
    async def run() -> int:
        found, body = Readers(), wide(2000, 20)
        assert len(body) > readers._SMALL
        await found.rows(payloads("csv"), body, "who")
        assert found._processes is not None
        for child in [*found._processes._processes.values()]:  # other tests may have children of their own
            child.kill()
            child.join()
        with pytest.raises(Busy):
            await found.rows(payloads("csv"), body, "who")
        rows = await found.rows(payloads("csv"), body, "who")
        found.stop()
        return len(rows.times)

    assert asyncio.run(run()) == 2000


@pytest.mark.parametrize("same", [False, True])
def test_columns_that_the_model_does_not_have_are_not_read(same: bool) -> None:
    """They are texts, which no number can be read of; their names are known all the same."""
    rows = payloads("csv").rows(wide(60, 400, same=same))
    assert rows.names[: len(plants.NAMES)] == plants.NAMES
    assert len(rows.names) == len(plants.NAMES) + 400
    assert (rows.values[:, : len(plants.NAMES)] == 1.5).all()


def test_a_real_service_reads_large_bodies_and_leaves_no_process_behind(tmp_path: Path) -> None:
    (tmp_path / "plant.model").write_bytes(plants.content())
    with program(tmp_path, '[plants.p]\nmodel = "plant.model"\n') as made:
        headers = {**made.headers, "Content-Type": "text/csv"}
        answer = httpx.post(f"{made.base}/api/plants/p/rows", content=wide(2000, 20), headers=headers, timeout=60.0)
        assert (answer.status_code, answer.json()["rows"]) == (200, 2000)
        found = children(made.pid)
        assert found
        os.kill(made.pid, signal.SIGKILL)
    for _ in range(600):
        if not any(Path(f"/proc/{child}").exists() for child in found):
            return
        time.sleep(0.1)
    raise AssertionError("a process is left behind")


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]
