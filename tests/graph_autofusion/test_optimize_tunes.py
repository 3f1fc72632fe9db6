"""`optimize` with the real tuner in its child process; a few seconds of search each."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import nn

import graph_autofusion as gaf
from db.store import Store
from graph_autofusion.local_tuner import tune_locally
from graph_autofusion.options import Options
from graph_autofusion.resolver import Resolver
from kernel_gen.records import JobRequest, JobState
from kernel_gen.runtime.bundle import TEMPORARY_PREFIX

pytestmark = [pytest.mark.ray, pytest.mark.slow]
ROOT = Path(__file__).parents[2]

PRELUDE = """
import json, sys, torch
from torch import nn
import graph_autofusion as gaf

def model(rows=64):
    torch.manual_seed(5)
    return nn.Sequential(nn.LayerNorm(256), nn.ReLU()).eval(), torch.randn(rows, 256)
"""


def _url(folder: Path) -> str:
    return f"sqlite:///{folder}/store.sqlite"


def _environment(folder: Path, **changes: str) -> dict[str, str]:
    """This test's own home folders."""
    xdg = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CACHE", "CONFIG")}
    return {**os.environ, **xdg, **changes}


def _run(folder: Path, program: str, **changes: str) -> dict[str, object]:
    """What a program in a process of its own prints last, as JSON."""
    text = PRELUDE + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", text, _url(folder)],
        capture_output=True,
        text=True,
        env=_environment(folder, PYTHONPATH=str(ROOT), **changes),
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


DEPLOY = """
import builtins, subprocess
kept = builtins.__import__
def guarded(name, *args, **kwargs):
    top = name.partition(".")[0]
    assert top not in {"ray", "optuna", "sqlalchemy", "alembic", "fastapi", "highspy"}, name
    assert top not in {"tuner", "db", "service", "cost_models"}, name
    return kept(name, *args, **kwargs)
builtins.__import__ = guarded
def no_child(*args, **kwargs):
    raise AssertionError(f"a child process: {args}")
subprocess.Popen.__init__ = no_child
m, x = model()
with torch.no_grad():
    fast = gaf.optimize(m, store=sys.argv[1], strict=True)
    error = (fast(x) - m(x)).abs().max().item()
print(json.dumps({**json.loads(fast.report.to_json()), "error": error}))
"""


def _model() -> tuple[nn.Module, torch.Tensor]:
    """As that of the prelude."""
    torch.manual_seed(5)
    return nn.Sequential(nn.LayerNorm(256), nn.ReLU()).eval(), torch.randn(64, 256)


@torch.no_grad()
def test_one_process_tunes_at_its_first_call_and_another_runs_the_plan(home: Path) -> None:
    """The first has the model as an archive."""
    model, x = _model()
    torch.export.save(torch.export.export(model, (x,)), home / "model.pt2")
    budget = gaf.Budget(20, trials=4)
    fast = gaf.optimize(home / "model.pt2", budget=budget, store=_url(home), strict=True)
    assert fast.report.cache == "pending"
    torch.testing.assert_close(fast(x), model(x), rtol=0, atol=1e-5)
    assert fast.report.cache == "tuned"
    assert fast.report.speedup is not None
    assert 0 < fast.report.trials <= 8
    second = _run(home, DEPLOY, PATH="/nonexistent", CXX="/nonexistent/g++")
    assert second["cache"] == "hit"
    assert second["trials"] == 0
    assert second["tuning_seconds"] == 0
    assert second["key"] == str(fast.report.key)
    assert float(str(second["error"])) < 1e-5
    shutil.rmtree(home / "bundles")
    restored = gaf.optimize(model, x, store=_url(home), strict=True)
    assert restored.report.cache == "hit"  # the store still has it: nothing is searched
    assert restored.report.trials == 0
    gaf.print_graph(restored, sys.stderr)


@torch.no_grad()
@pytest.mark.filterwarnings("ignore:running in the framework")  # a busy machine measures nothing
def test_the_budget_is_kept(home: Path) -> None:
    """There is more to try; a busy machine may take its time over what has begun."""
    model, x = (
        nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.LayerNorm(256)),
        torch.randn(64, 256),
    )
    fast = gaf.optimize(model, x, budget=2, store=_url(home), strict=True)
    assert fast.report.tuning_seconds < 150
    torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-4)


