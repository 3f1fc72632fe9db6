"""The signed bundle of a plan."""

from __future__ import annotations

import hashlib

from kernel_gen.codec import to_json
from kernel_gen.runtime.bundle_format import (
    DOMAIN,
    FORMAT_VERSION,
    MANIFEST,
    PLAN,
    SIGNATURE,
    FileRecord,
    Manifest,
    Signature,
)
from kernel_gen.runtime.driver_source import plan_sources
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.plan_text import plan_to_json
from kernel_gen.runtime.signer import Signer


def bundle_files(plan: Plan, signer: Signer) -> dict[str, bytes]:
    """Path -> bytes of the signed bundle of `plan`."""
    files = {PLAN: plan_to_json(plan).encode(), **_sources(plan)}
    files.update((f"objects/{item.sha256}.so", item.data) for item in plan.artifacts)
    records = tuple(
        FileRecord(path, _sha256(data), len(data)) for path, data in sorted(files.items())
    )
    manifest = to_json(Manifest(FORMAT_VERSION, _sha256(files[PLAN]), records)).encode()
    signature = Signature("ed25519", signer.public.fingerprint, signer.sign(DOMAIN + manifest))
    return {**files, MANIFEST: manifest, SIGNATURE: to_json(signature).encode()}


def _sources(plan: Plan) -> dict[str, bytes]:
    """Names stay below the 100 bytes of a tar's name field."""
    if not plan.kernels:
        return {}
    texts = (
        (source.entry, text)
        for source in plan_sources(plan.program, plan.kernels, plan.layout)
        for _, text in source.files
    )
    return {
        f"sources/{i:03}_{entry[:60]}.cpp": text.encode() for i, (entry, text) in enumerate(texts)
    }


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
