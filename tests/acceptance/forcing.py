"""Kernels that a search might choose for a program, of all kinds, run on the program's values."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import torch

from kernel_gen.codec import digest
from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.codegen.source import KernelSource
from kernel_gen.codegen.template import Template
from kernel_gen.errors import Refusal
from kernel_gen.frontend import capture
from kernel_gen.frontend.captured import FreshResult
from kernel_gen.frontend.torch_run import constant_tensor, run
from kernel_gen.fusion.apply_rules import apply_rules
from kernel_gen.fusion.candidates import Limits, candidates
from kernel_gen.fusion.lower import Lowered, Lowering
from kernel_gen.fusion.region import constant_nodes, make_group
from kernel_gen.fusion.rules import load_rules
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import Buffer, BufferRole
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import static_shape
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.kernel import LoadedKernel
from kernel_gen.schedule.schedule import Choice
from tuner.checks.compare import Tolerance, mismatch, tolerance, value_scale
from tuner.checks.conditioning import ill_conditioned
from tuner.checks.reference import reference

_POISON = 0x7B
_FENCE = 64  # bytes around an output that no kernel may touch
_LARGEST = Limits(groups=120, lowered=60)


@dataclass(frozen=True, slots=True)
class Judged:
    """An output of a nest in float64: how far a kernel may lie off, and what it need not meet."""

    expected: np.ndarray
    allowed: Tolerance
    exempt: np.ndarray | None


@dataclass(frozen=True)
class Nest:
    """A group of a program as a nest, with the values of all its operands (eager's results)."""

    lowered: Lowered
    values: dict[int, np.ndarray]

    @cached_property
    def judged(self) -> list[Judged]:
        """The reference, computed once for all kernels of the nest."""
        return _judged(self)

    def inputs(self) -> list[np.ndarray]:
        return [array for array, buffer in self._operands() if buffer.role is not BufferRole.OUTPUT]

    def eager(self) -> list[np.ndarray]:
        return [array for array, buffer in self._operands() if buffer.role is BufferRole.OUTPUT]

    def _operands(self) -> Iterator[tuple[np.ndarray, Buffer]]:
        for value, buffer in zip(self.lowered.operands, self.lowered.nest.buffers, strict=True):
            yield _laid_out(self.values[value], buffer), buffer


@dataclass(frozen=True, slots=True)
class Kernel:
    """A nest under one template and point."""

    nest: Nest
    template: str
    point: dict[str, Choice]
    source: KernelSource


@dataclass(slots=True)
class Forcing:
    """Collects kernels of many programs, builds them at once, runs them one by one."""

    compiler: Compiler
    target: Target
    per_program: int = 2
    seed: int = 0
    by_program: dict[str, list[Kernel]] = field(default_factory=dict)
    loaded: dict[str, LoadedKernel] = field(default_factory=dict)

    def add(self, name: str, function: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> None:
        """Kernels for the program as one group, where that is legal, and for its other groups:
        each template's first guess and a point drawn at random."""
        program, values = evaluated(function, inputs)
        rng = random.Random(f"{self.seed} {name}")
        nests = list(_nests(program, self.target).values())
        whole, parts = nests[:1], nests[1:]
        chosen = whole + rng.sample(parts, min(len(parts), self.per_program - 1))
        kernels: list[Kernel] = []
        for lowered in chosen:
            for template in templates(self.target):
                if template.refuse(lowered.nest, self.target) is None:
                    kernels += self._kernels(Nest(lowered, values), template, rng)
        self.by_program[name] = kernels

    def _kernels(self, nest: Nest, template: Template, rng: random.Random) -> list[Kernel]:
        space = template.space(nest.lowered.nest, self.target)
        drawn = {p.name: rng.choice(p.choices) for p in space.parameters}
        points = [dict(space.seeds[0]), drawn]
        found = []
        for point in points if drawn != points[0] else points[:1]:
            schedule = template.schedule(nest.lowered.nest, self.target, point)
            if not isinstance(schedule, Refusal):
                symbol = f"k{sum(map(len, self.by_program.values()))}_{rng.getrandbits(48):x}"
                source = template.generate(nest.lowered.nest, self.target, schedule, symbol)
                found.append(Kernel(nest, template.name, point, source))
        return found

    def build(self, jobs: int = 2) -> None:
        """All kernels, as `jobs` objects side by side."""
        kernels = [kernel for own in self.by_program.values() for kernel in own]
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self._build, [kernels[i::jobs] for i in range(jobs)]))

    def _build(self, kernels: Sequence[Kernel]) -> None:
        built = self.compiler.compile_texts([k.source.files[0] for k in kernels], self.target)
        assert not isinstance(built, Failure), built.message
        path = self.compiler.path_of(built)
        for kernel in kernels:
            entry = kernel.source.entry
            self.loaded[entry] = LoadedKernel(path, kernel.source, kernel.nest.lowered.nest)

    def check(self, name: str, threads: Sequence[int] = (1, 3)) -> int:
        """Compares all kernels of a program with float64 and with eager; how many there were."""
        for kernel in self.by_program[name]:
            for n_threads in threads:
                problem = _problem(kernel, self.loaded[kernel.source.entry], n_threads)
                place = f"{name}: {kernel.template} {kernel.point}, {n_threads} threads"
                assert problem is None, f"{place}: {problem}"
        return len(self.by_program[name])


