"""Whatever fits the OpenAPI document, and much that does not, is answered without a fault of the service."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from tests.service import plants
from tests.service.service import PLANT, Service, running

schemathesis = pytest.importorskip("schemathesis", reason="the OpenAPI tests need schemathesis")
EXAMPLES = 2  # of each operation and kind
ENDLESS = {"/api/stream"}  # an answer that does not end


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running("sqlite", tmp_path_factory.mktemp("openapi"), security={"logins": 1e6}) as made:
        times, values = plants.recording(60, wrong=slice(30, 50))
        rows = [
            {"time": f"{time}Z", **dict(zip(plants.NAMES, row, strict=True))}
            for time, row in zip(times.astype(str), values.tolist(), strict=True)
        ]
        assert (
            made.client.post(f"/api/plants/{PLANT}/rows", json=rows, headers=made.headers["ingest"]).status_code == 200
        )
        yield made


def sent(service: Service, case: Any, known: bool) -> Any:
    """The answer to a generated request; known: about the plant that there is."""
    if known and "plant" in case.path_parameters and case.method.upper() != "DELETE":
        case.path_parameters["plant"] = PLANT
        if "number" in case.path_parameters:
            case.path_parameters["number"] = 1
    request = case.as_transport_kwargs(base_url="http://localhost:8765")
    headers = {**(request.get("headers") or {}), **service.headers["admin"]}
    body = {name: request[name] for name in ("json", "data", "content") if request.get(name) is not None}
    if "data" in body and isinstance(body["data"], bytes | str):
        body["content"] = body.pop("data")
    return service.client.request(
        request["method"], request["url"], params=request.get("params"), headers=headers, **body
    )


@pytest.mark.usefixtures("plain_pictures")
def test_no_request_makes_the_service_fail(service: Service) -> None:
    document = service.client.get("/openapi.json", headers=service.headers["read"]).json()
    schema = schemathesis.openapi.from_dict(document)
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path in ENDLESS:
            continue
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            try:
                strategy = operation.as_strategy(generation_mode=mode)
                tried += tries(service, strategy)
            except Exception as error:
                if "Unsatisfiable" in type(error).__name__:  # nothing about it can be wrong
                    continue
                raise
    assert tried > 100


def tries(service: Service, strategy: Any) -> int:
    count = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy, known=st.booleans())
    def check(case: Any, known: bool) -> None:
        nonlocal count
        count += 1
        try:
            answer = sent(service, case, known)
        except (UnicodeError, ValueError):  # what no client could send
            return
        assert answer.status_code < 500, f"{case.method} {answer.url}: {answer.text}"
        if answer.status_code >= 400 and answer.content:
            assert "\n" not in answer.json()["detail"]

    check()
    return count
