"""The accumulator of Σ (x - mean)² over data that are read once.

    q += (x - k)²;  s += x - k;  n += 1          k: the first element, or a mean before
    mean = k + s / n;  Σ (x - mean)² = q - s² / n

Sums begin anew every few hundred elements, as any long float sum does, and are then shifted by the
mean of what came before. The first block is a short one: where its shift is an outlier, the
difference loses a factor of as many elements as it has. Blocks, lanes and threads are joined:

    Σ = Σ₁ + Σ₂ + (mean₁ - mean₂)² · n₁ · n₂ / n

After Chan, Golub and LeVeque, "Algorithms for computing the sample variance: analysis and
recommendations", The American Statistician 37(3), 1983. Unlike Welford's, a step divides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.reductions.accumulate import Accumulator
from kernel_gen.codegen.cpu.statements.ops import OpWriter
from kernel_gen.codegen.cpu.statements.value import Value, literal_text
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C
from kernel_gen.ir.dtype import DType

_PARTS = ("", "_s", "_k", "_n")


@dataclass(frozen=True, slots=True)
class Moment(Accumulator):
    """Four variables: `name` for q, and `name_s`, `name_k` (NaN until there is one), `name_n`."""

    @property
    def compensates(self) -> bool:
        return True

    def declare(self, ops: OpWriter, name: str, vector: bool) -> str:
        kind = ops.c_type(self.value, vector)
        names = ", ".join(f"{name}{part}" for part in _PARTS)
        return "\n".join([f"{kind} {names};", *self.restart(ops, name, vector)])

    def restart(self, ops: OpWriter, name: str, vector: bool) -> list[str]:
        kind = ops.c_type(self.value, vector)
        start = [f"{name}{part} = ({kind}){{}};" for part in ("", "_s", "_n")]
        unset = literal_text(float("nan"), self.value)
        return [*start, f"{name}_k = ({kind}){{}} + {unset};"]

    def begin(self, name: str, of: str) -> list[str]:
        """A block of `of` is shifted by the mean of what came before it."""
        return [f"{name}_k = {of}_k;"]

    def alive(
        self, ops: OpWriter, name: str, value: Value, at: str, mask: Value
    ) -> tuple[str, str]:
        """Dead lanes have no weight."""
        one, none = (ops.broadcast(self._number(n)) for n in (1.0, 0.0))
        return value.text, ops.select(mask, one, none)

    def _number(self, number: float) -> Value:
        return Value(literal_text(number, self.value), self.value, vector=False)

    def step(self, ops: OpWriter, name: str, value: str, at: str, vector: bool) -> str:
        """`at`: weights of lanes, 1 or 0; empty where all count."""
        pointers = ", ".join(f"&{name}{part}" for part in _PARTS)
        if at:
            return f"{self._part_function(ops)}({pointers}, {value}, {at});"
        return f"{self._step_function(ops, vector)}({pointers}, {value});"

    def merge(self, ops: OpWriter, name: str, other: str, vector: bool) -> str:
        pointers = ", ".join(f"&{name}{part}" for part in _PARTS)
        values = ", ".join(f"{other}{part}" for part in _PARTS)
        return f"{self._merge_function(ops, vector)}({pointers}, {values});"

    def fold(self, ops: OpWriter, name: str, out: str) -> str:
        pointers = ", ".join(f"&{out}{part}" for part in _PARTS)
        lanes = ", ".join(f"{name}{part}[l]" for part in _PARTS)
        return (
            f"{self.declare(ops, out, vector=False)}\n"
            f"for (int l = 0; l < {ops.lanes.count}; l++) "
            f"{self._merge_function(ops, vector=False)}({pointers}, {lanes});"
        )

    def variables(self, name: str, vector: bool) -> tuple[tuple[str, DType], ...]:
        return tuple((f"{name}{part}", self.value) for part in _PARTS)

    def result_text(self, ops: OpWriter, name: str, vector: bool) -> str:
        values = ", ".join(f"{name}{part}" for part in ("", "_s", "_n"))
        text = f"{self._centred_function(ops, vector)}({values})"
        return ops.cast(Value(text, self.value, vector), self.result)

    def _named(self, ops: OpWriter, what: str, vector: bool) -> tuple[str, str]:
        """Name of a helper, and the type that it computes in."""
        lanes = f"x{ops.lanes.count}" if vector else ""
        return f"gaf_moment_{what}_{self.value}{lanes}", ops.c_type(self.value, vector)

    def _step_function(self, ops: OpWriter, vector: bool) -> str:
        name, t = self._named(ops, "step", vector)
        return ops.unit.helper(
            name,
            f"static inline void {name}({t} *q, {t} *s, {t} *k, {t} *n, {t} x) {{\n"
            "  *k = *k == *k ? *k : x;\n"
            f"  const {t} d = x - *k;\n"
            f"  *s += d; *q += d * d; *n += ({SCALAR_C[self.value]})1;\n}}",
        )

    def _part_function(self, ops: OpWriter) -> str:
        """A step of the lanes whose weight `w` is 1."""
        name, t = self._named(ops, "part", vector=True)
        return ops.unit.helper(
            name,
            f"static inline void {name}({t} *q, {t} *s, {t} *k, {t} *n, {t} x, {t} w) {{\n"
            f"  const {t} none = {{}}, first = w == none ? *k : x;\n"
            "  *k = *k == *k ? *k : first;\n"
            f"  const {t} d = w == none ? none : x - *k;\n"
            "  *s += d; *q += d * d; *n += w;\n}",
        )

    def _centred_function(self, ops: OpWriter, vector: bool) -> str:
        """Around the mean. A sum that overflowed stays infinite; what rounds below 0 is 0."""
        name, t = self._named(ops, "centred", vector)
        inf = "__builtin_inff()" if self.value is DType.F32 else "__builtin_inf()"
        c = SCALAR_C[self.value]
        return ops.unit.helper(
            name,
            f"static inline {t} {name}({t} q, {t} s, {t} n) {{\n"
            f"  const {t} none = {{}}, one = none + ({c})1, most = none + ({c}){inf};\n"
            f"  const {t} other = q - s * (s / (n == none ? one : n));\n"
            f"  const {t} found = q < most ? other : s - s == none ? q : other;\n"
            "  return found < none ? none : found;\n}",
        )

    def _merge_function(self, ops: OpWriter, vector: bool) -> str:
        """Both around their means, joined; one without elements has weight 0. A mean is kept as a
        step from an element: alone it would be rounded to its own size, not to the deviations'."""
        centred = self._centred_function(ops, vector)
        name, t = self._named(ops, "merge", vector)
        return ops.unit.helper(
            name,
            f"static inline void {name}({t} *q, {t} *s, {t} *k, {t} *n,\n"
            f"    {t} q2, {t} s2, {t} k2, {t} n2) {{\n"
            f"  const {t} none = {{}}, one = none + ({SCALAR_C[self.value]})1, all = *n + n2;\n"
            f"  const {t} from = *n == none ? k2 : *k, to = n2 == none ? from : k2;\n"
            f"  const {t} step = *s / (*n == none ? one : *n);\n"
            f"  const {t} gap = (to - from) + (s2 / (n2 == none ? one : n2) - step);\n"
            f"  const {t} part = n2 / (all == none ? one : all), move = step + gap * part;\n"
            f"  const {t} mean = from + move, rest = move - (mean - from);\n"
            f"  const {t} around = {centred}(*q, *s, *n) + {centred}(q2, s2, n2);\n"
            f"  const {t} both = around + gap * (gap * (*n * part)) + rest * (rest * all);\n"
            "  *q = all == none ? none : both; *s = all == none ? none : rest * all;\n"
            "  *k = mean; *n = all;\n}",
        )
