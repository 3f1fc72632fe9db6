"""What callers name by text: files, folders, services. Checked once, with one kind of error."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from kernel_gen.errors import InvalidInput


def checked_path(name: str, value: object) -> Path:
    """A path that a file could have; raises InvalidInput."""
    if not isinstance(value, str | os.PathLike):
        raise InvalidInput(f"{name} is {value!r:.100}: expected a path")
    path = Path(value)
    if "\0" in str(path):
        raise InvalidInput(f"{name} {str(path)!r:.100}: no file has a NUL in its name")
    try:
        path.is_file()
    except OSError as error:  # too long a name, a folder that may not be entered
        raise InvalidInput(f"{name} {str(path)!r:.100}: {error.strerror}") from error
    return path


def checked_url(name: str, value: object) -> str:
    """The URL of a service without a slash at its end; raises InvalidInput."""
    wanted = f"{name} is {value!r:.200}: expected http://HOST:PORT or https://HOST"
    if not isinstance(value, str) or any(char.isspace() or char < " " for char in value):
        raise InvalidInput(wanted)
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError as error:  # brackets that do not close, a port out of range
        raise InvalidInput(f"{wanted} ({error})") from error
    if not usable:
        raise InvalidInput(wanted)
    return value.rstrip("/")


def checked_store(name: str, url: str) -> str:
    """The URL of a database that can be shared; raises InvalidInput for one that never can."""
    kind, _, rest = url.partition("://")
    if kind.startswith("sqlite"):
        file = rest.removeprefix("/").partition("?")[0]
        if not file or file == ":memory:":
            raise InvalidInput(f"{name} is {url!r}: name a file, as in sqlite:////absolute/path.db")
        if Path(file).expanduser().is_dir():
            raise InvalidInput(f"{name} is {url!r}: a folder, not a file")
        return url
    try:
        urlsplit(url).port  # noqa: B018 - reading it checks it
    except ValueError as error:
        raise InvalidInput(f"{name} is {url!r}: {error}") from error
    return url
