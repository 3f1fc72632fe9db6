"""How sets of nodes grow: by one neighbour, completed by what it takes to make them one group.

Sets are masks: bit n is node n of the program.
"""

from __future__ import annotations

from kernel_gen.fusion.dag import Dag, bits, mask_of
from kernel_gen.fusion.legality import is_attention, matrix_products
from kernel_gen.fusion.region import constant_nodes
from kernel_gen.fusion.siblings import sibling_masks
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.ops import OpKind, spec


class Growths:
    """Sets of at most `most` nodes of one program, sources not counted; larger ones are given as
    they are, to be refused.

    `constant` nodes run once, when a plan is bound; `absorbed` ones are made anew in each group
    that reads them, with `widening` also casts of constant bytes; `returned` ones make the
    program's results.
    """

    def __init__(self, program: Graph, most: int, *, widening: bool) -> None:
        self._program, self._most, self._widening = program, most, widening
        self.dag = Dag(program)
        made_by = program.producers()
        results = {output.value for output in program.outputs}
        self.constant = frozenset(constant_nodes(program))
        self.returned = mask_of(made_by[v] for v in results if v in made_by)
        self.absorbed = mask_of(filter(self._is_absorbed, range(len(program.nodes))))
        self._sources = mask_of(filter(self._is_source, range(len(program.nodes))))
        self._siblings = [self._close(n, mask) for n, mask in enumerate(sibling_masks(program))]

    def _close(self, node: int, siblings: int) -> int:
        """Those siblings that may share a group with `node`: a constant that all layers read makes
        siblings of ops with whole layers between them."""
        room = self._most - 2
        return mask_of(
            other for other in bits(siblings) if self.dag.between(node, other).bit_count() <= room
        )

    def of(self, mask: int) -> list[int]:
        """Completed groups that are one neighbour larger: producers and consumers first. A source
        that all layers read, such as a number, makes no neighbours."""
        near = self.dag.around(mask & ~self.absorbed) & ~mask
        side = 0
        for node in bits(mask):
            side |= self._siblings[node]
        order = [*bits(near), *bits(side & ~near & ~mask)]
        grown = [self.completed(mask | (1 << n)) for n in order if n not in self.constant]
        return list(dict.fromkeys(grown))

    def completed(self, mask: int) -> int:
        """The mask made convex, with what it reads of `absorbed` nodes; an attention
        also with views that it alone reads: else each set of them would be another group."""
        mask |= self.dag.closure(mask & ~self.absorbed)  # sources are made in each group anew
        if (mask & ~self._sources).bit_count() > self._most:
            return mask  # refused as it is
        attention = self._is_attention(mask)
        waiting = list(bits(mask))
        while waiting:
            for producer in bits(self.dag.producers[waiting.pop()] & ~mask):
                own = attention and self._is_own_view(producer, mask)
                if own or self._is_absorbed(producer):
                    mask |= 1 << producer
                    waiting.append(producer)
        return mask

    def _is_attention(self, mask: int) -> bool:
        nodes = [self._program.nodes[node] for node in bits(mask)]
        return sum(map(matrix_products, nodes)) > 1 and is_attention(nodes)

    def _is_own_view(self, node: int, mask: int) -> bool:
        view = spec(self._program.nodes[node].op).kind is OpKind.VIEW
        return view and not self.dag.consumers[node] & ~mask and not self.returned >> node & 1

    def _is_source(self, node: int) -> bool:
        return spec(self._program.nodes[node].op).kind is OpKind.SOURCE

    def _is_absorbed(self, node: int) -> bool:
        view = spec(self._program.nodes[node].op).kind is OpKind.VIEW
        in_place = view or self._widens_bytes(node)
        return self._is_source(node) or (in_place and node in self.constant)

    def _widens_bytes(self, node: int) -> bool:
        """Whether integers of 8 bits, such as quantised weights, become floats: kernels do so as
        they read them, a quarter of what the floats would be."""
        cast = self._program.nodes[node]
        if cast.op != "cast" or not self._widening:
            return False
        before, after = (self._program.type_of(v) for v in (cast.inputs[0], cast.output))
        return before.dtype in (DType.I8, DType.U8) and after.dtype.is_float
