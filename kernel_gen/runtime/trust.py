"""Who may hand this user native code: trusted Ed25519 keys.

    <config>/trusted/<fingerprint>.pub   one file per trusted key, or in the folder GAF_TRUST

A fingerprint is the SHA-256 of the raw public key in hexadecimal. Folder and files must belong to
the user or to root, and nobody else may be able to write them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from kernel_gen.errors import InvalidInput, Unavailable, UntrustedBundle
from kernel_gen.lifetime.scratch import Scratch

MAX_BYTES = 4096  # of a key file
_FINGERPRINT = re.compile(r"[0-9a-f]{64}\Z")
_ODD = re.compile(r"[^\w .:/@+-]")


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key: 32 raw bytes. `name` says for people whose it is."""

    raw: bytes
    name: str = ""

    def __post_init__(self) -> None:
        if len(self.raw) != 32:
            raise InvalidInput(f"an Ed25519 public key has 32 bytes, got {len(self.raw)}")

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.raw)

    @property
    def text(self) -> str:
        """One line: algorithm, base64 key, name."""
        return f"ed25519 {base64.b64encode(self.raw).decode()} {_ODD.sub('', self.name)}".strip()

    @staticmethod
    def parse(text: str) -> PublicKey:
        """The key that `text` has written; raises InvalidInput."""
        words = text.strip().split(" ", 2)
        if len(words) < 2 or words[0] != "ed25519":
            raise InvalidInput("not a public key: expected 'ed25519 <base64> [name]'")
        try:
            raw = base64.b64decode(words[1], validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput("not a public key: the second word is not base64") from None
        return PublicKey(raw, words[2] if len(words) == 3 else "")

    def verify(self, message: bytes, signature: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except InvalidSignature:
            return False
        return True


class Trust:
    """A folder of trusted public keys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def of_user() -> Trust:
        """The folder in GAF_TRUST, else the one in the user's configuration."""
        named = os.environ.get("GAF_TRUST")
        return Trust(Path(named).expanduser() if named else config_folder() / "trusted")

    def add(self, name: str, public_key: bytes) -> PublicKey:
        """Trusts a raw key from now on. Raises Unavailable if the folder cannot be written."""
        key = PublicKey(public_key, name)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_new(self.folder / f"{key.fingerprint}.pub", f"{key.text}\n".encode(), 0o644)
        except OSError as error:
            raise Unavailable(f"cannot write to the trust folder {self.folder}: {error}") from None
        return key

    def keys(self) -> tuple[PublicKey, ...]:
        """All trusted keys, by fingerprint."""
        names = sorted(path.stem for path in self.folder.glob("*.pub"))
        found = (self.find(name) for name in names if _FINGERPRINT.match(name))
        return tuple(key for key in found if key is not None)

    def find(self, fingerprint: str) -> PublicKey | None:
        """The key of that fingerprint, None if it is not trusted. Raises UntrustedBundle if
        someone else could have put it there."""
        path = self.folder / f"{fingerprint}.pub"
        if not _FINGERPRINT.match(fingerprint) or not path.exists():
            return None
        for place in (self.folder, path):
            check_owner(place, place.stat(), 0o022, "written")
        with path.open("rb") as file:
            key = PublicKey.parse(file.read(MAX_BYTES).decode("utf-8", "replace"))
        if key.fingerprint != fingerprint:
            raise UntrustedBundle(f"{path} holds another key than its name says")
        return key


def config_folder() -> Path:
    """The user's configuration folder of this project."""
    return platformdirs.user_config_path("graph-autofusion")


def fingerprint(public_key: bytes) -> str:
    """SHA-256 of a raw public key, hexadecimal."""
    return hashlib.sha256(public_key).hexdigest()


def write_new(path: Path, data: bytes, mode: int) -> None:
    """Writes `path` in one step, unless it exists: the first of several writers wins."""
    with Scratch("key", path.parent, ".gaf-writing-") as folder:
        handle = os.open(folder / "key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(folder / "key", path)


def check_owner(path: Path, status: os.stat_result, forbidden: int, verb: str) -> None:
    if status.st_uid not in (os.geteuid(), 0):
        raise UntrustedBundle(f"{path} belongs to another user (uid {status.st_uid})")
    if stat.S_IMODE(status.st_mode) & forbidden:
        raise UntrustedBundle(f"{path} can be {verb} by other users: chmod go-rwx it")
