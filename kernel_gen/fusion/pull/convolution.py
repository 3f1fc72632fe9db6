"""Convolutions as sums over channels and kernel positions.

    y[n, o, i] = Σ over (c, k) of x[n, c, s·i + d·k - p] · w[o, c, k]

is a matrix product of windows, read in place by index maps, with the weight. Positions in the
padding are guarded reads that give 0. Where each channel has a kernel of its own (depthwise) there
is no product to share: short sums are written out tap by tap, long ones are plain reductions.
"""

from __future__ import annotations

import itertools
import math

from kernel_gen.fusion.affine import ZERO, bounds, divide
from kernel_gen.fusion.nest_builder import guarded
from kernel_gen.fusion.pull.puller import Guards, Puller
from kernel_gen.fusion.views import Indices, int_attr, int_tuple, known
from kernel_gen.ir.graph import Node
from kernel_gen.ir.index import Index, axis_index
from kernel_gen.ir.loopnest import Contract, Load, Reduce

_MAX_TAPS = 25  # written out; beyond them a loop is shorter to compile and as fast


def pull_convolution(puller: Puller, node: Node, at: Indices, guards: Guards) -> int:
    """The statement for element `at` of the convolution `node`, its bias added."""
    made = _Windows(puller, node, at, guards).total()
    if len(node.inputs) < 3:
        return made
    bias = puller.pull(node.inputs[2], (at[1],), guards)
    return puller.nest.compute("add", (made, bias), puller.dtype(node.output).compute)


class _Windows:
    """The window of one element, and how it is summed up."""

    def __init__(self, puller: Puller, node: Node, at: Indices, guards: Guards) -> None:
        self._puller, self._node, self._at, self._guards = puller, node, at, guards
        self._dtype = puller.dtype(node.output).compute
        self._source = tuple(known(d, node) for d in puller.shape(node.inputs[0])[1:])
        self._kernel = tuple(known(d, node) for d in puller.shape(node.inputs[1]))

    def total(self) -> int:
        """The sum over the window."""
        taps = math.prod(self._kernel[2:])
        if self._kernel[1] == 1 and int_attr(self._node, "groups") > 1:
            return self._written_out() if taps <= _MAX_TAPS else self._reduced()
        return self._product()

    def _product(self) -> int:
        axes, inner = self._axes(range(1, len(self._kernel)))
        if not axes:  # a single product is still a product to the templates
            axes = (self._puller.nest.fresh_axis("r", 1),)
        lhs, rhs = self._factors(inner)
        return self._puller.nest.add(Contract(lhs, rhs, axes, self._dtype))

    def _reduced(self) -> int:
        axes, inner = self._axes(range(2, len(self._kernel)))
        product = self._puller.nest.compute("mul", self._factors(inner), self._dtype)
        return self._puller.nest.add(Reduce("sum", product, axes, self._dtype))

    def _written_out(self) -> int:
        nest = self._puller.nest
        total: int | None = None
        for tap in itertools.product(*(range(extent) for extent in self._kernel[2:])):
            inner = (ZERO, *(Index(const=place) for place in tap))
            product = nest.compute("mul", self._factors(inner), self._dtype)
            total = product if total is None else nest.compute("add", (total, product), self._dtype)
        assert total is not None  # a kernel is not empty
        return total

    def _axes(self, dims: range) -> tuple[tuple[str, ...], Indices]:
        """An axis for each of the weight's `dims` longer than 1, and the index in (c, kernel…)."""
        taken = self._puller.taken(self._at, self._guards)
        found: dict[int, str] = {}
        for dim in dims:
            if self._kernel[dim] != 1:
                found[dim] = self._puller.inner_axis(self._node, dim, taken, operand=1)
                taken |= {found[dim]}
        inner = (axis_index(found[d]) if d in found else ZERO for d in range(1, len(self._kernel)))
        return tuple(found.values()), tuple(inner)

    def _factors(self, inner: Indices) -> tuple[int, int]:
        """The operands at position `inner` of (channel in the group, kernel…)."""
        weight = self._puller.pull(self._node.inputs[1], (self._at[1], *inner), self._guards)
        return self._input(inner), weight

    def _input(self, inner: Indices) -> int:
        """The input under the kernel: 0 in the padding."""
        source = (self._at[0], self._channel(inner[0]), *self._places(inner[1:]))
        guards = self._guards
        open_ = []
        for index, extent in zip(source[2:], self._source[1:], strict=True):
            low, high = bounds(index, self._puller.nest.extents)
            if low < 0 or high >= extent:
                open_.append((index, extent))
                guards = guarded(guards, index, 0, extent)
        made = self._puller.pull(self._node.inputs[0], source, guards)
        read = self._puller.nest.statements[made]
        if isinstance(read, Load) and read.guards == guards:  # it gives 0 outside them
            return made
        zero = self._puller.nest.const(0, self._dtype)
        for index, extent in open_:
            inside = self._puller.inside(index, 0, extent)
            made = self._puller.nest.compute("where", (inside, made, zero), self._dtype)
        return made

    def _channel(self, inner: Index) -> Index:
        """The channel read: those of an output's group begin at group · size."""
        groups, size = int_attr(self._node, "groups"), self._kernel[1]
        if groups == 1:
            return inner
        outputs = self._kernel[0] // groups
        return divide(self._at[1], outputs, self._puller.nest.extents) * size + inner

    def _places(self, kernel: Indices) -> Indices:
        stride, padding = int_tuple(self._node, "stride"), int_tuple(self._node, "padding")
        dilation = int_tuple(self._node, "dilation")
        settings = zip(self._at[2:], kernel, stride, dilation, padding, strict=True)
        return tuple(i * s + k * d + -p for i, k, s, d, p in settings)
