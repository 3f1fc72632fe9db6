"""Generated files for the NPU compiled against `tests/ascend/second_api` and run there."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from kernel_gen.codegen.ascend.launch import Tiler
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import Refusal
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import BufferRole, LoopNest
from tests.codegen.ascend.ascend_run import (
    CHIP,
    SYMBOL,
    compare,
    generated,
    lowered,
    memory,
    schedule_of,
    storage,
)
from tests.codegen.ascend.random_kernels import Case, together

HEADERS = Path(__file__).parents[2] / "ascend" / "second_api"
_COMPILE = (
    "g++",
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-isystem",
    str(HEADERS),
)
_LAUNCH = re.compile(r"(\w+)<<<(\w+), nullptr, (\w+)>>>\((.*)\);")
_ON_HOST = r"(void)\3;\n    asc_host::RunKernel(\2, [=] { \1(\4); });"
_GUARD, _ALIGNED = 4096, 512  # bytes
# Which cores a kernel's type starts, and whether they can wait for each other.
_KINDS = {
    "AIV_ONLY": (0, 1, 0),
    "AIC_ONLY": (1, 0, 0),
    "MIX_AIC_1_2": (1, 1, 1),
    "MIX_AIV_1_0": (0, 1, 1),
    "MIX_AIC_1_0": (1, 0, 1),
}


class _Operand:
    """Memory of the device, with guards on both sides."""

    def __init__(self, content: np.ndarray) -> None:
        self._raw = np.full(content.nbytes + 2 * _GUARD + _ALIGNED, 0xA5, np.uint8)
        self._start = _GUARD + (-(self._raw.ctypes.data + _GUARD)) % _ALIGNED
        self._end = self._start + content.nbytes
        self.bytes = self._raw[self._start : self._end]
        self.bytes[:] = np.frombuffer(content.tobytes(), np.uint8)
        self._given = self.bytes.copy()

    @property
    def pointer(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.bytes.ctypes.data)

    def check(self, *, read_only: bool) -> None:
        assert (self._raw[: self._start] == 0xA5).all(), "written before its begin"
        assert (self._raw[self._end :] == 0xA5).all(), "written behind its end"
        assert not read_only or (self.bytes == self._given).all(), "an input was written"


class SecondKernel:
    """A schedule's kernel on the second implementation; compilers' warnings are errors."""

    def __init__(self, nest: LoopNest, source: KernelSource, library: Path) -> None:
        self.nest, self._entry = nest, source.entry
        self._library = ctypes.CDLL(str(library))
        self._tiler = Tiler(self._library, source.entry)
        kind = re.search(r"KERNEL_TASK_TYPE_DEFAULT\(KERNEL_TYPE_(\w+)\)", source.files[0][1])
        assert kind is not None
        self._kind = _KINDS[kind[1]]
        self._library.asc_problem.restype = ctypes.c_char_p

    def run(
        self, operands: Sequence[np.ndarray], symbols: Mapping[str, int] | None = None
    ) -> list[np.ndarray]:
        """Outputs; fails the test where a documented limit is broken."""
        symbols = symbols or {}
        kinds = [b.type for b in self.nest.buffers if b.role is not BufferRole.OUTPUT]
        pairs = [storage(b.type, symbols) for b in self.nest.buffers if b.role is BufferRole.OUTPUT]
        tiling, blocks, work = self._tiler([symbols[s] for s in sorted(symbols)])
        reads = [_Operand(memory(a, kind)) for a, kind in zip(operands, kinds, strict=True)]
        writes = [_Operand(np.full(flat.nbytes, 0xEE, np.uint8)) for flat, _ in pairs]
        workspace = _Operand(np.full(work, 0xFF, np.uint8))
        data = _Operand(np.frombuffer(tiling, np.uint8))
        everything = (*reads, *writes, workspace, data)
        self._library.asc_kind(*self._kind)
        launch = getattr(self._library, f"launch_{self._entry}")
        launch(ctypes.c_uint32(blocks), None, *(operand.pointer for operand in everything))
        problem = self._library.asc_problem().decode()
        assert not problem, problem
        for operand in everything:
            operand.check(read_only=operand in (*reads, data))
        for operand, (flat, _) in zip(writes, pairs, strict=True):
            flat[...] = np.frombuffer(operand.bytes.tobytes(), flat.dtype)
        return [view for _, view in pairs]


def _launcher(source: KernelSource) -> tuple[str, str]:
    """A kernel's launcher, for the host."""
    name, text = next(file for file in source.files if file[0].endswith("_launch.cpp"))
    text, found = _LAUNCH.subn(_ON_HOST, text)
    assert found == 1, text
    return name, text


def _built(texts: Mapping[str, str], workdir: Path) -> Path:
    """A library of some files, each unit compiled on its own."""
    for name, text in texts.items():
        (workdir / name).write_text(text)
    units = [workdir / name for name in texts if name.endswith(".cpp")]
    objects = [_compiled(unit, workdir) for unit in (HEADERS / "support.cpp", *units)]
    library = workdir / "second.so"
    subprocess.run(["g++", "-shared", *objects, "-o", library, "-pthread"], check=True)
    return library


def _compiled(unit: Path, workdir: Path) -> Path:
    out = workdir / f"{unit.stem}.o"
    command = [*_COMPILE, f"-I{workdir}", "-c", str(unit), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return out


def check_second(graph: Graph, inputs: Sequence[np.ndarray], workdir: Path) -> None:
    """Runs a whole graph as one kernel and compares it with the reference."""
    made = lowered(graph)
    assert not isinstance(made, Refusal), made
    schedule = schedule_of(made.nest)
    assert not isinstance(schedule, Refusal), schedule
    source = generated(made.nest, schedule, CHIP, SYMBOL)
    library = _built(dict([*source.files, _launcher(source)]), workdir)
    compare(graph, inputs, made, SecondKernel(made.nest, source, library))


def check_many(cases: Sequence[Case], workdir: Path) -> None:
    """The same for random graphs, many kernels to a library; a failure names its graph as JSON."""
    sources = [
        generated(case.made.nest, case.schedule, CHIP, f"kernel{number}")
        for number, case in enumerate(cases)
    ]
    launchers = "\n".join(_launcher(source)[1] for source in sources)
    library = _built({**together(sources), "launchers.cpp": launchers}, workdir)
    for case, source in zip(cases, sources, strict=True):
        try:
            kernel = SecondKernel(case.made.nest, source, library)
            compare(case.graph, case.inputs, case.made, kernel)
        except AssertionError as wrong:
            wrong.add_note(case.graph.to_json())
            raise
