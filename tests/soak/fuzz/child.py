"""Batches of seeds in processes of their own: a crash or a hang is the failure of one seed."""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

import numpy as np

from kernel_gen.errors import InternalError
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from tests.soak.fuzz.batch import Found, check_cases
from tests.soak.fuzz.cases import FuzzCase, fuzz_case
from tests.soak.fuzz.shrink import shrunk

_BUILD_SECONDS = 1200.0  # long runs share their machine with others
_SILENT_SECONDS = 3600.0  # a child has hung: what lasts longest is one run of the compiler
_FORK = multiprocessing.get_context("fork")  # torch is imported already


@dataclass(frozen=True, slots=True)
class Batch:
    """Seeds checked together on one instruction set; `folder` is for failures."""

    seeds: tuple[int, ...]
    isa: str
    folder: Path


def checked(batches: Sequence[Batch], jobs: int) -> Iterator[tuple[Batch, Found]]:
    """What each batch finds, `jobs` of them side by side, in the order in which they end."""
    left, running = list(reversed(batches)), list[_Child]()
    try:
        while left or running:
            while left and len(running) < jobs:
                running.append(_Child(left.pop()))
            wait([child.pipe for child in running], timeout=10.0)
            for child in list(running):
                if child.follow():
                    running.remove(child)
                    yield child.batch, child.found
    finally:
        for child in running:
            child.end()


class _Child:
    """A process for the seeds of a batch; another for what is left when it dies."""

    def __init__(self, batch: Batch) -> None:
        self.batch, self.found, self._left = batch, Found(), batch.seeds
        self._start()

    def _start(self) -> None:
        self.pipe, theirs = _FORK.Pipe(duplex=False)
        self._process = _FORK.Process(target=_work, args=(self.batch, self._left, theirs))
        self._process.daemon = True
        self._process.start()
        theirs.close()
        self._at: int | None = None
        self._heard = time.monotonic()

    def follow(self) -> bool:
        """Takes in what the process says; whether the batch is done."""
        try:
            while self.pipe.poll():
                told = self.pipe.recv()
                self._heard = time.monotonic()
                if isinstance(told, Found):
                    self.found.failures.update(told.failures)
                    self.found.tried.update(told.tried)
                    self.end()
                    return True
                self._at = told
        except EOFError:
            return self._died()
        return time.monotonic() - self._heard > _SILENT_SECONDS and self._died()

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()

    def _died(self) -> bool:
        """The seed at which the process died has failed; whether that was the last one."""
        self._process.join(5.0)
        code = self._process.exitcode
        self.end()
        if self._at is None:
            raise InternalError(f"a process of the run ended with {code} before its first seed")
        why = "the process hung" if code is None else f"the process ended with {code}"
        self.found.failures[self._at] = why
        keep(self.batch, fuzz_case(self._at), why, "died")
        self._left = tuple(seed for seed in self._left if seed != self._at)
        if self._left:
            self._start()
        return not self._left


def _work(batch: Batch, seeds: Sequence[int], pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    target = host_target(batch.isa)
    with tempfile.TemporaryDirectory(prefix="gaf-fuzz-") as scratch:
        compiler = Compiler.find(Path(scratch), timeout_seconds=_BUILD_SECONDS)

        def fails(case: FuzzCase) -> str | None:
            return check_cases([case], target, compiler).failures.get(case.seed)

        found = check_cases(map(fuzz_case, seeds), target, compiler, pipe.send)
        for seed, why in found.failures.items():
            pipe.send(seed)
            keep(batch, fuzz_case(seed), why, "whole")
            try:
                keep(batch, *shrunk(fuzz_case(seed), fails, why), "smallest")
            except Exception:  # noqa: BLE001 - the whole case is kept
                keep(batch, fuzz_case(seed), traceback.format_exc(), "not-shrunk")
    pipe.send(found)


def keep(batch: Batch, case: FuzzCase, why: str, name: str) -> None:
    """The case as files: a graph, its inputs as bytes of their types, and what was wrong."""
    folder = batch.folder / str(case.seed)
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(case.graph.to_json())
    arrays = {str(i): np.frombuffer(a.tobytes(), np.uint8) for i, a in enumerate(case.inputs)}
    np.savez(folder / f"{name}.npz", **arrays)  # type: ignore[arg-type]
    (folder / f"{name}.txt").write_text(f"seed {case.seed}, {case.numerics}, {batch.isa}\n{why}\n")
