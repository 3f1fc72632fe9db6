"""The bundle cache: where the user's process finds plans.

    <root>/plans/<plan id>/                        a bundle
    <root>/keys/<program>/<target>.json            which plan a key names now

`program` and `target` are digests of the key's parts: all targets of one program lie together, so
that a compatible plan is found by listing one folder. Everything is written in one step, so any
number of processes may read and write. What is damaged, half-written or not trusted is a miss, and
the log says why.
"""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_gen.codec import from_json, to_json
from kernel_gen.errors import GafError, InvalidInput, Unavailable
from kernel_gen.lifetime.scratch import Scratch, sweep
from kernel_gen.runtime import bundle
from kernel_gen.runtime.bundle_format import PLAN, plan_of_files
from kernel_gen.runtime.key import PlanKey, stands_in
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.requires import Caller, sentence, this_process
from kernel_gen.runtime.trust import Trust

if TYPE_CHECKING:
    from kernel_gen.runtime.signer import Signer

_LOG = logging.getLogger(__name__)
_MAX_ENTRY_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Entry:
    """Content of a key's file."""

    key: str
    plan: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A plan; `exact` is False for a compatible one, to be timed once before use."""

    plan: Plan
    exact: bool


@dataclass(frozen=True, slots=True)
class Miss:
    """Why there is no plan."""

    reason: str


class BundleCache:
    """A folder of bundles. Without `trust` and `signer` the user's own are used."""

    def __init__(
        self, root: Path, trust: Trust | None = None, signer: Signer | None = None
    ) -> None:
        self.root = root
        self._trust = trust
        self._signer = signer

    def get(self, key: PlanKey) -> Plan | None:
        """The plan of exactly this key that runs in this process, else None."""
        found = self._load(key, self._key_path(key), this_process())
        if isinstance(found, Miss):
            _LOG.info("bundle cache miss for %s: %s", key, found.reason)
            return None
        return found

    def lookup(self, key: PlanKey, caller: Caller | None = None) -> Hit | Miss:
        """The key's plan, else one of the same program made for another target that the caller
        (this process, if None) can run as well."""
        caller = this_process() if caller is None else caller
        exact = self._key_path(key)
        found = self._load(key, exact, caller)
        if isinstance(found, Plan):
            return Hit(found, exact=True)
        for path in sorted(exact.parent.glob("*.json")):
            other = self._load(key, path, caller) if path != exact else found
            if isinstance(other, Plan) and stands_in(other.key.target, key.target):
                return Hit(other, exact=False)
        return found

    def put(self, plan: Plan) -> None:
        """Stores a plan of this user's own tuner, signed with the own key.

        Raises Unavailable if the cache cannot be written.
        """
        from kernel_gen.runtime.bundle_signing import bundle_files  # nothing that readers need
        from kernel_gen.runtime.signer import Signer

        signer = self._signer or Signer.of_user(trust=self._trust)
        self._store(bundle_files(plan, signer), plan.key)

    def put_files(self, files: dict[str, bytes]) -> Plan:
        """Stores a bundle that came from elsewhere, under the signature it came with.

        Raises UntrustedBundle or InvalidInput if it may not be loaded here.
        """
        plan = plan_of_files(files, self._trust or Trust.of_user())
        self._store(files, plan.key)
        return plan

    def _load(self, key: PlanKey, path: Path, caller: Caller) -> Plan | Miss:
        """The plan that the key file `path` names, if it is of the program of `key`."""
        try:
            entry = _read_entry(path)
            if entry is None:
                return Miss("unknown")
            plan = bundle.read(self._plan_folder(entry.plan), self._trust or Trust.of_user())
        except (GafError, OSError) as error:
            _LOG.warning("bundle cache entry %s is not usable: %s", path, error)
            return Miss(f"not usable: {error}")
        if replace(plan.key, target=key.target) != key or self._key_path(plan.key) != path:
            _LOG.warning("bundle cache entry %s names a plan of another key", path)
            return Miss("not usable: the entry names a plan of another key")
        reason = sentence(plan.provenance, caller)
        return plan if reason is None else Miss(reason)

    def _key_path(self, key: PlanKey) -> Path:
        program = _digest(f"{key.graph}:{key.shape}:{key.options}")
        return self.root / "keys" / program / f"{_digest(key.target)}.json"

    def _plan_folder(self, plan_id: str) -> Path:
        if len(plan_id) != 64 or not set(plan_id) <= set("0123456789abcdef"):
            raise InvalidInput(f"plan id {plan_id[:80]!r}")
        return self.root / "plans" / plan_id

    def _store(self, files: dict[str, bytes], key: PlanKey) -> None:
        plan_id = hashlib.sha256(files[PLAN]).hexdigest()
        folder = self._plan_folder(plan_id)
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            sweep(folder.parent, bundle.TEMPORARY_PREFIX)
            self._write_bundle(files, folder)
            _replace(self._key_path(key), to_json(Entry(str(key), plan_id)).encode())
        except OSError as error:
            raise Unavailable(f"cannot write to the bundle cache {self.root}: {error}") from None

    def _write_bundle(self, files: dict[str, bytes], folder: Path) -> None:
        """Writes the bundle unless a good one is there; a damaged one is replaced."""
        trust = self._trust or Trust.of_user()
        for _ in range(3):  # another process may write the same plan between two steps
            if folder.exists():
                if _is_good(folder, trust):
                    return
                _discard(folder)
            try:
                bundle.write_files(files, folder)
            except InvalidInput:
                continue
            return
        raise Unavailable(f"cannot replace the damaged bundle {folder}")


def _is_good(folder: Path, trust: Trust) -> bool:
    try:
        bundle.read(folder, trust)
    except GafError as error:
        _LOG.warning("bundle %s is replaced: %s", folder, error)
        return False
    return True


def _discard(folder: Path) -> None:
    """Takes a folder away in one step, then deletes it."""
    with (
        Scratch("discarded", folder.parent, bundle.TEMPORARY_PREFIX) as away,
        suppress(FileNotFoundError),  # another process has done it
    ):
        os.rename(folder, away / "bundle")


def _read_entry(path: Path) -> Entry | None:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_ENTRY_BYTES)
    except FileNotFoundError:
        return None
    return from_json(Entry, text)


def _replace(path: Path, data: bytes) -> None:
    """Writes `path` in one step, over what is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with Scratch("entry", path.parent, bundle.TEMPORARY_PREFIX) as folder:
        with open(folder / "entry", "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(folder / "entry", path)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]
