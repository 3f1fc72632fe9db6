"""The bundle cache: hits, misses that never raise, replacement, several writers."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_gen.errors import Unavailable, UntrustedBundle
from kernel_gen.lifetime.scratch import Scratch
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.bundle import TEMPORARY_PREFIX
from kernel_gen.runtime.bundle_signing import bundle_files
from kernel_gen.runtime.cache import BundleCache, Hit, Miss
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.requires import Caller
from kernel_gen.runtime.signer import Signer
from kernel_gen.runtime.trust import Trust
from tests.runtime.small_plans import SUMMARY, chain_graph, plan_of, with_provenance


@pytest.fixture(scope="module")
def plan(compiler: Compiler) -> Plan:
    return plan_of(chain_graph(), compiler)


@pytest.fixture
def signer() -> Signer:
    return Signer.generate("test")


@pytest.fixture
def trust(tmp_path: Path, signer: Signer) -> Trust:
    trust = Trust(tmp_path / "trusted")
    trust.add("test", signer.public.raw)
    return trust


@pytest.fixture
def cache(tmp_path: Path, trust: Trust, signer: Signer) -> BundleCache:
    return BundleCache(tmp_path / "cache", trust, signer)


def test_unknown_key_is_a_miss(cache: BundleCache, plan: Plan) -> None:
    assert cache.get(plan.key) is None
    assert cache.lookup(plan.key) == Miss("unknown")


def test_what_was_put_is_got(cache: BundleCache, plan: Plan) -> None:
    cache.put(plan)
    cache.put(plan)
    assert cache.get(plan.key) == plan
    assert cache.lookup(plan.key) == Hit(plan, exact=True)
    assert len(list((cache.root / "plans").iterdir())) == 1


def test_a_better_plan_takes_over(cache: BundleCache, plan: Plan) -> None:
    better = replace(plan, summary=replace(SUMMARY, measured_us=0.5))
    cache.put(plan)
    cache.put(better)
    assert cache.get(plan.key) == better


def test_compatible_plan_of_another_target(cache: BundleCache, plan: Plan) -> None:
    cache.put(plan)
    other = replace(plan.key, target="cpu-x86-f9m9-x86-64-c8")
    assert cache.get(other) is None
    assert cache.lookup(other) == Hit(plan, exact=False)
    assert cache.lookup(replace(other, options="f" * 16)) == Miss("unknown")
    demanding = with_provenance(plan, requires=("avx9",))
    cache.put(demanding)
    assert cache.lookup(other, Caller()) == Miss("unknown")
    assert cache.lookup(plan.key, Caller()) == Miss("the CPU lacks avx9")
    assert cache.lookup(other, Caller(frozenset(("avx9",)))) == Hit(demanding, exact=False)


@pytest.mark.parametrize("path", ["plan.json", "manifest.json", "signature.json", "objects"])
@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_damage_is_a_miss_and_mended_by_the_next_put(
    cache: BundleCache, plan: Plan, path: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put(plan)
    folder = cache.root / "plans" / plan.id
    victim = next((folder / path).iterdir()) if path == "objects" else folder / path
    data = bytearray(victim.read_bytes())
    if damage == "cut":
        victim.write_bytes(data[: len(data) // 2])
    elif damage == "flip":
        data[len(data) // 2] ^= 4
        victim.write_bytes(data)
    else:
        victim.unlink()
    assert cache.get(plan.key) is None
    assert "not usable" in caplog.text
    cache.put(plan)
    assert cache.get(plan.key) == plan


@pytest.mark.parametrize("text", ["", "{", '{"key":"x","plan":"../../x"}', '{"key":1}'])
def test_damaged_index_is_a_miss(cache: BundleCache, plan: Plan, text: str) -> None:
    cache.put(plan)
    (entry,) = (cache.root / "keys").rglob("*.json")
    entry.write_text(text)
    assert cache.get(plan.key) is None


def test_index_cannot_pass_one_plan_for_another(
    cache: BundleCache, plan: Plan, compiler: Compiler
) -> None:
    """Both are signed; an entry that points to the wrong one is still a miss."""
    other = replace(plan, key=replace(plan.key, options="a" * 16))
    cache.put(plan)
    cache.put(other)
    first, second = (cache._key_path(p.key) for p in (plan, other))
    first.write_bytes(second.read_bytes())
    assert cache.get(plan.key) is None
    assert cache.get(other.key) == other


def test_foreign_plans_are_misses_and_not_stored(cache: BundleCache, plan: Plan) -> None:
    stranger = Signer.generate()
    with pytest.raises(UntrustedBundle):
        cache.put_files(bundle_files(plan, stranger))
    assert not cache.root.exists()
    BundleCache(cache.root, cache._trust, stranger).put(plan)
    assert cache.get(plan.key) is None


def test_downloads_keep_their_signature(cache: BundleCache, plan: Plan, signer: Signer) -> None:
    files = bundle_files(plan, signer)
    assert BundleCache(cache.root, cache._trust).put_files(files) == plan
    stored = cache.root / "plans" / plan.id / "signature.json"
    assert stored.read_bytes() == files["signature.json"]
    assert cache.get(plan.key) == plan


def test_own_store_signs_and_trusts_itself(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("GAF_TRUST", raising=False)
    BundleCache(tmp_path / "cache").put(plan)
    assert BundleCache(tmp_path / "cache").get(plan.key) == plan


def test_many_writers_and_readers(cache: BundleCache, plan: Plan) -> None:
    plans = [replace(plan, summary=replace(SUMMARY, trials=n)) for n in range(3)]

    def work(number: int) -> bool:
        cache.put(plans[number % 3])
        return cache.get(plan.key) in plans

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(30)))
    assert len(list((cache.root / "plans").iterdir())) == 3


def test_leftovers_of_dead_writers_go(cache: BundleCache, plan: Plan) -> None:
    cache.put(plan)
    left = cache.root / "plans" / f"{TEMPORARY_PREFIX}left"
    left.mkdir()
    with Scratch("bundle", cache.root / "plans", TEMPORARY_PREFIX) as written:
        os.utime(written, (0, 0))  # by a clock that has jumped
        cache.put(plan)
        assert not left.exists()
        assert written.is_dir()


def test_unwritable_cache_reads_and_says_so(
    cache: BundleCache, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(plan)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "read-only file system")

    for name in ("mkdir", "rename", "replace", "unlink"):
        monkeypatch.setattr(os, name, refuse)
    assert cache.get(plan.key) == plan
    better = replace(plan, summary=replace(SUMMARY, measured_us=0.5))
    with pytest.raises(Unavailable, match="cannot write"):
        cache.put(better)


DEPLOY = """
import sys
class Blocked:
    names = {"ray", "optuna", "sqlalchemy", "fastapi", "uvicorn", "alembic", "scipy", "onnx"}
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ImportError(f"{name} is not installed here")
sys.meta_path.insert(0, Blocked())
import subprocess
def refuse(*_, **__): raise AssertionError("a process was started")
import torch
subprocess.Popen = refuse
from pathlib import Path
from kernel_gen.runtime.cache import BundleCache
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.torch_glue import TorchPlan
plan = BundleCache(Path(sys.argv[1])).get(PlanKey.parse(sys.argv[2]))
x, y, w = torch.randn(3, 4, 6)
(result,) = TorchPlan(plan).bind([w])([x, y], 1)
assert torch.equal(result, (x + y) * w - x)
print("ran", plan.id)
"""


def test_deploying_needs_no_compiler_and_no_server(
    tmp_path: Path, trust: Trust, cache: BundleCache, plan: Plan
) -> None:
    cache.put(plan)
    environment = {"PATH": str(tmp_path), "GAF_TRUST": str(trust.folder), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", DEPLOY, str(cache.root), str(plan.key)],
        env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == f"ran {plan.id}\n", done.stderr
