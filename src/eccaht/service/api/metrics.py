"""Numbers for Prometheus: of the service as a whole for everyone, of single plants for readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from eccaht.service.api.plants import engine_of
from eccaht.service.runtime.engine import Runtime
from eccaht.service.security.guard import require
from eccaht.service.store.schema import STATES

router = APIRouter()
_admitted = require("read")
_COUNTED = {
    "windows": "Windows that were stored.",
    "events": "Events that were stored.",
    "rows": "Rows that were taken.",
    "late": "Rows that came too late for their window.",
    "duplicate": "Rows that had come before.",
    "refused": "Deliveries refused because too many waited.",
    "failed": "Deliveries and orders that failed.",
}


@router.get("/metrics", response_class=PlainTextResponse, responses={200: {"content": {"text/plain": {}}}})
def metrics(request: Request) -> Response:
    """Numbers for Prometheus; those of single plants, which name them, for a token with the scope `read`."""
    named = "authorization" in request.headers
    if named:
        _admitted(request)
    registry = CollectorRegistry()  # of this request: the library's own would mix the services of one process
    registry.register(_Numbers(engine_of(request), named))
    return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


class _Numbers(Collector):
    def __init__(self, engine: Runtime, named: bool) -> None:
        self._engine, self._named = engine, named

    def describe(self) -> Iterator[Metric]:
        """Nothing: a registry need not compare what one collector alone brings."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All numbers as they are now."""
        engine, views = self._engine, self._engine.views()
        found = Counter(view.state for view in views.values())
        states = GaugeMetricFamily("eccaht_plants", "Plants by state.", labels=["state"])
        for state in STATES:
            states.add_metric([state], found[state])
        yield states
        blind = sum(view.no_data is not None for view in views.values())
        yield GaugeMetricFamily("eccaht_plants_without_data", "Plants that are not watched for want of rows.", blind)
        for name, what in _COUNTED.items():
            yield CounterMetricFamily(f"eccaht_{name}", what, engine.counts[name])
        yield GaugeMetricFamily("eccaht_waiting", "Deliveries that wait to be stored.", engine.waiting)
        yield GaugeMetricFamily("eccaht_clients", "Open streams of events.", engine.hub.clients)
        yield CounterMetricFamily("eccaht_resyncs", "Clients that were too slow.", engine.hub.dropped)
        yield GaugeMetricFamily("eccaht_up", "Whether the service takes rows.", int(engine.alive))
        if self._named:
            what = "How unusual the last windows are: 1 raises an alarm."
            evidence = GaugeMetricFamily("eccaht_evidence", what, labels=["plant"])
            for name, view in sorted(views.items()):
                evidence.add_metric([name], view.evidence)
            yield evidence
            no_data = GaugeMetricFamily("eccaht_no_data", "Whether the plant has no data.", labels=["plant"])
            for name, view in sorted(views.items()):
                no_data.add_metric([name], int(view.no_data is not None))
            yield no_data
