"""`Client`: a tuning service over REST."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from graph_autofusion.arguments import checked_path
from graph_autofusion.http import CONNECT_SECONDS, Http, error_of, problem_of
from graph_autofusion.job import Job
from graph_autofusion.options import parse_budget
from kernel_gen.errors import InvalidInput
from kernel_gen.ir.graph import Graph
from kernel_gen.records import Budget, JobRequest, JobState
from kernel_gen.runtime.bundle import write_files
from kernel_gen.runtime.bundle_format import MANIFEST, plan_of_files
from kernel_gen.runtime.bundle_tar import pack_files, unpack_files
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.requires import this_process
from kernel_gen.runtime.trust import PublicKey, Trust

if TYPE_CHECKING:
    import httpx2

_JSON = {"Content-Type": "application/json"}
_TAR = {"Content-Type": "application/x-tar"}


@dataclass(frozen=True, slots=True)
class Found:
    """A lookup's answer: `match` is "exact", "compatible" or "miss".

    A hit has `plan_id`, and `improved` says whether its plan beat the framework; a miss has
    `reason` (unknown, tuning, other-target, version, revoked) and the `job_id` that works on it, if
    one does.
    """

    match: str
    plan_id: str | None = None
    reason: str | None = None
    job_id: str | None = None
    improved: bool = False


class Client:
    """A service at `url`. Thread-safe; close it, or use it in a `with` statement.

    Every call raises Unavailable within 3 s if the service cannot be reached, and InvalidInput (or
    a more special error) if it refuses. `trust` says whose plans may be loaded: by default the
    user's own (`gaf trust add URL`).
    """

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        trust: Trust | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._http = Http(url, api_key, transport)
        self._trust = trust

    def submit(
        self,
        model: Graph | str | Path | Callable[..., Any],
        example_inputs: Any = None,
        *,
        device: str = "cpu",
        budget: Budget | float | None = None,
        dynamic_shapes: Any = None,
        rules: str = "",
        numerics: str = "fast",
        priority: int = 0,
        force: bool = False,
    ) -> Job:
        """Ask for a plan for a model, a captured Graph, or a file: graph JSON, ONNX or .pt2.

        Models are captured here and stay here: structure, types and small constants are sent.
        """
        graph = _graph_of(model, example_inputs, dynamic_shapes)
        request = JobRequest(
            graph_digest=graph.digest,
            device=device,
            budget=parse_budget(budget),
            rules=rules,
            numerics=numerics,
            priority=priority,
            force=force,
        )
        return self.submit_graph(graph, request)

    def submit_graph(self, graph: Graph, request: JobRequest) -> Job:
        """Ask for a plan; `request.graph_digest` is the digest of `graph`."""
        content = graph.to_json().encode()
        stored = self._http.read("POST", "/v1/graphs", content=content, headers=_JSON).json()
        body = {
            "graph": stored["id"],
            "device": request.device,
            "budget": {"seconds": request.budget.seconds, "trials": request.budget.trials},
            "rules": request.rules,
            "numerics": request.numerics,
            "training": request.training,
            "priority": request.priority,
            "force": request.force,
        }
        # A key of its own makes the request harmless to repeat on a broken connection.
        headers = _JSON | {"Idempotency-Key": str(uuid.uuid4())}
        content = json.dumps(body).encode()
        job = self._http.read("POST", "/v1/jobs", content=content, headers=headers).json()
        return Job(self, self._http, job)

    def job(self, job_id: str) -> Job:
        """The job of that id."""
        details = self._http.read("GET", f"/v1/jobs/{_segment(job_id)}").json()
        return Job(self, self._http, details)

    def jobs(self, state: JobState | str | None = None, limit: int = 50) -> list[Job]:
        """The newest jobs, at most `limit`, which is at most 500."""
        params = {"limit": limit} | ({"state": str(state)} if state else {})
        page = self._http.read("GET", "/v1/jobs", params=params).json()
        return [Job(self, self._http, details) for details in page["jobs"]]

    def find(self, key: PlanKey | str) -> Found:
        """What the service knows of a key, for a caller like this process."""
        caller = this_process()
        params = {
            "key": str(key),
            "features": ",".join(sorted(caller.features)),
            "abi": caller.abi,
            "torch": caller.torch,
            "libc": caller.libc,
        }
        known = {name: value for name, value in params.items() if value is not None}
        answer = self._http.request(
            "GET", "/v1/plans/lookup", params=known, timeout=CONNECT_SECONDS
        )
        if answer.status_code == 200:
            found = answer.json()
            return Found(found["match"], plan_id=found["id"], improved=found["improved"])
        problem = problem_of(answer)
        if problem.get("code") != "plan-miss":
            raise error_of(answer)
        return Found("miss", reason=problem["reason"], job_id=problem.get("job"))

    def lookup(self, key: PlanKey | str) -> Plan | None:
        """The plan for a key that this process can run, None if there is none.

        Its key differs from `key` where a plan for another target is compatible. Raises
        UntrustedBundle if its signer is not trusted here.
        """
        found = self.find(key)
        return None if found.plan_id is None else self.plan(found.plan_id)

    def plan(self, plan_id: str) -> Plan:
        """The plan of that id; raises UntrustedBundle if its signer is not trusted here."""
        return plan_of_files(self.bundle(plan_id), self._trust or Trust.of_user())

    def bundle(self, plan_id: str) -> dict[str, bytes]:
        """The files of a plan's bundle by path, as the service signed them; nothing is verified."""
        return unpack_files(self._http.read("GET", f"/v1/plans/{_segment(plan_id)}/bundle").content)

    def plans(self, limit: int = 50) -> list[dict[str, Any]]:
        """The newest plans as the service lists them (`PlanView` in the OpenAPI document)."""
        page = self._http.read("GET", "/v1/plans", params={"limit": limit}).json()
        return list(page["plans"])

    def export(self, plan: Plan | str, folder: str | Path) -> Path:
        """Write the bundle of a plan (or of its id), signed by the service, to a new folder."""
        plan_id = plan.id if isinstance(plan, Plan) else plan
        target = checked_path("folder", folder)
        write_files(self.bundle(plan_id), target)
        return target

    def import_(self, folder: str | Path) -> str:
        """Publish the bundle in a folder on the service; returns the plan's id.

        The service must trust its signer, and the API key must have the role `publish`.
        """
        root = checked_path("folder", folder)
        if not (root / MANIFEST).is_file():
            raise InvalidInput(f"no bundle at {root}")
        content = pack_files(_files_of(root))
        answer = self._http.read("POST", "/v1/plans/import", content=content, headers=_TAR)
        return str(answer.json()["id"])

    def revoke(self, plan_id: str, reason: str) -> None:
        """Take a plan out of service for good."""
        content = json.dumps({"reason": reason}).encode()
        path = f"/v1/plans/{_segment(plan_id)}/revoke"
        self._http.read("POST", path, content=content, headers=_JSON)

    def devices(self) -> list[dict[str, Any]]:
        """Devices that workers have announced (`DeviceView` in the OpenAPI document)."""
        return list(self._http.read("GET", "/v1/devices").json()["devices"])

    def public_key(self) -> bytes:
        """The raw public key that signs the service's bundles."""
        found = self._http.read("GET", "/v1/trust").json()
        return PublicKey.parse(found["public_key"]).raw

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _files_of(root: Path) -> dict[str, bytes]:
    """All files of a folder by path; raises InvalidInput for what cannot be read."""
    try:
        paths = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    except OSError as error:
        raise InvalidInput(f"the bundle at {root} cannot be read: {error}") from error


def _segment(text: object) -> str:
    """An id as part of a path; raises InvalidInput for what is none."""
    if not isinstance(text, str):
        raise InvalidInput(f"{text!r:.80} is not an id")
    if not text or not all(char.isalnum() or char in "-_" for char in text):
        raise InvalidInput(f"{text[:80]!r} is not an id")
    return text


def _graph_of(
    model: Graph | str | Path | Callable[..., Any], example_inputs: Any, dynamic_shapes: Any
) -> Graph:
    if isinstance(model, Graph):
        return model
    from graph_autofusion.capturing import capture  # loads torch, which a Graph does without

    return capture(model, example_inputs, dynamic_shapes)
