"""Accumulators of reductions: start value, one step, combining, folding lanes into a scalar."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.statements.ops import OpWriter
from kernel_gen.codegen.cpu.statements.value import Value, literal_text
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C, value_type, vector_type
from kernel_gen.errors import InternalError
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Contract, Reduce

_OPS = {"sum": "add", "prod": "mul", "amax": "maximum", "amin": "minimum", "any": "logical_or",
        "all": "logical_and"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Accumulator:
    """How one reduction accumulates. `value` is the dtype of the accumulated values.

    Argmax and argmin hold a pair of variables: `name` for the value, `name_at` for its position in
    `places` (-1: nothing yet). `ordered`: steps come in ascending positions, so that the first of
    equals is there before the others, and an extreme that is still the start value is at 0.
    """

    op: str
    value: DType
    result: DType
    ordered: bool = False
    places: DType = DType.I64

    @staticmethod
    def of(
        statement: Reduce | Contract,
        arg: DType,
        extent: int | None = None,
        *,
        ordered: bool = False,
    ) -> Accumulator:
        """`extent`: elements reduced, if known; `ordered`: whether positions come ascending."""
        if isinstance(statement, Contract):
            return Accumulator("sum", statement.dtype.compute, statement.dtype)
        if statement.op.startswith("arg"):
            value = arg.compute
            narrow = value.bytes == 4 and extent is not None and extent < 1 << 31
            places = DType.I32 if ordered and narrow else DType.I64
            ordered = ordered and value.bytes == places.bytes
            return Accumulator(statement.op, value, DType.I64, ordered, places)
        kept = DType.BOOL if statement.op in ("any", "all") else statement.dtype.compute
        return Accumulator(statement.op, kept, statement.dtype)

    @property
    def is_arg(self) -> bool:
        return self.op.startswith("arg")

    @property
    def compensates(self) -> bool:
        """Whether long accumulations must be cut into blocks to stay accurate."""
        return self.op == "sum" and self.value.is_float

    def identity(self, ops: OpWriter, vector: bool) -> str:
        """Text of the start value."""
        scalar = Value(literal_text(self._identity(), self.value), self.value, vector=False)
        return ops.broadcast(scalar).text if vector else scalar.text

    def _identity(self) -> float | int | bool:
        if self.op in ("sum", "any") or (self.is_arg and not self.ordered):
            return 0
        if self.op in ("prod", "all"):
            return 1
        largest = self.op in ("amax", "argmax")
        if self.value is DType.BOOL:
            return not largest
        if self.value.is_float:
            return float("-inf") if largest else float("inf")
        bits = self.value.bytes * 8
        low, high = (0, 255) if self.value is DType.U8 else (-(1 << bits - 1), (1 << bits - 1) - 1)
        return low if largest else high

    def declare(self, ops: OpWriter, name: str, vector: bool) -> str:
        """Lines that declare the accumulator at its start value."""
        kind = ops.c_type(self.value, vector)
        text = f"{kind} {name} = {self.identity(ops, vector)};"
        if self.is_arg:
            at = self._places(ops, vector)
            text += f"\n{at} {name}_at = ({at}){{}} - 1;"
        return text

    def restart(self, ops: OpWriter, name: str, vector: bool) -> list[str]:
        """Lines that bring the accumulator back to its start value."""
        lines = [f"{name} = {self.identity(ops, vector)};"]
        if self.is_arg:
            lines.append(f"{name}_at = ({self._places(ops, vector)}){{}} - 1;")
        return lines

    def begin(self, name: str, of: str) -> list[str]:
        """Lines that prepare the accumulator `name` of a block of what `of` accumulates."""
        return []

    def alive(
        self, ops: OpWriter, name: str, value: Value, at: str, mask: Value
    ) -> tuple[str, str]:
        """The vectors `value` and `at` for a step of `name` in which the lanes outside `mask` count
        nothing."""
        dead = Value(self.identity(ops, vector=True), self.value, vector=True)
        if self.is_arg and not self.ordered:
            at = f"({at} | ~{ops.mask_for(mask.text, DType.I64)})"  # -1 in dead lanes
        return ops.select(mask, value, dead), at

    def step(self, ops: OpWriter, name: str, value: str, at: str, vector: bool) -> str:
        """Line that takes in `value` (at position `at`, for argmax and argmin)."""
        if self.ordered and vector:
            return f"{self._ordered_function(ops)}(&{name}, &{name}_at, {value}, {at});"
        if self.is_arg:
            return f"{self._arg_function(ops, vector)}(&{name}, &{name}_at, {value}, {at});"
        pair = Value(name, self.value, vector), Value(value, self.value, vector)
        return f"{name} = {self.combined(ops, *pair)};"

    def combined(self, ops: OpWriter, one: Value, other: Value) -> str:
        """Expression of two accumulated values (not positions) taken together."""
        return ops.compute(_OPS[self.op], self.value, [one, other])

    def merge(self, ops: OpWriter, name: str, other: str, vector: bool) -> str:
        """Line that takes in another accumulator."""
        if self.is_arg:
            function = self._arg_function(ops, vector)
            return f"{function}(&{name}, &{name}_at, {other}, {other}_at);"
        return self.step(ops, name, other, "", vector)

    def _places(self, ops: OpWriter, vector: bool) -> str:
        """C type of positions; scalars hold any."""
        return ops.c_type(self.places if vector else DType.I64, vector)

    def fold(self, ops: OpWriter, name: str, out: str) -> str:
        """Lines that declare the scalar accumulator `out` from all lanes of `name`."""
        if self.is_arg:
            function = self._arg_function(ops, vector=False)
            return (
                f"{self.declare(ops, out, vector=False)}\n"
                f"for (int l = 0; l < {ops.lanes.count}; l++) "
                f"{function}(&{out}, &{out}_at, {name}[l], {name}_at[l]);"
            )
        c = ops.c_type(self.value, vector=False)
        return f"{c} {out} = {self._fold_function(ops)}({name});"

    def variables(self, name: str, vector: bool) -> tuple[tuple[str, DType], ...]:
        """C variables of an accumulator and their dtypes."""
        if self.is_arg:
            return ((name, self.value), (f"{name}_at", self.places if vector else DType.I64))
        return ((name, self.value),)

    def result_text(self, ops: OpWriter, name: str, vector: bool) -> str:
        """Expression of the reduction's value."""
        if not self.is_arg:
            return ops.cast(Value(name, self.value, vector), self.result)
        held = Value(f"{name}_at", self.places if vector else DType.I64, vector)
        found = ops.cast(held, DType.I64)
        if not self.ordered:
            return found
        zero = f"({ops.c_type(DType.I64, vector)}){{}}"
        return f"({found} < 0 ? {zero} : {found})"

    def _fold_function(self, ops: OpWriter) -> str:
        """Halves the vector until two lanes are left: pairwise, so also accurate."""
        unit, lanes = ops.unit, ops.lanes
        kind = value_type(unit, self.value, lanes)
        stored = lanes.mask if self.value is DType.BOOL else self.value
        name = f"gaf_fold_{_OPS[self.op]}_{self.value}x{lanes.count}m{lanes.mask_bytes}"
        lines = [f"static inline {ops.c_type(self.value, False)} {name}({kind} v{lanes.count}) {{"]
        count = lanes.count
        while count > 2:
            half = count // 2
            small = vector_type(unit, stored, half)
            low, high = range(half), range(half, count)
            for tag, chosen in (("a", low), ("b", high)):
                picks = ", ".join(str(i) for i in chosen)
                lines.append(
                    f"  const {small} {tag}{half} = "
                    f"__builtin_shufflevector(v{count}, v{count}, {picks});"
                )
            both = self._combined(ops, f"a{half}", f"b{half}", vector=True)
            lines.append(f"  const {small} v{half} = {both};")
            count = half
        last = f"v{count}[0]", f"v{count}[1]"
        if self.value is DType.BOOL:
            sign = "|" if self.op in ("any", "amax", "sum") else "&"
            lines.append(f"  return ({last[0]} {sign} {last[1]}) != 0;\n}}")
        else:
            c = SCALAR_C[stored]
            lines.append(f"  const {c} p = {last[0]}, q = {last[1]};")
            lines.append(f"  return {self._combined(ops, 'p', 'q', vector=False)};\n}}")
        return unit.helper(name, "\n".join(lines))

    def _combined(self, ops: OpWriter, a: str, b: str, *, vector: bool) -> str:
        pair = [Value(a, self.value, vector), Value(b, self.value, vector)]
        if self.value is DType.BOOL:
            return f"{a} {'|' if self.op in ('any', 'amax', 'sum') else '&'} {b}"
        if self.op in ("amax", "amin"):
            sign = ">" if self.op == "amax" else "<"
            nan = f" | ({a} != {a})" if self.value.is_float else ""
            return f"({a} {sign} {b}){nan} ? {a} : {b}"
        return ops.compute(_OPS[self.op], self.value, pair)

    def _arg_function(self, ops: OpWriter, vector: bool) -> str:
        """Better is: larger (smaller); or NaN where the best is none; or equal and earlier."""
        if self.value is DType.BOOL:
            raise InternalError(f"{self.op} of bool: cast to an integer first")
        unit, lanes = ops.unit, ops.lanes
        sign = ">" if self.op == "argmax" else "<"
        value, at = ops.c_type(self.value, vector), self._places(ops, vector)
        name = f"gaf_{self.op}_{self.value}" + (f"_{self.places}x{lanes.count}" if vector else "")
        if not vector:
            return unit.helper(
                name,
                f"static inline void {name}({value} *b, {at} *bp, {value} x, {at} p) {{\n"
                "  const int xn = x != x, bn = *b != *b;\n"
                f"  if (p >= 0 && (*bp < 0 || (xn && !bn) || (!bn && x {sign} *b) ||\n"
                "      ((x == *b || (xn && bn)) && p < *bp))) { *b = x; *bp = p; }\n}",
            )
        same = {1: DType.I8, 2: DType.I16, 4: DType.I32, 8: DType.I64}[self.value.bytes]
        narrow = vector_type(unit, same, lanes.count)
        return unit.helper(
            name,
            f"static inline void {name}({value} *b, {at} *bp, {value} x, {at} p) {{\n"
            f"  const {narrow} xn = x != x, bn = *b != *b;\n"
            f"  const {narrow} wins = (xn & ~bn) | (~bn & (x {sign} *b));\n"
            f"  const {narrow} ties = (x == *b) | (xn & bn);\n"
            f"  const {at} take = (p >= 0) & ((*bp < 0) | __builtin_convertvector(wins, {at}) |\n"
            f"      (__builtin_convertvector(ties, {at}) & (p < *bp)));\n"
            f"  *bp = take ? p : *bp;\n"
            f"  *b = __builtin_convertvector(take, {narrow}) ? x : *b;\n}}",
        )

    def _ordered_function(self, ops: OpWriter) -> str:
        """Better is: larger (smaller), or NaN where the best is none; equals come too late."""
        unit, lanes = ops.unit, ops.lanes
        sign = "<=" if self.op == "argmax" else ">="
        value, at = ops.c_type(self.value, True), self._places(ops, True)
        name = f"gaf_{self.op}_first_{self.value}_{self.places}x{lanes.count}"
        return unit.helper(
            name,
            f"static inline void {name}({value} *b, {at} *bp, {value} x, {at} p) {{\n"
            f"  const {at} take = ~(x {sign} *b) & (*b == *b);\n"
            "  *b = take ? x : *b;\n"
            "  *bp = take ? p : *bp;\n}",
        )
