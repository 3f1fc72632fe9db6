"""Processes that read, write, damage and clean one bundle cache at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.bundle import TEMPORARY_PREFIX
from kernel_gen.runtime.cache import BundleCache, Hit
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.plan_text import plan_to_json
from tests.runtime.small_plans import SUMMARY, chain_graph, plan_of

ROOT = Path(__file__).parents[2]
_PLANS, _ROUNDS = 3, 60

# Each process puts plans of one key in an order of its own and reads the key's plan after each; one
# in ten times it also damages what it has put, as a disk would.
WORKER = """
import json, random, sys
from pathlib import Path
from kernel_gen.runtime.cache import BundleCache, Hit
from kernel_gen.runtime.serialize import plan_from_json
folder, root = map(Path, sys.argv[1:3])
seed, rounds = map(int, sys.argv[3:5])
objects = {path.stem: path.read_bytes() for path in folder.glob("*.so")}
plans = [plan_from_json(path.read_text(), objects) for path in sorted(folder.glob("*.json"))]
cache, chance = BundleCache(root), random.Random(seed)
hits = misses = 0
print("ready", flush=True)
sys.stdin.readline()
for _ in range(rounds):
    plan = chance.choice(plans)
    cache.put(plan)
    found = cache.lookup(plan.key)
    if isinstance(found, Hit):
        assert found.plan in plans
        hits += 1
    else:
        misses += 1
    if chance.random() < 0.1:
        victim = root / "plans" / plan.id / "manifest.json"
        try:
            victim.write_bytes(victim.read_bytes()[:40])
        except FileNotFoundError:
            pass
print(json.dumps([hits, misses]))
"""


@pytest.fixture
def plans(home: Path) -> list[Plan]:
    """Plans of one key, and a folder with their texts and objects."""
    plan = plan_of(chain_graph(), Compiler.find(home / "objects"))
    made = [replace(plan, summary=replace(SUMMARY, trials=n)) for n in range(_PLANS)]
    (home / "plans").mkdir()
    for number, item in enumerate(made):
        (home / "plans" / f"{number}.json").write_text(plan_to_json(item))
        for artifact in item.artifacts:
            (home / "plans" / f"{artifact.sha256}.so").write_bytes(artifact.data)
    return made


def workers(home: Path, count: int) -> list[subprocess.Popen[str]]:
    found = []
    for seed in range(count):
        arguments = [str(home / "plans"), str(home / "bundles"), str(seed), str(_ROUNDS)]
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd=home, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        found.append(worker)
    return found


def start(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    worker.stdin.write("go\n")
    worker.stdin.flush()


@pytest.mark.slow
def test_processes_share_a_cache_that_is_damaged_meanwhile(home: Path, plans: list[Plan]) -> None:
    both = workers(home, 2)
    for worker in both:
        start(worker)
    for worker in both:
        output, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors
        hits, misses = json.loads(output.splitlines()[-1])
        assert hits + misses == _ROUNDS
        assert hits > misses
    cache = BundleCache(home / "bundles")
    for plan in plans:
        cache.put(plan)
        assert cache.lookup(plan.key) == Hit(plan, exact=True)
    left = [path for path in (home / "bundles").rglob("*") if TEMPORARY_PREFIX in path.name]
    assert left == []
    assert len(list((home / "bundles" / "plans").iterdir())) == _PLANS


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_a_cache_that_works(home: Path, plans: list[Plan]) -> None:
    doomed, other = workers(home, 2)
    start(doomed)
    start(other)
    doomed.kill()
    output, errors = other.communicate(timeout=120)
    doomed.communicate()
    assert other.returncode == 0, errors
    assert sum(json.loads(output.splitlines()[-1])) == _ROUNDS
    cache = BundleCache(home / "bundles")
    cache.put(plans[0])
    assert cache.get(plans[0].key) == plans[0]
