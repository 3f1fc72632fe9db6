"""Temporary folders that outlive nobody.

    <place>/<prefix><random>/     locked (flock) while its owner lives

The kernel lets a lock go when its holder ends, by SIGKILL too, so a folder without a lock is
rubbish: whoever makes the next one with the same prefix in the same place removes it. A lock is
seen from other PID namespaces, containers and users that share the place; a process id would not
be. Folders of other users are theirs to remove. Where a file system knows no locks, nothing is
removed that another process may have.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import stat
import tempfile
from pathlib import Path
from types import TracebackType

PREFIX = "gaf-scratch-"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES = 100
log = logging.getLogger(__name__)


class Scratch:
    """An empty folder of this process, of mode 0700; it goes with `close`, or after the process.

    It lies in `place`, the user's folder for temporary files if None. `kind` becomes part of its
    name, for people who look there. Raises OSError where it cannot be made.
    """

    def __init__(self, kind: str, place: Path | None = None, prefix: str = PREFIX) -> None:
        where = Path(tempfile.gettempdir()) if place is None else place
        sweep(where, prefix)
        self.path, self._handle = _made(where, f"{prefix}{kind}-")

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Removes the folder with all that is in it; idempotent."""
        handle, self._handle = self._handle, None
        if handle is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(handle)


def sweep(place: Path, prefix: str = PREFIX) -> None:
    """Removes this user's folders in `place` whose owners have ended."""
    try:
        with os.scandir(place) as entries:
            found = [entry.path for entry in entries if entry.name.startswith(prefix)]
    except OSError as error:
        log.debug("%s is not swept: %s", place, error)
        return
    for path in found:
        _remove_if_left(path)


def _made(where: Path, prefix: str) -> tuple[Path, int | None]:
    """A new folder and the open file that locks it. A sweep may take the folder away in the moment
    before it is locked; then there is another."""
    for _ in range(_TRIES):
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=where))
        try:
            handle = os.open(path, _OPEN)
        except FileNotFoundError:
            continue
        if _is_locked_by_us(handle) and _is_at(path, handle):
            return path, handle
        os.close(handle)
    raise FileNotFoundError(f"folders in {where} vanish as soon as they are made")


def _is_locked_by_us(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # of a sweep that removes it
    except OSError as error:
        log.debug("a temporary folder is not locked: %s", error)  # then no sweep can remove it
    return True


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _remove_if_left(path: str) -> None:
    try:
        handle = os.open(path, _OPEN)
    except OSError:
        return  # it has gone, or is no folder, or another user's
    try:
        status = os.fstat(handle)
        if status.st_uid == os.geteuid() and stat.S_ISDIR(status.st_mode):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    except OSError as error:
        log.debug("%s is left alone: %s", path, error)  # its owner lives
    finally:
        os.close(handle)
