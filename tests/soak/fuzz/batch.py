"""Many cases checked together: one run of the compiler for all of their kernels."""

from __future__ import annotations

import random
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import Refusal
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.kernel import LoadedKernel
from kernel_gen.runtime.plan import Artifact
from tests.acceptance.random_covers import Parts, check_plan, random_parts, with_writes
from tests.soak.fuzz.cases import FuzzCase
from tests.soak.fuzz.kernels import Whole, whole_kernels

_PLANNED = 0.3  # share of the cases that are run as plans too
OnSeed = Callable[[int], None]


@dataclass(slots=True)
class Found:
    """What a batch saw: what went wrong by seed, and how much of what was tried."""

    failures: dict[int, str] = field(default_factory=dict)
    tried: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Made:
    """What a case is checked by."""

    case: FuzzCase
    whole: Sequence[Whole]
    parts: Parts | None

    def sources(self) -> list[KernelSource]:
        planned = () if self.parts is None else self.parts.kernels
        return [*(w.source for w in self.whole), *(k.source for k in planned)]


@dataclass(frozen=True)
class _Together(Compiler):
    """A compiler that has kernels in one object file already: for linking plans of them."""

    known: Mapping[str, Path] = field(default_factory=dict)

    def object(self, source: KernelSource, target: Target) -> Path | Failure:
        return self.known.get(source.entry) or super().object(source, target)

    def link(self, objects: Sequence[Path]) -> Artifact | Failure:
        return super().link(list(dict.fromkeys(objects)))


def check_cases(
    cases: Iterable[FuzzCase], target: Target, compiler: Compiler, on_seed: OnSeed = lambda _: None
) -> Found:
    """Checks each case as one kernel and as a program under a random cover.

    `on_seed` is told whose kernels run next: a crash is theirs.
    """
    found, made = Found(), list[_Made]()
    for case in cases:
        on_seed(case.seed)
        try:
            made.append(_prepared(case, target, found.tried))
        except Exception:  # noqa: BLE001 - a case that fails does not end the others
            found.failures[case.seed] = traceback.format_exc()
    together = _object([s for one in made for s in one.sources()], target, compiler)
    for one in made:
        on_seed(one.case.seed)
        built = together if together is not None else _object(one.sources(), target, compiler)
        try:
            assert built is not None, "the compiler rejects its kernels"
            _check(one, target, compiler, built, found.tried)
        except Exception:  # noqa: BLE001
            found.failures[one.case.seed] = traceback.format_exc()
    return found


def _prepared(case: FuzzCase, target: Target, tried: Counter[str]) -> _Made:
    symbol = f"k{case.seed}"
    whole = whole_kernels(case, target, symbol)
    if isinstance(whole, Refusal):
        tried[f"no nest: {whole.code}"] += 1
        whole = []
    elif not whole:
        tried["no kernel: its text is too long"] += 1
    parts = None
    rng = random.Random(f"plan of {case.seed}")
    if rng.random() < _PLANNED and not _is_up_to_torch(case.graph):
        parts = random_parts(with_writes(case.graph, rng), target, rng, f"{symbol}_c")
    return _Made(case, whole, parts)


def _is_up_to_torch(graph: Graph) -> bool:
    """Whether a plan's result depends on how torch runs an op: which of equal elements its sort
    puts first, how its attention kernels treat rows of NaN."""
    ops = {node.op for node in graph.nodes}
    finite = all(i.domain.finite for i in graph.inputs if graph.type_of(i.value).dtype.is_float)
    return bool(ops & {"topk", "argtopk"}) or ("attention" in ops and not finite)


def _object(sources: Sequence[KernelSource], target: Target, compiler: Compiler) -> Path | None:
    """One object file of all the kernels; None if the compiler rejects them."""
    if not sources:
        return Path()
    text = "\n".join(source.files[0][1] for source in sources)
    built = compiler.object(KernelSource("together", (("kernels.cpp", text),)), target)
    return None if isinstance(built, Failure) else built


def _check(
    made: _Made, target: Target, compiler: Compiler, built: Path, tried: Counter[str]
) -> None:
    if made.whole:
        linked = compiler.link([built])
        assert not isinstance(linked, Failure), linked.message
        for whole in made.whole:
            _run(whole, compiler.path_of(linked))
            tried[f"kernel {whole.template}"] += 1
    if made.parts is None:
        return
    known = {kernel.source.entry: built for kernel in made.parts.kernels}
    linker = _Together(*(getattr(compiler, f.name) for f in fields(compiler)), known=known)
    check_plan(made.parts, made.parts.assembled(target, linker), made.case.seed)
    tried["plan"] += 1
    for kernel in made.parts.kernels:
        tried[f"kernel {kernel.schedule.template} of a plan"] += 1
    tried["framework group of a plan"] += len(made.parts.cover.groups) - len(made.parts.kernels)


def _run(whole: Whole, path: Path) -> None:
    kernel = LoadedKernel(path, whole.source, whole.case.lowered.nest)
    for threads in whole.threads:
        try:
            whole.case.check(kernel, threads)
        except AssertionError as wrong:
            wrong.add_note(f"{whole.template} {dict(whole.point)}, {threads} threads")
            raise
