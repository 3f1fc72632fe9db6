"""An ONNX graph as an nn.Module: weights are parameters, nodes are torch functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes

from kernel_gen.errors import InvalidInput, UnsupportedModel
from kernel_gen.frontend.onnx import (
    attention,
    contractions,
    elementwise,
    indexing,
    losses,
    norms,
    pooling,
    quantisation,
    recurrent,
    reductions,
    resize,
    sampling,
    sequences,
    shapes,
)
from kernel_gen.frontend.onnx.control import branch, check_inner_nodes, initial, loop
from kernel_gen.frontend.onnx.dtypes import torch_dtype
from kernel_gen.frontend.onnx.values import RULES, Call, Items, Known, Value, as_tensor

_RULE_MODULES = (
    *(attention, contractions, elementwise, indexing, losses, norms, pooling),
    *(quantisation, recurrent, reductions, resize, sampling, sequences, shapes),
)
_KNOWN_ELEMS = 4096  # arrays up to this size are arithmetic on shapes, not data
_DOMAINS = ("", "ai.onnx")
_HOLDING = {"If": branch, "Loop": loop}


@dataclass(frozen=True, slots=True)
class Argument:
    """An input of the file: extents are numbers, names of dimensions, or None where unknown."""

    name: str
    dtype: torch.dtype
    shape: tuple[int | str | None, ...]


class _Memory:
    """What was folded already, and how many nodes of graphs in nodes this run has come to. Programs
    are run with the same shapes again and again; no part of a module's state, so captures do not
    watch it."""

    def __init__(self) -> None:
        self.found: dict[object, tuple[Known, ...]] = {}
        self.inner_nodes = 0


class OnnxModule(nn.Module):
    """Runs the nodes of a checked file in their order.

    Inputs are positional, in the file's order, without initialisers. One output comes as a tensor,
    several as a tuple. `read_onnx` makes these.
    """

    def __init__(self, model: onnx.ModelProto, opset: int) -> None:
        super().__init__()
        self.opset = opset
        self.weights = nn.ParameterList()
        self._places: dict[str, int] = {}
        self._known: dict[str, Known] = {}
        self._nodes = tuple(model.graph.node)
        self._outputs = tuple(output.name for output in model.graph.output)
        for output in model.graph.output:
            if not output.type.HasField("tensor_type"):
                raise UnsupportedModel(f"ONNX output {output.name!r} is no tensor")
        for tensor in model.graph.initializer:
            self._add_weight(tensor)
        held = {tensor.name for tensor in model.graph.initializer}
        self.arguments = tuple(_argument(v) for v in model.graph.input if v.name not in held)
        self._memory = _Memory()

    def _add_weight(self, tensor: onnx.TensorProto) -> None:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise InvalidInput(f"the data of initializer {tensor.name!r} are in a file not given")
        dtype = torch_dtype(tensor.data_type, f"initializer {tensor.name!r}")
        values = numpy_helper.to_array(tensor)
        is_small = values.size <= _KNOWN_ELEMS and (values.dtype.kind in "biu" or values.size <= 1)
        if is_small and dtype is not torch.bfloat16:
            self._known[tensor.name] = values
            return
        data = torch.from_numpy(
            np.array(values.astype(np.float32) if dtype is torch.bfloat16 else values)
        )
        self._places[tensor.name] = len(self.weights)
        self.weights.append(nn.Parameter(data.to(dtype), requires_grad=False))

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        if len(inputs) != len(self.arguments):
            raise UnsupportedModel(f"{len(inputs)} inputs, the file has {len(self.arguments)}")
        values: dict[str, Value] = dict(self._known)
        values.update({name: self.weights[place] for name, place in self._places.items()})
        values.update({a.name: x for a, x in zip(self.arguments, inputs, strict=True)})
        self._memory.inner_nodes = 0
        self._run(self._nodes, values)
        found = tuple(_tensor(values[name]) for name in self._outputs)
        return found[0] if len(found) == 1 else found

    def example_shapes(self, dims: Mapping[str, int]) -> list[tuple[int, ...]]:
        """Concrete extents for the inputs, `dims` giving those that the file only names.

        Raises UnsupportedModel where extents stay open, InvalidInput for names that it lacks.
        """
        named = {str(d) for a in self.arguments for d in a.shape if not isinstance(d, int) and d}
        for name in dims:
            if name not in named:
                known = f"it names {', '.join(sorted(named))}" if named else "it says all extents"
                raise InvalidInput(f"the file names no dimension {name!r:.100}: {known}")
        shapes = [[dims.get(str(d), d) for d in a.shape] for a in self.arguments]
        missing = [
            f"{a.name}[{i}]" + (f" ({d})" if d else "")
            for a, shape in zip(self.arguments, shapes, strict=True)
            for i, d in enumerate(shape)
            if not isinstance(d, int)
        ]
        if missing:
            raise UnsupportedModel(
                f"the file leaves extents open: {', '.join(missing)}. Give example inputs, or "
                "sizes for the names (`--dim NAME=SIZE` on the command line)"
            )
        return [tuple(d for d in shape if isinstance(d, int)) for shape in shapes]

    def _run(self, nodes: Sequence[onnx.NodeProto], values: dict[str, Value]) -> None:
        """Adds to `values` what the nodes compute."""
        for node in nodes:
            for name, value in zip(node.output, self._results(node, values), strict=False):
                if name and value is not None:
                    values[name] = value

    def _results(self, node: onnx.NodeProto, values: dict[str, Value]) -> Sequence[Value | None]:
        operands = tuple(values[name] if name else None for name in node.input)
        if node.op_type == "Constant":
            return [self._constant(node)]
        if node.op_type in _HOLDING:
            return self._holding(node, operands, values)
        if operands and all(isinstance(o, np.ndarray) or o is None for o in operands):
            folded = self._fold(node, operands)
            if folded is not None:
                return folded
        result = _rule(node)(self._call(node, operands))
        return list(result) if isinstance(result, list | tuple) else [result]

    def _call(self, node: onnx.NodeProto, operands: tuple[Value | None, ...]) -> Call:
        attrs = {a.name: _attribute(a) for a in node.attribute}
        wanted = max((i + 1 for i, name in enumerate(node.output) if name), default=1)
        return Call(node.op_type, node.name, self.opset, attrs, operands, wanted)

    def _constant(self, node: onnx.NodeProto) -> Value:
        (attribute,) = node.attribute
        if attribute.name == "value":
            torch_dtype(attribute.t.data_type, f"constant {node.output[0]!r}")
            values = numpy_helper.to_array(attribute.t)
        elif attribute.name.startswith("value_") and "string" not in attribute.name:
            kind = np.float32 if "float" in attribute.name else np.int64
            values = np.asarray(onnx.helper.get_attribute_value(attribute), dtype=kind)
        else:
            raise UnsupportedModel(f"ONNX Constant with attribute {attribute.name!r}")
        if values.dtype.kind in "biuf" and values.size <= _KNOWN_ELEMS:
            return values
        return (
            as_tensor(values.astype(np.float32)) if values.dtype.kind == "V" else as_tensor(values)
        )

    def _holding(
        self, node: onnx.NodeProto, operands: tuple[Value | None, ...], values: dict[str, Value]
    ) -> list[Value]:
        """Results of a node that holds graphs, which see all values so far."""

        def run(graph: onnx.GraphProto, inputs: dict[str, Value]) -> list[Value]:
            self._memory.inner_nodes += len(graph.node) + 1
            check_inner_nodes(self._memory.inner_nodes)
            inner = {**values, **initial(graph), **inputs}
            self._run(graph.node, inner)
            return [inner[output.name] for output in graph.output]

        return _HOLDING[node.op_type](self._call(node, operands), run)

    def _fold(
        self, node: onnx.NodeProto, operands: tuple[Value | None, ...]
    ) -> tuple[Known, ...] | None:
        """Results of a node whose operands are all known, if it is small."""
        arrays = [o for o in operands if isinstance(o, np.ndarray)]
        if sum(a.size for a in arrays) + _grown(node.op_type, arrays) > _KNOWN_ELEMS:
            return None
        # By what it says: objects of nodes come and go, and graphs side by side share names.
        said = node.SerializeToString(deterministic=True)
        key = (said, tuple((a.dtype.str, a.shape, a.tobytes()) for a in arrays))
        if key not in self._memory.found:
            found = self._computed(node, operands)
            if found is None or sum(a.size for a in found) > _KNOWN_ELEMS:
                return None
            self._memory.found[key] = found
        return self._memory.found[key]

    def _computed(
        self, node: onnx.NodeProto, operands: tuple[Value | None, ...]
    ) -> tuple[Known, ...] | None:
        """A node's results here and now, whatever traces the program; None if NumPy has no type
        for them."""
        with _disable_current_modes():
            result = _rule(node)(self._call(node, operands))
            several = list(result) if isinstance(result, list | tuple) else [result]
            if any(
                isinstance(value, Items) or getattr(value, "dtype", None) is torch.bfloat16
                for value in several
            ):
                return None
            return tuple(
                value.numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
                for value in several
            )


def _grown(op: str, arrays: Sequence[Known]) -> float:
    """Elements of a result that is larger than the operands that describe it."""
    if op in ("ConstantOfShape", "Expand", "Tile"):
        return float(np.prod(np.abs(arrays[-1].astype(np.float64)))) * arrays[0].size
    if op == "Range":
        start, limit, step = (float(a.item()) for a in arrays)
        return abs(limit - start) / max(abs(step), 1e-30)
    return 0.0


def _rule(node: onnx.NodeProto) -> Any:
    found = RULES.get(node.op_type) if node.domain in _DOMAINS else None
    if found is None:
        where = f"{node.domain}." if node.domain not in _DOMAINS else ""
        raise UnsupportedModel(
            f"ONNX operator {where}{node.op_type} has no rule (node {node.name!r}); "
            "load the model in PyTorch, or split the file before it"
        )
    return found


def unsupported(model: onnx.ModelProto) -> tuple[str, ...]:
    """Names of the operators of a file that have no rule, sorted."""
    known = {*RULES, *_HOLDING, "Constant"}
    return tuple(
        sorted(
            {
                f"{n.domain}.{n.op_type}" if n.domain not in _DOMAINS else n.op_type
                for n in model.graph.node
                if n.op_type not in known or n.domain not in _DOMAINS
            }
        )
    )


def _tensor(value: Value) -> torch.Tensor:
    if isinstance(value, Items):
        raise UnsupportedModel("an ONNX output is a sequence: return its tensors")
    return as_tensor(value) if isinstance(value, np.ndarray) else value


def _argument(info: onnx.ValueInfoProto) -> Argument:
    if not info.type.HasField("tensor_type"):
        raise UnsupportedModel(f"ONNX input {info.name!r} is no tensor")
    kind = info.type.tensor_type
    dims = tuple(_extent(dim) for dim in kind.shape.dim)
    return Argument(info.name, torch_dtype(kind.elem_type, f"input {info.name!r}"), dims)


def _extent(dim: Any) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return str(dim.dim_param) or None


def _attribute(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value
