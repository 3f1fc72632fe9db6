"""Commands that need no service: doctor, db, tune, demo, and the real script."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch

import graph_autofusion as gaf_api
from db.errors import QuotaExceeded
from db.schema import Role
from db.store import Store
from kernel_gen.lifetime.scratch import PREFIX
from tests.cli.conftest import Gaf
from tests.fixtures import samples
from tests.fixtures.server import Service

ROOT = Path(__file__).parents[2]
SCRIPT = [sys.executable, "-m", "graph_autofusion.cli"]

FACTORY = """
import torch
from torch import nn

def build():
    return nn.Sequential(nn.LayerNorm(64), nn.ReLU()).eval(), torch.randn(32, 64)
"""


def test_doctor(gaf: Gaf) -> None:
    found = {row["what"]: row for row in gaf("doctor", "--json").json}
    assert found["torch"]["state"] == "ok"
    assert found["cpu"]["state"] == "ok"
    assert "C++ compiler" in gaf("doctor").output


def test_doctor_says_what_to_fix(gaf: Gaf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAF_SERVICE", "http://127.0.0.1:9")
    found = gaf("doctor", "--json")
    (service,) = [row for row in found.json if row["what"] == "service"]
    assert (found.code, service["state"]) == (1, "missing")
    assert "gaf serve" in service["fix"]


def test_doctor_asks_a_service_with_the_users_key(
    gaf: Gaf, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenants = service.store.tenants
    key = tenants.create_key(tenants.create("default"), "ci", Role.READ)
    monkeypatch.setenv("GAF_SERVICE", service.url)
    for given, state, fix in ((key, "ok", ""), ("gaf_none", "missing", "set GAF_API_KEY")):
        monkeypatch.setenv("GAF_API_KEY", given)
        (row,) = [row for row in gaf("doctor", "--json").json if row["what"] == "service"]
        assert (row["state"], row["fix"][: len(fix)]) == (state, fix)


def test_database(gaf: Gaf, home: Path) -> None:
    db = ("--db", f"sqlite:///{home}/a.sqlite")
    revision = gaf("db", "upgrade", *db, "--json").json["revision"]
    assert revision in gaf("db", "upgrade", *db).output
    made = gaf("db", "create-key", "ci", "--role", "read", "--tenant", "t", *db, "--json").json
    assert len(made["key"]) >= 32
    assert gaf("db", "create-key", "ci", "--role", "king", *db).code == 2
    (listed,) = gaf("db", "keys", *db, "--json").json
    assert (listed["name"], listed["role"], listed["revoked"]) == ("ci", "read", None)
    assert made["key"] not in gaf("db", "keys", *db).output
    with Store(db[1]) as store:
        assert store.tenants.verify(made["key"]) is not None
        assert gaf("db", "revoke-key", listed["id"], *db).code == 0
        assert store.tenants.verify(made["key"]) is None
    (listed,) = gaf("db", "keys", *db, "--json").json
    assert listed["revoked"]
    unknown = gaf("db", "revoke-key", "none", *db)
    assert (unknown.code, "no API key 'none'" in unknown.errors) == (2, True)


def test_the_queue_of_a_tenant_has_a_limit_of_its_own(gaf: Gaf, home: Path) -> None:
    db = ("--db", f"sqlite:///{home}/a.sqlite")
    assert gaf("db", "queue-limit", "1", *db, "--json").json == {"tenant": "default", "limit": 1}
    assert gaf("db", "queue-limit", "-1", *db).code == 2
    with Store(db[1]) as store:
        for rows in (4, 5):
            store.graphs.put(samples.graph(rows))
        store.jobs.create(samples.request(samples.graph(4)), samples.key(samples.graph(4)))
        with pytest.raises(QuotaExceeded):
            store.jobs.create(samples.request(samples.graph(5)), samples.key(samples.graph(5)))


def test_the_version_is_that_of_the_package(gaf: Gaf) -> None:
    found = gaf("--version")
    assert (found.code, found.output) == (0, f"gaf {gaf_api.__version__}\n")


def test_help_lists_the_commands(gaf: Gaf) -> None:
    for arguments in ((), ("--help",), ("db", "--help"), ("tune", "--help")):
        assert "Usage" in "".join((gaf(*arguments).output, gaf(*arguments).errors))


@pytest.mark.ray
@pytest.mark.slow
def test_tune_a_file_and_a_graph(gaf: Gaf, home: Path) -> None:
    (home / "model.py").write_text(FACTORY)
    store = ("--store", f"sqlite:///{home}/store.sqlite", "--trials", 2, "--seconds", 20)
    report = gaf("tune", f"{home}/model.py:build", *store, "--json").json
    assert report["cache"] == "tuned"
    assert report["groups"]
    graph = gaf_api.capture(
        torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.ReLU()).eval(), torch.randn(32, 64)
    )
    (home / "graph.json").write_text(graph.to_json())
    again = gaf("tune", home / "graph.json", *store, "--json").json
    assert (again["cache"], again["trials"], again["key"]) == ("hit", 0, report["key"])
    assert "fusion rate" in gaf("tune", home / "graph.json", *store).output


def test_the_example_has_a_factory(gaf: Gaf, home: Path) -> None:
    found = gaf(
        "submit", ROOT / "examples/simple_fusion.py:build", "--service", "http://127.0.0.1:9"
    )
    assert found.code == 3  # captured; only the service is missing


@pytest.mark.ray
@pytest.mark.slow
def test_demo_prints_only_json(home: Path) -> None:
    command = [*SCRIPT, "demo", "--seconds", "3", "--rows", "64"]
    command += ["--output", str(home / "pictures"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["report"]["cache"] == "hit"
    assert facts["report"]["trials"] == 0
    assert facts["max_error"] < 1e-4
    assert all(Path(picture).stat().st_size for picture in facts["pictures"])
    assert "service on http://127.0.0.1" in done.stderr


def test_the_script_as_a_process(home: Path) -> None:
    found = subprocess.run(
        [*SCRIPT, "lookup", "nonsense"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("gaf: not a plan key")


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_search_that_is_stopped_leaves_no_job_to_a_later_service_and_no_folder(
    home: Path, number: signal.Signals, short_temporary: Path
) -> None:
    """As a terminal does it: to the whole process group. The job is not claimed before Ray runs."""
    (home / "graph.json").write_text(samples.graph().to_json())
    store = home / "store.sqlite"
    child = subprocess.Popen(
        [
            *SCRIPT,
            "tune",
            str(home / "graph.json"),
            "--seconds",
            "200",
            "--store",
            f"sqlite:///{store}",
            "--json",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(short_temporary)},
        start_new_session=True,
    )
    _wait_for_states(store, {"queued", "running"}, 120)
    _wait(lambda: list(short_temporary.glob(f"{PREFIX}device-*")) != [], 60)
    os.killpg(child.pid, number)
    output, errors = child.communicate(timeout=60)
    assert output == b""
    if number != signal.SIGKILL:
        assert list(short_temporary.glob(f"{PREFIX}*")) == []
        assert child.returncode == 128 + number
        said = [x for x in errors.decode().splitlines() if not x.startswith("this machine is busy")]
        assert said[0].startswith("stopped; what was measured is kept")
        assert said[1:] == (["gaf: ended by SIGTERM"] if number == signal.SIGTERM else [])
    _wait_for_states(store, {"cancelled"}, 60)
    _wait(lambda: list(short_temporary.glob(f"{PREFIX}*")) == [], 60)


@pytest.fixture
def short_temporary() -> Iterator[Path]:
    """Where Ray's sockets have short paths."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t", ignore_cleanup_errors=True) as place:
        yield Path(place)


def _wait(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _wait_for_states(store: Path, states: set[str], seconds: float) -> None:
    """Until the store has jobs, all in one of these states."""
    deadline = time.monotonic() + seconds
    while not (found := _states(store)) or not found <= states:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def _states(store: Path) -> set[str]:
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            return {state for (state,) in connection.execute("SELECT state FROM jobs")}
    except sqlite3.OperationalError:
        return set()  # it is still made


@pytest.mark.slow
def test_repro_of_a_program_whose_kernels_are_right(gaf: Gaf, home: Path) -> None:
    (home / "model.py").write_text(FACTORY)
    subject = f"{home}/model.py:build"
    found = gaf("repro", subject, "--points", 0, "--output", home / "case", "--json")
    assert (found.code, found.json["finding"]) == (0, None)
    assert found.json["kernels"] > 0
    assert not (home / "case").exists()
    (home / "case").mkdir()
    assert gaf("repro", subject, "--output", home / "case").code == 2
