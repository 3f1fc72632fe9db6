"""Bundles: round trip, and refusal of whatever is not exactly what a trusted key signed."""

from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path

import pytest
import torch

from kernel_gen.errors import InvalidInput, UntrustedBundle
from kernel_gen.runtime import bundle
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.bundle_format import plan_of_files
from kernel_gen.runtime.bundle_signing import bundle_files
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.signer import Signer
from kernel_gen.runtime.torch_glue import TorchPlan
from kernel_gen.runtime.trust import Trust
from tests.runtime.small_plans import chain_graph, plan_of


@pytest.fixture(scope="module")
def plan(compiler: Compiler) -> Plan:
    return plan_of(chain_graph(), compiler, packed=(2,))


@pytest.fixture
def signer() -> Signer:
    return Signer.generate("test")


@pytest.fixture
def trust(tmp_path: Path, signer: Signer) -> Trust:
    store = Trust(tmp_path / "trusted")
    store.add("test", signer.public.raw)
    return store


@pytest.fixture
def folder(tmp_path: Path, plan: Plan, signer: Signer) -> Path:
    bundle.write_files(bundle_files(plan, signer), tmp_path / "b")
    return tmp_path / "b"


def test_round_trip_runs(folder: Path, trust: Trust, plan: Plan) -> None:
    found = bundle.read(folder, trust)
    assert found == plan
    assert found.id == plan.id
    x, y, w = torch.randn(3, 4, 6)
    (result,) = TorchPlan(found).bind([w])([x, y], 1)
    assert torch.equal(result, (x + y) * w - x)


def test_sources_lie_open(folder: Path, plan: Plan) -> None:
    texts = {path.name[4:]: path.read_text() for path in (folder / "sources").iterdir()}
    assert texts.pop("gaf_run.cpp").startswith("#ifndef GAF_KERNEL_ABI")
    assert texts == {f"{k.source.entry}.cpp": k.source.files[0][1] for k in plan.kernels}


@pytest.mark.parametrize(
    "path", ["plan.json", "manifest.json", "signature.json", "sources/003_gaf_run.cpp", "objects"]
)
def test_altered_file_is_refused(folder: Path, trust: Trust, path: str) -> None:
    victim = next((folder / path).iterdir()) if path == "objects" else folder / path
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    with pytest.raises(UntrustedBundle):
        bundle.read(folder, trust)


@pytest.mark.parametrize("path", ["plan.json", "manifest.json", "signature.json"])
def test_missing_file_is_refused(folder: Path, trust: Trust, path: str) -> None:
    (folder / path).unlink()
    with pytest.raises(UntrustedBundle, match=path):
        bundle.read(folder, trust)


@pytest.mark.parametrize("path", ["extra", "sources/extra.cpp", "objects/extra.so"])
def test_extra_file_is_refused(folder: Path, trust: Trust, path: str) -> None:
    (folder / path).write_text("x")
    with pytest.raises(UntrustedBundle, match="extra"):
        bundle.read(folder, trust)


def test_grown_file_is_refused(folder: Path, trust: Trust) -> None:
    with (folder / "plan.json").open("ab") as file:
        file.write(b" ")
    with pytest.raises(UntrustedBundle, match="too large"):
        bundle.read(folder, trust)


@pytest.mark.parametrize("path", ["plan.json", "objects", "manifest.json"])
def test_links_are_refused(folder: Path, trust: Trust, tmp_path: Path, path: str) -> None:
    shutil.move(folder / path, tmp_path / "elsewhere")
    (folder / path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UntrustedBundle):
        bundle.read(folder, trust)


def test_pipe_does_not_block(folder: Path, trust: Trust) -> None:
    (folder / "plan.json").unlink()
    os.mkfifo(folder / "plan.json")
    with pytest.raises(UntrustedBundle, match="no plain file"):
        bundle.read(folder, trust)


def test_foreign_signer_is_refused(folder: Path, tmp_path: Path) -> None:
    stranger = Trust(tmp_path / "others")
    stranger.add("x", Signer.generate().public.raw)
    with pytest.raises(UntrustedBundle, match="not trusted"):
        bundle.read(folder, stranger)


def test_signature_of_another_key_is_refused(plan: Plan, signer: Signer, trust: Trust) -> None:
    """A forger who writes a trusted fingerprint beside a signature of his own."""
    files = bundle_files(plan, signer)
    forged = bundle_files(plan, Signer.generate())
    signature = json.loads(forged["signature.json"])
    signature["fingerprint"] = signer.public.fingerprint
    files["signature.json"] = json.dumps(signature).encode()
    with pytest.raises(UntrustedBundle, match="altered"):
        plan_of_files(files, trust)


@pytest.mark.parametrize("path", ["../plan.json", "/etc/passwd", "objects/../x.so", "a/b.cpp"])
def test_paths_cannot_leave(plan: Plan, signer: Signer, trust: Trust, path: str) -> None:
    """Not even a trusted signer names a path outside the bundle."""
    files = bundle_files(plan, signer)
    records = json.loads(files["manifest.json"])["files"]
    records[0]["path"] = path
    files = signed_again(files, signer, files=records)
    with pytest.raises(InvalidInput, match="bundle file"):
        plan_of_files(files, trust)


def signed_again(
    bundle_of: dict[str, bytes], signer: Signer, **changes: object
) -> dict[str, bytes]:
    """The files with a manifest that was changed before it was signed."""
    manifest = json.loads(bundle_of["manifest.json"]) | changes
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    signature = json.loads(bundle_of["signature.json"])
    signed = signer.sign(b"graph-autofusion bundle manifest\0" + text)
    signature["signature"] = base64.b64encode(signed).decode()
    return bundle_of | {"manifest.json": text, "signature.json": json.dumps(signature).encode()}


@pytest.mark.parametrize(("version", "advice"), [(2, "upgrade it"), (0, "export the plan again")])
def test_other_formats_are_named(
    plan: Plan, signer: Signer, trust: Trust, version: int, advice: str
) -> None:
    """Older and newer, and whatever a newer one has that this one does not know."""
    files = signed_again(bundle_files(plan, signer), signer, format_version=version, parts=[1])
    with pytest.raises(InvalidInput, match=f"format version {version}, .* reads 1: {advice}"):
        plan_of_files(files, trust)


def test_writing_over_a_bundle_is_refused(folder: Path, plan: Plan, signer: Signer) -> None:
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    with pytest.raises(InvalidInput, match="not empty"):
        bundle.write_files(bundle_files(plan, signer), folder)
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    assert [p.name for p in folder.parent.iterdir() if p.name.startswith(".")] == []


def test_no_bundle_is_the_callers_mistake(tmp_path: Path, trust: Trust) -> None:
    with pytest.raises(InvalidInput, match="no bundle"):
        bundle.read(tmp_path / "nothing", trust)
