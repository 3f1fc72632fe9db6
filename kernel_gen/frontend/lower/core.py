"""What all lowerings share: bound arguments, the graph under construction, the registry.

A lowering is `f(c, a) -> Result`: `c` is the `Lowering` (builds nodes), `a` the call's arguments by
the names of the operator's schema, with tensors as `Val`. It returns one `Val`, or several (None
where a result is not used). It raises NotLowered where the primitives cannot say it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kernel_gen.frontend.dtypes import PromotionOperand, fits, promote, rounded
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Attr
from kernel_gen.ir.types import Dim, Shape, Sym, TensorType


class NotLowered(Exception):
    """No primitives say what this call does; it becomes a framework node.

    `code` and `sentence` go into the node; `decompose` says whether torch's own decomposition
    may be tried first.
    """

    def __init__(self, sentence: str, *, code: str = "no-lowering", decompose: bool = True) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code
        self.decompose = decompose


@dataclass(frozen=True, slots=True)
class Val:
    """A tensor value of the graph under construction."""

    id: int
    type: TensorType

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def rank(self) -> int:
        return len(self.type.shape)


@dataclass(frozen=True, slots=True)
class Pair(Val):
    """A complex tensor: real and imaginary parts side by side in a last dimension of its own."""


Number = bool | int | float
Args = dict[str, Any]
Result = Val | Sequence[Val | None]
LoweringRule = Callable[["Lowering", Args], Result]

_RULES: dict[str, LoweringRule] = {}
_COMPLEX_RULES: dict[str, LoweringRule] = {}


def lowers(names: str, *, pairs: bool = False) -> Callable[[LoweringRule], LoweringRule]:
    """Registers a rule for operators by packet ("add") or overload ("div.Tensor_mode"); with
    `pairs` for their calls that read or give complex tensors."""
    rules = _COMPLEX_RULES if pairs else _RULES

    def register(rule: LoweringRule) -> LoweringRule:
        for name in names.split():
            if name in rules:
                raise ValueError(f"two lowerings for aten.{name}")
            rules[name] = rule
        return rule

    return register


def rule_for(packet: str, overload: str, *, pairs: bool = False) -> LoweringRule | None:
    """The rule of an aten operator; one registered for the overload wins."""
    rules = _COMPLEX_RULES if pairs else _RULES
    return rules.get(f"{packet}.{overload}") or rules.get(packet)


class Lowering:
    """Builds nodes for one call after another; `out` and `used` describe the current call."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.out: tuple[TensorType | None, ...] = ()
        self.used: tuple[bool, ...] = ()
        self.name = ""  # the operator, for messages: "aten.add.Tensor"
        self.label = ""  # the call, for people
        self._made: dict[int, tuple[str, tuple[int, ...], dict[str, Attr]]] = {}
        self._sources: dict[object, int] = {}  # nodes without operands are made once

    @property
    def out_type(self) -> TensorType:
        """Type of the current call's first result, as torch computed it."""
        if not self.out or self.out[0] is None:
            raise NotLowered(f"{self.name} gives no tensor")
        return self.out[0]

    def val(self, value: int) -> Val:
        return Val(value, self.builder.type_of(value))

    def op(self, op: str, *operands: Val, **attrs: Attr) -> Val:
        """One node with one output."""
        if not operands:
            return self._source(op, attrs)
        value = self._node(op, [operand.id for operand in operands], attrs)
        self._made[value] = (op, tuple(operand.id for operand in operands), attrs)
        return self.val(value)

    def _node(self, op: str, operands: list[int], attrs: dict[str, Attr]) -> int:
        given: dict[str, Any] = dict(attrs)
        value: int = self.builder.op(op, *operands, name=self.label, **given)
        return value

    def _source(self, op: str, attrs: dict[str, Attr]) -> Val:
        # repr tells 1 from 1.0 and True, 0.0 from -0.0, and makes NaN equal to itself.
        key = (op, repr(sorted(attrs.items())))
        value = self._sources.get(key)
        if value is None:
            value = self._sources[key] = self._node(op, [], attrs)
            self._made[value] = (op, (), attrs)
        return self.val(value)

    def made(self, value: Val) -> tuple[str, tuple[Val, ...], dict[str, Attr]] | None:
        """Op, operands and attributes of the node behind `value`; None for what no node made."""
        made = self._made.get(value.id)
        if made is None:
            return None
        op, operands, attrs = made
        return op, tuple(self.val(operand) for operand in operands), attrs

    def made_by(self, value: Val, op: str) -> tuple[tuple[Val, ...], dict[str, Attr]] | None:
        """Operands and attributes of the node behind `value` if that is an `op`."""
        made = self.made(value)
        return made[1:] if made is not None and made[0] == op else None

    def cast(self, value: Val, dtype: DType) -> Val:
        return value if value.dtype is dtype else self.op("cast", value, dtype=str(dtype))

    def full(self, shape: Shape, value: Number, dtype: DType) -> Val:
        """A constant tensor; numbers that `dtype` cannot hold are refused."""
        if not fits(value, dtype):
            raise NotLowered(f"{self.name}: {value} is out of range for {dtype}")
        held: Number = bool(value) if dtype is DType.BOOL else value
        held = rounded(held, dtype) if dtype.is_float else held
        held = int(held) if dtype.is_integer else held
        return self.op("full", shape=self.dims(shape), dtype=str(dtype), value=held)

    def number(self, value: Number, dtype: DType) -> Val:
        """A Python number as a 0-d constant."""
        return self.full((), value, dtype)

    def exact_number(self, value: Number, dtype: DType) -> Val:
        """A 0-d constant that a narrow float does not round: an operand computed with in fp32."""
        return self.op("full", shape=(), dtype=str(dtype), value=float(value))

    def operand(self, value: Val | Number, dtype: DType) -> Val:
        """A tensor or number as an operand of type `dtype`."""
        if isinstance(value, Val) and value.dtype is dtype:
            return value
        known = self.known_number(value)
        if known is not None:
            return self.number(known, dtype)
        assert isinstance(value, Val)
        return self.cast(value, dtype)

    def known_number(self, value: Val | Number) -> Number | None:
        """The number that a 0-d constant holds, or a number itself."""
        if not isinstance(value, Val):
            return value
        made = self.made_by(value, "full")
        held = made[1]["value"] if made is not None and value.rank == 0 else None
        return held if isinstance(held, bool | int | float) else None

    def dims(self, shape: Sequence[Dim]) -> tuple[Attr, ...]:
        """A shape as an attribute: symbols by name."""
        return tuple(dim.name if isinstance(dim, Sym) else dim for dim in shape)

    def reshape(self, value: Val, shape: Shape) -> Val:
        return value if value.shape == shape else self.op("reshape", value, shape=self.dims(shape))

    def expand(self, value: Val, shape: Shape) -> Val:
        return value if value.shape == shape else self.op("expand", value, shape=self.dims(shape))

    def permute(self, value: Val, order: Sequence[int]) -> Val:
        """Dimensions reordered; a permutation of a permutation becomes one."""
        inner = self.made_by(value, "permute")
        if inner is not None:
            (source,), attrs = inner
            before = attrs["dims"]
            if isinstance(before, tuple):
                composed = [int(before[axis]) for axis in order]  # type: ignore[arg-type]
                return self.permute(source, composed)
        if list(order) == list(range(value.rank)):
            return value
        return self.op("permute", value, dims=tuple(order))

    def swap(self, value: Val, left: int, right: int) -> Val:
        """Two dimensions exchanged; negative ones count from the end."""
        order = list(range(value.rank))
        if order:
            order[left], order[right] = order[right], order[left]
        return self.permute(value, order)

    def slice(self, value: Val, dim: int, start: int, stop: Dim, step: int = 1) -> Val:
        """`value[start:stop:step]` along `dim` with resolved bounds."""
        if start == 0 and stop == value.shape[dim] and step == 1:
            return value
        if isinstance(stop, Sym):
            raise symbolic(self, f"a slice up to the symbol {stop.name}")
        return self.op("slice", value, dim=dim, start=start, stop=stop, step=step)


