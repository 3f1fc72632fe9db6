"""The REST interface over a real server, on both databases."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any
from urllib.parse import quote

import pytest

from kernel_gen.ir.graph import Graph
from kernel_gen.records import JobState
from service.paging import encode_cursor
from tests.fixtures import samples
from tests.fixtures.server import Service

NO_NUMBERS = ("x", "-1", "²", "9" * 20)  # the last one is above 64 bits


def submit_graph(service: Service, program: Graph) -> str:
    answer = service.http.post(
        "/v1/graphs", content=program.to_json(), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def submit_job(service: Service, program: Graph, **changes: Any) -> dict[str, Any]:
    body = {"graph": submit_graph(service, program), "budget": {"seconds": 5.0}} | changes
    answer = service.http.post("/v1/jobs", json=body)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def assert_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = dict(answer.json())
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["type"] == f"urn:gaf:problem:{code}"
    assert problem["detail"]
    assert problem["instance"].startswith("/")
    return problem


def test_a_graph_is_named_by_its_digest_and_comes_back(service: Service) -> None:
    program = samples.graph()
    assert submit_graph(service, program) == submit_graph(service, program) == program.digest
    answer = service.http.get(f"/v1/graphs/{program.digest}")
    assert answer.text == program.to_json()
    picture = service.http.get(f"/v1/graphs/{program.digest}/svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert "aten.sort.default" in picture.text


@pytest.mark.parametrize(
    ("content", "media_type", "status", "code"),
    [
        (b"{", "application/json", 422, "invalid-input"),
        (b'{"nodes":[]}', "application/json", 422, "invalid-input"),
        (b"\x08\x01onnx", "application/octet-stream", 415, "unsupported-graph-format"),
        (b"", "", 415, "unsupported-graph-format"),
    ],
)
def test_bad_graphs_are_problems(
    sqlite_service: Service, content: bytes, media_type: str, status: int, code: str
) -> None:
    headers = {"Content-Type": media_type} if media_type else {}
    answer = sqlite_service.http.post("/v1/graphs", content=content, headers=headers)
    problem = assert_problem(answer, status, code)
    if status == 415:
        assert "gaf.capture" in problem["detail"]


def test_a_graph_that_breaks_a_rule_names_the_place(sqlite_service: Service) -> None:
    tree = json.loads(samples.graph().to_json())
    tree["nodes"][1]["inputs"] = [99]
    answer = sqlite_service.http.post("/v1/graphs", json=tree)
    assert_problem(answer, 422, "invalid-graph")


def test_a_job_is_queued_and_shown(service: Service) -> None:
    program = samples.graph()
    job = submit_job(service, program, priority=2, numerics="strict", budget={"trials": 7})
    assert (job["state"], job["priority"], job["numerics"]) == ("queued", 2, "strict")
    assert job["budget"] == {"seconds": 60.0, "trials": 7}
    assert service.http.get(f"/v1/jobs/{job['id']}").json() == job
    page = service.http.get("/v1/jobs").json()
    assert page == {"jobs": [job], "next": None}
    assert submit_job(service, program, numerics="strict")["id"] == job["id"]
    assert submit_job(service, program)["id"] != job["id"]


def test_a_job_whose_plan_exists_is_born_done_unless_forced(service: Service) -> None:
    program = samples.graph()
    key_target = submit_job(service, program)["key"]
    assert service.http.delete(f"/v1/jobs/{service.store.jobs.list()[0].id}").status_code == 200
    from kernel_gen.runtime.host import host_target

    plan = samples.plan(program, target=host_target())
    assert str(plan.key) == key_target
    service.store.plans.publish(plan)
    done = submit_job(service, program)
    assert (done["state"], done["plan"]) == ("done", plan.id)
    assert submit_job(service, program, force=True)["state"] == "queued"


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"graph": "0" * 64}, 404, "not-found"),
        ({"budget": {"seconds": -1}}, 422, "invalid-request"),
        ({"numerics": "sloppy"}, 422, "invalid-request"),
        ({"training": True}, 422, "invalid-input"),
        ({"unknown": 1}, 422, "invalid-request"),
        ({"device": "ascend:0"}, 422, "invalid-input"),
        ({"target": "cpu-none"}, 422, "invalid-input"),
        ({"rules": "rules: ["}, 422, "invalid-rules"),
    ],
)
def test_bad_jobs_are_problems(
    sqlite_service: Service, changes: dict[str, Any], status: int, code: str
) -> None:
    body = {"graph": submit_graph(sqlite_service, samples.graph())} | changes
    assert_problem(sqlite_service.http.post("/v1/jobs", json=body), status, code)
    assert sqlite_service.store.jobs.list() == []


def test_malformed_json_is_a_bad_request(sqlite_service: Service) -> None:
    answer = sqlite_service.http.post(
        "/v1/jobs", content=b"{not json", headers={"Content-Type": "application/json"}
    )
    assert_problem(answer, 400, "malformed-json")


def test_idempotency_keys(service: Service) -> None:
    graph_id = submit_graph(service, samples.graph())
    headers = {"Idempotency-Key": "once"}
    body = {"graph": graph_id, "force": True}
    first, second = (
        service.http.post("/v1/jobs", json=body, headers=headers).json() for _ in range(2)
    )
    assert first == second
    other = service.http.post("/v1/jobs", json=body | {"priority": 1}, headers=headers)
    assert_problem(other, 422, "idempotency-conflict")


def test_the_quota_of_a_tenant(service: Service) -> None:
    service.store.tenants.set_queue_limit("default", 1)
    submit_job(service, samples.graph(1))
    body = {"graph": submit_graph(service, samples.graph(2))}
    answer = service.http.post("/v1/jobs", json=body)
    assert_problem(answer, 429, "quota-exceeded")
    assert int(answer.headers["retry-after"]) > 0


def test_jobs_are_paged_by_an_opaque_cursor(service: Service) -> None:
    ids = [submit_job(service, samples.graph(rows))["id"] for rows in range(1, 6)]
    found: list[str] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        page = service.http.get("/v1/jobs", params=params).json()
        found += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        params["cursor"] = page["next"]
    assert found == ids[::-1]
    assert_problem(service.http.get("/v1/jobs?cursor=zzz"), 422, "invalid-cursor")
    assert_problem(service.http.get("/v1/jobs?limit=0"), 422, "invalid-request")
    assert service.http.get("/v1/jobs?state=done").json()["jobs"] == []


def test_a_cursor_that_no_database_holds_is_refused(service: Service) -> None:
    answer = service.http.get("/v1/plans", params={"cursor": encode_cursor(2**63, "a")})
    assert_problem(answer, 422, "invalid-cursor")


def test_cancelling_is_idempotent_and_keeps_the_record(service: Service) -> None:
    job = submit_job(service, samples.graph())
    for _ in range(2):
        answer = service.http.delete(f"/v1/jobs/{job['id']}")
        assert answer.json()["state"] == "cancelled"
    assert service.http.get(f"/v1/jobs/{job['id']}").json()["state"] == "cancelled"
    assert_problem(service.http.delete("/v1/jobs/none"), 404, "not-found")


def test_trials_are_listed_with_times_and_failures(service: Service) -> None:
    job = submit_job(service, samples.graph())
    lease = service.store.queue.claim("driver-1")
    assert lease is not None
    service.store.trials.add(lease, [samples.trial(0), samples.trial(1, None)])
    page = service.http.get(f"/v1/jobs/{job['id']}/trials?limit=1").json()
    assert page["trials"][0]["median_us"] == 12.5
    assert page["trials"][0]["point"] == {"tile": 1, "unroll": "yes"}
    rest = service.http.get(f"/v1/jobs/{job['id']}/trials?cursor={page['next']}").json()
    assert rest["trials"][0]["failure"]["code"] == "wrong-result"
    assert rest["next"] is None


def read_events(service: Service, job_id: str, **headers: str) -> list[dict[str, Any]]:
    answer = service.http.get(f"/v1/jobs/{job_id}/events", headers=headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def test_events_are_streamed_until_the_end_and_resumed(service: Service) -> None:
    job = submit_job(service, samples.graph())
    lease = service.store.queue.claim("driver-1")
    assert lease is not None
    service.store.events.append(lease, "progress", {"done": 1, "best_us": 3.5})
    service.store.queue.finish(lease, JobState.DONE)
    events = read_events(service, job["id"])
    assert [event["kind"] for event in events] == ["state", "state", "progress", "state"]
    assert events[2]["data"] == {"best_us": 3.5, "done": 1}
    resumed = read_events(service, job["id"], **{"Last-Event-ID": str(events[1]["sequence"])})
    assert resumed == events[2:]
    last = {"Last-Event-ID": str(events[-1]["sequence"])}
    assert service.http.get(f"/v1/jobs/{job['id']}/events", headers=last).status_code == 204
    for text in NO_NUMBERS:
        bad = {"Last-Event-ID": text.encode()}
        answer = service.http.get(f"/v1/jobs/{job['id']}/events", headers=bad)
        assert_problem(answer, 422, "invalid-event-id")


def test_events_arrive_while_the_job_runs(service: Service) -> None:
    job = submit_job(service, samples.graph())
    lease = service.store.queue.claim("driver-1")
    assert lease is not None
    kinds = []
    with service.http.stream("GET", f"/v1/jobs/{job['id']}/events") as answer:
        for line in answer.iter_lines():
            if not line.startswith("event: "):
                continue
            kinds.append(line[7:])
            if len(kinds) == 2:
                service.store.events.append(lease, "progress", {"done": 1})
            if len(kinds) == 3:
                service.store.queue.finish(lease, JobState.DONE)
    assert kinds == ["state", "state", "progress", "state"]


def test_a_lookup_hits_revalidates_and_misses(service: Service) -> None:
    plan = samples.plan()
    service.store.plans.publish(plan)
    url = "/v1/plans/lookup"
    answer = service.http.get(url, params={"key": str(plan.key)})
    assert (answer.status_code, answer.json()["id"]) == (200, plan.id)
    assert answer.json()["match"] == "exact"
    etag = answer.headers["etag"]
    again = service.http.get(url, params={"key": str(plan.key)}, headers={"If-None-Match": etag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    other = str(samples.key(plan.graph, samples.OTHER_TARGET))
    compatible = service.http.get(url, params={"key": other, "features": "avx2,fma", "abi": 1})
    assert compatible.json()["match"] == "compatible"
    for params, reason in (
        ({"key": other}, "other-target"),
        ({"key": str(plan.key), "torch": "2.99.0"}, "version"),
        ({"key": str(samples.key(samples.graph(9)))}, "unknown"),
    ):
        problem = assert_problem(service.http.get(url, params=params), 404, "plan-miss")
        assert (problem["reason"], problem["job"]) == (reason, None)


def test_a_key_with_a_plus_is_found_escaped_or_not(sqlite_service: Service) -> None:
    target = dataclasses.replace(samples.OTHER_TARGET, features=("avx512bf16",))
    plan = samples.plan(target=target)
    assert "+" in str(plan.key)
    sqlite_service.store.plans.publish(plan)
    for key in (str(plan.key), quote(str(plan.key))):
        answer = sqlite_service.http.get(f"/v1/plans/lookup?key={key}")
        assert answer.json()["id"] == plan.id


def test_a_lookup_names_the_job_that_is_tuning(service: Service) -> None:
    job = submit_job(service, samples.graph())
    answer = service.http.get("/v1/plans/lookup", params={"key": job["key"]})
    problem = assert_problem(answer, 404, "plan-miss")
    assert (problem["reason"], problem["job"]) == ("tuning", job["id"])
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    "query",
    ["", "key=nonsense", *(f"key=gaf1:a:b:c:d&abi={text}" for text in NO_NUMBERS)],
)
def test_bad_lookups_are_problems(sqlite_service: Service, query: str) -> None:
    assert_problem(sqlite_service.http.get(f"/v1/plans/lookup?{query}"), 422, "invalid-input")


def test_plans_travel_as_bundles(service: Service) -> None:
    plan = samples.plan()
    service.store.plans.publish(plan)
    detail = service.http.get(f"/v1/plans/{plan.id}").json()
    assert (detail["id"], detail["status"]) == (plan.id, "published")
    assert detail["plan"]["key"] == str(plan.key)
    artifact = plan.artifacts[0]
    assert service.http.get(f"/v1/artifacts/{artifact.sha256}").content == artifact.data
    bundle = service.http.get(f"/v1/plans/{plan.id}/bundle")
    assert bundle.headers["content-type"] == "application/x-tar"
    back = service.http.post(
        "/v1/plans/import", content=bundle.content, headers={"Content-Type": "application/x-tar"}
    )
    assert (back.status_code, back.json()["id"]) == (201, plan.id)
    altered = bundle.content.replace(b"return 1 < 2", b"return 2 < 1")
    assert altered != bundle.content
    assert_problem(service.http.post("/v1/plans/import", content=altered), 422, "untrusted-bundle")
    assert_problem(service.http.post("/v1/plans/import", content=b"no"), 422, "invalid-input")


def test_a_revoked_plan_is_not_handed_out(service: Service) -> None:
    plan = samples.plan()
    service.store.plans.publish(plan)
    answer = service.http.post(f"/v1/plans/{plan.id}/revoke", json={"reason": "wrong"})
    assert answer.json()["status"] == "revoked"
    assert_problem(service.http.get(f"/v1/plans/{plan.id}/bundle"), 410, "plan-revoked")
    page = service.http.get("/v1/plans", params={"status": "published"}).json()
    assert page["plans"] == []
    no_reason = service.http.post(f"/v1/plans/{plan.id}/revoke", json={})
    assert_problem(no_reason, 422, "invalid-request")


def test_devices_probes_and_metrics(service: Service) -> None:
    service.store.devices.heartbeat("host-1", "cpu", samples.TARGET, "idle")
    (device,) = service.http.get("/v1/devices").json()["devices"]
    assert (device["device"], device["alive"]) == ("cpu", True)
    assert device["target"] == samples.TARGET.key
    assert service.http.get("/v1/health/live").json() == {"status": "live"}
    assert service.http.get("/v1/health/ready").json() == {"status": "ready"}
    service.http.get("/v1/plans/lookup", params={"key": str(samples.key(samples.graph()))})
    text = service.http.get("/metrics").text
    assert 'gaf_lookups_total{result="unknown"} 1.0' in text
    assert "gaf_devices_alive 1.0" in text
    assert 'gaf_jobs{state="queued"} 0.0' in text


def test_a_job_is_for_the_target_of_a_live_device(sqlite_service: Service) -> None:
    sqlite_service.store.devices.heartbeat("host-1", "cpu", samples.TARGET, "idle")
    job = submit_job(sqlite_service, samples.graph())
    assert job["key"].endswith(samples.TARGET.key)


def test_the_trust_endpoint_shows_the_signing_key(sqlite_service: Service) -> None:
    from kernel_gen.runtime.trust import PublicKey

    found = sqlite_service.http.get("/v1/trust").json()
    key = PublicKey.parse(found["public_key"])
    assert key.fingerprint == found["fingerprint"] == hashlib.sha256(key.raw).hexdigest()


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "not-found"),
        ("PUT", "/v1/jobs", 405, "method-not-allowed"),
        ("GET", "/v1/jobs/none", 404, "not-found"),
        ("GET", "/v1/jobs/none/events", 404, "not-found"),
        ("GET", "/v1/jobs/none/trials", 404, "not-found"),
        ("GET", "/v1/graphs/none/svg", 404, "not-found"),
        ("GET", "/v1/plans/none/bundle", 404, "not-found"),
        ("GET", "/v1/artifacts/none", 404, "not-found"),
    ],
)
def test_every_error_is_a_problem(
    sqlite_service: Service, method: str, path: str, status: int, code: str
) -> None:
    assert_problem(sqlite_service.http.request(method, path), status, code)


NUL, HALF = "\0", "\ud800"  # text that one database or the other cannot hold


@pytest.mark.parametrize("text", [NUL, HALF], ids=["nul", "half-a-pair"])
def test_text_that_no_database_holds_is_the_callers_mistake(service: Service, text: str) -> None:
    plan_id = service.store.plans.publish(samples.plan())
    escaped = quote(text, errors="surrogatepass")
    headers = {"Content-Type": "application/json"}
    answers = [
        service.http.get(f"/v1/jobs/{escaped}"),
        service.http.get(f"/v1/plans?key={escaped}"),
        service.http.get(f"/v1/artifacts/{escaped}"),
        service.http.get(f"/v1/jobs?cursor={encode_cursor(text)}"),
        service.http.get(f"/v1/plans/lookup?key=gaf1:{escaped}:b:c:d"),
        service.http.post("/v1/jobs", content=json.dumps({"graph": text}), headers=headers),
        service.http.post(
            f"/v1/plans/{plan_id}/revoke", content=json.dumps({"reason": text}), headers=headers
        ),
    ]
    found = [answer.status_code for answer in answers]
    assert all(status < 500 for status in found), found