@torch.no_grad()
@pytest.mark.filterwarnings("ignore:running in the framework")
def test_a_search_without_time_is_made_up_for_by_the_next_one(home: Path) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x * x + 1) - x

    x = torch.randn(64, 128)

    def tuned(budget: gaf.Budget) -> tuple[str, int, gaf.FusionReport]:
        fast = gaf.optimize(program, x, budget=budget, store=_url(home), strict=True)
        return fast.report.cache, len(fast.plan.kernels), fast.report

    cache, kernels, report = tuned(gaf.Budget(0.0))
    assert (cache, kernels, report.improved) == ("tuned", 0, False)
    assert report.measured_us == report.baseline_us != 0
    assert {op.code for op in report.unfused} == {"unmeasured"}
    assert tuned(gaf.Budget(0.0))[:2] == ("hit", 0)
    assert tuned(gaf.Budget(20.0, trials=3))[:2] == ("tuned", 1)
    assert tuned(gaf.Budget(60.0))[:2] == ("hit", 1)


INTERRUPTED = """
m, x = model(4096)
try:
    with torch.no_grad():
        gaf.optimize(m, x, budget=300, store=sys.argv[1], strict=True)
except KeyboardInterrupt:
    print("cancelled", flush=True)
"""


def test_ctrl_c_leaves_no_process_and_no_half_written_file(tmp_path: Path) -> None:
    mark = f"GAF_TEST_MARK_{os.getpid()}"
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + INTERRUPTED, _url(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(tmp_path, PYTHONPATH=str(ROOT), GAF_TEST_MARK=mark),
    )
    _wait(lambda: (tmp_path / "store.sqlite").exists(), 60)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert output.strip() == "cancelled", errors
    assert "stopped; what was measured is kept" in errors
    with Store(_url(tmp_path)) as store:
        assert {job.state for job in store.jobs.list()} <= {JobState.CANCELLED}
    _wait(lambda: _marked(mark) == [], 90, lambda: _marked(mark))
    left = [path for path in tmp_path.rglob("*") if TEMPORARY_PREFIX in path.name]
    assert left == []


def _marked(mark: str) -> list[str]:
    """Processes that have inherited the mark, as `pid: command`."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (place / "environ").read_bytes():
                found.append(f"{place.name}: {(place / 'cmdline').read_bytes()[:200]!r}")
        except OSError:
            continue
    return found


def _wait(condition, seconds: float, seen=lambda: None) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, seen()
        time.sleep(0.1)


APPLICATION = """
import json, os, signal, sys, threading
import db, service, tuner
got = []
signal.signal(signal.SIGTERM, lambda *a: got.append("term"))
signal.signal(signal.SIGINT, lambda *a: got.append("int"))
stop = threading.Event()
beats = []
def work():
    while not stop.wait(0.05):
        beats.append(1)
beat = threading.Thread(target=work, daemon=True)
beat.start()
import torch
import graph_autofusion as gaf
def program(x):
    return torch.tanh(x) * 2 + 1
x = torch.randn(64, 64)
fast = gaf.optimize(program, x, budget=gaf.Budget(20, trials=2), store=sys.argv[1], strict=True)
error = (fast(x) - program(x)).abs().max().item()
os.kill(os.getpid(), signal.SIGTERM)
os.kill(os.getpid(), signal.SIGINT)
stop.set()
beat.join()
own = [m.WHOSE for m in (db, service, tuner)]
print(json.dumps([fast.report.cache, error < 1e-5, got, len(beats) > 5, own, "ray" in sys.modules]))
"""


def test_an_application_with_modules_handlers_and_threads_of_its_own(tmp_path: Path) -> None:
    app = tmp_path / "app"
    app.mkdir()
    for name in ("db", "service", "tuner"):
        (app / f"{name}.py").write_text("WHOSE = 'application'\n")
    (app / "main.py").write_text(APPLICATION)
    done = subprocess.run(
        [sys.executable, "main.py", _url(tmp_path)],
        cwd=app,
        capture_output=True,
        text=True,
        env=_environment(tmp_path, PYTHONPATH=os.pathsep.join((str(app), str(ROOT)))),
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [
        "tuned",
        True,
        ["term", "int"],
        True,
        ["application"] * 3,
        False,
    ]


def test_equal_keys_in_flight_are_one_search(home: Path) -> None:
    """Of two processes that search."""
    graph = gaf.capture(*_model())
    request = JobRequest(graph.digest, "cpu", gaf.Budget(20, trials=3))
    with ThreadPoolExecutor(2) as pool:
        events: list[list[object]] = [[], []]
        both = [pool.submit(tune_locally, graph, request, _url(home), e.append) for e in events]
        for one in both:
            one.result()
    with Store(_url(home)) as store:
        (job,) = store.jobs.list()
    assert job.state is JobState.DONE
    again = gaf.optimize(*_model(), store=_url(home), on_miss="error", strict=True)
    assert again.report.cache == "hit"


def test_the_same_key_for_the_same_options(home: Path) -> None:
    graph = gaf.capture(nn.ReLU(), torch.randn(4))
    keys = {
        str(Resolver(Options(store=_url(home), **o)).key(graph)) for o in ({}, {"strict": True})
    }
    assert len(keys) == 1
    assert str(Resolver(Options(numerics="strict")).key(graph)) not in keys
