"""Who may do what: keys, roles, tenants, cookies; hosts, origins and sizes."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from fastapi import Request

from db.schema import DEFAULT_TENANT, Role
from db.store import Store
from kernel_gen.errors import InvalidInput
from service.auth import COOKIE, Authenticator
from service.dashboard.login import own_path
from service.guard import host_name, known_hosts
from service.settings import Settings, read_settings
from tests.fixtures import samples
from tests.fixtures.server import Service, running, settings

LIMIT = 100_000


@pytest.fixture
def keys(sqlite_url: str) -> dict[Role, str]:
    """One key of each role in the default tenant."""
    with Store(sqlite_url) as store:
        return {role: store.tenants.create_key(DEFAULT_TENANT, role, role) for role in Role}


@pytest.fixture
def locked(sqlite_url: str, tmp_path: Path, keys: dict[Role, str]) -> Iterator[Service]:
    """A service with keys and small bodies."""
    with running(settings(tmp_path, sqlite_url, max_body_bytes=LIMIT)) as started:
        yield started


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def code_of(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_without_a_valid_key_nothing_is_shown(locked: Service) -> None:
    for path in ("/v1/jobs", "/v1/plans", "/v1/devices", "/v1/plans/lookup?key=x", "/metrics"):
        for headers in ({}, bearer("gaf_wrong"), {"Cookie": f"{COOKIE}=wrong"}):
            answer = locked.http.get(path, headers=headers)
            assert code_of(answer) == (401, "no-valid-key")
            assert answer.headers["www-authenticate"] == "Bearer"
    assert locked.http.get("/v1/health/live").status_code == 200
    assert locked.http.get("/v1/trust").status_code == 200


def test_roles_allow_what_they_say(locked: Service, keys: dict[Role, str]) -> None:
    graph = samples.graph().to_json()
    plan_id = locked.store.plans.publish(samples.plan())
    calls = {
        Role.READ: ("GET", "/v1/jobs", None),
        Role.SUBMIT: ("POST", "/v1/graphs", graph),
        Role.PUBLISH: ("POST", f"/v1/plans/{plan_id}/revoke", '{"reason": "test"}'),
    }
    for needed, (method, path, content) in calls.items():
        for role, key in keys.items():
            headers = bearer(key) | {"Content-Type": "application/json"}
            answer = locked.http.request(method, path, content=content, headers=headers)
            if role.rank >= needed.rank:
                assert answer.status_code < 300, answer.text
            else:
                assert code_of(answer) == (403, "role-too-low")


def test_tenants_see_and_cancel_their_own_jobs(locked: Service, keys: dict[Role, str]) -> None:
    other = locked.store.tenants.create_key(
        locked.store.tenants.create("other"), "other", Role.SUBMIT
    )
    program = samples.graph()
    locked.store.graphs.put(program)
    body = {"graph": program.digest}
    job = locked.http.post("/v1/jobs", json=body, headers=bearer(keys[Role.SUBMIT])).json()
    assert locked.http.get("/v1/jobs", headers=bearer(other)).json()["jobs"] == []
    own = locked.http.get("/v1/jobs", headers=bearer(keys[Role.READ])).json()["jobs"]
    assert [found["id"] for found in own] == [job["id"]]
    refused = locked.http.delete(f"/v1/jobs/{job['id']}", headers=bearer(other))
    assert code_of(refused) == (403, "other-tenant")
    admin = locked.http.delete(f"/v1/jobs/{job['id']}", headers=bearer(keys[Role.ADMIN]))
    assert admin.json()["state"] == "cancelled"


def test_a_revoked_key_ends_within_seconds(sqlite_url: str, keys: dict[Role, str]) -> None:
    now = [0.0]
    header = (b"authorization", f"Bearer {keys[Role.READ]}".encode())
    request = Request({"type": "http", "headers": [header]})
    with Store(sqlite_url) as store:
        found = Authenticator(store, loopback=True, monotonic=lambda: now[0])
        assert anyio.run(found.principal, request) is not None
        (key,) = (k for k in store.tenants.list_keys() if k.role is Role.READ)
        store.tenants.revoke_key(key.id)
        now[0] = 1.9
        assert anyio.run(found.principal, request) is not None  # remembered, without a read
        now[0] = 2.1
        assert anyio.run(found.principal, request) is None


def test_the_dashboard_trades_a_key_for_a_strict_cookie(
    locked: Service, keys: dict[Role, str]
) -> None:
    sent = locked.http.get("/plans", headers={"Accept": "text/html"})
    assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=/plans")
    wrong = locked.http.post("/login", data={"key": "gaf_wrong"})
    assert wrong.status_code == 403
    assert "set-cookie" not in wrong.headers
    done = locked.http.post("/login", data={"key": keys[Role.READ], "next": "/plans"})
    assert (done.status_code, done.headers["location"]) == (303, "/plans")
    cookie = done.headers["set-cookie"].lower()
    assert "samesite=strict" in cookie
    assert "httponly" in cookie
    assert keys[Role.READ] not in done.headers["set-cookie"]
    assert locked.http.get("/plans").status_code == 200  # the client keeps cookies
    assert locked.http.get("/v1/jobs").status_code == 200
    assert code_of(locked.http.post("/v1/graphs", content=b"{}")) == (403, "role-too-low")
    token = locked.http.cookies[COOKIE]
    assert locked.http.post("/logout").status_code == 303
    again = locked.http.get("/v1/jobs", headers={"Cookie": f"{COOKIE}={token}"})
    assert again.status_code == 401


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/plans", "/plans"), ("//evil.example", "/"), ("https://evil", "/"), ("/\\evil", "/")],
)
def test_a_login_leads_to_a_page_of_this_server(path: str, expected: str) -> None:
    assert own_path(path) == expected


def test_foreign_hosts_and_origins_are_refused(locked: Service, keys: dict[Role, str]) -> None:
    headers = bearer(keys[Role.ADMIN])
    rebound = locked.http.get("/v1/jobs", headers=headers | {"Host": "evil.example"})
    assert code_of(rebound) == (421, "wrong-host")
    port = locked.url.rpartition(":")[2]
    assert locked.http.get("/v1/jobs", headers=headers | {"Host": f"localhost:{port}"}).is_success
    for extra in (
        {"Origin": "https://evil.example"},
        {"Origin": "http://[evil"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        answer = locked.http.delete("/v1/jobs/none", headers=headers | extra)
        assert code_of(answer) == (403, "cross-site")
    same = headers | {"Origin": locked.url, "Sec-Fetch-Site": "same-origin"}
    assert code_of(locked.http.delete("/v1/jobs/none", headers=same)) == (404, "not-found")


def test_answers_forbid_foreign_content(locked: Service) -> None:
    for path in ("/login", "/v1/health/live", "/v1/nothing", "/static/style.css"):
        headers = locked.http.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_large_bodies_are_cut_off(locked: Service, keys: dict[Role, str]) -> None:
    headers = bearer(keys[Role.ADMIN]) | {"Content-Type": "application/json"}
    known = locked.http.post("/v1/graphs", content=b"x" * (LIMIT + 1), headers=headers)
    assert code_of(known)[0] == 413

    def chunks() -> Iterator[bytes]:
        for _ in range(LIMIT // 1000 + 2):
            yield b"x" * 1000

    streamed = locked.http.post("/v1/graphs", content=chunks(), headers=headers)
    assert streamed.status_code == 413
    assert streamed.headers["content-type"] == "application/problem+json"
    typed = locked.http.post("/v1/jobs", content=chunks(), headers=headers)
    assert typed.status_code == 413


def test_a_body_has_at_most_64_mib_unless_set_otherwise(sqlite_service: Service) -> None:
    """Refused by its length alone: none of it is read. The largest that fits is asked for."""
    for nbytes, answer in ((64 << 20) + 1, b"413"), (64 << 20, b"100"):
        place = urlsplit(sqlite_service.url)
        head = (
            "POST /v1/graphs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Expect: 100-continue\r\nContent-Length: {nbytes}\r\n\r\n"
        )
        with socket.create_connection((str(place.hostname), place.port or 0), 20) as connection:
            connection.sendall(head.encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 " + answer)


def test_host_headers_are_read_with_ports_and_brackets() -> None:
    assert [host_name(text) for text in ("A.B:80", "[::1]:80", "127.0.0.1", "[bad")] == [
        "a.b",
        "::1",
        "127.0.0.1",
        "",
    ]
    assert known_hosts("0.0.0.0", ()) is None
    assert known_hosts("0.0.0.0", ("Gaf.Local",)) == {
        "gaf.local",
        "0.0.0.0",
        "127.0.0.1",
        "localhost",
        "::1",
    }


def test_only_loopback_addresses_are_open_without_keys(tmp_path: Path) -> None:
    hosts = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "192.0.2.1", "gaf.example")
    found = [Settings(db="sqlite:///x", host=host).is_loopback for host in hosts]
    assert found == [True, True, True, False, False, False]


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAF_SERVICE_DB", "sqlite:////tmp/x.db")
    monkeypatch.setenv("GAF_SERVICE_PORT", "9000")
    found = Settings()  # type: ignore[call-arg]
    assert (found.db, found.port) == ("sqlite:////tmp/x.db", 9000)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("MAX_BODY_BYTES", "much", "GAF_SERVICE_MAX_BODY_BYTES: Input should be a valid integer"),
        ("MAX_BODY_BYTES", "-1", "greater than or equal to 0, not '-1'"),
        ("ALLOWED_HOSTS", "gaf.example", "a list is JSON"),
        ("ALLOWED_HOSTS", "[1]", "GAF_SERVICE_ALLOWED_HOSTS: Input should be a valid string"),
    ],
)
def test_wrong_settings_are_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(f"GAF_SERVICE_{name}", value)
    with pytest.raises(InvalidInput, match=re.escape(says)):
        read_settings(db="sqlite:///x")
