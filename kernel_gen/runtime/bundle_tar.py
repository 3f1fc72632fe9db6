"""A bundle's files as one stream of bytes, for HTTP: an uncompressed tar, kept in memory."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

from kernel_gen.errors import InvalidInput


def pack_files(files: Mapping[str, bytes]) -> bytes:
    """Files as a tar, in the order of their names and without times: equal files, equal bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            archive.addfile(member, io.BytesIO(files[name]))
    return buffer.getvalue()


def unpack_files(data: bytes) -> dict[str, bytes]:
    """Name -> bytes of a tar's plain files; raises InvalidInput. Nothing is written to disk."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content is None or member.name in found:
                    raise InvalidInput(f"bundle: {member.name[:100]!r} is no plain file of its own")
                found[member.name] = content.read()
    except tarfile.TarError as error:
        raise InvalidInput(f"bundle: not a tar file: {error}") from None
    return found
