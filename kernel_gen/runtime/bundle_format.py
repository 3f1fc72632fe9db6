"""What a bundle consists of, as bytes: independent of where the files lie.

    plan.json            the plan
    sources/*.cpp        generated code, for reading only: nothing ever compiles it
    objects/<sha256>.so  shared objects
    manifest.json        path, SHA-256 and size of every file above
    signature.json       Ed25519 over manifest.json, and whose

The signature is checked before anything else of a bundle is looked at.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernel_gen.codec import from_json, from_tree, parse
from kernel_gen.errors import InvalidInput, UntrustedBundle
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.serialize import plan_from_json
from kernel_gen.runtime.trust import Trust

FORMAT_VERSION = 1
PLAN, MANIFEST, SIGNATURE = "plan.json", "manifest.json", "signature.json"
FOLDERS = ("sources", "objects")
MAX_FILE_BYTES = 256 << 20
MAX_BUNDLE_BYTES = 1 << 30
MAX_FILES = 10_000
MAX_HEAD_BYTES = 4 << 20  # manifest and signature, which are read before they can be trusted
_PATH = re.compile(r"(plan\.json|sources/[A-Za-z0-9_]{1,80}\.cpp|objects/[0-9a-f]{64}\.so)\Z")
DOMAIN = b"graph-autofusion bundle manifest\0"  # such a signature is good for nothing else


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file of a bundle."""

    path: str
    sha256: str
    nbytes: int

    def __post_init__(self) -> None:
        if not _PATH.match(self.path) or not 0 <= self.nbytes <= MAX_FILE_BYTES:
            raise InvalidInput(f"bundle file {self.path[:200]!r} of {self.nbytes} bytes")


@dataclass(frozen=True, slots=True)
class Manifest:
    """All files of a bundle but the manifest and the signature. `plan` is the plan's id."""

    format_version: int
    plan: str
    files: tuple[FileRecord, ...]

    def __post_init__(self) -> None:
        paths = [record.path for record in self.files]
        if len(set(paths)) != len(paths) or PLAN not in paths or len(paths) > MAX_FILES:
            raise InvalidInput(f"bundle manifest with {len(paths)} files")
        if sum(record.nbytes for record in self.files) > MAX_BUNDLE_BYTES:
            raise InvalidInput(f"bundle above the limit of {MAX_BUNDLE_BYTES} bytes")


@dataclass(frozen=True, slots=True)
class Signature:
    """`signature` of the manifest by the key of that `fingerprint`."""

    algorithm: str
    fingerprint: str
    signature: bytes


def trusted_manifest(manifest: bytes, signature: bytes, trust: Trust) -> Manifest:
    """The manifest, if a trusted key has signed it; raises UntrustedBundle."""
    try:
        found = from_json(Signature, signature)
    except InvalidInput as error:
        raise UntrustedBundle(f"the bundle's signature is damaged: {error}") from None
    key = trust.find(found.fingerprint) if found.algorithm == "ed25519" else None
    if key is None:
        raise UntrustedBundle(
            f"the bundle is signed by {found.fingerprint[:64]}, which is not trusted here: "
            "if you know this key, add it with `gaf trust add`"
        )
    if not key.verify(DOMAIN + manifest, found.signature):
        raise UntrustedBundle("the bundle's manifest was altered after it was signed")
    return _parse_manifest(manifest)


def plan_of_files(files: Mapping[str, bytes], trust: Trust) -> Plan:
    """The plan of a bundle in memory (a download, say).

    Raises UntrustedBundle if it is not signed by a trusted key, or any file is missing, altered or
    not named in the manifest; InvalidInput if this version cannot read the plan.
    """
    missing = [name for name in (MANIFEST, SIGNATURE) if name not in files]
    if missing:
        raise UntrustedBundle(f"the bundle has no {' and no '.join(missing)}")
    manifest = trusted_manifest(files[MANIFEST], files[SIGNATURE], trust)
    content = {path: data for path, data in files.items() if path not in (MANIFEST, SIGNATURE)}
    return verified_plan(manifest, content)


def verified_plan(manifest: Manifest, content: Mapping[str, bytes]) -> Plan:
    """The plan of files that must be exactly those of a trusted manifest."""
    names = {record.path for record in manifest.files}
    if names != set(content):
        odd = sorted(names ^ set(content))[:5]
        raise UntrustedBundle(f"files missing from the bundle or not in its manifest: {odd}")
    for record in manifest.files:
        data = content[record.path]
        if len(data) != record.nbytes or _sha256(data) != record.sha256:
            raise UntrustedBundle(f"{record.path} of the bundle was altered")
    return shown_plan(content)


def shown_plan(content: Mapping[str, bytes]) -> Plan:
    """The plan of a bundle's files, to be looked at: whoever signed it, it may not be run.

    Raises InvalidInput if there is none or this version cannot read it.
    """
    if PLAN not in content:
        raise InvalidInput(f"the bundle has no {PLAN}")
    objects = {path[8:-3]: data for path, data in content.items() if path.startswith("objects/")}
    return plan_from_json(content[PLAN], objects)


def _parse_manifest(text: bytes) -> Manifest:
    """Another format gets an error that names both versions, whatever else the text holds."""
    tree = parse(Manifest, text)
    version = tree.get("format_version") if isinstance(tree, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidInput("the bundle's manifest has no format_version")
    if version != FORMAT_VERSION:
        advice = "upgrade it" if version > FORMAT_VERSION else "export the plan again"
        raise InvalidInput(
            f"the bundle has format version {version}, this version of graph-autofusion reads "
            f"{FORMAT_VERSION}: {advice}"
        )
    return from_tree(Manifest, tree)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
