"""Which results of a program may take the memory of the input that they replace."""

from __future__ import annotations

from collections import Counter

from kernel_gen.ir.graph import Graph, Node

# Operators that write elements of a tensor over and read none of them: twice is once.
_WRITES = frozenset(
    (
        "aten.index_copy.default",
        "aten.index_fill.int_Scalar",
        "aten.index_fill.int_Tensor",
        "aten.index_put.default",
        "aten.masked_scatter.default",
        "aten.scatter.src",
        "aten.scatter.value",
    )
)


def written_back(program: Graph) -> dict[int, int]:
    """Value that eager writes into an input -> that input's value.

    Without values that are returned besides, and inputs whose old value is a result: both live on.
    A result that is the input itself, or a view of it, shows what was written in either case.
    """
    kept = [o.value for o in program.outputs if o.mutates is not None or o.alias_of is None]
    found: dict[int, int] = {}
    for output in program.outputs:
        if output.mutates is None or kept.count(output.value) > 1:
            continue
        target = program.inputs[output.mutates].value
        if target not in kept and program.type_of(target) == program.type_of(output.value):
            found[output.value] = target
    return found


def written_by_torch(program: Graph) -> dict[int, int]:
    """Results of operators that torch can run in place -> the input that they are written into.

    `cache.index_copy_(2, position, row)` is functional in a program: a whole new cache, whose last
    form is written back. Nothing else may read the input, nor a form of it that is not the last, so
    that it does not matter when the operator runs; and as it reads no element that it writes, a
    call that fails later can be made again by the model.
    """
    producers = program.producers()
    readers = Counter(value for node in program.nodes for value in node.inputs)
    outside = {output.value for output in program.outputs}
    found: dict[int, int] = {}
    for last, target in written_back(program).items():
        forms: list[int] = []
        value = last
        while value != target:
            node = program.nodes[producers[value]] if value in producers else None
            if node is None or not _overwrites_first(node):
                break
            forms.append(value)
            value = node.inputs[0]
            if readers[value] > 1 or program.type_of(value) != program.type_of(target):
                break
            if value != target and value in outside:
                break
        if value == target and readers[target] == 1:
            found.update(dict.fromkeys(forms, target))
    return found


def _overwrites_first(node: Node) -> bool:
    """Whether the node is its first operand with elements written over, and reads it nowhere."""
    target = node.attr("target")
    match node.attr("args"):
        case ((("value", 0), *rest), named) if node.op == "framework" and target in _WRITES:
            if target == "aten.index_put.default" and (named or rest[2:] not in ([], [False])):
                return False  # accumulates, if that is said
            return not _names_first((rest, named))
    return False


def _names_first(encoded: object) -> bool:
    """Whether encoded arguments name the first operand."""
    if encoded == ("value", 0):
        return True
    return isinstance(encoded, tuple | list) and any(_names_first(item) for item in encoded)
