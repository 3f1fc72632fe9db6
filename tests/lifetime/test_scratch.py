"""Temporary folders go with their owner, however it ends, and never before."""

from __future__ import annotations

import ast
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernel_gen.lifetime.scratch import PREFIX, Scratch, sweep
from kernel_gen.runtime.bundle import TEMPORARY_PREFIX

ROOT = Path(__file__).parents[2]
OWNER = """
import sys, time
from pathlib import Path
from kernel_gen.lifetime.scratch import Scratch
with Scratch("held", Path(sys.argv[1])) as folder:
    (folder / "content").mkdir()
    print(folder, flush=True)
    time.sleep(600)
"""


@contextmanager
def owner(place: Path, *before: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that holds a folder in `place`, and the folder; it is killed afterwards."""
    with subprocess.Popen(
        [*before, sys.executable, "-c", OWNER, str(place)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_a_folder_goes_when_it_is_closed(tmp_path: Path) -> None:
    with Scratch("x", tmp_path) as folder:
        (folder / "deep" / "er").mkdir(parents=True)
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []


def test_a_killed_owners_folder_goes_with_the_next_and_a_living_ones_stays(tmp_path: Path) -> None:
    with owner(tmp_path) as (_, held):
        with owner(tmp_path) as (_, left):
            assert left.is_dir()
        assert left.is_dir()
        with Scratch("next", tmp_path):
            assert not left.exists()
            assert (held / "content").is_dir()


def test_an_owner_in_another_pid_namespace_is_seen(tmp_path: Path) -> None:
    probe = ["unshare", "--pid", "--fork"]
    if subprocess.run([*probe, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no PID namespaces here")
    with owner(tmp_path, *probe, "--kill-child") as (_, held):
        sweep(tmp_path)
        assert (held / "content").is_dir()
    end = time.monotonic() + 60
    while held.exists():  # the owner is killed a moment after `unshare`
        sweep(tmp_path)
        assert time.monotonic() < end


def test_a_forked_process_of_the_owner_holds_it_on(tmp_path: Path) -> None:
    scratch = Scratch("forked", tmp_path)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    os.close(reader)
    assert scratch._handle is not None
    os.close(scratch._handle)  # as the owner's end does
    scratch._handle = None
    sweep(tmp_path)
    assert scratch.path.is_dir()
    os.close(writer)
    os.wait()
    sweep(tmp_path)
    assert not scratch.path.exists()


def test_links_files_and_folders_of_others_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = tmp_path / "place"
    place.mkdir()
    (place / f"{PREFIX}link").symlink_to(elsewhere)
    (place / f"{PREFIX}file").write_text("")
    (place / f"{PREFIX}folder").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: os.getuid() + 1)
        sweep(place)
    assert len(list(place.iterdir())) == 3
    sweep(place)
    assert sorted(path.name for path in place.iterdir()) == [f"{PREFIX}file", f"{PREFIX}link"]
    assert elsewhere.is_dir()


def test_where_nothing_can_be_locked_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with Scratch("first", tmp_path) as first, Scratch("second", tmp_path) as second:
        assert first.is_dir()
        assert second.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_makers_and_sweepers_at_once_never_take_a_living_folder(tmp_path: Path) -> None:
    stop = threading.Event()

    def sweeping() -> None:
        while not stop.is_set():
            sweep(tmp_path)

    def making(number: int) -> bool:
        with Scratch(str(number), tmp_path) as folder:
            (folder / "content").write_text("x")
            time.sleep(0.001)
            return (folder / "content").read_text() == "x"

    sweepers = [threading.Thread(target=sweeping) for _ in range(2)]
    for thread in sweepers:
        thread.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(making, range(200)))
    finally:
        stop.set()
        for thread in sweepers:
            thread.join()
    assert list(tmp_path.iterdir()) == []


def test_what_is_swept_beside_a_users_files_bears_the_products_name() -> None:
    """A user's own hidden folder must not be taken for what a killed process has left."""
    prefixes = set()
    for package in ("kernel_gen", "graph_autofusion", "db", "service", "tuner", "cost_models"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Scratch", "sweep"):
                    prefixes |= {ast.unparse(argument) for argument in node.args[1:]}
    texts = {text.strip("'") for text in prefixes if text.startswith("'")}
    assert texts
    assert all(text.startswith(".gaf-") for text in texts)
    assert TEMPORARY_PREFIX.startswith(".gaf-")


def test_the_product_makes_temporary_folders_in_no_other_way() -> None:
    packages = ("kernel_gen", "graph_autofusion", "db", "service", "tuner", "cost_models")
    found = set()
    for package in packages:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                made = isinstance(node, ast.Attribute) and node.attr != "gettempdir"
                if made and ast.unparse(node).startswith("tempfile."):
                    found.add(str(path.relative_to(ROOT)))
    assert found == {"kernel_gen/lifetime/scratch.py"}
