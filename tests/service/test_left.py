"""A client that leaves in the middle of its request is no fault of the service."""

import socket
from pathlib import Path

from tests.service.programs import program


def test_a_client_that_leaves_in_the_middle_of_a_body_leaves_no_traceback_in_the_log(tmp_path: Path) -> None:
    with program(tmp_path) as service:
        lines = [f"POST /api/models?name=m HTTP/1.1\r\nHost: {service.base}\r\nContent-Length: 1000"]
        lines += [f"{name}: {value}" for name, value in service.headers.items()]
        with socket.create_connection(("127.0.0.1", service.port)) as client:
            client.sendall("\r\n".join([*lines, "", "begun"]).encode())
        assert service.get("/metrics").status_code == 200
    assert "Traceback" not in service.log.read_text()
