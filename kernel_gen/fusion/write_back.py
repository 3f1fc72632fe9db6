"""Which results of a program may take the memory of the input that they replace."""

from __future__ import annotations

from kernel_gen.ir.graph import Graph


def written_back(program: Graph) -> dict[int, int]:
    """Value that eager writes into an input -> that input's value.

    Without values that are returned besides, and inputs whose old value is a result: both live on.
    """
    returned = [output.value for output in program.outputs]
    found: dict[int, int] = {}
    for output in program.outputs:
        if output.mutates is None or returned.count(output.value) > 1:
            continue
        target = program.inputs[output.mutates].value
        if target not in returned and program.type_of(target) == program.type_of(output.value):
            found[output.value] = target
    return found
