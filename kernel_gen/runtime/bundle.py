"""Bundles on disk: written in one step, read without following a link or trusting a size."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from kernel_gen.errors import InvalidInput, Unavailable, UntrustedBundle
from kernel_gen.lifetime.scratch import Scratch
from kernel_gen.runtime.bundle_format import (
    FOLDERS,
    MANIFEST,
    MAX_FILES,
    MAX_HEAD_BYTES,
    SIGNATURE,
    trusted_manifest,
    verified_plan,
)
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.trust import Trust

TEMPORARY_PREFIX = ".gaf-writing-"  # of nothing that a user might have beside a bundle
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Writes a bundle's files; `folder` appears complete or not at all.

    Raises InvalidInput if it exists and is not empty, Unavailable if it cannot be written.
    """
    folder = Path(os.path.abspath(folder))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with Scratch("bundle", folder.parent, TEMPORARY_PREFIX) as temporary:
            _write_tree(files, temporary / "bundle")
            os.rename(temporary / "bundle", folder)
        _sync_folder(folder.parent)
    except FileExistsError:
        raise InvalidInput(f"{folder} exists and is not empty") from None
    except OSError as error:
        if error.errno in _NOT_EMPTY:
            raise InvalidInput(f"{folder} exists and is not empty") from None
        raise Unavailable(f"cannot write the bundle {folder}: {error}") from None


def read(folder: Path, trust: Trust) -> Plan:
    """The plan of a bundle.

    Raises InvalidInput if there is none or this version cannot read it, UntrustedBundle if no
    trusted key has signed it or it is not, file by file, what was signed.
    """
    try:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise InvalidInput(f"no bundle at {folder}: {error.strerror}") from None
    try:
        head = {name: _read_file(root, name, MAX_HEAD_BYTES) for name in (MANIFEST, SIGNATURE)}
        manifest = trusted_manifest(head[MANIFEST], head[SIGNATURE], trust)
        sizes = {record.path: record.nbytes for record in manifest.files}
        _refuse_extras(root, sizes)
        content = {path: _read_file(root, path, nbytes) for path, nbytes in sizes.items()}
    finally:
        os.close(root)
    return verified_plan(manifest, content)


_NOT_EMPTY = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


def _write_tree(files: Mapping[str, bytes], folder: Path) -> None:
    folder.mkdir(mode=0o755)
    for name in FOLDERS:
        (folder / name).mkdir()
    for path, data in files.items():
        with open(folder / path, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    for place in (*(folder / name for name in FOLDERS), folder):
        _sync_folder(place)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_file(root: int, path: str, limit: int) -> bytes:
    """At most `limit` bytes of a regular file below `root`; no component may be a link."""
    *parents, name = path.split("/")
    opened: list[int] = []
    try:
        place = root
        for parent in parents:
            place = os.open(parent, _READ | os.O_DIRECTORY, dir_fd=place)
            opened.append(place)
        handle = os.open(name, _READ, dir_fd=place)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
                raise UntrustedBundle(f"{path} of the bundle is no plain file or too large")
            return file.read(limit)
    except OSError as error:
        raise UntrustedBundle(f"cannot read {path} of the bundle: {error.strerror}") from None
    finally:
        for handle in opened:
            os.close(handle)


def _refuse_extras(root: int, known: Iterable[str]) -> None:
    allowed = {*known, MANIFEST, SIGNATURE}
    for path in _listing(root):
        if path not in allowed:
            raise UntrustedBundle(f"{path[:200]!r} is not in the bundle's manifest")


def _listing(root: int) -> list[str]:
    found: list[str] = []
    for name in os.listdir(root):
        if name not in FOLDERS:
            found.append(name)
            continue
        try:
            handle = os.open(name, _READ | os.O_DIRECTORY, dir_fd=root)
        except OSError:
            raise UntrustedBundle(f"{name} of the bundle is no plain folder") from None
        try:
            found.extend(f"{name}/{child}" for child in os.listdir(handle))
        finally:
            os.close(handle)
    if len(found) > MAX_FILES + 2:
        raise UntrustedBundle(f"the bundle has {len(found)} files")
    return found
