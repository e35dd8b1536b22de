"""Numbers for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from eccaht.live.engine import Engine
from eccaht.live.store.schema import STATES


def text(engine: Engine) -> str:
    """All numbers, in Prometheus' text format."""
    return "\n".join([*_lines(engine), ""])


def _lines(engine: Engine) -> Iterator[str]:
    views = engine.views()
    states = Counter(view.state for view in views.values())
    yield from _metric("eccaht_plants", "gauge", "Plants by state.", {f'{{state="{s}"}}': states[s] for s in STATES})
    for name, what in (
        ("windows", "Windows that were stored."),
        ("events", "Events that were stored."),
        ("rows", "Rows that were taken."),
        ("late", "Rows that came too late for their window."),
        ("duplicate", "Rows that had come before."),
        ("refused", "Deliveries refused because too many waited."),
        ("failed", "Deliveries and orders that failed."),
    ):
        yield from _metric(f"eccaht_{name}_total", "counter", what, {"": engine.counts[name]})
    yield from _metric("eccaht_waiting", "gauge", "Deliveries that wait to be stored.", {"": engine.waiting})
    yield from _metric("eccaht_clients", "gauge", "Open streams of events.", {"": engine.hub.clients})
    yield from _metric("eccaht_resyncs_total", "counter", "Clients that were too slow.", {"": engine.hub.dropped})
    yield from _metric("eccaht_up", "gauge", "Whether the service takes rows.", {"": int(engine.alive)})
    evidence = {f"{{plant={_quoted(name)}}}": view.evidence for name, view in views.items()}
    yield from _metric("eccaht_evidence", "gauge", "How unusual the last windows are: 1 raises an alarm.", evidence)


def _metric(name: str, kind: str, what: str, values: dict[str, float]) -> Iterator[str]:
    yield f"# HELP {name} {what}"
    yield f"# TYPE {name} {kind}"
    yield from (f"{name}{labels} {value:.17g}" for labels, value in values.items())


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
