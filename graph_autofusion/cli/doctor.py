"""`gaf doctor`: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import typer

from graph_autofusion.cli.output import JsonFlag, print_rows
from graph_autofusion.client import Client
from graph_autofusion.paths import bundle_cache_root, default_store
from graph_autofusion.progress import waiting
from kernel_gen.errors import GafError, Unavailable
from kernel_gen.lifetime.scratch import Scratch

_SERVER = ("ray", "optuna", "highspy", "sqlalchemy", "alembic", "fastapi", "uvicorn")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `state` is "ok", "missing" (something does not work without it) or
    "absent" (optional)."""

    what: str
    state: str
    detail: str
    fix: str = ""


def doctor(as_json: JsonFlag = False) -> None:
    """Check compiler, devices, versions and folders; exit code 1 if something needed is missing."""
    with waiting("looking at this machine"):
        findings = [check() for check in CHECKS]
    rows = [(f.what, f.state, f.detail, f.fix) for f in findings]
    print_rows(rows, ("what", "state", "detail", "fix"), title="gaf doctor", as_json=as_json)
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(1)


def _python() -> Finding:
    ok = sys.version_info >= (3, 11)
    fix = "" if ok else "install Python 3.11 or newer"
    return Finding("python", "ok" if ok else "missing", platform.python_version(), fix)


def _torch() -> Finding:
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return Finding("torch", "missing", "not installed", "pip install 'torch==2.13.*'")
    ok = version.startswith("2.13.")
    return Finding(
        "torch", "ok" if ok else "missing", version, "" if ok else "pip install 'torch==2.13.*'"
    )


def _server_packages() -> Finding:
    absent = [name for name in _SERVER if importlib.util.find_spec(name) is None]
    if absent:
        fix = "pip install 'graph-autofusion[server]' (not needed to run stored plans)"
        return Finding("tuning and service", "absent", f"no {', '.join(absent)}", fix)
    return Finding("tuning and service", "ok", ", ".join(_SERVER))


def _compiler() -> Finding:
    from kernel_gen.runtime.build import Compiler

    try:
        with Scratch("doctor") as folder:
            found = Compiler.find(folder)
    except GafError as error:
        fix = "install g++ (not needed to run stored plans), or name one in CXX"
        return Finding("C++ compiler", "absent", str(error), fix)
    alone = "" if found.openmp else "; without OpenMP (libomp), kernels run on one thread"
    return Finding("C++ compiler", "ok", found.version + alone)


def _cpu() -> Finding:
    from kernel_gen.runtime.host import host_target

    target = host_target()
    caches = f"L1 {target.l1_bytes >> 10} KiB, L2 {target.l2_bytes >> 10} KiB"
    return Finding("cpu", "ok", f"{target.key}, {target.cores} cores, {caches}")


def _ascend() -> Finding:
    from kernel_gen.runtime.ascend.cann import chip_of, find_toolkit

    try:
        toolkit = find_toolkit()
    except GafError as error:
        return Finding("ascend", "absent", str(error))
    try:
        found = f"NPU 0 is a {chip_of(toolkit, 0)}; {toolkit.version}"
    except GafError as error:
        fix = "check the driver, and that this user may open the NPU"
        return Finding("ascend", "missing", f"CANN is in {toolkit.home}, but {error}", fix)
    return Finding("ascend", "ok", found)


def _simulator() -> Finding:
    from kernel_gen.runtime.device_names import device_names

    names = ", ".join(name for name in device_names() if name != "cpu")
    return Finding("ascend-sim", "ok", f"{names}; built at its first use, with the compiler above")


def _folder(what: str, path: Path) -> Finding:
    probe = path
    while not probe.exists() and probe != probe.parent:
        probe = probe.parent
    if os.access(probe, os.W_OK):
        return Finding(what, "ok", str(path))
    return Finding(what, "missing", f"{path} is not writable", "set GAF_STORE to a writable place")


def _store() -> Finding:
    store = os.environ.get("GAF_STORE") or default_store()
    if "://" not in store:
        fix = "GAF_STORE=sqlite:///FILE or postgresql://USER@HOST/NAME"
        return Finding("store", "missing", f"GAF_STORE is {store!r}, not a URL", fix)
    if not store.startswith("sqlite:///"):
        return Finding("store", "ok", store.partition("://")[0] + " (GAF_STORE)")
    return _folder("store", Path(store.removeprefix("sqlite:///")).expanduser().parent)


def _bundles() -> Finding:
    return _folder("bundle cache", bundle_cache_root(os.environ.get("GAF_STORE")))


def _service() -> Finding:
    url = os.environ.get("GAF_SERVICE")
    if not url:
        return Finding("service", "absent", "GAF_SERVICE is not set; programs are tuned here")
    try:
        with Client(url, os.environ.get("GAF_API_KEY")) as client:
            count = len(client.devices())
            return Finding("service", "ok", f"{url}, {count} device{'s' * (count != 1)}")
    except Unavailable as error:
        return Finding("service", "missing", str(error), "start it with gaf serve")
    except GafError as error:
        return Finding("service", "missing", str(error), "set GAF_API_KEY to a key of the service")


CHECKS: tuple[Callable[[], Finding], ...] = (
    _python,
    _torch,
    _compiler,
    _cpu,
    _ascend,
    _simulator,
    _server_packages,
    _store,
    _bundles,
    _service,
)
