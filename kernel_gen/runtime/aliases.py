"""Results that are views of an input: how to make them again from the input itself.

Eager hands out views of its inputs (`return x.t()`); a plan must do the same and never a copy.
Such a result is not computed at all: its view operations are applied to the caller's tensor.
"""

from __future__ import annotations

from collections.abc import Container

from kernel_gen.ir.graph import Graph, Output

_VIEWS = frozenset(("reshape", "permute", "expand", "slice"))  # the ones that torch does in place


def view_path(program: Graph, output: Output) -> tuple[int, ...] | None:
    """The view nodes that lead from the aliased input to the output, in order; None if others do.

    Where the input is mutated as well, the path may start at the value that is written back:
    `x.add_(1); return x.t()` is `permute(add(x, 1))`, and the view is taken after the write.
    """
    if output.alias_of is None:
        return None
    starts = {program.inputs[output.alias_of].value}
    starts |= {o.value for o in program.outputs if o.mutates == output.alias_of}
    return _path(program, output.value, starts)


def _path(program: Graph, value: int, starts: Container[int]) -> tuple[int, ...] | None:
    producers = program.producers()
    path: list[int] = []
    while value not in starts:
        node = producers.get(value)
        if node is None or program.nodes[node].op not in _VIEWS:
            return None
        path.append(node)
        value = program.nodes[node].inputs[0]
    return tuple(reversed(path))


def computed_outputs(program: Graph) -> tuple[int, ...]:
    """Values of the outputs that a run has to compute: all but views of inputs. Ascending."""
    return tuple(sorted({o.value for o in program.outputs if view_path(program, o) is None}))