def evaluated(
    function: Callable[..., Any], inputs: Sequence[torch.Tensor]
) -> tuple[Graph, dict[int, np.ndarray]]:
    """The captured program under the built-in rules, and all its values as torch computes them.

    The program's results must be the function's: values, dtypes and shapes.
    """
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(function(*_copies(inputs)))
        captured = capture(function, tuple(_copies(inputs)))
        program = apply_rules(captured.graph, load_rules(None)).program
        given = captured.bind(torch.nn.Module(), captured.flatten(_copies(inputs)) or [])
        env = dict(zip((i.value for i in program.inputs), given, strict=True))
        for constant in program.constants:
            env[constant.value] = constant_tensor(constant, program.type_of(constant.value))
        run(program, range(len(program.nodes)), env)
    for result, want in zip(captured.results, expected, strict=True):
        if isinstance(result, FreshResult):
            have = env[program.outputs[result.output].value]
            torch.testing.assert_close(have, want, equal_nan=True)
    return program, {value: as_array(tensor) for value, tensor in env.items()}


def _copies(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [x.clone(memory_format=torch.preserve_format) for x in inputs]


def _nests(program: Graph, target: Target) -> dict[str, Lowered]:
    """Distinct nests of a program: all of it first, then the groups a search chooses from."""
    constant = set(constant_nodes(program))
    nodes = [n for n in range(len(program.nodes)) if n not in constant]
    whole = Lowering(program).lower(make_group(program, nodes))
    found = {digest(whole.nest): whole} if isinstance(whole, Lowered) else {}
    for candidate in candidates(program, templates(target), target, limits=_LARGEST).groups:
        found.setdefault(candidate.task, candidate.lowered)
    return found


def _problem(kernel: Kernel, loaded: LoadedKernel, n_threads: int) -> str | None:
    """What is wrong with a run of the kernel; None if nothing."""
    nest, inputs = kernel.nest.lowered.nest, kernel.nest.inputs()
    made = [_fenced(b) for b in nest.buffers if b.role is BufferRole.OUTPUT]
    outputs = [array for _, array in made]
    given, written = iter(inputs), iter(outputs)
    operands = [next(written if b.role is BufferRole.OUTPUT else given) for b in nest.buffers]
    status = loaded.run(operands, n_threads)
    if status:
        return f"status {status}"
    if any((b[:_FENCE] != _POISON).any() or (b[-_FENCE:] != _POISON).any() for b, _ in made):
        return "wrote beside an output"
    return _wrong(kernel.nest, outputs)


def _wrong(nest: Nest, outputs: Sequence[np.ndarray]) -> str | None:
    with np.errstate(all="ignore"):
        for have, want in zip(outputs, nest.judged, strict=True):
            found = np.ascontiguousarray(have)
            if problem := mismatch(found, want.expected, want.allowed, want.exempt):
                return problem
    return _differs_from_eager(nest, outputs)


def _judged(nest: Nest) -> list[Judged]:
    made, inputs = nest.lowered.nest, nest.inputs()
    places = [i for i, b in enumerate(made.buffers) if b.role is BufferRole.OUTPUT]
    with np.errstate(all="ignore"):
        expected, ambiguous = reference(made, inputs, strict=False)
        scale = max((value_scale(a) for a in inputs if a.dtype != np.bool_), default=0.0)
        sizes = [value_scale(e) if e.dtype.kind == "f" else 0.0 for e in expected]
        least = 1e-3 * min(scale, 1e3)
        allowed = [
            tolerance(made, place, max(size, least))
            for place, size in zip(places, sizes, strict=True)
        ]
        hard = ill_conditioned(made, inputs, expected, allowed)
    return [
        Judged(want, limit, _either(*masks))
        for want, limit, *masks in zip(expected, allowed, ambiguous, hard, strict=True)
    ]


def _either(*masks: np.ndarray | None) -> np.ndarray | None:
    known = [mask for mask in masks if mask is not None]
    return np.logical_or.reduce(known) if known else None


_EAGER = {
    torch.float32: (1e-4, 1e-5),
    torch.float64: (1e-9, 1e-9),
    torch.bfloat16: (2e-2, 2e-2),
    torch.float16: (3e-3, 3e-3),
}


def _differs_from_eager(nest: Nest, outputs: Sequence[np.ndarray]) -> str | None:
    for have, want in zip(outputs, nest.eager(), strict=True):
        left, right = as_tensor(have), as_tensor(want)
        rtol, atol = _EAGER.get(right.dtype, (0.0, 0.0))
        if not torch.allclose(left, right, rtol=rtol, atol=atol, equal_nan=True):
            return f"eager gives {right.flatten()[:4]}…, the kernel {left.flatten()[:4]}…"
    return None


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """The tensor's memory, strides included."""
    if tensor.dtype is torch.bfloat16:
        bits = tensor.detach().view(torch.int16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    return tensor.detach().numpy()


def as_tensor(array: np.ndarray) -> torch.Tensor:
    own = np.array(array, order="C")
    if own.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(own.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(own)


def _laid_out(array: np.ndarray, buffer: Buffer) -> np.ndarray:
    """The array in the memory layout of the buffer."""
    strides = [s * array.itemsize for s in buffer.type.element_strides]
    if list(array.strides) == strides or array.size <= 1:
        return array
    _, made = _fenced(buffer)
    made[...] = array
    return made


def _fenced(buffer: Buffer) -> tuple[np.ndarray, np.ndarray]:
    """Poisoned memory with a fence at both ends, and the array in it."""
    shape, strides = static_shape(buffer.type.shape), buffer.type.element_strides
    dtype = np.dtype(numpy_dtype(buffer.type.dtype))
    last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    elems = 0 if 0 in shape else last + 1
    raw = np.full(elems * dtype.itemsize + 2 * _FENCE, _POISON, np.uint8)
    body = raw[_FENCE : raw.size - _FENCE].view(dtype)
    in_bytes = [s * dtype.itemsize for s in strides]
    return raw, np.lib.stride_tricks.as_strided(body, shape, in_bytes)
