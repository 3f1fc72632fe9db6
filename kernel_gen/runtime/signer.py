"""The key that signs bundles: the user's own, Ed25519.

<config>/signing-key.pem     the key of the user's own store, mode 0600
"""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.runtime.trust import (
    MAX_BYTES,
    PublicKey,
    Trust,
    check_owner,
    config_folder,
    write_new,
)

_KEY_FILE = "signing-key.pem"


class Signer:
    """A private key in memory."""

    def __init__(self, key: Ed25519PrivateKey, name: str = "") -> None:
        self._key = key
        raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.public = PublicKey(raw, name)

    @staticmethod
    def generate(name: str = "") -> Signer:
        """A new key that is kept nowhere."""
        return Signer(Ed25519PrivateKey.generate(), name)

    @staticmethod
    def of_user(folder: Path | None = None, trust: Trust | None = None) -> Signer:
        """The key of the user's own store, made at first use and enrolled in `trust`.

        Any number of processes may call this at once: all get the same key. Raises Unavailable if
        nothing can be written, UntrustedBundle if others can read the key.
        """
        path = (config_folder() if folder is None else folder) / _KEY_FILE
        if not path.exists():
            _create_key(path)
        signer = Signer(_read_key(path), "this user's own store")
        trust = Trust.of_user() if trust is None else trust
        if trust.find(signer.public.fingerprint) is None:
            trust.add(signer.public.name, signer.public.raw)
        return signer

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)


def _create_key(path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_new(path, pem, 0o600)
    except OSError as error:
        raise Unavailable(f"cannot write the signing key {path}: {error}") from None


def _read_key(path: Path) -> Ed25519PrivateKey:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise Unavailable(f"cannot read the signing key {path}: {error}") from None
    with os.fdopen(handle, "rb") as file:
        check_owner(path, os.fstat(file.fileno()), 0o077, "read")
        data = file.read(MAX_BYTES)
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{path} is not a signing key: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInput(f"{path} is not an Ed25519 key")
    return key