def extent(c: Lowering, value: Val, dim: int) -> int:
    """A static extent; raises NotLowered where it is symbolic."""
    found = value.shape[dim]
    if isinstance(found, Sym):
        raise symbolic(c, f"the extent of dimension {dim}, which is the symbol {found.name}")
    return found


def symbolic(c: Lowering, what: str) -> NotLowered:
    """The refusal of a call that would need `what`. Torch's decompositions compute with the
    symbols, which no graph holds."""
    sentence = f"{c.name} needs {what}: capture with static shapes"
    return NotLowered(sentence, code="symbolic-extent", decompose=False)


def axis(dim: int, rank: int) -> int:
    """A dimension counted from the front: axis(-1, 3) is 2; 0-d tensors have one axis, 0."""
    return dim % max(rank, 1)


def axes(dims: Sequence[int] | int | None, rank: int) -> tuple[int, ...]:
    """Reduced dimensions, ascending; None and () mean all."""
    if isinstance(dims, int):
        dims = (dims,)
    if rank == 0:
        return ()
    if dims is None or len(dims) == 0:
        return tuple(range(rank))
    return tuple(sorted({axis(dim, rank) for dim in dims}))


def joint_dtype(*operands: Val | Number) -> DType:
    """The type to which torch promotes the operands of an elementwise op."""
    return promote(
        PromotionOperand(operand.dtype, operand.rank > 0) if isinstance(operand, Val) else operand
        for operand in operands
    )
