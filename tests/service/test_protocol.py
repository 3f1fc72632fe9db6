"""Bytes that are no request, or too much of one: an answer or a closed connection, never an error
of the server, and the next request is served."""

from __future__ import annotations

import errno
import socket
from urllib.parse import urlsplit

import pytest

from service.protocol import MAX_HEAD_BYTES
from tests.fixtures.server import Service

HOST = b"Host: 127.0.0.1\r\n"


def answer(service: Service, data: bytes, *, leave: bool = False) -> bytes:
    """What a connection gives back for some bytes; `leave` hangs up after sending."""
    place = urlsplit(service.url)
    with socket.create_connection((str(place.hostname), int(place.port or 0)), 20) as connection:
        try:
            connection.sendall(data)
            if leave:
                return b""
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(1 << 16)
        except OSError as error:  # the server hung up: before (ENOTCONN) or while we ask
            if not isinstance(error, ConnectionError) and error.errno != errno.ENOTCONN:
                raise
            return b""


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\xff\xfe" * 1000 + b"\r\n\r\n",
        b"\x16\x03\x01\x00\xa1" + b"x" * 100,
        b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * (4 << 20) + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n" * 100_000 + b"\r\n",
        b"POST /v1/jobs HTTP/1.1\r\n" + HOST + b"Content-Length: -5\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET /v1/jobs/%00%ff HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /v1/jobs HTTP/1.1\r\n" + HOST + b"Authorization: Bearer \xff\xfe\r\n\r\n",
        b"GET /static/%2e%2e/%2e%2e/app.py HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
    ids=range(11),
)
def test_no_bytes_are_an_error_of_the_server(sqlite_service: Service, data: bytes) -> None:
    found = answer(sqlite_service, data)
    assert not found or found.startswith(b"HTTP/1.1 4"), found[:80]
    assert sqlite_service.http.get("/v1/health/ready").status_code == 200


def test_heads_up_to_the_limit_pass_on_kept_connections(sqlite_service: Service) -> None:
    half = {"X-Filler": "a" * (MAX_HEAD_BYTES // 2)}
    for _ in range(5):  # of one connection: each request counts for itself
        assert sqlite_service.http.get("/v1/jobs", headers=half).status_code == 200


def test_bodies_that_come_in_one_piece_are_no_heads(sqlite_service: Service) -> None:
    headers = {"Content-Type": "application/json"}
    for _ in range(3):  # of one connection
        body = b"x" * (2 * MAX_HEAD_BYTES)
        said = sqlite_service.http.post("/v1/graphs", content=body, headers=headers)
        assert said.headers["content-type"] == "application/problem+json"  # of the application


def test_a_client_that_leaves_in_mid_body_is_no_server_error(
    sqlite_service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"POST /v1/graphs HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    answer(sqlite_service, head + b'Content-Length: 100\r\n\r\n{"a', leave=True)
    metrics = sqlite_service.http.get("/metrics").text
    assert 'status="500"' not in metrics
    assert "Traceback" not in caplog.text
