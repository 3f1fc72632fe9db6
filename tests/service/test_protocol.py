"""Bytes that are no request, or too much of one: an answer or a closed connection, never an error
of the server, and the next request is served."""

from __future__ import annotations

import contextlib
import errno
import re
import socket
import time
from collections.abc import Iterator
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


def head(nbytes: int, more: bytes = b"") -> bytes:
    """A request for the list of jobs whose line and headers are that long."""
    start = b"GET /v1/jobs HTTP/1.1\r\n" + HOST + more + b"X-Filler: "
    return start + b"a" * (nbytes - len(start) - 4) + b"\r\n\r\n"


def statuses(service: Service, *pieces: bytes, count: int = 1) -> list[int]:
    """The first answers to what one connection sends, piece by piece."""
    place = urlsplit(service.url)
    found = b""
    with socket.create_connection((str(place.hostname), int(place.port or 0)), 20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ConnectionError):  # the server hung up
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.05)
            while len(_codes(found)) < count and (part := connection.recv(1 << 20)):
                found += part
    return _codes(found)


def _codes(answers: bytes) -> list[int]:
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)]


def cuts(data: bytes) -> Iterator[tuple[bytes, ...]]:
    """In one piece, within lines, within the end of the head."""
    yield (data,)
    for at in (1, 30, len(data) // 2, len(data) - 3, len(data) - 1):
        yield data[:at], data[at:]


def test_the_limit_of_a_head_is_exact_however_it_comes(sqlite_service: Service) -> None:
    for pieces in cuts(head(MAX_HEAD_BYTES)):
        assert statuses(sqlite_service, *pieces) == [200], [len(piece) for piece in pieces]
    for pieces in cuts(head(MAX_HEAD_BYTES + 1)):
        assert statuses(sqlite_service, *pieces) == [400], [len(piece) for piece in pieces]


def test_each_head_of_a_pipeline_counts_for_itself(sqlite_service: Service) -> None:
    body = b'{"' + b"x" * 300 + b"\r\n\r\n" * 3
    length = str(len(body)).encode()
    post = (
        b"POST /v1/graphs HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
        b"Content-Length: " + length + b"\r\n\r\n" + body
    )
    fits, large = head(MAX_HEAD_BYTES), head(MAX_HEAD_BYTES + 1)
    for pieces in cuts(fits + post + fits):
        assert statuses(sqlite_service, *pieces, count=3) == [200, 422, 200]
    for pieces in cuts(post + large):
        assert statuses(sqlite_service, *pieces, count=2)[-1] == 400


def test_a_request_behind_a_chunked_body_is_read(sqlite_service: Service) -> None:
    chunked = (
        b"POST /v1/graphs HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n[1,2]\r\n0\r\n\r\n"
    )
    for pieces in cuts(chunked + head(500)):
        assert statuses(sqlite_service, *pieces, count=2) == [422, 200]


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
