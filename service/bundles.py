"""Bundles as this server hands them out and takes them in."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from kernel_gen.runtime.bundle_format import plan_of_files
from kernel_gen.runtime.bundle_signing import bundle_files
from kernel_gen.runtime.bundle_tar import pack_files, unpack_files
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.signer import Signer
from kernel_gen.runtime.trust import PublicKey, Trust

MEDIA_TYPE = "application/x-tar"


class Bundler:
    """Signs plans with the server's key, and reads bundles that a trusted key (the server's own
    among them) has signed. Folders of None are the user's own; a key is made at first use."""

    def __init__(self, key_folder: Path | None, trust_folder: Path | None) -> None:
        self._key_folder = key_folder
        self._trust_folder = trust_folder

    @cached_property
    def _keys(self) -> tuple[Signer, Trust]:
        trust = Trust(self._trust_folder) if self._trust_folder else Trust.of_user()
        return Signer.of_user(self._key_folder, trust), trust

    @property
    def public_key(self) -> PublicKey:
        return self._keys[0].public

    def pack(self, plan: Plan) -> bytes:
        """The signed bundle of a plan as a tar."""
        return pack_files(bundle_files(plan, self._keys[0]))

    def unpack(self, data: bytes) -> Plan:
        """The plan of such a tar; raises InvalidInput, UntrustedBundle."""
        return plan_of_files(unpack_files(data), self._keys[1])
