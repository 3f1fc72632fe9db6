"""Which folders have no room left."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_LITTLE_BYTES = 1 << 20  # less than any build of a kernel writes


def full_folders(folders: Iterable[Path]) -> list[Path]:
    """Those of `folders` (of their parents, where they do not exist yet) that lie on a file system
    with less than 1 MiB, or no file, left for this user."""
    found = []
    for folder in folders:
        there = next((place for place in (folder, *folder.parents) if place.exists()), None)
        with suppress(OSError):
            if there is not None and _is_full(there):
                found.append(there)
    return found


def _is_full(folder: Path) -> bool:
    state = os.statvfs(folder)
    has_no_files = state.f_files > 0 and state.f_favail == 0  # some file systems count none
    return has_no_files or state.f_bavail * state.f_frsize < _LITTLE_BYTES
