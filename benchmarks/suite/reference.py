"""What a workload has to give, and the least it has to do: eager runs once for the results, once in
float64, and is watched op by op."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.suite.correctness import Expected
from benchmarks.suite.functions import Functions
from benchmarks.suite.peers.work import leaves
from benchmarks.suite.workloads import Case


@dataclass(frozen=True, slots=True)
class Effort:
    """Each input read once, each output written once (bytes), and the operations of matrix
    products and convolutions (a multiply-add counts two) in `dtype`. `weight_bytes` are all
    parameters and buffers; `activation_bytes` is the most that eager's results take at a time.
    `functions` says to how many elements exponentials and their kin are applied, by name."""

    read_bytes: int
    written_bytes: int
    operations: int
    dtype: str
    weight_bytes: int
    activation_bytes: int
    functions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reference:
    """Expected results, and the positions of the inputs that a call writes."""

    expected: Expected
    mutated: tuple[int, ...]


def reference(load: Callable[[], Case]) -> tuple[Reference, Effort]:
    """`load` gives the workload anew each time, as calls may write their inputs."""
    model, inputs, oracle = load()
    before = tuple(x.clone() if torch.is_tensor(x) else x for x in inputs)
    outputs = leaves(model(*inputs))
    mutated = tuple(
        i for i, x in enumerate(inputs) if torch.is_tensor(x) and not _same(x, before[i])
    )
    eager = tuple(t.detach().clone() for t in [*outputs, *(inputs[i] for i in mutated)])
    exact = _exact(load(), mutated)
    if exact is None or [t.shape for t in exact] != [t.shape for t in eager]:
        exact = eager
    return Reference(Expected(eager, exact, oracle), mutated), effort(load())


def _same(x: Tensor, y: Tensor) -> bool:
    return bool(((x == y) | ((x != x) & (y != y))).all())


def _exact(case: Case, mutated: tuple[int, ...]) -> tuple[Tensor, ...] | None:
    """Results with all floats in float64; None where the program does not take them."""
    model, inputs, _ = case
    wide = tuple(_double(x) for x in inputs)
    if isinstance(model, nn.Module):
        model = copy.deepcopy(model).double()
    with contextlib.suppress(RuntimeError, TypeError, ValueError):
        outputs = leaves(model(*wide))
        return tuple(t.detach().clone() for t in [*outputs, *(wide[i] for i in mutated)])
    return None


def _double(value: Any) -> Any:
    return value.double() if torch.is_tensor(value) and value.is_floating_point() else value


def effort(case: Case) -> Effort:
    """Counts what one eager call reads, writes, multiplies and applies functions to."""
    model, inputs, _ = case
    weights = _weights(model)
    given = [*(x for x in inputs if torch.is_tensor(x)), *weights]
    watch = _Watch(given)
    functions = Functions()
    with _plain_attention(), FlopCounterMode(display=False) as counter, functions:
        model(*inputs)
    with watch:
        outputs = leaves(model(*inputs))
    made = {t.untyped_storage().data_ptr(): t for t in outputs}
    new = [t for pointer, t in made.items() if pointer not in watch.reads]
    floats = [t.dtype for t in given if t.is_floating_point()]
    return Effort(
        read_bytes=watch.read_bytes,
        written_bytes=watch.written_bytes + sum(t.numel() * t.element_size() for t in new),
        operations=int(counter.get_total_flops()),
        dtype=str(floats[0] if floats else torch.float32).removeprefix("torch."),
        weight_bytes=sum(t.numel() * t.element_size() for t in weights),
        activation_bytes=watch.peak_bytes,
        functions=dict(functions.elems),
    )


def _weights(model: Callable[..., Any]) -> list[Tensor]:
    return [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []


@contextlib.contextmanager
def _plain_attention() -> Iterator[None]:
    """Attention as two matrix products, which the counter knows."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        yield


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts bytes that ops read from the given tensors, no storage more than once, and write
    into them; and the most bytes that live results take."""

    def __init__(self, given: list[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.reads = {t.untyped_storage().data_ptr(): 0 for t in given}
        self._sizes = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in given}
        self._written: set[int] = set()
        self._live: dict[int, tuple[Any, int]] = {}
        self.peak_bytes = 0

    @property
    def read_bytes(self) -> int:
        return sum(min(read, self._sizes[pointer]) for pointer, read in self.reads.items())

    @property
    def written_bytes(self) -> int:
        return sum(self._sizes[pointer] for pointer in self._written)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        results = leaves(result)
        if not _is_view(func):
            self._count(func, args, results)
        self._remember(results)
        return result

    def _count(self, func: Any, args: tuple[Any, ...], results: list[Tensor]) -> None:
        table = _table_of(func, args)
        for tensor in leaves(args):
            pointer = tensor.untyped_storage().data_ptr()
            if pointer in self.reads:
                read = results[0] if tensor is table and results else tensor
                self.reads[pointer] += read.numel() * tensor.element_size()
        for argument, value in zip(func._schema.arguments, args, strict=False):
            written = argument.alias_info is not None and argument.alias_info.is_write
            if written and torch.is_tensor(value):
                pointer = value.untyped_storage().data_ptr()
                if pointer in self.reads:
                    self._written.add(pointer)

    def _remember(self, results: list[Tensor]) -> None:
        reference: Any = StorageWeakRef  # torch leaves it untyped
        for tensor in results:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in self.reads:
                self._live[storage.data_ptr()] = (reference(storage), storage.nbytes())
        self._live = {p: entry for p, entry in self._live.items() if not entry[0].expired()}
        self.peak_bytes = max(self.peak_bytes, sum(size for _, size in self._live.values()))


def _is_view(func: Any) -> bool:
    """Ops whose result is another view of an operand."""
    returns = func._schema.returns
    return bool(returns) and any(
        r.alias_info is not None and not r.alias_info.is_write for r in returns
    )


def _table_of(func: Any, args: tuple[Any, ...]) -> Tensor | None:
    """The operand that an op reads at given positions only."""
    aten = torch.ops.aten
    gathers = (aten.embedding, aten.index_select, aten.gather, aten.index, aten.take)
    if getattr(func, "overloadpacket", None) in gathers and torch.is_tensor(args[0]):
        found: Tensor = args[0]
        return found
    return None


def save_reference(found: Reference, path: Path) -> None:
    """Writes a file for `load_reference`."""
    expected = found.expected
    fields = {"eager": expected.eager, "exact": expected.exact, "oracle": expected.oracle}
    torch.save({"mutated": found.mutated, **fields}, path)


def load_reference(path: Path) -> Reference:
    """What `save_reference` has written."""
    saved = torch.load(path, weights_only=True)
    expected = Expected(tuple(saved["eager"]), tuple(saved["exact"]), saved["oracle"])
    return Reference(expected, tuple(saved["mutated"]))
